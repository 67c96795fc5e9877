#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# also: two unix
# A program that attacks the mount through what it shares with it (tests/e2e/progs/hostile.c),
# HOSTILE_SECONDS (5) long from seed HOSTILE_SEED (1) on: another program beside it computes right, each of
# the attacker's sessions ends, and daemon and server go on with as many descriptors as before. Under the
# sanitizers this is a fuzzer (tests/long/fuzz.sh).
unset SCUDAFS_CHANNEL SCUDAFS_TEST_CHANNEL # it is about the memory that programs share
. "$(dirname "$0")/lib.sh"
requires mount
start_server
start_mount
run_program small | grep -q right || fail "no service"
descriptors()
{
	ls "/proc/$(daemon)/fd" | wc -l
}
within 5 no_sessions
before=$(descriptors)
start_program other steady
expect other 20 working
at_most $((${HOSTILE_SECONDS:-5} + 30)) "$bin/scudafs" run --mount "$mnt" -- "$progs/hostile" \
	"${HOSTILE_SEED:-1}" "${HOSTILE_SECONDS:-5}" \
	>"$work/hostile" 2>"$work/hostile.err" ||
		fail "the attacker gave $?: $(cat "$work/hostile" "$work/hostile.err")"
cat "$work/hostile"
tell other
expect other 30 rounds
wait "${pid[other]}" || fail "the other program was wronged"
within 15 no_sessions || fail "sessions are left: $(sessions)"
back()
{
	[ "$(descriptors)" -le $((before + 6)) ]
}
within 10 back || fail "the daemon had $before descriptors, and has $(descriptors)"
run_program small | grep -q right || fail "no service afterwards"
grep -E 'signal [0-9]|died' "$work/server.log" && fail "a process of the server died"
exit 0
