#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A private table, or a function in one, that we do not know is named in the log, so that a new library tells
# what it wants.
. "$(dirname "$0")/lib.sh"
requires mount
start_server
start_mount
SCUDAFS_LOG=info run_program tables >"$work/tables.out" 2>"$work/tables.err" ||
	fail "the program ended with $?"
grep -qx 'slot 7 answers 801, the last 801' "$work/tables.out" || fail "unknown functions answer otherwise"
grep -qx 'another answers 1' "$work/tables.out" || fail "an unknown table is answered otherwise"
grep -qx "the profiler's answers 500" "$work/tables.out" || fail "a table of a driver alone: otherwise"
for text in 'ctx_id\[7\]' 'ctx_id\[89\]' 'table 21318c60971432488ca641ff7324c878 is refused'; do
	grep -q "$text" "$work/tables.err" || fail "the log does not name $text"
done
