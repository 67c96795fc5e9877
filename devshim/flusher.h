/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that sends what gathers in the queue while nobody waits. Thread rule: any thread. */
#pragma once
#include <stdbool.h>

/* With the channel's lock held: true if the thread exists, started now or before. */
bool flusher_start(void);
/* Without it: gets what was queued on its way, when nobody is at it. */
void flusher_wake(void);
