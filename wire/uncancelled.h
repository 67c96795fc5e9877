/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of an API are no cancellation points: a thread that were cancelled in one would leave locks
 * held, descriptors open, and a stream of records that lacks its end. Whatever of the programs' libraries
 * uses a cancellation point of libc (files, sockets, waits for a condition) holds this meanwhile:
 *
 *     uncancelled state = uncancelled_begin();
 *
 * A cancellation that comes then is acted upon at the thread's next cancellation point of its own. Raw system
 * calls need none of it. tests/e2e/cancelled.sh goes through all such places.
 *
 * Thread rule: any thread. */
#pragma once
#include <pthread.h>

static inline int uncancelled_begin(void)
{
	int state;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return state;
}

static inline void uncancelled_end(const int *state)
{
	pthread_setcancelstate(*state, NULL);
}

#define uncancelled __attribute__((cleanup(uncancelled_end), unused)) int
