/* SPDX-License-Identifier: Apache-2.0 */
/* Events: recording, waiting, time between two.
 *
 * Thread rule: see state.h. */
#include "server/soft/event.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "server/soft/capture.h"
#include "server/soft/process.h"

static void event_finish(struct object *o)
{
	struct event *e = (struct event *)o;
	event_uncapture(e);
	mark_unref(e->mark);
	if (e->page) {
		munmap(e->page, sizeof *e->page);
		close(e->page_fd);
	}
	free(e);
}

/* ---- events of several processes */

/* Gives an event its page: a new one, or that of the file. 0 or -errno. */
static int page_open(struct event *e, int fd)
{
	int r = 0;
	if (fd < 0) {
		fd = memfd_create("scuda-soft-event", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		if (fd < 0)
			return -errno;
		if (ftruncate(fd, sizeof *e->page) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
			r = -errno;
	}
	void *p = r ? MAP_FAILED : mmap(NULL, sizeof *e->page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		r = r ? r : -errno;
		close(fd);
		return r;
	}
	e->page = p;
	e->page_fd = fd;
	return 0;
}

void event_signal(struct event *e, uint64_t record)
{
	uint64_t was = e->page->done;
	while (was < record && !atomic_compare_exchange_weak(&e->page->done, &was, record))
		;
}

bool event_reached(const struct event *e, uint64_t record)
{
	uint64_t recorder = e->page->recorder;
	return e->page->done >= record || (recorder && process_gone(recorder));
}

static CUresult record_shared(struct event *e, struct stream *s)
{
	/* First the name: who sees the record waits for this process, and not for the last one, which may be
	 * gone. */
	e->page->recorder = process_name();
	struct work w = {.type = WORK_SIGNAL,
			.shared = {object_ref(e), atomic_fetch_add(&e->page->recorded, 1) + 1}};
	uint64_t record = w.shared.record;
	CUresult r = stream_submit(s, &w, NULL);
	if (r)
		event_signal(e, record);
	return r;
}

static CUresult sync_shared(struct event *e)
{
	struct context *c = object_ref(e->object.context);
	uint64_t record = e->page->recorded;
	object_ref(e);
	while (!event_reached(e, record) && !c->error) {
		pthread_mutex_unlock(&soft.lock);
		nanosleep(&(struct timespec){0, 50000}, NULL);
		pthread_mutex_lock(&soft.lock);
	}
	print_pending();
	CUresult r = c->error;
	object_unref(e);
	object_unref(c);
	return r;
}

struct event *event_new(struct context *c, unsigned flags, int fd)
{
	struct event *e = calloc(1, sizeof *e);
	if (!e || !object_open(&e->object, KIND_EVENT, c, event_finish)) {
		free(e);
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	e->flags = flags;
	if (!(flags & CU_EVENT_INTERPROCESS) || !page_open(e, fd))
		return e;
	object_close(&e->object);
	return NULL;
}

CUresult cuEventCreate(CUevent *out, unsigned flags)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	const unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
	if (!out || flags & ~known || (flags & CU_EVENT_INTERPROCESS && !(flags & CU_EVENT_DISABLE_TIMING)))
		return CUDA_ERROR_INVALID_VALUE;
	struct event *e = event_new(g.context, flags, -1);
	if (!e)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*out = HANDLE(e);
	return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent h)
{
	if (!h)
		return CUDA_ERROR_INVALID_HANDLE; /* even before cuInit */
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	struct event *e = object_find(h, KIND_EVENT);
	if (!e)
		return CUDA_ERROR_INVALID_HANDLE;
	object_close(&e->object);
	return CUDA_SUCCESS;
}
CUresult cuEventDestroy(CUevent h)
{
	return cuEventDestroy_v2(h);
}

CUresult event_record(struct event *e, struct stream *s)
{
	struct mark *m = NULL;
	struct work w = {.type = WORK_EMPTY};
	bool taken = false;
	CUresult r = capture_record(e, s, &taken);
	if (r || taken)
		return r;
	if (e->page) {
		event_uncapture(e);
		return record_shared(e, s);
	}
	r = stream_submit(s, &w, &m);
	if (r)
		return r;
	event_uncapture(e);
	mark_unref(e->mark);
	e->mark = m;
	return CUDA_SUCCESS;
}

struct mark *event_arm(struct event *e)
{
	struct mark *m = calloc(1, sizeof *m);
	if (!m)
		return NULL;
	m->refs = 2;
	m->serial = ++soft.serial;
	event_uncapture(e);
	mark_unref(e->mark);
	e->mark = m;
	return m;
}

void event_fire(struct mark *m)
{
	m->time = now_ns();
	m->done = true;
	pthread_cond_broadcast(&soft.progress);
	mark_unref(m);
}

CUresult cuEventRecordWithFlags(CUevent h, CUstream stream, unsigned flags)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	struct event *e = object_find(h, KIND_EVENT);
	if (!e)
		return CUDA_ERROR_INVALID_HANDLE;
	if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult r = CUDA_SUCCESS;
	struct stream *s = stream_named(g.context, stream, &r);
	if (!s)
		return r;
	if (e->object.context != s->object.context)
		return CUDA_ERROR_INVALID_HANDLE;
	if (flags & CU_EVENT_RECORD_EXTERNAL) {
		if (!s->capture)
			return CUDA_ERROR_ILLEGAL_STATE;
		struct work w = {.type = WORK_EVENT, .event = {object_ref(e)}};
		return stream_submit(s, &w, NULL);
	}
	return event_record(e, s);
}
CUresult cuEventRecord(CUevent h, CUstream stream)
{
	return cuEventRecordWithFlags(h, stream, 0);
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent h, unsigned flags)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	struct event *e = object_find(h, KIND_EVENT);
	if (!e)
		return CUDA_ERROR_INVALID_HANDLE;
	if (flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult r = CUDA_SUCCESS;
	struct stream *s = stream_named(g.context, stream, &r);
	if (!s)
		return r;
	if (flags & CU_EVENT_WAIT_EXTERNAL) {
		if (!s->capture)
			return CUDA_ERROR_ILLEGAL_STATE;
		struct work w = {.type = WORK_WAIT, .event = {object_ref(e)}};
		return stream_submit(s, &w, NULL);
	}
	bool taken = false;
	r = capture_wait(e, s, &taken);
	if (!r && !taken)
		r = capture_check(s);
	if (!r && !taken && e->page) {
		struct work w = {.type = WORK_AWAIT, .shared = {object_ref(e), e->page->recorded}};
		return stream_submit(s, &w, NULL);
	}
	if (r || taken || !e->mark || e->mark->done)
		return r;
	return stream_wait_marks(s, &e->mark, 1, NULL);
}

CUresult cuEventQuery(CUevent h)
{
	if (!h)
		return CUDA_ERROR_INVALID_HANDLE; /* even before cuInit */
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	struct event *e = object_find(h, KIND_EVENT);
	if (!e)
		return CUDA_ERROR_INVALID_HANDLE;
	if (e->capture)
		return capture_asked(e);
	CUresult r = capture_unsafe();
	if (r)
		return r;
	if (e->page ? !event_reached(e, e->page->recorded) : e->mark && !e->mark->done)
		return CUDA_ERROR_NOT_READY;
	print_pending();
	return g.context->error;
}

CUresult cuEventSynchronize(CUevent h)
{
	if (!h)
		return CUDA_ERROR_INVALID_HANDLE; /* even before cuInit */
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	struct event *e = object_find(h, KIND_EVENT);
	if (!e)
		return CUDA_ERROR_INVALID_HANDLE;
	if (e->capture)
		return capture_asked(e);
	CUresult r = capture_unsafe();
	if (r)
		return r;
	if (e->page)
		return sync_shared(e);
	struct context *c = e->object.context;
	object_ref(c);
	if (e->mark)
		mark_wait(e->mark);
	print_pending();
	r = c->error;
	object_unref(c);
	return r;
}

CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	const struct event *a = object_find(start, KIND_EVENT), *b = object_find(end, KIND_EVENT);
	if (!ms || !a || !b || a->object.context != b->object.context)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!a->mark || !b->mark || a->flags & CU_EVENT_DISABLE_TIMING || b->flags & CU_EVENT_DISABLE_TIMING)
		return CUDA_ERROR_INVALID_HANDLE;
	if (a->capture || b->capture)
		return CUDA_ERROR_CAPTURED_EVENT;
	if (!a->mark->done || !b->mark->done)
		return CUDA_ERROR_NOT_READY;
	*ms = (float)((double)(int64_t)(b->mark->time - a->mark->time) / 1e6);
	return CUDA_SUCCESS;
}
CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
	return cuEventElapsedTime_v2(ms, start, end);
}

/* ---- a whole context as one stream */

CUresult cuCtxRecordEvent(CUcontext context, CUevent h)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	CUresult r = CUDA_SUCCESS;
	struct context *c = context ? context_named(context, &r) : g.context;
	if (!c)
		return CUDA_ERROR_INVALID_CONTEXT;
	struct event *e = object_find(h, KIND_EVENT);
	if (!e || e->object.context != c)
		return CUDA_ERROR_INVALID_HANDLE;
	if ((r = capture_blocks_sync(c)))
		return r;
	struct stream *own = stream_legacy(c);
	if (!own)
		return CUDA_ERROR_OUT_OF_MEMORY;
	unsigned n = 0;
	for (const struct stream *s = c->streams; s; s = s->next)
		n++;
	struct mark **all = calloc(n, sizeof *all), *m = NULL;
	if (!all)
		return CUDA_ERROR_OUT_OF_MEMORY;
	n = 0;
	for (const struct stream *s = c->streams; s; s = s->next)
		if (s->last)
			all[n++] = s->last;
	r = stream_wait_marks(own, all, n, &m);
	free(all);
	if (r)
		return r;
	event_uncapture(e);
	mark_unref(e->mark);
	e->mark = m;
	return CUDA_SUCCESS;
}

CUresult cuCtxWaitEvent(CUcontext context, CUevent h)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	CUresult r = CUDA_SUCCESS;
	struct context *c = context ? context_named(context, &r) : g.context;
	if (!c)
		return CUDA_ERROR_INVALID_CONTEXT;
	struct event *e = object_find(h, KIND_EVENT);
	if (!e)
		return CUDA_ERROR_INVALID_HANDLE;
	if (e->capture)
		return CUDA_ERROR_CAPTURED_EVENT;
	if ((r = capture_blocks_sync(c)))
		return r;
	for (struct stream *s = c->streams; s && !r && e->mark && !e->mark->done; s = s->next)
		r = stream_wait_marks(s, &e->mark, 1, NULL);
	return r;
}
