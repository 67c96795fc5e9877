#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Servers that answer nonsense: the mount fails within five seconds, in words, and the daemon neither crashes
# nor stays. One that never says whether it keeps a shared handle: the program that wants one is told in time.
. "$(dirname "$0")/lib.sh"
requires mount python3
mkdir "$mnt"
for how in random closing http; do
	python3 "$top/tests/e2e/progs/deaf.py" $how >"$work/$how.port" &
	at_exit end TERM $!
	within 5 test -s "$work/$how.port" || fail "no $how server"
	start=$(now_ms)
	"$bin/scudafs" mount "127.0.0.1:$(cat "$work/$how.port")" "$mnt" 2>"$work/err" &&
		fail "$how was mounted"
	[ $(($(now_ms) - start)) -lt $((5200 * slow)) ] || fail "$how took $(($(now_ms) - start)) ms"
	[ "$(wc -l <"$work/err")" = 1 ] || fail "$how gives not one line: $(cat "$work/err")"
	within 2 no_daemon || fail "$how left a daemon"
done

start_server
python3 "$top/tests/e2e/progs/unkept.py" "${address##*:}" >"$work/unkept.port" &
at_exit end TERM $!
within 5 test -s "$work/unkept.port" || fail "no way to the server"
address=127.0.0.1:$(cat "$work/unkept.port")
start_mount
start_program export share pointer
within 12 gone "${pid[export]}" || fail "the open of a file for a shared handle does not end"
contains "$work/export.err" CUDA_ERROR_OPERATING_SYSTEM || fail "it ended with: $(cat "$work/export.err")"
contains "$work/daemon.log" 'does not say whether it keeps' || fail "the daemon does not say why"
