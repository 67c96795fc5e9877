/* SPDX-License-Identifier: Apache-2.0 */
/* The policy of calls: what may be sent at all, which error a call reports, and what an answer means.
 * Everything that is sent goes through call_post and call_wait.
 *
 * Thread rule: a call belongs to its thread, and a thread has one call at a time between call_begin and
 * call_post or call_end: its record and its answer lie in memory of the thread, which the next call of the
 * thread uses again. tests/gen/begun.py shows that no function here breaks this; what a pointer leads to, and
 * a program that calls from a signal's handler, is_overtaken finds. */
#include "devshim/call.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "cuda.calls.h"
#include "devshim/channel.h"
#include "devshim/context.h"
#include "devshim/device.h"
#include "devshim/handle.h"
#include "devshim/logs.h"
#include "devshim/mirror.h"
#include "devshim/process.h"
#include "devshim/transfer.h"
#include "devshim/upcall.h"
#include "wire/hops.h"
#include "wire/limits.h"
#include "wire/log.h"

static bool lacks[CALL_COUNT];
static bool traced;

/* Names for the log when a post fails: which call had the number, as the number shifted by 16 bits and the
 * call; a later record of another thread may have taken its place. */
#define RECENT 4096
static _Atomic uint64_t recent[RECENT];

CUresult call_begin(struct call *c, unsigned id)
{
	CUresult code = process_check();
	if (__builtin_expect(code != CUDA_SUCCESS, 0))
		return code;
	struct thread *t = thread_self();
	if (__builtin_expect(!t, 0))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (__builtin_expect(t->host_function, 0))
		return CUDA_ERROR_NOT_PERMITTED;
	if (__builtin_expect(lacks[id], 0))
		return call_unsupported(id, "the server lacks it");
	if (__builtin_expect(hops_on, 0))
		t->began = hops_now();
	msg_init(&c->out, t->out + sizeof(struct frame), LIMIT_HEAD);
	msg_init(&c->in, NULL, 0);
	c->id = id;
	c->number = ++t->calls;
	c->bulk = NULL;
	c->bulk_len = 0;
	c->bulk_at = 0;
	c->bulk_held = c->aside = false;
	c->bulk_out = NULL;
	c->bulk_out_len = 0;
	c->owner = NULL;
	return CUDA_SUCCESS;
}

/* Another call of the thread was made since this one had begun, and its bytes lie where this one's were: a
 * record that would damage the stream is not sent, an answer that is no longer there is not believed. */
static bool is_overtaken(const struct call *c)
{
	if (__builtin_expect(c->number == thread_cached->calls, 1))
		return false;
	log_error("%s: another call was made before it had ended", call_names[c->id].name);
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
	abort();
#endif
	return true;
}

static void fill(struct record *r, struct call *c, struct thread *t, enum frame_kind kind)
{
	struct context *ctx = t->current;
	bool alive = ctx && atomic_load_explicit(&ctx->alive, memory_order_relaxed);
	bool aside = c->aside || (kind == FRAME_WAIT && upcall_inside());
	*r = (struct record){
		.bytes = t->out,
		.head_len = (uint32_t)c->out.len,
		.kind = (uint8_t)kind,
		.flags = (uint8_t)((t->ptds ? FRAME_PTDS : 0) | (aside ? FRAME_ASIDE : 0)),
		.call = (uint16_t)c->id,
		.thread = t->id,
		.ctx = alive ? (uint64_t)(uintptr_t)ctx->handle : 0,
		.bulk = c->bulk,
		.bulk_len = c->bulk_len,
		.bulk_at = c->bulk_at,
		.bulk_held = c->bulk_held,
	};
	t->exchanged = true;
}

static void sent(struct call *c, const struct record *r)
{
	c->seq = r->seq;
	atomic_store_explicit(&recent[r->seq % RECENT], r->seq << 16 | c->id, memory_order_relaxed);
	if (__builtin_expect(hops_on, 0)) {
		hops_note(HOP_CALL, r->seq, thread_cached->began);
		if (r->kind == FRAME_POST)
			hops_note(HOP_RETURN, r->seq, 0);
	}
	if (__builtin_expect(traced, 0))
		log_debug("%llu %s %s", (unsigned long long)r->seq, r->kind == FRAME_POST ? "post" : "wait",
				call_names[c->id].name);
}

static CUresult failed(int e, const char *what)
{
	return e == -ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : process_die(e, what);
}

CUresult call_post(struct call *c)
{
	struct thread *t = thread_cached;
	if (c->out.bad)
		return CUDA_ERROR_INVALID_VALUE;
	if (is_overtaken(c))
		return CUDA_ERROR_UNKNOWN;
	/* The server finds out for calls that wait. */
	unsigned need = call_names[c->id].needs;
	if (need != CALL_ANYTIME) {
		struct context *ctx = t->current;
		if (!ctx && need == CALL_CONTEXT)
			return CUDA_ERROR_INVALID_CONTEXT;
		if (ctx) {
			if (!atomic_load_explicit(&ctx->alive, memory_order_relaxed) && need == CALL_CONTEXT)
				return ctx->primary ? CUDA_ERROR_INVALID_CONTEXT :
						CUDA_ERROR_CONTEXT_IS_DESTROYED;
			int sticky = atomic_load_explicit(&ctx->sticky, memory_order_relaxed);
			if (sticky)
				return (CUresult)sticky;
		}
	}
	if (process_blocking) {
		CUresult r = call_wait(c);
		msg_init(&c->in, NULL, 0);
		return r;
	}
	struct record r;
	fill(&r, c, t, FRAME_POST);
	int e = channel_post(&r);
	/* It may have gone out, and something behind it have failed. */
	if (r.seq)
		sent(c, &r);
	return e ? failed(e, call_names[c->id].name) : CUDA_SUCCESS;
}

static void note_failed_post(uint32_t seq, CUresult code)
{
	uint64_t last = atomic_load_explicit(&recent[seq % RECENT], memory_order_relaxed);
	unsigned id = last & UINT16_MAX;
	bool known = (uint32_t)(last >> 16) == seq && id < CALL_COUNT;
	log_warning("%s, record %u, failed: %d", known ? call_names[id].name : "a call", seq, code);
}

static _Atomic int waiting;     /* the first failure that no thread of the program's has been told */

void call_failed_aside(CUresult r)
{
	int none = 0;
	atomic_compare_exchange_strong(&waiting, &none, (int)r);
}

/* A failed post is told to a thread of the program's: what a thread of ours hears waits for the next call. */
static CUresult for_the_program(CUresult earlier)
{
	if (upcall_inside()) {
		if (earlier)
			call_failed_aside(earlier);
		return CUDA_SUCCESS;
	}
	if (!earlier && __builtin_expect(atomic_load_explicit(&waiting, memory_order_relaxed), 0))
		earlier = (CUresult)atomic_exchange(&waiting, 0);
	return earlier;
}

/* The answer's parts to their places. Returns the call's result. */
static CUresult take(struct call *c, struct thread *t, const struct answer *a)
{
	msg_init(&c->in, (void *)a->head, a->frame.head_len);
	CUresult r = (CUresult)get_i64(&c->in);
	if (c->in.bad)
		return process_die(-EPROTO, call_names[c->id].name);
	int64_t used = transfer_deliver(&a->frame, a->bulk, LIMIT_REPLY, r ? 0 : c->bulk_out_len);
	if (used < 0)
		return failed((int)used, "a delivery");
	transfer_settle((uint32_t)a->frame.ctx);
	if (__builtin_expect(a->frame.flags & FRAME_CHANGED, 0))
		atomic_fetch_add(&mirror_told, 1);
	size_t own = a->frame.bulk_len - (size_t)used;
	if (own > c->bulk_out_len)
		return process_die(-EPROTO, call_names[c->id].name);
	if (own)
		memcpy(c->bulk_out, a->bulk + used, own);
	c->bulk_out_len = own;
	CUresult earlier = (CUresult)a->frame.thread;
	if (earlier) {
		note_failed_post((uint32_t)(a->frame.ctx >> 32), earlier);
		if (t->current && context_is_sticky(earlier))
			context_lost(t->current, earlier);
	}
	earlier = for_the_program(earlier);
	if (r && t->current && context_is_sticky(r))
		context_lost(t->current, r);
	return r ? r : earlier;
}

static CUresult answered(struct call *c, int e, const struct answer *a)
{
	if (e)
		return failed(e, call_names[c->id].name);
	upcall_heard();
	CUresult r = take(c, thread_cached, a);
	channel_taken();
	upcall_drain_output(a->frame.call);
	hop(HOP_RETURN, c->seq);
	logs_run();
	return r;
}

static CUresult waitable(struct call *c)
{
	struct context *ctx = thread_cached->current;
	if (c->out.bad)
		return CUDA_ERROR_INVALID_VALUE;
	if (is_overtaken(c))
		return CUDA_ERROR_UNKNOWN;
	if (ctx && !ctx->primary && !atomic_load_explicit(&ctx->alive, memory_order_relaxed) &&
			call_names[c->id].needs == CALL_CONTEXT)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	return CUDA_SUCCESS;
}

CUresult call_wait(struct call *c)
{
	CUresult code = waitable(c);
	if (code)
		return code;
	struct record r;
	struct answer a;
	fill(&r, c, thread_cached, FRAME_WAIT);
	int e = channel_wait(&r, c->bulk_out_len, &a);
	sent(c, &r);
	return answered(c, e, &a);
}

CUresult call_wait_transfer(struct call *c, uint64_t id)
{
	CUresult code = waitable(c);
	if (code) {
		transfer_drop(id);
		return code;
	}
	struct record r;
	struct answer a;
	fill(&r, c, thread_cached, FRAME_WAIT);
	int e = transfer_exchange(id, &r, &a);
	sent(c, &r);
	code = answered(c, e, &a);
	transfer_drop(id);
	return code;
}

CUresult call_end(struct call *c, CUresult r)
{
	if (r)
		return r;
	if (is_overtaken(c))
		return CUDA_ERROR_UNKNOWN;
	return get_end(&c->in) ? CUDA_SUCCESS : process_die(-EPROTO, call_names[c->id].name);
}

void ptds_begin(void)
{
	struct thread *t = thread_self();
	if (t)
		t->ptds++;
}

void ptds_end(void)
{
	struct thread *t = thread_cached;
	if (t && t->ptds)
		t->ptds--;
}

bool ptds_active(void) { return thread_cached && thread_cached->ptds; }

CUresult call_unsupported(unsigned id, const char *why)
{
	static atomic_bool told[CALL_COUNT];
	struct context *ctx;
	CUresult code = process_check();
	if (!code && call_names[id].needs == CALL_CONTEXT)
		code = context_check(&ctx);
	if (code)
		return code;
	if (log_enabled(LOG_LEVEL_WARNING) && !atomic_exchange(&told[id], true))
		log_warning("%s is not supported: %s", call_names[id].name, why);
	return CUDA_ERROR_NOT_SUPPORTED;
}

bool put_device(struct call *c, CUdevice dev)
{
	if (!device_get(dev))
		return false;
	put_i64(&c->out, device_to_server(dev));
	return true;
}

CUdevice get_device(struct call *c) { return device_from_server((int)get_i64(&c->in)); }

void location_to_server(CUmemLocation *location)
{
	if (location->type == CU_MEM_LOCATION_TYPE_DEVICE && device_get(location->id))
		location->id = device_to_server(location->id);
}

void call_lacks(unsigned id)
{
	if (id < CALL_COUNT)
		lacks[id] = true;
}

void call_trace(bool on) { traced = on; }
