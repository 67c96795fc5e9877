#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# also: fuse
# A program in a container: namespaces of its own for processes, mounts, network, IPC and, as rootless
# containers have, users; no scudafs command in it, only the mount, the library and LD_LIBRARY_PATH.
. "$(dirname "$0")/lib.sh"
requires mount root unshare
start_server
start_mount -o allow_other

inside() # UNSHARE-OPTION...
{
	unshare "$@" true 2>/dev/null || { echo "(no unshare $*)" && return; }
	tried=$((tried + 1))
	at_most 60 unshare "$@" env -i LD_LIBRARY_PATH="$lib" SCUDAFS_MOUNT="$mnt" SCUDAFS_LOG=debug \
		"$progs/small" >"$work/out" 2>"$work/err" ||
		fail "in $*: $(tail -n 3 "$work/err")"
	contains "$work/out" right || fail "in $*: $(cat "$work/out")"
	[ -n "${SCUDAFS_CHANNEL:-}" ] || contains "$work/err" 'memory is shared' ||
		fail "in $*: $(grep memory "$work/err")"
	within 2 no_sessions || fail "a session is left of $*"
}
tried=0
inside --mount --pid --fork --net --ipc --uts --kill-child
inside --user --map-root-user --mount --pid --fork --net --ipc --uts --kill-child
[ "$tried" -gt 0 ] || skip "no namespaces"
