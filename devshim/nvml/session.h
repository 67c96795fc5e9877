/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of NVML's session with the mount: session.c (its life), exchange.c (requests to ctl) and call.c
 * (the records of calls).
 *
 * Thread rule: `lock` guards the life of the session and the numbering of records; nobody waits for the
 * server under it but in session_open. A call that is under way keeps the descriptor: session_close waits for
 * it. */
#pragma once
#include <pthread.h>
#include "devshim/held.h"
#include "devshim/nvml/call.h"
#include "nvml.calls.h"

struct session {
	pthread_mutex_t lock;
	pthread_cond_t idle;
	unsigned opens, calls;      /* nvmlInit less nvmlShutdown; calls under way */
	int fd;
	struct held held;           /* what the descriptor is */
	uint64_t seq, batch;        /* of records; of batches, which are one record as a rule */
	unsigned number;            /* of this session, among all that the process had */
	int error;                  /* errno that ended the session, else 0 */
	uint64_t unknown[(NVML_CALL_COUNT + 63) / 64];  /* calls that the server lacks */
	bool hooked;
};
extern struct session session __attribute__((visibility("hidden")));

/* call.c. Makes the call's room ready, without a session. */
void call_start(struct call *c, unsigned id);

/* exchange.c. Gives n bytes, which follow the ctl_wait in the call's room and end with the record of that
 * seq, as a batch, or nothing (batch 0), and parks until the answer is there: *answer points at the frame,
 * *answer_len its bytes. 0 or -errno. */
int exchange_answer(int fd, struct call *c, uint64_t batch, uint64_t seq, size_t n, const uint8_t **answer,
	size_t *answer_len);
/* Is it the answer to that record? */
bool exchange_answers(const uint8_t *answer, size_t n, uint64_t seq);
/* The answer's head into c->in. 0, or -EPROTO. */
int exchange_take(struct call *c, uint64_t seq, const uint8_t *answer, size_t n);
