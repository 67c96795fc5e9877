#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# also: fuse
# A program may confine itself after cuInit as it may natively: another user or root folder, namespaces, few
# descriptors, little memory; its threads may have small stacks.
. "$(dirname "$0")/lib.sh"
requires mount
start_server
ways=(free stack descriptors chroot namespace private address locked statx)
others=()
if [ "$(id -u)" = 0 ]; then
	others=(-o allow_other)
	ways+=(user)
fi
start_mount "${others[@]}"
for how in "${ways[@]}"; do
	# A sanitizer has more on the stack, and needs more addresses.
	case $how in stack | address) [ -z "$sanitizer" ] || continue ;; esac
	# Where it cannot open files or see /proc, the search for leaks waits for itself without an end.
	leaks=
	case $how in descriptors | chroot) leaks=:detect_leaks=0 ;; esac
	ASAN_OPTIONS=${ASAN_OPTIONS:-}$leaks run_program confined "$how" >"$work/said" 2>&1 ||
		fail "$how: $(cat "$work/said")"
	contains "$work/said" '^right$' || contains "$work/said" '^cannot$' ||
		fail "$how: $(cat "$work/said")"
done
# By the mount's file: there is no memory to send a batch that has its number.
SCUDAFS_CHANNEL=fuse at_most 20 "$bin/scudafs" run --mount "$mnt" -- "$progs/confined" writes \
	>"$work/said" 2>&1 || fail "writes: $(cat "$work/said")"
contains "$work/said" '^right$' || contains "$work/said" '^cannot$' || fail "writes: $(cat "$work/said")"
within 10 no_sessions || fail "sessions are left: $(sessions)"
