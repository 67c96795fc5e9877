#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# 200 short processes in a row, then 4 at once for 20 rounds: all compute right, and nothing is left of them
# in the server or the daemon, which are as large as before.
. "$(dirname "$0")/lib.sh"
requires mount
start_server
start_mount

export SCUDAFS_MOUNT=$mnt LD_LIBRARY_PATH=$lib
run_program small >/dev/null
descriptors()
{
	ls "/proc/$(daemon)/fd" "/proc/$server/fd" | wc -l
}
kib() # of the listener's own memory
{
	awk '/^RssAnon/ {print $2}' "/proc/$server/status"
}
within 5 no_sessions
before=$(descriptors) memory=$(kib) threads=$(ls "/proc/$(daemon)/task" | wc -l)
for i in $(seq 200); do
	at_most 30 "$progs/small" >"$work/small.out" || fail "process $i"
done
for i in $(seq 20); do
	jobs=()
	for j in 1 2 3 4; do
		at_most 60 "$progs/small" >"$work/small$j.out" &
		jobs+=($!)
	done
	for j in "${jobs[@]}"; do
		wait "$j" || fail "one of four at once, round $i"
	done
done
within 5 no_sessions || fail "sessions are left: $(sessions)"
# The daemon's threads have one each, and their number follows the load.
same_descriptors()
{
	[ "$(descriptors)" -le $((before + 20)) ]
}
within 5 same_descriptors || fail "open files: $before before, $(descriptors) after"
# A sanitizer keeps what was freed.
[ -n "$sanitizer" ] || [ $(($(kib) - memory)) -le 512 ] || fail "the server grew from $memory to $(kib) KiB"
[ "$(ls "/proc/$(daemon)/task" | wc -l)" -le $((threads + 20)) ] ||
	fail "the daemon has $(ls "/proc/$(daemon)/task" | wc -l) threads"
[ -z "$(pgrep -P "$server" -r Z)" ] || fail "the server has unreaped sessions"
