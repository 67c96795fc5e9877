#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# libnvidia-ml through the mount: getters, lists, events, refusals; a monitor's loop is one round trip a
# line; a dead server ends it with an error.
. "$(dirname "$0")/lib.sh"
requires mount
[ "$driver" = soft ] || skip "it knows the software device's answers"
start_server
start_mount
run_program nvml >"$work/nvml.out" 2>&1 || fail "nvml: $(cat "$work/nvml.out")"
contains "$work/nvml.out" right || fail "nvml did not say right: $(cat "$work/nvml.out")"
run_program nvml closes | grep -qx right || fail "a descriptor of the program's own was taken for ours"
run_program nvml nowhere | grep -qx right || fail "no mount: another error, or errno was changed"
run_program nvml streams | grep -qx right || fail "the session took the place of standard input"

# Beside a program that computes, and that is in the lists of this mount.
start_program holder hold 1048576
expect holder 20 ready
holder=$(pgrep -P "${pid[holder]}" hold || echo "${pid[holder]}")
listed()
{
	contains "$mnt/gpu0/sessions" "^$holder [0-9]\{7\} .*hold"
}
within 5 listed || fail \
	"process $holder is not in gpu0/sessions with its megabyte: $(cat "$mnt/gpu0/sessions")"
run_program nvml >"$work/nvml.out" 2>&1 || fail "nvml beside a program: $(cat "$work/nvml.out")"
tell holder
expect holder 10 right

# Eight lines of seven questions: after the first, the six that follow are asked with the first.
SCUDAFS_LOG=debug run_program nvml_loop >"$work/loop.out" 2>"$work/loop.err" ||
	fail "nvml_loop: $(cat "$work/loop.out" "$work/loop.err")"
[ "$(grep -c '6 questions are asked with nvmlDeviceGetMemoryInfo' "$work/loop.err")" = 7 ] ||
	fail "not one round trip a line: $(cat "$work/loop.err")"
[ "$(grep -c 'nvmlDeviceGet.* is asked alone' "$work/loop.err")" = 7 ] ||
	fail "more than the first line's are asked alone: $(cat "$work/loop.err")"

# A session that dies under a program.
start_program watcher nvml wait
expect watcher 20 ready
kill -KILL $(sessions)
tell watcher
failed()
{
	gone "${pid[watcher]}"
}
within 15 failed || fail "a program whose session died does not end"
said watcher right && fail "a dead session answered"
exit 0
