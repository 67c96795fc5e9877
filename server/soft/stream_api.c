/* SPDX-License-Identifier: Apache-2.0 */
/* The stream functions of the API, but for creation's other half (stream.c) and capture (capture.c).
 *
 * Thread rule: see state.h. */
#include <stdlib.h>
#include "server/soft/capture.h"
#include "server/soft/stream.h"

/* In, with a stream. `flavour` says whether a sticky error of the context is reported. */
static struct guard enter_stream(CUstream h, struct stream **s)
{
	struct guard g = enter_healthy();
	if (g.error)
		return g;
	*s = stream_named(g.context, h, &g.error);
	if (g.error) {
		guard_leave(&g);
		g.held = false;
	}
	return g;
}

CUresult cuStreamCreateWithPriority(CUstream *out, unsigned flags, int priority)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	if (!out || flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	if (priority > 0)
		priority = 0;
	if (priority < STREAM_PRIORITY_GREATEST)
		priority = STREAM_PRIORITY_GREATEST;
	struct stream *s = stream_create(g.context, flags, priority);
	if (!s)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*out = HANDLE(s);
	return CUDA_SUCCESS;
}
CUresult cuStreamCreate(CUstream *out, unsigned flags)
{
	return cuStreamCreateWithPriority(out, flags, 0);
}

CUresult cuStreamQuery(CUstream h)
{
	struct stream *s;
	guarded g = enter_stream(h, &s);
	if (g.error)
		return g.error;
	CUresult r = capture_query(s);
	if (!r)
		r = capture_unsafe();
	if (r)
		return r;
	if (!stream_idle(s))
		return CUDA_ERROR_NOT_READY;
	print_pending();
	return g.context->error;
}

CUresult cuStreamSynchronize(CUstream h)
{
	struct stream *s;
	guarded g = enter_stream(h, &s);
	if (g.error)
		return g.error;
	CUresult r = capture_query(s);
	if (!r)
		r = capture_unsafe();
	if (r)
		return r;
	struct context *c = s->object.context;
	object_ref(c);
	stream_drain(s);
	r = c->error;
	object_unref(c);
	return r;
}

CUresult cuStreamGetPriority(CUstream h, int *priority)
{
	struct stream *s;
	guarded g = enter_stream(h, &s);
	if (g.error)
		return g.error;
	if (!priority)
		return CUDA_ERROR_INVALID_VALUE;
	*priority = s->priority;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream h, unsigned *flags)
{
	struct stream *s;
	guarded g = enter_stream(h, &s);
	if (g.error)
		return g.error;
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = s->flags;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream h, unsigned long long *id)
{
	struct stream *s;
	guarded g = enter_stream(h, &s);
	if (g.error)
		return g.error;
	if (!id)
		return CUDA_ERROR_INVALID_VALUE;
	*id = s->id;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetDevice(CUstream h, CUdevice *device)
{
	struct stream *s;
	guarded g = enter_stream(h, &s);
	if (g.error)
		return g.error;
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	*device = s->object.context->device;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream h, CUcontext *out)
{
	struct stream *s;
	guarded g = enter_stream(h, &s);
	if (g.error)
		return g.error;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult r = capture_query(s);
	if (r)
		return r;
	*out = HANDLE(s->object.context);
	return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx_v2(CUstream h, CUcontext *out, CUgreenCtx *green)
{
	if (!green)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult r = cuStreamGetCtx(h, out);
	if (!r)
		*green = NULL;
	return r;
}

CUresult cuStreamGetGreenCtx(CUstream h, CUgreenCtx *green)
{
	struct stream *s;
	guarded g = enter_stream(h, &s);
	if (g.error)
		return g.error;
	if (!green)
		return CUDA_ERROR_INVALID_VALUE;
	*green = NULL;
	return CUDA_SUCCESS;
}

CUresult cuLaunchHostFunc(CUstream h, CUhostFn fn, void *data)
{
	struct stream *s;
	guarded g = enter_stream(h, &s);
	if (g.error)
		return g.error;
	if (!fn)
		return CUDA_ERROR_INVALID_VALUE;
	struct work w = {.type = WORK_HOST, .host = {fn, data}};
	return stream_submit(s, &w, NULL);
}

CUresult cuStreamAddCallback(CUstream h, CUstreamCallback fn, void *data, unsigned flags)
{
	struct stream *s;
	guarded g = enter_stream(h, &s);
	if (g.error)
		return g.error;
	if (!fn || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (s->capture)
		return capture_spoil(s);
	struct work w = {.type = WORK_CALLBACK, .callback = {fn, data, h}};
	return stream_submit(s, &w, NULL);
}

CUresult cuStreamGetAttribute(CUstream h, CUstreamAttrID attr, CUstreamAttrValue *value)
{
	struct stream *s;
	guarded g = enter_stream(h, &s);
	if (g.error)
		return g.error;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	switch (attr) {
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
		value->accessPolicyWindow = s->window;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY: value->syncPolicy = s->policy; return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_PRIORITY: value->priority = s->priority; return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN: value->memSyncDomain = s->domain; return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP: value->memSyncDomainMap = s->map; return CUDA_SUCCESS;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult cuStreamSetAttribute(CUstream h, CUstreamAttrID attr, const CUstreamAttrValue *value)
{
	struct stream *s;
	guarded g = enter_stream(h, &s);
	if (g.error)
		return g.error;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	switch (attr) {
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
		if (!(value->accessPolicyWindow.hitRatio >= 0 && value->accessPolicyWindow.hitRatio <= 1))
			return CUDA_ERROR_INVALID_VALUE;
		s->window = value->accessPolicyWindow;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
		if (value->syncPolicy < CU_SYNC_POLICY_AUTO ||
			value->syncPolicy > CU_SYNC_POLICY_BLOCKING_SYNC)
			return CUDA_ERROR_INVALID_VALUE;
		s->policy = value->syncPolicy;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_PRIORITY: s->priority = value->priority; return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN: s->domain = value->memSyncDomain; return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP: s->map = value->memSyncDomainMap; return CUDA_SUCCESS;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult cuStreamCopyAttributes(CUstream dst, CUstream src)
{
	struct stream *s;
	guarded g = enter_stream(dst, &s);
	if (g.error)
		return g.error;
	const struct stream *f = stream_named(g.context, src, &g.error);
	if (!f) {
		CUresult r = g.error;
		g.error = CUDA_SUCCESS;
		return r;
	}
	s->window = f->window;
	s->policy = f->policy;
	s->domain = f->domain;
	s->map = f->map;
	return CUDA_SUCCESS;
}

/* ---- memory operations of a stream */

#define MEMOPS_MOST 256

static CUresult memop_valid(const CUstreamBatchMemOpParams *op)
{
	switch (op->operation) {
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
	case CU_STREAM_MEM_OP_WAIT_VALUE_64: {
		unsigned size = op->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ? 4 : 8;
		unsigned kind = op->waitValue.flags & ~(unsigned)CU_STREAM_WAIT_VALUE_FLUSH;
		return kind <= CU_STREAM_WAIT_VALUE_NOR && !(op->waitValue.address % size) &&
				       work_reachable(op->waitValue.address, size)
			       ? CUDA_SUCCESS
			       : CUDA_ERROR_INVALID_VALUE;
	}
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
	case CU_STREAM_MEM_OP_WRITE_VALUE_64: {
		unsigned size = op->operation == CU_STREAM_MEM_OP_WRITE_VALUE_32 ? 4 : 8;
		return op->writeValue.flags <= 1 && !(op->writeValue.address % size) &&
				       work_reachable(op->writeValue.address, size)
			       ? CUDA_SUCCESS
			       : CUDA_ERROR_INVALID_VALUE;
	}
	case CU_STREAM_MEM_OP_BARRIER:
	case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES: return CUDA_SUCCESS;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult cuStreamBatchMemOp_v2(CUstream h, unsigned count, CUstreamBatchMemOpParams *ops, unsigned flags)
{
	struct stream *s;
	guarded g = enter_stream(h, &s);
	if (g.error)
		return g.error;
	if (!count || count > MEMOPS_MOST || !ops || flags)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count; i++) {
		CUresult r = memop_valid(&ops[i]);
		if (r)
			return r;
	}
	struct work w = {.type = WORK_MEMOPS, .memops = {.count = count}};
	w.memops.ops = calloc(count, sizeof *ops);
	if (!w.memops.ops)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned i = 0; i < count; i++)
		w.memops.ops[i] = ops[i];
	return stream_submit(s, &w, NULL);
}

CUresult cuStreamWaitValue32_v2(CUstream h, CUdeviceptr p, cuuint32_t value, unsigned flags)
{
	CUstreamBatchMemOpParams op = {
		.waitValue = {CU_STREAM_MEM_OP_WAIT_VALUE_32, p, {.value = value}, flags, 0}};
	return cuStreamBatchMemOp_v2(h, 1, &op, 0);
}

CUresult cuStreamWaitValue64_v2(CUstream h, CUdeviceptr p, cuuint64_t value, unsigned flags)
{
	CUstreamBatchMemOpParams op = {
		.waitValue = {CU_STREAM_MEM_OP_WAIT_VALUE_64, p, {.value64 = value}, flags, 0}};
	return cuStreamBatchMemOp_v2(h, 1, &op, 0);
}

CUresult cuStreamWriteValue32_v2(CUstream h, CUdeviceptr p, cuuint32_t value, unsigned flags)
{
	CUstreamBatchMemOpParams op = {
		.writeValue = {CU_STREAM_MEM_OP_WRITE_VALUE_32, p, {.value = value}, flags, 0}};
	return cuStreamBatchMemOp_v2(h, 1, &op, 0);
}

CUresult cuStreamWriteValue64_v2(CUstream h, CUdeviceptr p, cuuint64_t value, unsigned flags)
{
	CUstreamBatchMemOpParams op = {
		.writeValue = {CU_STREAM_MEM_OP_WRITE_VALUE_64, p, {.value64 = value}, flags, 0}};
	return cuStreamBatchMemOp_v2(h, 1, &op, 0);
}
