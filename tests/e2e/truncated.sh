#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A real session's records are recorded and then replayed, each with its head cut to every shorter length,
# and the stream cut at many places: each time the session ends, with one line in the log when the record was
# bad, and the server goes on.
. "$(dirname "$0")/lib.sh"
requires mount python3
start_server
start_mount
lines=$(wc -l <"$work/server.log")
at_most 110 python3 "$top/tests/e2e/progs/truncate.py" "${address##*:}" \
	"$bin/scudafs run --server 127.0.0.1:PORT -- $progs/small" >"$work/count" 2>"$work/truncate.err" ||
	fail "$(cat "$work/count" "$work/truncate.err")"
cat "$work/count"
within 10 no_sessions || fail "sessions are left: $(sessions)"
bad=$(sed -n 's/^bad records \([0-9]*\).*/\1/p' "$work/count")
logged=$(($(wc -l <"$work/server.log") - lines))
[ "$logged" -ge "$bad" ] || fail "$bad bad records, but only $logged lines in the log"
run_program small | grep -q right || fail "no service afterwards"
