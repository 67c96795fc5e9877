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
at_exit end TERM "$flood"
within 10 contains "$work/server.log" 'more came before its preamble' || fail "no flood"
for _ in 1 2 3; do
	run_program small | grep -q right || fail "no service beside silent connections"
done
stop "$flood" 2>/dev/null

# The same with a right preamble and nothing behind it: held, and then two hundred new ones, for longer than
# one is young (wire/limits.h; four times as long with the thread sanitizer). One from another address stays
# its ten seconds. A server of the address sanitizer does not fork fifty times in a second.
case $sanitizer in
tsan) crowd_seconds=16 ;;
asan) crowd_seconds=6 ;;
*) crowd_seconds=4 ;;
esac
silent() # FLAGS: says "there" when 200 are there
{
	exec timeout -k 2 $((60 * slow)) python3 - "$port" "$1" "$top/tests/e2e/progs" "$crowd_seconds" <<'PY'
import select, socket, sys, time
sys.path.append(sys.argv[3])
from wire import preamble

def one(address):
    s = socket.create_connection(("127.0.0.1", int(sys.argv[1])), source_address=(address, 0))
    s.sendall(preamble(int(sys.argv[2])))
    return s

held, other = [one("127.0.0.2") for _ in range(200)], one("127.0.0.3")
print("there", flush=True)
seconds = int(sys.argv[4])
end = time.monotonic() + seconds
while time.monotonic() < end:
    held.append(one("127.0.0.2"))
    time.sleep(seconds / 200)
print("kept" if not select.select([other], [], [], 0)[0] else "lost", flush=True)
sys.stdin.readline()
PY
}
not_too_many() # once those that gave way have died
{
	[ "$(sessions | wc -l)" -le 128 ]
}
beside_silent() # FLAGS
{
	local crowd pid tag=silent$1
	mkfifo "$work/$tag.in"
	exec {crowd}<>"$work/$tag.in"
	silent "$1" <"$work/$tag.in" >"$work/$tag.out" &
	pid=$!
	at_exit end TERM "$pid"
	within 20 contains "$work/$tag.out" there || fail "no crowd with a preamble"
	for _ in 1 2 3; do
		run_program small | grep -q right || fail "no service beside silent sessions ($1)"
	done
	within 20 contains "$work/$tag.out" '^kept$\|^lost$' || fail "the crowd does not end"
	contains "$work/$tag.out" kept || fail "a crowd took another address's place ($1)"
	within 5 not_too_many || fail "$(sessions | wc -l) silent sessions"
	echo >&"$crowd"
	wait "$pid"
	within 10 no_sessions || fail "silent sessions are left: $(sessions | wc -l)"
}
beside_silent 0
contains "$work/server.log" 'others came before it said who it is' || fail "no line tells of it"

mkfifo "$work/crowd.in"
exec {crowd}<>"$work/crowd.in"
timeout -k 2 $((60 * slow)) python3 "$top/tests/e2e/progs/crowd.py" "$port" sessions 140 <"$work/crowd.in" \
	>"$work/crowd.out" 2>&1 &
pid=$!
at_exit end TERM "$pid"
within 40 test -s "$work/crowd.out" || fail "the crowd was not answered"
contains "$work/crowd.out" '^taken:128 808:12$' || fail "of 140 sessions: $(cat "$work/crowd.out")"
"$bin/scudafs" run --mount "$mnt" -- "$progs/small" >"$work/one.out" 2>&1 &&
	fail "a program got a session past the limit"
echo >&"$crowd"
wait "$pid"
within 10 no_sessions || fail "sessions are left: $(sessions | wc -l)"
run_program small | grep -q right || fail "no service after the crowd"
# Silent ones with all places taken, too, and with keys: as many may wait for their handshake as there are.
stop_mount
stop_server
"$bin/scudafs" keygen alice "$work/alice" 2>/dev/null
install -m 600 "$work/alice" "$work/keys"
start_server --keys "$work/keys"
port=${address##*:}
start_mount -o "key=$work/alice"
beside_silent 1
# One line for each session that was.
[ "$(grep -c ': session [0-9]' "$work/server.log")" -ge 129 ] ||
	fail "$(grep -c ': session [0-9]' "$work/server.log") lines"
# Those whose handshake fails do not fill the log, mounts and programs: 20 lines a second.
for flags in "TLS | MONITOR" TLS; do
	: >"$work/server.log"
	start=$(now_ms)
	python3 - "$port" "$flags" "$top/tests/e2e/progs" <<'PY'
import socket, sys
sys.path.append(sys.argv[3])
from wire import MONITOR, TLS, preamble
for _ in range(300):
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as s:
        s.sendall(preamble(eval(sys.argv[2])) + b"x" * 64)
PY
	within 10 contains "$work/server.log" 'TLS handshake failed' || fail "no line tells of them ($flags)"
	within 20 no_sessions || fail "sessions are left ($flags)"
	lines=$(grep -c 'TLS handshake failed' "$work/server.log")
	[ "$lines" -le $((20 * (($(now_ms) - start) / 1000 + 2))) ] ||
		fail "$lines lines of 300 connections in $(($(now_ms) - start)) ms ($flags)"
done
exit 0
