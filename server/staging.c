/* SPDX-License-Identifier: Apache-2.0 */
/* Staging memory is mapped by us and registered with the context: when a context dies its registration and
 * events die with it, the mapping stays valid until the stage is found stale. A context is told from a
 * later one at the same address by its id.
 *
 * Thread rule: see staging.h, stage_state.h. */
#include "server/staging.h"

#include <stdlib.h>
#include <sys/mman.h>
#include "server/driver.h"
#include "server/lend.h"
#include "server/stage_state.h"
#include "server/state.h"
#include "wire/log.h"
#include "cuda.calls.h"

static const struct {
	unsigned first, count;
} slots_of[SLOT_USES] = {[SLOT_TO_DEVICE] = {0, 4},
	[SLOT_TO_HOST] = {4, 2},
	[SLOT_ASIDE] = {6, 2},
	[SLOT_HELD] = {8, COPY_HELD_SLOTS}};
_Static_assert(8 + COPY_HELD_SLOTS == STAGE_SLOTS, "slots");

pthread_mutex_t stage_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t given = PTHREAD_COND_INITIALIZER;
static struct stage *stages;

CUstreamCaptureMode capture_relax(void)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	drv.cuThreadExchangeStreamCaptureMode(&mode);
	return mode;
}

void capture_restore(CUstreamCaptureMode mode)
{
	if (mode != CU_STREAM_CAPTURE_MODE_RELAXED)
		drv.cuThreadExchangeStreamCaptureMode(&mode);
}

static void stage_unmap(struct stage *s)
{
	uint64_t ticket = 0;

	for (int i = 0; i < STAGE_SLOTS; i++)
		ticket = s->slot[i].lent > ticket ? s->slot[i].lent : ticket;
	if (s->lent)
		lend_unmap(s->base, ticket);
	else
		munmap(s->base, STAGE_BYTES);
}

/* Pinned memory, if possible, and first of all such as can be lent. Capture is relaxed. */
static bool stage_map(struct stage *s)
{
	for (int lent = 1; lent >= 0; lent--) {
		s->lent = lent;
		s->base = lent ? lend_map(session_self()) :
			mmap(NULL, STAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (lent && !s->base)
			continue;
		if (s->base == MAP_FAILED)
			return false;
		s->registered = !drv.cuMemHostRegister_v2(
			s->base, STAGE_BYTES, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
		if (s->registered || !lent)
			break;
		stage_unmap(s);
	}
	return true;
}

static struct stage *stage_create(CUcontext ctx, unsigned long long id)
{
	struct stage *s = calloc(1, sizeof *s);
	CUstreamCaptureMode mode;

	if (!s)
		return NULL;
	s->ctx = ctx;
	s->id = id;
	mode = capture_relax();
	if (!stage_map(s)) {
		capture_restore(mode);
		free(s);
		return NULL;
	}
	if (!s->registered || drv.cuMemHostGetDevicePointer_v2(&s->device, s->base, 0))
		s->device = 0;
	if (!s->registered)
		log_debug("staging memory is not pinned: copies take the driver's own way");
	for (int i = 0; i < STAGE_SLOTS; i++) {
		s->slot[i].p = s->base + i * STAGE_SLOT;
		if (drv.cuEventCreate(&s->slot[i].event, CU_EVENT_DISABLE_TIMING))
			s->slot[i].event = NULL;
	}
	if (drv.cuStreamCreate(&s->stream, CU_STREAM_NON_BLOCKING))
		s->stream = NULL;
	capture_restore(mode);
	return s;
}

/* Frees what the driver has not freed itself with the context. Called with the lock. */
static void stage_destroy(struct stage *s)
{
	pieces_finish(s);
	stage_unmap(s);
	free(s);
}

/* With the lock, before another context gets its stage: those of contexts that have been destroyed, which the
 * session's table does not hold any more, would pile up in a program that makes one after the other. */
static void sweep(void)
{
	struct handles *h = session_self()->handles;

	for (struct stage **at = &stages, *s; (s = *at);) {
		bool used = s->pieces;

		for (int i = 0; i < STAGE_SLOTS; i++)
			used |= s->slot[i].taken;
		if (used || handle_id(h, HANDLE_CUcontext, s->ctx)) {
			at = &s->next;
			continue;
		}
		*at = s->next;
		stage_destroy(s);
	}
}

struct stage *stage_get(void)
{
	CUcontext ctx = NULL;
	unsigned long long id = 0;
	struct stage *s, **at;

	if (drv.cuCtxGetCurrent(&ctx) || !ctx)
		return NULL;
	if (drv.cuCtxGetId(ctx, &id))
		id = 0;
	pthread_mutex_lock(&stage_lock);
	for (at = &stages; (s = *at);) {
		if (s->ctx == ctx && s->id == id)
			break;
		if (s->ctx == ctx) /* the same address, another context: that one is gone */
			s->stale = true;
		if (s->stale && !s->pieces) {
			*at = s->next;
			stage_destroy(s);
			continue;
		}
		at = &s->next;
	}
	if (!s)
		sweep();
	if (!s && (s = stage_create(ctx, id))) {
		s->next = stages;
		stages = s;
	}
	pthread_mutex_unlock(&stage_lock);
	return s;
}

/* A slot that nobody has: one whose last copy has ended if there is one, else any. Called with the lock. */
static struct slot *choose(struct stage *s, enum slot_use use)
{
	unsigned first = slots_of[use].first, count = slots_of[use].count;
	struct slot *any = NULL;

	for (unsigned i = 0; i < count; i++) {
		struct slot *c = &s->slot[first + (s->turn + i) % count];

		if (c->taken)
			continue;
		if (!c->pending)
			return c;
		any = any ? any : c;
	}
	return any;
}

/* True when its last copy has ended, and the mount has taken what it was lent there; or within this call if
 * `wait`. */
static bool ready(struct slot *slot, bool wait)
{
	if (slot->lent && !lend_is_over(slot->lent, wait))
		return false;
	slot->lent = 0;
	if (wait)
		return !stage_wait(slot);
	if (!slot->pending)
		return true;
	CUstreamCaptureMode mode = capture_relax();
	CUresult r = drv.cuEventQuery(slot->event);

	capture_restore(mode);
	slot->pending = r == CUDA_ERROR_NOT_READY;
	return !r;
}

static struct slot *take(struct stage *s, enum slot_use use, bool wait)
{
	struct slot *slot;

	pthread_mutex_lock(&stage_lock);
	while (!(slot = choose(s, use)) && wait)
		pthread_cond_wait(&given, &stage_lock);
	if (slot) {
		slot->taken = true;
		s->turn++;
	}
	pthread_mutex_unlock(&stage_lock);
	if (!slot || ready(slot, wait))
		return slot;
	stage_release(s, slot);
	return NULL;
}

struct slot *stage_take(struct stage *s, enum slot_use use)
{
	return take(s, use, true);
}
struct slot *stage_try(struct stage *s, enum slot_use use)
{
	return take(s, use, false);
}

CUresult stage_record(struct slot *slot, CUstream stream)
{
	if (!slot->event)
		return drv.cuStreamSynchronize(stream);
	CUstreamCaptureMode mode = capture_relax();
	CUresult r = drv.cuEventRecord(slot->event, stream);

	slot->pending = !r;
	if (r)
		drv.cuStreamSynchronize(stream);
	capture_restore(mode);
	return r;
}

CUresult stage_wait(struct slot *slot)
{
	if (!slot->pending)
		return CUDA_SUCCESS;
	CUstreamCaptureMode mode = capture_relax();
	CUresult r = drv.cuEventSynchronize(slot->event);

	capture_restore(mode);
	slot->pending = false;
	return r;
}

void stage_release(struct stage *s, struct slot *slot)
{
	(void)s;
	pthread_mutex_lock(&stage_lock);
	slot->taken = false;
	pthread_cond_broadcast(&given);
	pthread_mutex_unlock(&stage_lock);
}

CUresult stage_put(struct stage *s, struct slot *slot, CUstream stream)
{
	CUresult r = stage_record(slot, stream);

	stage_release(s, slot);
	return r;
}

CUstream stage_stream(struct stage *s)
{
	return s->stream;
}
