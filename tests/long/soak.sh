#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# limit: 1500
# Twenty minutes of mixed load: steady workers whose every result is checked, programs that are killed in the
# middle of copies, sessions that are killed, garbage to the port, and now and then the server itself. No
# hang, no wrong result, nothing left: descriptors, processes and memory are as before.
. "$(dirname "$0")/../e2e/lib.sh"
requires mount python3
start_server
start_mount
minutes=${SOAK_MINUTES:-20}

free_before=$(run_program meminfo | cut -d' ' -f1)
descriptors()
{
	ls "/proc/$(daemon)/fd" | wc -l
}
within 5 no_sessions
before=$(descriptors)
end=$(($(now_ms) + minutes * 60000))
round=0
while [ "$(now_ms)" -lt "$end" ]; do
	round=$((round + 1))
	for w in a b; do
		start_program $w$round steady
		expect $w$round 30 working
	done
	start_program c$round bigcopy $((256 << 20))
	expect c$round 30 copying
	end KILL "${pid[c$round]}"
	case $((round % 5)) in
	1) at_most 100 python3 "$top/tests/e2e/progs/garbage.py" "${address##*:}" >"$work/count" ||
		fail "garbage: $(cat "$work/count")" ;;
	2)
		start_program d$round block
		expect d$round 30 blocking
		kill -KILL "$(sessions | sort -n | tail -n 1)"
		;;
	esac
	for w in a b; do
		tell $w$round
		expect $w$round 30 rounds
	done
	if [ $((round % 7)) = 0 ]; then
		start_program e$round block
		expect e$round 30 blocking
		pkill -KILL -P "$server"
		end KILL "$server"
		expect e$round 3 '^code'
		start_server --listen "$address"
		works()
		{
			run_program small 2>/dev/null | grep -q right
		}
		within 10 works || fail "round $round: no service after the restart"
	fi
	rm -f "$work"/*.in
done
within 10 no_sessions || fail "sessions are left: $(sessions)"
[ "$(descriptors)" -le $((before + 2)) ] ||
	fail "the daemon's descriptors: $before before, $(descriptors) after"
memory_back()
{
	[ "$(run_program meminfo | cut -d' ' -f1)" -ge $((free_before - (64 << 20))) ]
}
within 5 memory_back || fail "memory is left in use"
echo "$round rounds"
