#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# limit: 300
# A relay that leaves a session's first connection alone, and does all kinds of things to the second: ahead
# of its first byte the session goes on without it; in the middle of a copy the program gets an error within
# 10 s, also where nothing passes and nobody is told; another program beside it does not notice. Where nothing
# passes to the server by a session's first connection, its program gets an error as well.
unset SCUDAFS_CHANNEL SCUDAFS_TEST_CHANNEL # it is about the memory that programs share
. "$(dirname "$0")/lib.sh"
requires mount python3
start_server
real=$address

relay=
stop_relay()
{
	[ -z "$relay" ] || { kill "$relay"; wait "$relay"; } 2>/dev/null
	relay=
}
at_exit stop_relay
through() # HOW BYTES CONNECTIONS [first]: a mount through such a relay
{
	: >"$work/relay.out"
	python3 "$top/tests/e2e/progs/second.py" "${real##*:}" "$1" "$2" "${@:4}" >"$work/relay.out" \
		2>"$work/relay.err" &
	relay=$!
	within 10 test -s "$work/relay.out" || fail "no relay: $(cat "$work/relay.err")"
	address=127.0.0.1:$(head -n 1 "$work/relay.out")
	start_mount -o "connections=$3"
}
seconds() # how many second connections have come to the relay
{
	grep -c second "$work/relay.out"
}
away()
{
	stop_mount
	stop_relay
	within 10 no_sessions || fail "$1: sessions are left: $(sessions)"
	address=$real
}

right() # HOW BYTES [back]: the program notices nothing
{
	through "$1" "$2" 2 "${@:3}"
	run_program large </dev/null | grep -q over || fail "$1 after $2 bytes: a program fails"
	[ "$(seconds)" = 1 ] || fail "$1 after $2 bytes: $(seconds) second connections"
	away "$1 after $2"
}
# The PING of a second connection is 40 bytes.
right pass 0
right cut 0
right reset 0
right cut 39
right swallow 20
right cut 0 back
right swallow 20 back

wrong() # HOW BYTES [CONNECTIONS first|back]: the program gets an error
{
	local start tag=$1${3:-}${4:-} way=to_device
	[ "${4:-}" != back ] || way=to_host
	through "$1" "$2" "${3:-2}" "${@:4}"
	# So slow that it is not the one by whose first connection so many bytes pass first.
	start_program "beside_$tag" steady 20
	expect "beside_$tag" 20 working
	start_program "$tag" waits $way
	expect "$tag" 20 working
	within 30 grep -q there "$work/relay.out" || fail "$1: so much did not pass by the connection"
	start=$(now_ms)
	expect "$tag" 12 '^code'
	[ $(($(now_ms) - start)) -lt $((12000 * slow)) ] ||
		fail "$1 after $2 bytes: the error came after $(($(now_ms) - start)) ms"
	said "$tag" '^code 806 ' || fail "$1 after $2 bytes: $(cat "$work/$tag.out")"
	tell "beside_$tag"
	expect "beside_$tag" 20 rounds
	away "$1 after $2"
}
wrong cut 40000001
wrong reset 45000001
wrong swallow 50000001
wrong devour 50000001
# By the first one, alone and beside a second one.
wrong swallow 150000001 1 first
wrong swallow 115000001 2 first
wrong devour 115000001 2 first
# By the second one, from the server.
wrong cut 40000001 2 back
wrong reset 45000001 2 back
wrong swallow 50000001 2 back
wrong devour 50000001 2 back
