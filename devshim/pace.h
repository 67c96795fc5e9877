/* SPDX-License-Identifier: Apache-2.0 */
/* How far a program may run ahead of its GPU. Natively a launch waits once some thousand are under way; here
 * the queues on the way hold a hundred times as many. So every PACE posts a marker goes with them, and the
 * next marker waits for the answer of the one before: at most twice PACE posts are behind what the server has
 * handed to its driver. A program that waits anyway never needs one.
 *
 * Thread rule: any thread. */
#pragma once
#include <stdint.h>

void pace_reset(void);
/* Record `seq` of `thread` was posted: waits if the program is too far ahead. 0 or -errno. */
int pace_posted(uint64_t seq, uint32_t thread);
/* Record `seq` was answered: what was posted before it has had its turn. */
void pace_answered(uint64_t seq);
