/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the mount that stand for handles which programs share (wire/ctl.h). Each has a token, which its
 * server is told ahead of the open's return and again behind the last close, over the monitor connection;
 * when that ends, so does what its files stood for.
 *
 * Thread rule: keeper_open and keeper_close from any thread; the others are the monitor thread's. `done` is
 * called without a lock, by either. */
#pragma once
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include "wire/frame.h"

/* One file, from its open until its close; owned by the keeper after the close. */
struct kept {
	struct share_token token;
	/* The open is over: 0, or -errno (then the caller frees k). Set before keeper_open. */
	void (*done)(struct kept *k, int error);
	/* The rest is the keeper's. */
	struct kept *next;
	uint64_t connection, asked_at;      /* ms */
	enum { KEPT_NEW, KEPT_ASKED, KEPT_THERE, KEPT_CLOSED } state;
};

struct keeper {
	pthread_mutex_t lock;
	struct kept *queue, **end;  /* to be told, oldest first */
	struct kept *asked;         /* opens that were told and not answered */
	uint64_t connection;        /* number of the present one */
	bool up;
};

void keeper_init(struct keeper *k);
/* Makes the token and queues the question; the monitor is to be woken. */
void keeper_open(struct keeper *k, struct kept *file);
/* The last close; takes the file over. True: the monitor is to be woken. */
bool keeper_close(struct keeper *k, struct kept *file);

void keeper_up(struct keeper *k);
/* The connection has ended: opens under way fail with `error`, an errno. */
void keeper_down(struct keeper *k, int error);
/* The next frame to send; false when there is none. */
bool keeper_next(struct keeper *k, struct frame *f);
/* Has an open that was told waited for its answer for TIME_DEAD? Nothing else would end it. */
bool keeper_is_overdue(struct keeper *k);
/* A KEPT has come; false when nobody asked. */
bool keeper_answer(struct keeper *k, const struct frame *f);
