#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# also: fuse looking unix
# limit: 240
# Programs that are built, live and end in unusual ways: linked statically, not position independent and with
# the driver library opened and closed; with 300 threads; forking children from several threads all the time;
# ending in a thread, or without a word in the middle of copies. Their results are right, their status is
# their own, and nothing of them is left.
. "$(dirname "$0")/lib.sh"
requires mount
start_server
start_mount

run_program opened | grep -q right || fail "a program that closes the library and opens it again"
within 5 no_sessions || fail "a session is left of opened"
# glibc's dlopen has no thread-local storage in such a program, so that it is no CUDA program; `run` leaves
# it as it is.
echo 'int main(void) { return 9; }' >"$work/static.c"
if ${CC:-gcc} -static -no-pie -o "$work/static" "$work/static.c" 2>"$work/err"; then
	at_most 10 "$bin/scudafs" run --mount "$mnt" -- "$work/static"
	[ $? = 9 ] || fail "a static program"
	at_most 10 "$bin/scudafs" run --mount "$mnt" --stats="$work/stats" -- "$work/static"
	[ $? = 9 ] || fail "a static program whose calls are counted"
fi
for what in "threads 300" "storm 25"; do
	at_most 120 "$bin/scudafs" run --mount "$mnt" -- "$progs/lives" $what >"$work/lives.out" \
		2>"$work/lives.err" || fail "$what"
	contains "$work/lives.out" right || fail "$what: $(cat "$work/lives.out")"
	within 5 no_sessions || fail "a session is left of $what"
done
for how in exit quick now; do
	at_most 60 "$bin/scudafs" run --mount "$mnt" -- "$progs/lives" $how >"$work/lives.out" \
		2>"$work/lives.err"
	[ $? = 7 ] || fail "$how: not its own status: $(cat "$work/lives.out" "$work/lives.err")"
	contains "$work/lives.out" copying || fail "$how: too early"
	within 5 no_sessions || fail "a session is left of $how"
done
run_program small | grep -q right || fail "the mount is not as before"
