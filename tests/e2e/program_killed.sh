#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# also: fuse looking two unix
# A program is killed with -9 in the middle of a 1 GiB copy: its session process and its memory are gone
# within 2 s, and another program does not notice. Twice by a moment of its own, then at random ones.
. "$(dirname "$0")/lib.sh"
requires mount
start_server
start_mount

free_before=$(run_program meminfo | cut -d' ' -f1)
start_program other steady
expect other 20 working
others=$(sessions | wc -w)

memory_back()
{
	local now
	now=$(run_program meminfo | cut -d' ' -f1)
	[ "$now" -ge "$((free_before - (64 << 20)))" ]
}
session_gone()
{
	[ "$(sessions | wc -w)" -le "$others" ]
}

for round in 1 2 3 4 5; do
	start_program copy$round bigcopy
	expect copy$round 30 copying
	read -r -t "0.0$((RANDOM % 90 + 10))" <>"$clock" # some moment within the copy
	kill -KILL "${pid[copy$round]}"
	killed=$(now_ms)
	within 4 session_gone || fail "round $round: the session is still there"
	took=$(($(now_ms) - killed))
	[ "$took" -lt $((2000 * slow)) ] || fail "round $round: the session ended after $took ms"
	within 2 memory_back ||
		fail "round $round: $(run_program meminfo) bytes are free, $free_before before"
done
tell other
expect other 10 rounds
longest=$(sed -n 's/.*longest \([0-9]*\) ms/\1/p' "$work/other.out")
[ "$longest" -lt $((5000 * slow)) ] || fail "the other program waited $longest ms in one round"
