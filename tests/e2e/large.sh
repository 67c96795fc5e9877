#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# also: two unix
# Large copies, from and to pageable and pinned memory, by one thread and by two at once: every byte is
# right, through shared memory, through the file alone, with compression and with a key.
. "$(dirname "$0")/lib.sh"
requires mount

copies() # NAME
{
	start_program "$1" large
	expect "$1" 60 right
	tell "$1"
	expect "$1" 60 over
	wait "${pid[$1]}" || fail "$1 ended with $?"
}
start_server
start_mount
copies shared
SCUDAFS_CHANNEL=fuse copies fuse
stop_mount
start_mount -o compress=on
copies packed
stop_mount
stop_server

"$bin/scudafs" keygen alice "$work/alice" 2>/dev/null
chmod 600 "$work/alice"
start_server --keys "$work/alice"
start_mount -o "key=$work/alice"
copies key
