/* SPDX-License-Identifier: Apache-2.0 */
/* The device's log, as cuLogs... tell it.
 *
 * Thread rule: any thread. Callbacks run when the thread has given the driver's lock away: guard_leave
 * sees to that, or who has no lock calls logs_tell. */
#pragma once
#include <stddef.h>
#include "wire/cuda.h"

/* One line, without its end. */
void soft_log(CUlogLevel level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

struct message;
extern _Thread_local struct message *logs_untold;
void logs_tell_now(void);
static inline void logs_tell(void)
{
	if (__builtin_expect(logs_untold != NULL, 0))
		logs_tell_now();
}
