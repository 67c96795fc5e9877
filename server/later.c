/* SPDX-License-Identifier: Apache-2.0 */
/* Copies to the host whose completion is told later. Whatever tells the program that such a copy is done
 * must not overtake its bytes, whichever thread asks; so the lock is held from the moment when finished
 * transfers are taken off the list until the frame that carries them is sent, and a second reply waits for
 * it. While nothing is registered, a reply costs one look at a counter.
 *
 * Thread rule: any thread; see the locks in state.h. */
#include <stdlib.h>
#include <string.h>

#include "server/state.h"

#define GATHER_MOST 4096        /* transfers of one frame; more wait for the next */

void session_deliver_later(struct exec *x, struct later *l)
{
	struct session *s = x->session;

	l->next = NULL;
	atomic_fetch_add(&s->later_count, 1);
	pthread_mutex_lock(&s->later_lock);
	*s->later_end = l;
	s->later_end = &l->next;
	pthread_mutex_unlock(&s->later_lock);
}

/* Takes the finished ones off the list. */
static struct later *take_finished(struct session *s, bool callback, size_t most, size_t *count)
{
	struct later *done = NULL, **end = &done, **at, *l;

	*count = 0;
	pthread_mutex_lock(&s->later_lock);
	for (at = &s->later; (l = *at) && *count < most;) {
		int r = l->finished(l, callback);

		if (!r) {
			at = &l->next;
			continue;
		}
		*at = l->next;
		l->next = NULL;
		/* A failed one has nothing to send; its program hears of the error otherwise. */
		if (r < 0)
			l->n = 0;
		*end = l;
		end = &l->next;
		(*count)++;
	}
	for (s->later_end = &s->later; *s->later_end;)
		s->later_end = &(*s->later_end)->next;
	pthread_mutex_unlock(&s->later_lock);
	return done;
}

struct gathered *later_gather(struct session *s, size_t room, bool callback)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	struct gathered *g;
	struct delivery *pair;
	struct later *l, *done;
	size_t count, most = room / 2 / sizeof *pair;
	bool fits = true, relaxed = false;

	/* What a callback sent waits for a reply, even for one that carries nothing. */
	if (!atomic_load(&s->later_count) && (callback || !atomic_load(&s->sent)))
		return NULL;
	pthread_mutex_lock(&s->deliver_lock);
	/* Asking the driver for an event's state must not break a capture. */
	if (!callback)
		relaxed = !drv.cuThreadExchangeStreamCaptureMode(&mode);
	done = take_finished(s, callback, most < GATHER_MOST ? most : GATHER_MOST, &count);
	if (relaxed)
		drv.cuThreadExchangeStreamCaptureMode(&mode);
	g = calloc(1, sizeof *g);
	if (g && count)
		g->bytes = malloc(room);
	if (!g || (count && !g->bytes))
		session_end(s, CUDA_ERROR_OUT_OF_MEMORY, "out of memory for deliveries");
	g->sent = done;
	g->pairs = count;
	atomic_fetch_add(&s->delivered, count);
	g->len = count * sizeof *pair;
	for (l = done, pair = (struct delivery *)g->bytes; l; l = l->next, pair++) {
		*pair = (struct delivery){l->transfer, l->n};
		fits = fits && l->n <= room - g->len;
		if (l->n <= DELIVERY_INLINE && fits) {
			memcpy(g->bytes + g->len, l->p, l->n);
			g->len += l->n;
		} else {
			send_data(s, l->transfer, 0, l->p, l->n);
			g->data = true;
		}
	}
	return g;
}

void later_sent(struct session *s, struct gathered *g, bool callback)
{
	struct later *l = g->sent, *next;

	atomic_fetch_sub(&s->later_count, g->pairs);
	pthread_mutex_lock(&s->later_lock);
	if (callback) {
		/* The driver may not be called here: the next reply releases them. */
		while (l) {
			next = l->next;
			l->next = s->sent;
			s->sent = l;
			l = next;
		}
	} else {
		struct later **end = &g->sent;

		while (*end)
			end = &(*end)->next;
		*end = s->sent;
		s->sent = NULL;
		l = g->sent;
	}
	pthread_mutex_unlock(&s->later_lock);
	pthread_mutex_unlock(&s->deliver_lock);
	for (; l; l = next) {
		next = l->next;
		l->release(l);
	}
	free(g->bytes);
	free(g);
}

void session_deliveries(struct exec *x)
{
	if (x->frame.kind == FRAME_WAIT && !x->gathered)
		x->gathered = later_gather(x->session, LIMIT_REPLY - x->bulk_len, false);
}
