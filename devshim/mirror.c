/* SPDX-License-Identifier: Apache-2.0 */
/* The program's side of memory that it shares with the GPU (wire/mirror.h): the exchange. Before work is
 * sent, what the program may have written (watch.h) is compared with what was last agreed on; after work is
 * known to be done the server compares its own.
 *
 * Thread rule: mirror_state.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "devshim/context.h"
#include "devshim/mirror_state.h"
#include "devshim/process.h"
#include "wire/log.h"
#include "cuda.calls.h"

_Atomic unsigned mirror_told, mirror_seen;
static uint64_t exchanges; /* that were sent */
static uint64_t posted; /* the last one that no answer was awaited of */
static uint64_t made; /* the last one of which the server has said that it is made */
static CUresult kept; /* an error of an earlier post that an exchange learned of: the next work tells it */

/* ---- records */

CUresult mirror_begin(struct call *c, enum mirror_op op, uint64_t p)
{
	CUresult r = call_begin(c, CALL_cuMemHostGetDevicePointer_v2);

	if (r)
		return r;
	put_u64(&c->out, op);
	put_u64(&c->out, p);
	return CUDA_SUCCESS;
}

/* A SEND or FETCH, under the lock: with the next number, which is used up when the record goes out. */
static CUresult begin_exchange(struct call *c, enum mirror_op op, uint64_t p)
{
	CUresult r = mirror_begin(c, op, p);

	if (r)
		return r;
	put_u64(&c->out, exchanges + 1);
	c->aside = true;
	c->seq = 0;
	return CUDA_SUCCESS;
}

static void end_exchange(const struct call *c, bool waited)
{
	exchanges += c->seq != 0;
	/* They are made in the order of their numbers. */
	*(waited ? &made : &posted) = exchanges;
}

CUresult mirror_wait(struct call *c)
{
	return call_end(c, call_wait(c));
}

/* ---- exchanging */

static CUresult send_piece(struct mirror *m, size_t from, size_t n, bool wait)
{
	struct context *ctx;
	struct call c;
	CUresult r = begin_exchange(&c, MIRROR_SEND, m->base + from);

	if (r)
		return r;
	memcpy(mirrors.piece, mirror_memory(m) + from, n);
	put_u64(&c.out, n);
	c.bulk = mirrors.piece;
	c.bulk_len = n;
	/* Without a context that lives nothing may be posted. */
	wait = wait || context_check(&ctx);
	r = wait ? mirror_wait(&c) : call_post(&c);
	end_exchange(&c, wait && !r);
	if (!r)
		memcpy(m->agreed + from, mirrors.piece, n);
	return r;
}

/* What differs among the bytes [from, to) of a range. */
static CUresult send_changed(struct mirror *m, size_t from, size_t to, bool wait)
{
	CUresult r = CUDA_SUCCESS;
	size_t n;

	while (!r && from < to) {
		from = mirror_changed(mirror_memory(m), m->agreed, to, from, MIRROR_PIECE, &n);
		if (n)
			r = send_piece(m, from, n, wait);
		from += n;
	}
	return r;
}

CUresult mirror_send_changed(bool wait)
{
	int saved = errno;
	CUresult r;

	pthread_mutex_lock(&mirrors.lock);
	r = kept;
	kept = CUDA_SUCCESS;
	for (struct mirror *m = mirrors.first; m && !r; m = m->next) {
		size_t from, to;

		watch_begin(&m->watch);
		while (!r && watch_next(&m->watch, &from, &to))
			r = send_changed(m, from, to, wait);
		if (r)
			watch_again(&m->watch);
	}
	/* What a host function wrote may be in an exchange that another thread has posted, which its end must
	 * not overtake: the answer to a later one says that the server has made it. */
	if (!r && wait && posted > made)
		mirror_fetch_all();
	pthread_mutex_unlock(&mirrors.lock);
	errno = saved;
	return r;
}

/* One answer's runs to their places. False when the server names memory that is not in use. */
static bool place_runs(struct call *c, const uint8_t *fresh, uint64_t *next)
{
	uint64_t left = c->bulk_out_len, before = *next;

	*next = get_u64(&c->in);
	for (size_t i = get_array(&c->in, 2 * MIRROR_RUNS); i >= 2; i -= 2) {
		uint64_t p = get_u64(&c->in), n = get_u64(&c->in);
		struct mirror *m = n && n <= left ? mirror_holder(p, n) : NULL;

		if (!m)
			return false;
		mirror_merge(mirror_memory(m) + (p - m->base), m->agreed + (p - m->base), fresh, n);
		fresh += n;
		left -= n;
	}
	return !left && !c->in.bad && (!*next || *next > before);
}

void mirror_fetch_all(void)
{
	uint8_t *fresh = malloc(MIRROR_PIECE);
	uint64_t next = 0;
	struct call c;
	CUresult r = CUDA_SUCCESS;

	if (!fresh)
		log_error("no memory to take what kernels wrote");
	while (fresh) {
		r = begin_exchange(&c, MIRROR_FETCH, next);
		if (r)
			break;
		c.bulk_out = fresh;
		c.bulk_out_len = MIRROR_PIECE;
		r = call_wait(&c);
		end_exchange(&c, !r);
		/* No results: the server's own refusal. */
		if (r && c.in.len >= c.in.cap)
			break;
		if (!place_runs(&c, fresh, &next)) {
			process_die(-EPROTO, "memory used in place");
			break;
		}
		call_end(&c, CUDA_SUCCESS);
		if (r && !kept)
			kept = r;
		if (!next)
			break;
	}
	free(fresh);
}

void mirror_fetch_changed(void)
{
	int saved = errno;

	if (thread_cached && thread_cached->host_function)
		return;
	pthread_mutex_lock(&mirrors.lock);
	/* What was told of before the fetch begins is seen to when it has ended, and not before: others wait
	 * for it here. */
	unsigned told = atomic_load(&mirror_told);

	if (mirrors.first && told != atomic_load(&mirror_seen))
		mirror_fetch_all();
	atomic_store(&mirror_seen, told);
	pthread_mutex_unlock(&mirrors.lock);
	errno = saved;
}
