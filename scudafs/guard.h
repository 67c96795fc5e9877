/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that a program shares with us may have no page where we touch it: the program can give pages back,
 * and the kernel may not have another (wire/pages.h). That is a SIGBUS here, which would end the mount for
 * all programs. With a guard the page is made up for by one of the guard's own, the work under way goes on
 * with what that holds, and the session, whose memory it is, ends.
 *
 * Thread rule: guard_add and guard_drop from any thread; the memory is mapped from before the one until
 * after the other. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct guard;
/* NULL: no memory. */
struct guard *guard_add(void *memory, size_t n);
void guard_drop(struct guard *g);
/* A page of it was made up for: nothing that was read there or written there counts. */
bool guard_is_broken(const struct guard *g);
