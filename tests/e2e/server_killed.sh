#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# also: fuse looking two unix
# The server and its sessions are killed during a blocking call: the call gives a CUDA error within 2 s, so
# do later ones; the tree still lists; when the server is back, new programs work without remounting.
. "$(dirname "$0")/lib.sh"
requires mount
start_server
start_mount

small_works()
{
	run_program small 2>/dev/null | grep -q right
}

for how in sync copy; do
	start_program $how block $how
	expect $how 20 blocking
	killed=$(now_ms)
	pkill -KILL -P "$server"
	kill -KILL "$server"
	wait "$server" 2>/dev/null
	expect $how 3 '^code'
	took=$(($(now_ms) - killed))
	[ "$took" -lt $((2000 * slow)) ] || fail "$how: the error came after $took ms"
	said $how '^code 80[0-9] ' || fail "$how: $(cat "$work/$how.out")"
	expect $how 3 'later calls took'
	said $how '^later 0' && fail "$how: a later call succeeded: $(cat "$work/$how.out")"

	# Nobody there: a new program says so at once, and listing the tree does not hang.
	start=$(now_ms)
	run_program count | grep -q 'init 805' || fail "without a server: $(run_program count)"
	at_most 5 ls -R "$mnt" >/dev/null || fail "the tree does not list without a server"
	at_most 5 cat "$mnt/status" >/dev/null || fail "status cannot be read without a server"
	[ $(($(now_ms) - start)) -lt $((6000 * slow)) ] ||
		fail "without a server a program and a listing took $(($(now_ms) - start)) ms"

	start_server --listen "$address"
	within 5 small_works || fail "after the restart: $(run_program small 2>&1)"
done
