/* SPDX-License-Identifier: Apache-2.0 */
/* One page shared by the listener and one session process: the session writes how it is doing, the
 * listener reads it when the process has ended, whatever ended it, and logs one line. No other session has
 * the page. The listener believes nothing in it but prints texts bounded and numbers as numbers.
 *
 * Thread rule: counters are atomic; the texts are written before `ended` or `authenticated` is set. */
#pragma once
#include <stdatomic.h>
#include <stdint.h>
#include "wire/limits.h"

struct report {
	_Atomic uint64_t bytes_in, bytes_out, records;
	_Atomic int authenticated;  /* TLS is done, or was not asked for */
	_Atomic int ended;          /* `reason` is there */
	char identity[LIMIT_NAME + 32];
	char program[64];           /* what the hello said */
	char security[64];
	char reason[256];
};
