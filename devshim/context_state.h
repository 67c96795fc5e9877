/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of contexts use of each other: context.c (which there are, and their states),
 * context_stack.c (the stack of each thread), context_primary.c and context_create.c (how they begin and
 * end).
 *
 * Thread rule: context.c. */
#pragma once
#include "devshim/context.h"

/* context.c. Under the lock: the context lives from here on. */
void context_born(struct context *c, unsigned flags, unsigned users);
/* Under the lock: one for a context that is made: one that has ended and that no thread has on its stack, so
 * that a program that makes contexts for ever does not grow. NULL without memory. */
struct context *context_take_ended(void);
/* Under the lock: it is nobody's but for the stacks that it is on. */
void context_give_ended(struct context *c);
/* Without the lock: what belonged to it goes. */
void context_died(struct context *c);

/* context_stack.c. The calling thread's. */
CUresult context_push(struct thread *t, struct context *c);
void context_pop(struct thread *t);
