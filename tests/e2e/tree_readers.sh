#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# limit: 90
# Sixteen readers walk the whole tree while sessions come and go and the server dies and returns: every file
# gives its value or a documented error, nothing hangs, and listing everything stays quick.
. "$(dirname "$0")/lib.sh"
requires mount
start_server
start_mount

reader() # NUMBER: until $work/stop is there
{
	local f e n=0
	while [ ! -e "$work/stop" ]; do
		while IFS= read -r f; do
			n=$((n + 1))
			e=$(at_most 5 cat "$f" 2>&1 >/dev/null) && continue
			[ $? = 124 ] && e='a read that did not end'
			case $e in
			*'No such file'* | *'Input/output error'* | *'Is a directory'*) ;;
			*) echo "$f: $e" >>"$work/strange.$1" ;;
			esac
		done < <(
			at_most 5 find "$mnt" -type f ! -name ctl 2>/dev/null
			[ $? != 124 ] || echo "$mnt/a listing that did not end" >>"$work/strange.$1"
		)
	done
	echo "$n" >"$work/read.$1"
}
readers=()
for i in $(seq 16); do
	reader "$i" &
	readers+=($!)
	at_exit end TERM $!
done
for i in 1 2 3 4 5 6; do
	run_program small >/dev/null 2>&1 || fail "a program failed beside the readers"
done
kill -KILL "$server"
within 15 grep -q lost "$mnt/status" || fail "the server is dead, status says $(cat "$mnt/status")"
start=$(now_ms)
at_most 5 ls -R "$mnt" >/dev/null || fail "the tree does not list while the server is dead"
took=$(($(now_ms) - start))
start_server --listen "$address"
within 15 grep -q ready "$mnt/status" || fail "the server is back, status says $(cat "$mnt/status")"
run_program small >/dev/null 2>&1 || fail "a program failed after the server's return"
touch "$work/stop"
for p in "${readers[@]}"; do
	wait "$p" || fail "a reader ended badly"
done
cat "$work"/strange.* 2>/dev/null && fail "undocumented errors"
for i in $(seq 16); do
	[ "$(cat "$work/read.$i")" -gt 0 ] || fail "reader $i read nothing"
done
# Beside sixteen busy readers; alone it is far below.
[ "$took" -lt $((1000 * slow)) ] || fail "ls -R took $took ms"
start=$(now_ms)
ls -R "$mnt" >/dev/null
took=$(($(now_ms) - start))
[ "$took" -lt $((100 * slow)) ] || fail "ls -R alone took $took ms"
