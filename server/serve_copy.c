/* SPDX-License-Identifier: Apache-2.0 */
/* The records of copies. The program's end turns every copy call into one of four shapes: bytes to the
 * device, bytes to the host, device to device, and a box (2D, 3D, arrays) with at most one side in the
 * program's memory, whose rows travel packed. What is given to the driver is in box.c, how bytes pass in
 * transfer.c.
 *
 * Thread rule: as exec.h; no state of its own. */
#include "server/serve.h"
#include "server/transfer.h"
#include "wire/copy.h"
#include "wire/limits.h"
#include "cuda.calls.h"

static enum slot_use slot_use(uint64_t mode, bool to_device)
{
	if (mode == COPY_ASIDE)
		return SLOT_ASIDE;
	if (!to_device)
		return SLOT_TO_HOST;
	return mode == COPY_HELD ? SLOT_HELD : SLOT_TO_DEVICE;
}

/* The stream that a copy's mode means. */
static CUstream copy_stream(struct exec *x, uint64_t mode, CUstream given)
{
	struct stage *s;

	if (mode != COPY_ASIDE)
		return mode == COPY_SYNC ? default_stream(x) : given;
	s = stage_get();
	return s ? stage_stream(s) : NULL;
}

static CUresult copy_end(const struct box *b, uint64_t mode, CUresult r)
{
	return r || mode == COPY_ASYNC || mode == COPY_HELD ? r : drv.cuStreamSynchronize(b->stream);
}

/* Bytes to the device: [mode, stream, address, n], bulk. */
static CUresult serve_to_device(struct exec *x)
{
	uint64_t mode = get_u64(&x->in);
	CUstream stream = exec_handle(x, HANDLE_CUstream);
	uint64_t dst = get_u64(&x->in), n = get_u64(&x->in);
	bool ptds = x->frame.flags & FRAME_PTDS;

	if (!get_end(&x->in) || mode > COPY_HELD || n != x->frame.bulk_len || n > LIMIT_BULK)
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	if (n <= COPY_SMALL && mode != COPY_ASIDE) {
		void *p = exec_bulk_all(x, COPY_SMALL);

		if (n && !p)
			return SERVE_BAD;
		if (mode != COPY_SYNC)
			return drv.cuMemcpyHtoDAsync_v2(dst, p, n, stream);
		return ptds ? drv.cuMemcpyHtoD_v2_ptds(dst, p, n) : drv.cuMemcpyHtoD_v2(dst, p, n);
	}
	struct box b = {.src = {.type = CU_MEMORYTYPE_HOST},
		.dst = {.type = CU_MEMORYTYPE_DEVICE, .device = dst},
		.w = n,
		.h = 1,
		.d = 1,
		.stream = copy_stream(x, mode, stream),
		.linear = true,
		.use = slot_use(mode, true)};

	return copy_end(&b, mode, transfer_receive(x, &b));
}

CUresult serve_cuMemcpyHtoD_v2(struct exec *x)
{
	return serve_to_device(x);
}
CUresult serve_cuMemcpyHtoDAsync_v2(struct exec *x)
{
	return serve_to_device(x);
}

/* Sends a box's bytes the way that the record asks for: transfer 0: in the answer's own bulk; a post:
 * later; else as data ahead of the answer. */
static CUresult to_host(struct exec *x, struct box *b, uint64_t mode, uint64_t transfer, uint64_t total)
{
	if (x->frame.kind == FRAME_POST) {
		if (!transfer || total > COPY_DELIVERY)
			return SERVE_BAD;
		return transfer_deliver(x, b, transfer, total);
	}
	if (transfer)
		return transfer_send(x, b, transfer, total);
	if (total > LIMIT_REPLY)
		return SERVE_BAD;
	void *p = exec_alloc(x, total + 1);
	CUresult r;

	if (!p)
		return SERVE_BAD;
	if (b->linear && mode == COPY_SYNC)
		r = x->frame.flags & FRAME_PTDS ? drv.cuMemcpyDtoH_v2_ptds(p, b->src.device, total)
						: drv.cuMemcpyDtoH_v2(p, b->src.device, total);
	else
		r = copy_end(b, COPY_SYNC, box_issue(b, &(struct part){.w = b->w, .h = b->h, .d = b->d}, p));
	if (!r) {
		x->bulk = p;
		x->bulk_len = total;
	}
	return r;
}

/* Bytes to the host: [mode, stream, address, n, transfer]. */
static CUresult serve_to_host(struct exec *x)
{
	uint64_t mode = get_u64(&x->in);
	CUstream stream = exec_handle(x, HANDLE_CUstream);
	uint64_t src = get_u64(&x->in), n = get_u64(&x->in), transfer = get_u64(&x->in);

	if (!get_end(&x->in) || mode > COPY_ASIDE || !n || n > LIMIT_BULK)
		return SERVE_BAD;
	if (x->bad_handle) {
		if (transfer && x->frame.kind == FRAME_WAIT && !transfer_zeros(x, transfer, 0, n))
			return SERVE_BAD;
		return x->handle_code;
	}
	struct box b = {.src = {.type = CU_MEMORYTYPE_DEVICE, .device = src},
		.dst = {.type = CU_MEMORYTYPE_HOST},
		.w = n,
		.h = 1,
		.d = 1,
		.stream = copy_stream(x, mode, stream),
		.linear = true,
		.use = slot_use(mode, false)};

	return to_host(x, &b, mode, transfer, n);
}

CUresult serve_cuMemcpyDtoH_v2(struct exec *x)
{
	return serve_to_host(x);
}
CUresult serve_cuMemcpyDtoHAsync_v2(struct exec *x)
{
	return serve_to_host(x);
}

/* Device to device: [mode, stream, destination, source, n]. */
static CUresult serve_on_device(struct exec *x)
{
	uint64_t mode = get_u64(&x->in);
	CUstream stream = exec_handle(x, HANDLE_CUstream);
	uint64_t dst = get_u64(&x->in), src = get_u64(&x->in), n = get_u64(&x->in);

	if (!get_end(&x->in) || mode > COPY_ASYNC)
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	if (mode == COPY_ASYNC)
		return drv.cuMemcpyDtoDAsync_v2(dst, src, n, stream);
	return x->frame.flags & FRAME_PTDS ? drv.cuMemcpyDtoD_v2_ptds(dst, src, n)
					   : drv.cuMemcpyDtoD_v2(dst, src, n);
}

CUresult serve_cuMemcpyDtoD_v2(struct exec *x)
{
	return serve_on_device(x);
}
CUresult serve_cuMemcpyDtoDAsync_v2(struct exec *x)
{
	return serve_on_device(x);
}

/* One side of a box: [type, address, array, x, y, z, lod, pitch, height]. */
static bool get_side(struct exec *x, struct side *s)
{
	s->type = (CUmemorytype)get_u64(&x->in);
	s->device = get_u64(&x->in);
	s->array = exec_handle(x, HANDLE_CUarray);
	s->x = get_u64(&x->in);
	s->y = get_u64(&x->in);
	s->z = get_u64(&x->in);
	s->lod = get_u64(&x->in);
	s->pitch = get_u64(&x->in);
	s->height = get_u64(&x->in);
	return s->type == CU_MEMORYTYPE_HOST || s->type == CU_MEMORYTYPE_DEVICE ||
	       s->type == CU_MEMORYTYPE_ARRAY;
}

/* A box: [mode, stream, source, destination, width, height, depth, transfer], bulk when the source is the
 * program's. */
static CUresult serve_box(struct exec *x)
{
	struct box b = {.linear = false};
	uint64_t mode = get_u64(&x->in);
	CUstream stream = exec_handle(x, HANDLE_CUstream);
	bool sides = get_side(x, &b.src) & get_side(x, &b.dst);
	uint64_t transfer, total;

	b.w = get_u64(&x->in);
	b.h = get_u64(&x->in);
	b.d = get_u64(&x->in);
	transfer = get_u64(&x->in);
	bool from = b.src.type == CU_MEMORYTYPE_HOST, to = b.dst.type == CU_MEMORYTYPE_HOST;
	uint64_t most = from ? COPY_HELD : COPY_ASIDE;

	if (!get_end(&x->in) || !sides || mode > most || (from && to) || !b.w || !b.h || !b.d ||
		__builtin_mul_overflow(b.w, b.h, &total) || __builtin_mul_overflow(total, b.d, &total) ||
		((from || to) && total > LIMIT_BULK) || x->frame.bulk_len != (from ? total : 0))
		return SERVE_BAD;
	if (x->bad_handle) {
		if (to && transfer && x->frame.kind == FRAME_WAIT && !transfer_zeros(x, transfer, 0, total))
			return SERVE_BAD;
		return x->handle_code;
	}
	b.stream = copy_stream(x, mode, stream);
	b.use = slot_use(mode, from);
	if (to)
		return to_host(x, &b, mode, transfer, total);
	if (from)
		return copy_end(&b, mode, transfer_receive(x, &b));
	return copy_end(&b, mode, box_issue(&b, &(struct part){.w = b.w, .h = b.h, .d = b.d}, NULL));
}

CUresult serve_cuMemcpy3D_v2(struct exec *x)
{
	return serve_box(x);
}
CUresult serve_cuMemcpy3DAsync_v2(struct exec *x)
{
	return serve_box(x);
}

bool get_device_box(struct exec *x, CUDA_MEMCPY3D *c)
{
	struct side src, dst;
	bool sides = get_side(x, &src) & get_side(x, &dst);

	*c = (CUDA_MEMCPY3D){
		.srcXInBytes = src.x,
		.srcY = src.y,
		.srcZ = src.z,
		.srcLOD = src.lod,
		.srcMemoryType = src.type,
		.srcDevice = src.device,
		.srcArray = src.array,
		.srcPitch = src.pitch,
		.srcHeight = src.height,
		.dstXInBytes = dst.x,
		.dstY = dst.y,
		.dstZ = dst.z,
		.dstLOD = dst.lod,
		.dstMemoryType = dst.type,
		.dstDevice = dst.device,
		.dstArray = dst.array,
		.dstPitch = dst.pitch,
		.dstHeight = dst.height,
	};
	c->WidthInBytes = get_u64(&x->in);
	c->Height = get_u64(&x->in);
	c->Depth = get_u64(&x->in);
	return sides && src.type != CU_MEMORYTYPE_HOST && dst.type != CU_MEMORYTYPE_HOST && !x->in.bad;
}
