#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# also: fuse
# Copies from and to pages that may not be read or written yet: the handler of SIGSEGV opens them, as
# natively, and without one the program ends by the signal, and not its session with a wrong error.
. "$(dirname "$0")/lib.sh"
requires mount
if [ -n "$sanitizer" ]; then
	export ASAN_OPTIONS=${ASAN_OPTIONS:-}:handle_segv=0 TSAN_OPTIONS=${TSAN_OPTIONS:-}:handle_segv=0
fi
start_server
start_mount
run_program barrier >"$work/barrier.out" 2>&1 || fail "status $?: $(cat "$work/barrier.out")"
contains "$work/barrier.out" right || fail "$(cat "$work/barrier.out")"
for n in 100 200000 4000000; do
	for way in to from; do
		run_program barrier bad $n $way >"$work/bad.out" 2>&1
		status=$?
		[ $status = 139 ] ||
			fail "$n bytes $way what is not there: status $status: $(cat "$work/bad.out")"
	done
done
within 3 no_sessions || fail "a session is left"
