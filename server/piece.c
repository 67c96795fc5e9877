/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces lie in the arena behind a stage's slots, in granules, or, when that is full, in pinned memory of
 * their own.
 *
 * Thread rule: see piece.h. */
#include "server/piece.h"

#include <stdlib.h>
#include <string.h>
#include "server/driver.h"
#include "server/stage_state.h"
#include "cuda.calls.h"

/* The first run of n free granules, or -1. */
static int arena_find(const struct stage *s, unsigned n)
{
	unsigned run = 0;

	for (unsigned i = 0; i < GRANULES; i++) {
		run = s->used[i] ? 0 : run + 1;
		if (run == n)
			return (int)(i + 1 - n);
	}
	return -1;
}

/* A kept one of about the size, or a new one. */
static struct own *own_take(struct stage *s, size_t room)
{
	size_t n = (room + GRANULE - 1) / GRANULE * GRANULE;
	struct own **at, *o;

	pthread_mutex_lock(&stage_lock);
	for (at = &s->kept; (o = *at) && (o->n < n || o->n / 2 > n);)
		at = &o->next;
	if (o)
		*at = o->next;
	pthread_mutex_unlock(&stage_lock);
	if (o || !(o = calloc(1, sizeof *o)))
		return o;
	CUstreamCaptureMode mode = capture_relax();
	void *p = NULL;

	if (drv.cuMemHostAlloc(&p, n, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP)) {
		free(o);
		o = NULL;
	} else {
		o->p = p;
		o->n = n;
		if (drv.cuMemHostGetDevicePointer_v2(&o->device, p, 0))
			o->device = 0;
	}
	capture_restore(mode);
	return o;
}

struct piece *piece_take(size_t n)
{
	struct stage *s = stage_get();
	struct piece *p = s ? calloc(1, sizeof *p) : NULL;
	size_t word = (n + 7) / 8 * 8, room = word + 8;
	unsigned granules = (unsigned)((room + GRANULE - 1) / GRANULE);
	int at = -1;

	if (!p)
		return NULL;
	p->stage = s;
	p->n = n;
	p->room = room;
	pthread_mutex_lock(&stage_lock);
	s->pieces++;
	if (granules <= GRANULES)
		at = arena_find(s, granules);
	if (at >= 0)
		memset(s->used + at, 1, granules);
	if (s->nevents)
		p->event = s->event[--s->nevents];
	pthread_mutex_unlock(&stage_lock);
	CUdeviceptr device = s->device;

	if (at >= 0) {
		p->p = s->base + STAGE_SLOTS * STAGE_SLOT + (size_t)at * GRANULE;
		device = device ? device + (size_t)(p->p - s->base) : 0;
	} else if ((p->own = own_take(s, room))) {
		p->p = p->own->p;
		device = p->own->device;
	}
	if (p->p) {
		p->word = (volatile uint32_t *)(p->p + word);
		*p->word = 0;
		p->word_device = device ? device + word : 0;
	}
	CUstreamCaptureMode mode = capture_relax();

	if (!p->event && drv.cuEventCreate(&p->event, CU_EVENT_DISABLE_TIMING))
		p->event = NULL;
	capture_restore(mode);
	if (p->p && p->event)
		return p;
	piece_release(p);
	return NULL;
}

CUresult piece_mark(struct piece *p, CUstream stream)
{
	CUstreamCaptureMode mode = capture_relax();
	CUresult r;

	if (p->word_device &&
		drv.cuStreamWriteValue32_v2(stream, p->word_device, 1, CU_STREAM_WRITE_VALUE_DEFAULT))
		p->word_device = 0;
	r = drv.cuEventRecord(p->event, stream);
	if (r)
		drv.cuStreamSynchronize(stream);
	capture_restore(mode);
	return r;
}

int piece_state(struct piece *p, bool blind)
{
	if (p->word && __atomic_load_n(p->word, __ATOMIC_ACQUIRE))
		return 1;
	if (blind)
		return 0;
	CUresult r = drv.cuEventQuery(p->event);

	return r == CUDA_ERROR_NOT_READY ? 0 : r ? -1 : 1;
}

void piece_release(struct piece *p)
{
	struct stage *s = p->stage;
	CUevent drop = NULL;

	pthread_mutex_lock(&stage_lock);
	if (!p->own && p->p)
		memset(s->used + (size_t)(p->p - (s->base + STAGE_SLOTS * STAGE_SLOT)) / GRANULE, 0,
			(p->room + GRANULE - 1) / GRANULE);
	if (p->own) {
		p->own->next = s->kept;
		s->kept = p->own;
	}
	if (p->event && s->nevents < POOLED_EVENTS)
		s->event[s->nevents++] = p->event;
	else
		drop = p->event;
	s->pieces--;
	pthread_mutex_unlock(&stage_lock);
	if (drop) {
		CUstreamCaptureMode mode = capture_relax();

		drv.cuEventDestroy_v2(drop);
		capture_restore(mode);
	}
	free(p);
}

void pieces_finish(struct stage *s)
{
	while (s->kept) {
		struct own *o = s->kept;

		s->kept = o->next;
		free(o);
	}
}
