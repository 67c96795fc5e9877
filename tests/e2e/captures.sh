#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# also: unix
# limit: 180
# The same work captured CAPTURES (1500) times: copies with a side in the program and host functions are noted
# once for all graphs that run them, so neither the program nor its session grows.
. "$(dirname "$0")/lib.sh"
requires mount
start_server
start_mount
kib() # PID: resident memory that is its own
{
	awk '/^RssAnon/ {print $2; n = 1} END {exit !n}' "/proc/$1/status"
}
start_program captures captures "${CAPTURES:-1500}"
expect captures 30 ready
session=$(sessions)
program=$(kib "${pid[captures]}") served=$(kib "$session")
tell captures
expect captures 150 'done'
program_then=$(kib "${pid[captures]}") && served_then=$(kib "$session") || fail "one of them has ended"
echo "program: $program KiB, then $program_then; session: $served KiB, then $served_then"
# A sanitizer keeps what was freed.
[ -n "$sanitizer" ] || [ $((program_then - program)) -le 512 ] ||
	fail "the program grew by $((program_then - program)) KiB"
[ -n "$sanitizer" ] || [ $((served_then - served)) -le 1024 ] ||
	fail "the session grew by $((served_then - served)) KiB"
tell captures
within 5 gone "${pid[captures]}" || fail "it does not end"
