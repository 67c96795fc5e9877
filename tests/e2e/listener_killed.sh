#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# also: fuse
# Only the server's first process, which listens, is killed: running programs go on in their sessions, new
# ones get an error at once, the tree says so; a new server on the same port has new sessions at once, and
# nothing is left of the old one but what works.
. "$(dirname "$0")/lib.sh"
requires mount
start_server
start_mount
start_program runs steady
expect runs 20 working
session=$(sessions)
old=$monitor
kill -KILL "$server"
wait "$server" 2>/dev/null
within 5 contains "$mnt/status" lost || fail "the mount is $(cat "$mnt/status")"
at_most 5 "$bin/scudafs" run --mount "$mnt" -- "$progs/count" >"$work/count.out" 2>&1
contains "$work/count.out" 'init 805' || fail "without a listener: $(cat "$work/count.out")"
within 5 gone "$old" || fail "the old monitor is left"
gone "$session" && fail "the running session ended: $(cat "$work/runs.err")"

start_server --listen "$address"
works()
{
	run_program small 2>/dev/null | grep -q right
}
within 3 works || fail "after the restart: $(run_program small 2>&1)"
within 5 contains "$mnt/status" ready || fail "after the restart the mount is $(cat "$mnt/status")"
tell runs
expect runs 10 rounds
within 2 gone "$session" || fail "the old session is left"
