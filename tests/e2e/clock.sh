#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# also: fuse
# The wall clock is wrong by an hour, in either direction, for program, daemon and server alike, as after a
# jump in the middle of their waits: results are right, nothing is dead too early, and a server that dies is
# an error as soon as ever.
. "$(dirname "$0")/lib.sh"
requires mount ${CC:-gcc}
[ "$sanitizer" != tsan ] || unsanitized "it knows no waits by another clock (wire/deadline.h)"
cat >"$work/clock.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

/* What the caller computes a deadline from; the kernel, which waits until then, has the true time. */
int clock_gettime(clockid_t which, struct timespec *t)
{
	static int (*next)(clockid_t, struct timespec *);
	const char *wrong = getenv("CLOCK_WRONG_BY");
	if (!next)
		next = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	int r = next(which, t);
	if (!r && which == CLOCK_REALTIME && wrong)
		t->tv_sec += atol(wrong);
	return r;
}

time_t time(time_t *t)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return t ? *t = now.tv_sec : now.tv_sec;
}
END
${CC:-gcc} -shared -fPIC -o "$work/clock.so" "$work/clock.c" -ldl || fail "the clock does not compile"
with_wrong_clock()
{
	local wrong program killed
	for wrong in -3600 3600; do
		export CLOCK_WRONG_BY=$wrong
		start_server
		start_mount
		for program in small told polls; do
			run_program $program >"$work/$program.out" 2>&1 ||
				fail "$program, clock wrong by $wrong s: $(tail -n 1 "$work/$program.out")"
		done
		start_program "waits$wrong" waits sync
		expect "waits$wrong" 30 working
		killed=$(now_ms)
		pkill -KILL -P "$server"
		kill -KILL "$server"
		expect "waits$wrong" 5 '^code'
		[ $(($(now_ms) - killed)) -lt $((5000 * slow)) ] ||
			fail "the error came after $(($(now_ms) - killed)) ms"
		stop_server
		stop_mount
		no_daemon || fail "the daemon did not end, clock wrong by $wrong s"
	done
}
with_library "$work/clock.so" with_wrong_clock
