#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Garbage to the server's port, from random bytes to half a hello: the server goes on, others do not notice,
# and each such connection is at most one line in the log.
. "$(dirname "$0")/lib.sh"
requires mount python3
start_server
start_mount
start_program other steady
expect other 20 working
lines=$(wc -l <"$work/server.log")
at_most 100 python3 "$top/tests/e2e/progs/garbage.py" "${address##*:}" >"$work/count" ||
	fail "the server did not end a connection: $(cat "$work/count")"
sent=$(cat "$work/count")
gone_again()
{
	[ "$(sessions | wc -w)" -le 1 ]
}
within 10 gone_again || fail "sessions are left: $(sessions)"
[ $(($(wc -l <"$work/server.log") - lines)) -le "$sent" ] || fail "more log lines than connections ($sent)"
run_program small | grep -q right || fail "no service after the garbage"
tell other
expect other 10 rounds
