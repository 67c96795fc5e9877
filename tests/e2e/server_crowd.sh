#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# More connections than the server takes: idle ones are dropped after 3 s, or when more come, sessions past
# the limit are refused with 808, and the server serves again once they are gone.
. "$(dirname "$0")/lib.sh"
requires mount python3
start_server
start_mount
port=${address##*:}

at_most 30 python3 "$top/tests/e2e/progs/crowd.py" "$port" idle 100 >"$work/idle.out" ||
	fail "the idle crowd: $(cat "$work/idle.out")"
contains "$work/idle.out" 'ended 100' || fail "idle connections are left: $(cat "$work/idle.out")"
run_program small | grep -q right || fail "no service after the idle crowd"

# Connections that say nothing, for ever new ones, keep nobody out.
timeout -k 2 $((60 * slow)) python3 - "$port" <<'PY' &
import socket, sys, time
held = []
while True:
    held = held[-200:] + [socket.create_connection(("127.0.0.1", int(sys.argv[1])))]
    time.sleep(0.005)
PY
flood=$!
at_exit kill "$flood"
within 10 contains "$work/server.log" 'more came before its preamble' || fail "no flood"
for _ in 1 2 3; do
	run_program small | grep -q right || fail "no service beside silent connections"
done
stop "$flood" 2>/dev/null

mkfifo "$work/crowd.in"
exec {crowd}<>"$work/crowd.in"
timeout -k 2 $((60 * slow)) python3 "$top/tests/e2e/progs/crowd.py" "$port" sessions 140 <"$work/crowd.in" \
	>"$work/crowd.out" 2>&1 &
pid=$!
at_exit kill "$pid"
within 40 test -s "$work/crowd.out" || fail "the crowd was not answered"
contains "$work/crowd.out" '^taken:128 808:12$' || fail "of 140 sessions: $(cat "$work/crowd.out")"
"$bin/scudafs" run --mount "$mnt" -- "$progs/small" >"$work/one.out" 2>&1 &&
	fail "a program got a session past the limit"
echo >&"$crowd"
wait "$pid"
within 10 no_sessions || fail "sessions are left: $(sessions | wc -l)"
run_program small | grep -q right || fail "no service after the crowd"
# One line for each session that was.
[ "$(grep -c ': session [0-9]' "$work/server.log")" -ge 129 ] ||
	fail "$(grep -c ': session [0-9]' "$work/server.log") lines"
exit 0
