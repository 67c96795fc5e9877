#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The software device's checked mode through the mount: the program asks for it, its reports come on the
# program's standard error; the server's option is the default for programs that do not ask.
. "$(dirname "$0")/lib.sh"
requires mount
[ "$driver" = soft ] || skip "the driver is a real one"
start_server
start_mount

wrong() # NAME: a kernel writes behind its memory
{
	run_program faulty "$top/tests/soft/check/faulty.ptx" put 128 0 >"$work/$1.out" 2>"$work/$1.err"
}

wrong unasked
grep -q scuda-check "$work/unasked.err" && fail "it checks unasked"
SCUDAFS_SOFT_CHECK=bounds wrong asked
contains "$work/asked.err" \
	'^scuda-check: write of 4 bytes at 0x[0-9a-f]*: byte 400 of an allocation of 400 bytes at' ||
		fail "no report"
contains "$work/asked.err" \
	'^scuda-check:     kernel put, faulty.cu:12 (PTX line 18), block (0,0,0), thread ([0-9]*,0,0)' ||
		fail "no place"
contains "$work/asked.out" '^launch 0, end 700' || fail "the launch did not fail: $(cat "$work/asked.out")"
SCUDAFS_SOFT_CHECK=bounds,continue wrong leave
contains "$work/leave.err" '^scuda-check: write' || fail "no report with continue"
contains "$work/leave.out" '^launch 0, end 0' || fail "the launch failed: $(cat "$work/leave.out")"

stop_mount
stop_server
start_server --check bounds,continue
start_mount
wrong option
contains "$work/option.err" '^scuda-check: write' || fail "the server's option does nothing"
contains "$work/option.out" '^launch 0, end 0' || fail "the server's continue does nothing"
SCUDAFS_SOFT_CHECK='' wrong off
grep -q scuda-check "$work/off.err" && fail "a program cannot turn it off"
exit 0
