/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: their life, the default ones of contexts and threads, and which one an argument means. What is
 * queued in them is in stream_queue.c.
 *
 * Thread rule: see stream.h. */
#include "server/soft/stream.h"
#include <stdlib.h>
#include "server/soft/capture.h"

static void unlink_own(struct stream *s)
{
	if (!s->owner)
		return;
	for (struct stream **p = &s->owner->streams; *p; p = &(*p)->next_own)
		if (*p == s) {
			*p = s->next_own;
			break;
		}
	s->owner = NULL;
}

static void stream_finish(struct object *o)
{
	struct stream *s = (struct stream *)o;
	struct context *c = s->object.context;
	unlink_own(s);
	for (struct stream **p = &c->streams; *p; p = &(*p)->next)
		if (*p == s) {
			*p = s->next;
			break;
		}
	mark_unref(s->last);
	free(s->tips);
	pthread_cond_destroy(&s->wake);
	free(s);
	object_unref(c);
}

struct stream *stream_create(struct context *c, unsigned flags, int priority)
{
	struct stream *s = calloc(1, sizeof *s);
	if (!s || !object_open(&s->object, KIND_STREAM, c, stream_finish)) {
		free(s);
		return NULL;
	}
	object_ref(c);
	pthread_cond_init(&s->wake, NULL);
	s->flags = flags;
	s->priority = priority;
	s->blocking = !(flags & CU_STREAM_NON_BLOCKING);
	s->id = soft.next_id++;
	s->policy = CU_SYNC_POLICY_AUTO;
	s->map = (CUlaunchMemSyncDomainMap){0, 1};
	s->next = c->streams;
	c->streams = s;
	return s;
}

/* The handle is gone; what is queued still runs. */
static void stream_close(struct stream *s)
{
	capture_stream_gone(s);
	unlink_own(s);
	s->closing = true;
	pthread_cond_signal(&s->wake);
	object_close(&s->object);
}

void streams_close(struct context *c)
{
	c->legacy = NULL;
	for (struct stream *s; (s = (struct stream *)object_of(c, KIND_STREAM));)
		stream_close(s);
}

void stream_thread_ended(struct thread *t)
{
	while (t->streams)
		stream_close(t->streams);
}

struct stream *stream_legacy(struct context *c)
{
	if (!c->legacy) {
		c->legacy = stream_create(c, CU_STREAM_DEFAULT, 0);
		if (c->legacy)
			c->legacy->legacy = true;
	}
	return c->legacy;
}

static struct stream *stream_own(struct context *c)
{
	struct thread *t = thread_self();
	for (struct stream *s = t->streams; s; s = s->next_own)
		if (s->object.context == c)
			return s;
	struct stream *s = stream_create(c, CU_STREAM_DEFAULT, 0);
	if (s) {
		s->owner = t;
		s->next_own = t->streams;
		t->streams = s;
	}
	return s;
}

struct stream *stream_named(struct context *c, CUstream handle, CUresult *why)
{
	struct stream *s;
	if (handle == CU_STREAM_PER_THREAD || (!handle && thread_self()->ptds))
		s = stream_own(c);
	else if (!handle || handle == CU_STREAM_LEGACY)
		s = stream_legacy(c);
	else {
		s = object_find(handle, KIND_STREAM);
		if (!s)
			*why = CUDA_ERROR_INVALID_HANDLE;
		return s;
	}
	if (!s)
		*why = CUDA_ERROR_OUT_OF_MEMORY;
	return s;
}

CUresult cuStreamDestroy_v2(CUstream h)
{
	if (!h)
		return CUDA_ERROR_INVALID_HANDLE; /* even before cuInit */
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	struct stream *s = object_find(h, KIND_STREAM);
	if (!s || s->legacy || s->owner)
		return CUDA_ERROR_INVALID_HANDLE;
	stream_close(s);
	return CUDA_SUCCESS;
}
CUresult cuStreamDestroy(CUstream h)
{
	return cuStreamDestroy_v2(h);
}
