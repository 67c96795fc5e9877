#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# also: fuse looking two unix
# The server and its sessions stop answering (SIGSTOP, as a hung host does): a blocking call gives an error
# within 10 s, and a new program too.
. "$(dirname "$0")/lib.sh"
requires mount
start_server
start_mount

thaw()
{
	kill -CONT $frozen
}
start_program victim block
expect victim 20 blocking
frozen="$server $(pgrep -P "$server")"
at_exit thaw
kill -STOP $frozen
start=$(now_ms)
start_program late count
expect victim 12 '^code'
took=$(($(now_ms) - start))
[ "$took" -lt $((10000 * slow)) ] || fail "the error came after $took ms"
said victim '^code 806 ' || fail "$(cat "$work/victim.out")"
expect late 10 '^init'
said late 'init 0 ' && fail "cuInit succeeded although the server is frozen"
at_most 5 ls -R "$mnt" >/dev/null || fail "the tree does not list"
thaw
within 10 no_sessions || fail "sessions are left: $(sessions)"
works()
{
	run_program small 2>/dev/null | grep -q right
}
within 10 works || fail "after the thaw: $(run_program small 2>&1)"

# Every way to wait ends: short ones, bulk both ways, host functions.
ways="sync read alloc to_device to_host pinned_to_host host"
for w in $ways; do
	start_program "$w" waits "$w"
done
for w in $ways; do
	expect "$w" 40 working
done
frozen="$server $(pgrep -P "$server")"
kill -STOP $frozen
start=$(now_ms)
for w in $ways; do
	within 12 said "$w" '^code' || fail "$w still waits after $(($(now_ms) - start)) ms"
	took=$(($(now_ms) - start))
	[ "$took" -le $((10000 * slow)) ] || fail "$w: the error came after $took ms"
	said "$w" '^code 806 ' || fail "$w: $(cat "$work/$w.out")"
	echo "$w: $(grep '^code' "$work/$w.out")"
done
thaw
within 12 no_sessions || fail "sessions are left: $(sessions)"
