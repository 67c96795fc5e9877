/* SPDX-License-Identifier: Apache-2.0 */
/* Exchanges of memory that program and GPU use in place (wire/mirror.h): what the program sends is merged
 * into it, and what has changed here is given.
 *
 * Thread rule: the mirror threads of records; mirror_list.h. */
#include "server/mirror_list.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/serve.h"
#include "wire/log.h"
#include "wire/mirror.h"
#include "cuda.calls.h"

static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static uint64_t exchanged; /* the number of the last exchange that is through */

/* A variable's memory is asked for before there is a context. Whether the CPU may read it already the kernel
 * says, by an error instead of a signal. */
static bool touchable(struct mirror *m)
{
	static int probe[2] = {-1, -1};
	char byte;

	if (m->touched)
		return true;
	if (probe[0] < 0 && pipe2(probe, O_CLOEXEC | O_NONBLOCK))
		return false;
	m->touched = write(probe[1], mirror_memory(m), 1) == 1;
	if (m->touched && read(probe[0], &byte, 1) != 1)
		log_error("the pipe that probes memory: %m");
	if (!m->touched)
		log_info("managed memory at %#llx cannot be read yet", (unsigned long long)m->base);
	return m->touched;
}

/* Where a record's bytes and an answer's are: a session has few threads that exchange. */
static uint8_t *room(void)
{
	static _Thread_local uint8_t *bytes_of_thread;

	if (!bytes_of_thread)
		bytes_of_thread = malloc(MIRROR_PIECE);
	return bytes_of_thread;
}

bool mirror_has_news(void)
{
	bool news = false;
	size_t n;

	pthread_mutex_lock(&mirror_lock);
	for (struct mirror *m = mirror_first; m && !news; m = m->next)
		news = touchable(m) &&
		       mirror_changed(mirror_memory(m), m->agreed, m->size, 0, MIRROR_BLOCK, &n) < m->size;
	pthread_mutex_unlock(&mirror_lock);
	return news;
}

/* [SEND, address, number, bytes], bulk */
static CUresult take(const uint8_t *fresh, uint64_t p, uint64_t n)
{
	struct mirror *m = mirror_holder(p, n);

	if (!m)
		return SERVE_BAD;
	if (!touchable(m))
		return CUDA_ERROR_NOT_PERMITTED;
	mirror_merge(mirror_memory(m) + (p - m->base), m->agreed + (p - m->base), fresh, n);
	return CUDA_SUCCESS;
}

struct run {
	struct mirror *m;
	size_t at, n;
};

/* [FETCH, address, number] */
static CUresult give(struct exec *x, uint64_t from)
{
	struct run *run = exec_alloc(x, MIRROR_RUNS * sizeof *run);
	size_t count = 0, total = 0, n, at;
	uint64_t next = 0;
	uint8_t *p = room();

	if (!run || !p)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (struct mirror *m = mirror_first; m && !next; m = m->next) {
		if (m->base + m->size <= from || !touchable(m))
			continue;
		at = from > m->base ? (from - m->base) / MIRROR_BLOCK * MIRROR_BLOCK : 0;
		for (; at < m->size; at += n) {
			if (count == MIRROR_RUNS || total + MIRROR_BLOCK > MIRROR_PIECE) {
				next = m->base + at;
				break;
			}
			at = mirror_changed(mirror_memory(m), m->agreed, m->size, at, MIRROR_PIECE - total,
				&n);
			if (!n)
				continue;
			/* A kernel may go on writing: what is taken here is agreed, whatever follows. */
			memcpy(m->agreed + at, mirror_memory(m) + at, n);
			run[count++] = (struct run){m, at, n};
			total += n;
		}
	}
	x->bulk = p;
	x->bulk_len = total;
	put_u64(&x->out, next);
	put_array(&x->out, count * 2);
	for (size_t i = 0; i < count; i++) {
		put_u64(&x->out, run[i].m->base + run[i].at);
		put_u64(&x->out, run[i].n);
		memcpy(p, run[i].m->agreed + run[i].at, run[i].n);
		p += run[i].n;
	}
	return CUDA_SUCCESS;
}

/* [SEND or FETCH, address, number ...]: in the order of their numbers. Of two that crossed, the earlier one
 * would undo what the later one brought. Those before it were sent before it: they are through, or under way
 * in another thread (aside.c), but where a program has made up a number, and waits for its own end then. */
static CUresult exchange(struct exec *x, enum mirror_op op, uint64_t p, uint64_t number, uint64_t n)
{
	uint8_t *fresh = op == MIRROR_SEND ? room() : NULL;
	CUresult r = op == MIRROR_SEND && !fresh ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;

	if (fresh && !exec_bulk(x, fresh, n))
		return SERVE_BAD;
	pthread_mutex_lock(&mirror_lock);
	while (number > exchanged + 1)
		pthread_cond_wait(&turn, &mirror_lock);
	if (number <= exchanged)
		r = SERVE_BAD;
	else if (!r && op == MIRROR_SEND)
		r = take(fresh, p, n);
	else if (!r)
		r = give(x, p);
	if (number > exchanged)
		exchanged = number;
	pthread_cond_broadcast(&turn);
	pthread_mutex_unlock(&mirror_lock);
	return r;
}

/* wire/mirror.h */
CUresult serve_cuMemHostGetDevicePointer_v2(struct exec *x)
{
	uint64_t op = get_u64(&x->in), p = get_u64(&x->in);
	uint64_t number = op == MIRROR_SEND || op == MIRROR_FETCH ? get_u64(&x->in) : 0;
	uint64_t n = op == MIRROR_MAKE || op == MIRROR_SEND ? get_u64(&x->in) : 0;

	if (!get_end(&x->in) || (op == MIRROR_SEND && (!n || n > MIRROR_PIECE || n != x->frame.bulk_len)))
		return SERVE_BAD;
	switch (op) {
	case MIRROR_MAKE: return mirror_make(p, n);
	case MIRROR_DROP: return mirror_forget(p);
	case MIRROR_SEND:
	case MIRROR_FETCH: return exchange(x, (enum mirror_op)op, p, number, n);
	default: return SERVE_BAD;
	}
}
