#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# also: fuse
# A program that closes our descriptors and opens files or sockets of its own in their place keeps those as
# they are, in a forked child too.
. "$(dirname "$0")/lib.sh"
requires mount
start_server
start_mount
# A file system whose files may be as large as the offsets in ctl, where there is one.
folder=$work
[ -d /dev/shm ] && folder=$(mktemp -d /dev/shm/scudafs-closes.XXXXXX) && at_exit rm -rf "$folder"
for what in files sockets; do
	run_program closes "$folder" "$what" >"$work/said" 2>&1 || fail "$what: $(cat "$work/said")"
	contains "$work/said" '^right' || fail "$what: $(cat "$work/said")"
done
