#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# also: fuse two unix
# Programs are stopped for 12 s (times SLOW), longer than any silence that counts as death, as by Ctrl-Z or a
# debugger: others do not notice, and they go on as if nothing had been, in the middle of a large copy too.
. "$(dirname "$0")/lib.sh"
requires mount
start_server
start_mount
ways="sync read alloc host to_device to_host pinned_to_device pinned_to_host both"
for w in $ways; do
	start_program "$w" waits "$w"
done
start_program steady steady
for w in $ways steady; do
	expect "$w" 30 working
done
for w in $ways steady; do
	kill -STOP "${pid[$w]}"
done
# One that is killed while it is stopped is gone at the server, too.
killed="to_device to_host"
for w in $killed; do
	start_program "killed_$w" waits "$w"
	expect "killed_$w" 30 working
	kill -STOP "${pid[killed_$w]}"
done
all=$(sessions | wc -l)
for w in $killed; do
	kill -KILL "${pid[killed_$w]}"
done
fewer() { [ "$(sessions | wc -l)" = "$((all - 2))" ]; }
within 5 fewer || fail "sessions of killed programs are left: $(sessions)"
start=$(now_ms)
while [ $(($(now_ms) - start)) -lt $((12000 * slow)) ]; do
	run_program small | grep -q right || fail "a program beside the stopped ones"
	read -r -t 0.5 <>"$clock"
done
contains "$mnt/status" ready || fail "the mount is $(cat "$mnt/status")"
for w in $ways steady; do
	kill -CONT "${pid[$w]}"
done
run_program small | grep -q right || fail "a program after they went on"
tell steady
expect steady 20 rounds
for w in $ways; do
	gone "${pid[$w]}" && fail "$w ended: $(cat "$work/$w.out" "$work/$w.err")"
	said "$w" '^code' && fail "$w: $(cat "$work/$w.out")"
done
exit 0
