/* SPDX-License-Identifier: Apache-2.0 */
/* Copies to pinned memory whose bytes a later answer tells (docs/protocol.md, wire/copy.h): which are under
 * way, and whether one more may be.
 *
 * Thread rule: any thread. `lock` guards the list; whether it is empty is looked at without. */
#include "devshim/copy_parts.h"
#include <pthread.h>
#include <stdlib.h>
#include "wire/limits.h"

struct untold {
	struct untold *next;
	uintptr_t to;
	size_t n; /* bytes from the first to behind the last in memory */
	size_t bytes;
	struct work *work;
	uint64_t transfer;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct untold *untold;

/* Bytes that wait to be told, and of how many copies; forgets those that have come. */
size_t copy_untold_bytes(uintptr_t from, size_t n, bool *overlap, unsigned *copies)
{
	size_t bytes = 0;

	*overlap = false;
	*copies = 0;
	if (!__atomic_load_n(&untold, __ATOMIC_RELAXED))
		return 0;
	pthread_mutex_lock(&lock);
	for (struct untold **u = &untold; *u;) {
		struct untold *c = *u;

		if (!transfer_pending(c->transfer)) {
			__atomic_store_n(u, c->next, __ATOMIC_RELAXED);
			free(c);
			continue;
		}
		bytes += c->bytes;
		++*copies;
		*overlap |= from < c->to + c->n && c->to < from + n;
		u = &c->next;
	}
	pthread_mutex_unlock(&lock);
	return bytes;
}

bool copy_untold(const struct work *w)
{
	bool overlap, found = false;
	unsigned copies;

	if (!copy_untold_bytes(0, 0, &overlap, &copies))
		return false;
	pthread_mutex_lock(&lock);
	for (struct untold *u = untold; u && !found; u = u->next)
		found = u->work == w;
	pthread_mutex_unlock(&lock);
	return found;
}

static void note_untold(struct untold *u)
{
	pthread_mutex_lock(&lock);
	u->next = untold;
	__atomic_store_n(&untold, u, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
}

/* A small copy to pinned memory, told by a later answer. */
CUresult copy_to_host_told(const struct copy *k, CUstream stream, struct work *w)
{
	struct transfer t = copy_place(k, &k->dst);
	struct untold *u = malloc(sizeof *u);
	uint64_t id = u ? transfer_new(&t) : 0;
	struct call c;
	CUresult r = id ? copy_encode(&c, k, COPY_ASYNC, stream, id) : CUDA_ERROR_OUT_OF_MEMORY;

	if (!r)
		r = call_post(&c);
	if (r) {
		if (id)
			transfer_drop(id);
		free(u);
		return r;
	}
	*u = (struct untold){
		.to = (uintptr_t)t.to, .n = copy_span(k, &k->dst), .bytes = copy_total(k), .work = w,
		.transfer = id};
	work_posted(w, c.seq);
	note_untold(u);
	return r;
}

/* Whether an answer has room for one more copy that it tells. */
bool copy_may_be_told(const struct copy *k)
{
	bool overlap;
	unsigned copies;

	return copy_total(k) <= COPY_DELIVERY &&
	       copy_untold_bytes(0, 0, &overlap, &copies) + copy_total(k) <= COPY_DELIVERIES &&
	       copies < COPY_DELIVERIES_MOST;
}
