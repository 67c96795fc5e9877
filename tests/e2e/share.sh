#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Memory exported by descriptors stays at the server as long as somebody has the descriptor, and no longer:
# the exporter is killed, another process that was sent one holds it and ends, the daemon is killed. A mount
# may keep so many, and not more.
. "$(dirname "$0")/lib.sh"
requires mount
start_server
start_mount

kept() # descriptors at the listener beside its own
{
	echo $(($(ls "/proc/$server/fd" | wc -l) - before))
}
keeps() # NUMBER
{
	[ "$(kept)" = "$1" ]
}
before=$(ls "/proc/$server/fd" | wc -l)

start_program one share 5
expect one 10 ready
expect one 10 "child ready"
keeps 6 || fail "$(kept) descriptors with five exports and a session"
kill -KILL "${pid[one]}"
within 4 keeps 1 || fail "$(kept) descriptors with one in another process"
within 2 no_sessions || fail "the exporter's session is still there"
tell one
within 4 keeps 0 || fail "$(kept) descriptors when nobody has one"

start_program two share 3
expect two 10 ready
within 4 keeps 4 || fail "$(kept) descriptors"
kill -KILL "$(daemon)"
within 10 keeps 0 || fail "$(kept) descriptors when the daemon is gone"
kill -KILL "${pid[two]}"
tell two
umount -l "$mnt" 2>/dev/null || fusermount3 -uz "$mnt"
start_mount

run_program share most >"$work/most" || fail "see above: $(cat "$work/most")"
grep -q '^1024 exports, then CUDA_ERROR_OUT_OF_MEMORY$' "$work/most" || fail "$(cat "$work/most")"
within 4 keeps 0 || fail "$(kept) descriptors when the program has ended"
run_program share pointer | grep -q right || fail "the name of a pointer into a pool"
