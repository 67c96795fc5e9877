/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that give large answers, so that a session's thread goes on receiving meanwhile. Thread rule:
 * any thread, without locks. */
#pragma once
#include "scudafs/relay_state.h"

/* As answers_send, perhaps by another thread and later: where there are processors for it and the answers
 * are large enough. */
void answerer_send(struct answers *a);
/* Waits until nothing is under way; called when nothing new can come. */
void answerer_finish(void);
