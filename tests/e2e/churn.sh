#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# also: fuse unix
# limit: 180
# One program that makes, uses and ends things of every kind, CHURN_ROUNDS times (1500; 200 under a sanitizer,
# which needs ten times as long for each): neither it nor its session nor the daemon is larger afterwards, or
# has more descriptors or more threads. It ends with half a gigabyte allocated, as do others that exit, are
# killed, or abort: the memory is free again, and no session left, within 2 s.
. "$(dirname "$0")/lib.sh"
requires mount
start_server
start_mount
rounds=${CHURN_ROUNDS:-1500}
[ -z "$sanitizer" ] || rounds=${CHURN_ROUNDS:-200}

kib() # PID: resident memory that is its own
{
	awk '/^RssAnon/ {print $2}' "/proc/$1/status" || echo -999999
}
count() # PID fd|task
{
	find "/proc/$1/$2" -mindepth 1 -maxdepth 1 | wc -l
}
free_now()
{
	run_program meminfo | cut -d' ' -f1
}
memory_back() # BYTES
{
	[ "$(free_now)" -ge "$1" ]
}

free_before=$(free_now)
start_program churn churn "$rounds"
expect churn 60 ready
declare -A who=([program]=${pid[churn]} [session]=$(sessions) [daemon]=$(daemon)) memory=() fds=() threads=()
for w in "${!who[@]}"; do
	memory[$w]=$(kib "${who[$w]}") fds[$w]=$(count "${who[$w]}" fd) threads[$w]=$(count "${who[$w]}" task)
done
tell churn
expect churn 120 'done'
for w in "${!who[@]}"; do
	echo "$w: ${memory[$w]} KiB, then $(kib "${who[$w]}");" \
		"${fds[$w]} descriptors, then $(count "${who[$w]}" fd);" \
		"${threads[$w]} threads, then $(count "${who[$w]}" task)"
	# A sanitizer keeps what was freed.
	[ -n "$sanitizer" ] || [ $(($(kib "${who[$w]}") - memory[$w])) -le 1024 ] ||
		fail "the $w grew by $(($(kib "${who[$w]}") - memory[$w])) KiB"
	gone "${who[$w]}" && fail "the $w has ended"
	[ $(($(count "${who[$w]}" fd) - fds[$w])) -le 4 ] ||
		fail "the $w has $(count "${who[$w]}" fd) descriptors"
	[ $(($(count "${who[$w]}" task) - threads[$w])) -le 4 ] ||
		fail "the $w has $(count "${who[$w]}" task) threads"
done
tell churn
within 10 gone "${pid[churn]}" || fail "it does not end"
within 2 no_sessions || fail "the session is left"
within 2 memory_back "$free_before" || fail "memory is left in use by a program that freed nothing"
