/* SPDX-License-Identifier: Apache-2.0 */
/* A moment to wait until, by the clock that nobody sets: the wall clock may jump by an hour while a thread
 * waits. For pthread_cond_clockwait, with CLOCK_MONOTONIC; for mutexes and threads' ends the functions here.
 *
 * Thread rule: none. */
#pragma once
#include <pthread.h>
#include <stdint.h>
#include <time.h>

/* `ms` milliseconds from now on the monotonic clock; ms >= 0. */
static inline struct timespec deadline_in(int64_t ms)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += ms / 1000;
	t.tv_nsec += ms % 1000 * 1000000;
	if (t.tv_nsec >= 1000000000) {
		t.tv_sec++;
		t.tv_nsec -= 1000000000;
	}
	return t;
}

/* Takes the mutex within so many milliseconds: 0 or an errno (ETIMEDOUT). */
static inline int deadline_lock(pthread_mutex_t *m, int64_t ms)
{
#ifdef __SANITIZE_THREAD__ /* knows only this one */
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += ms / 1000 + 1;
	return pthread_mutex_timedlock(m, &t);
#else
	struct timespec t = deadline_in(ms);

	return pthread_mutex_clocklock(m, CLOCK_MONOTONIC, &t);
#endif
}

/* Joins a thread that ends within so many milliseconds: 0 or an errno (ETIMEDOUT: it is still to be joined or
 * detached). */
static inline int deadline_join(pthread_t thread, int64_t ms)
{
#ifdef __SANITIZE_THREAD__ /* knows only this one */
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += ms / 1000 + 1;
	return pthread_timedjoin_np(thread, NULL, &t);
#else
	struct timespec t = deadline_in(ms);

	return pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &t);
#endif
}
