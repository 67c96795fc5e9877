#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# limit: 300
# also: two unix
# Programs through a relay that damages frames on their way, so that the server, the daemon and the programs'
# libraries each read what no honest peer sends, in the middle of real sessions. A program may get any error
# and any result; but it ends, no process of ours dies of a signal, and the server serves the next one.
# MANGLE_ROUNDS (3) are how often each program runs, MANGLE_FIRST (1) is the seed of the first round. Under
# the sanitizers this is a fuzzer (tests/long/fuzz.sh).
. "$(dirname "$0")/lib.sh"
requires mount python3
rounds=${MANGLE_ROUNDS:-3} first=${MANGLE_FIRST:-1}

# Each ends by itself, and its result does not lead it astray: what it is told wrongly it checks, or does not
# use.
programs=("small" "counted 50 return" "crowded 20 4096" "told" "image 5 80 0 7" "share pointer"
	"iteration 3 read"
	"nvml" "meminfo" "polls 1" "cancelled $work/image $work/graph")
[ -z "$two$unix" ] || programs+=("large" "large")

start_server
real=$address

relay=
start_relay() # WHAT SEED: $address is its
{
	: >"$work/relay.port"
	python3 "$top/tests/e2e/progs/mangle.py" "$real" "$1" "$2" >"$work/relay.port" \
		2>"$work/relay.err" &
	relay=$!
	within 10 test -s "$work/relay.port" || fail "no relay: $(cat "$work/relay.err")"
	address=$(cat "$work/relay.port")
}

stop_relay()
{
	[ -z "$relay" ] || { kill "$relay"; wait "$relay"; } 2>/dev/null
	relay=
}
at_exit stop_relay
at_exit stop_mount

run_all() # SEED WHAT: each program once
{
	local p code words
	for p in "${programs[@]}"; do
		read -r -a words <<<"$p"
		at_most 30 "$bin/scudafs" run --mount "$mnt" -- "$progs/${words[0]}" "${words[@]:1}" \
			>"$work/out" 2>&1 </dev/null
		code=$?
		ran=$((ran + 1))
		[ "$code" = 0 ] || errors=$((errors + 1))
		[ "$code" != 124 ] && [ "$code" != 137 ] ||
			fail "seed $1, $2: '$p' does not end: $(tail -n 3 "$work/out")"
		[ "$code" -lt 128 ] ||
			fail "seed $1, $2: '$p' ended with status $code: $(tail -n 3 "$work/out")"
		[ -n "$(daemon)" ] || fail "seed $1, $2: the daemon is gone after '$p'"
	done
}

ran=0 errors=0
for ((seed = first; seed < first + rounds; seed++)); do
	for what in up down monitor; do
		start_relay $what $seed
		# A mount may fail in words when its first answer is damaged.
		mkdir -p "$mnt"
		"$bin/scudafs" mount "$address" "$mnt" -o "log=$work/daemon.log$options" \
			>"$work/mount.out" 2>&1
		code=$?
		if [ "$code" = 0 ]; then
			run_all $seed $what
			at_most 10 ls -R "$mnt" >/dev/null || fail "seed $seed, $what: the tree does not list"
			stop_mount
		elif [ "$code" -ge 124 ] || [ "$what" != monitor ]; then
			fail "seed $seed, $what: mount gave $code: $(cat "$work/mount.out")"
		fi
		stop_relay
	done
	gone "$server" && fail "the server is gone"
	grep -E 'signal [0-9]|died' "$work/server.log" && fail "seed $seed: a process of the server died"
done
within 15 no_sessions || fail "sessions are left: $(sessions)"
stop_server

# The same with keys: what is damaged is TLS's.
"$bin/scudafs" keygen one "$work/key" 2>/dev/null || fail "keygen"
start_server --keys "$work/key"
real=$address
for ((seed = first; seed < first + rounds; seed++)); do
	start_relay bytes $seed
	"$bin/scudafs" mount "$address" "$mnt" -o "key=$work/key,log=$work/daemon.log" >"$work/mount.out" 2>&1
	code=$?
	[ "$code" -lt 124 ] || fail "seed $seed, TLS: mount gave $code: $(cat "$work/mount.out")"
	[ "$code" != 0 ] || run_all $seed TLS
	stop_mount
	stop_relay
done
within 15 no_sessions || fail "sessions are left: $(sessions)"
address=$real
start_mount -o "key=$work/key"
run_program small | grep -q right || fail "no service afterwards"
# A relay that damages nothing would not be noticed otherwise.
[ "$errors" -gt $((ran / 4)) ] || fail "only $errors of $ran programs saw an error"
echo "$ran programs, $errors of them got an error"
