/* SPDX-License-Identifier: Apache-2.0 */
/* Copies. The program's end turns every copy call into one of four shapes: bytes to the device, bytes to
 * the host, device to device, and a box (2D, 3D, arrays) with at most one side in the program's memory,
 * whose rows travel packed. Only addresses that the program named as device addresses reach the driver,
 * and never as anything else: host addresses are always the server's own.
 *
 * Bytes pass in pieces of a slot (server/staging.h), so that receiving one and copying another overlap. A
 * record whose function fails still sends all the data that it announced, since the program waits for it.
 *
 * Thread rule: as exec.h; no state of its own. */
#include <stdlib.h>
#include <string.h>
#include "server/exec.h"
#include "server/serve.h"
#include "server/staging.h"
#include "wire/copy.h"
#include "wire/limits.h"
#include "cuda.calls.h"

struct side {
	CUmemorytype type; /* HOST: the program's */
	uint64_t device;
	CUarray array;
	size_t x, y, z, lod, pitch, height;
};

/* A box to copy; a linear copy is a box of one row. */
struct box {
	struct side src, dst;
	size_t w, h, d;
	CUstream stream;
	bool linear;
	enum slot_use use;
};

/* One piece of a box: rows y.. of slice z.., or a part of one row. */
struct part {
	size_t x, y, z, w, h, d;
};

/* The part after `p` (all zero: the first) of at most `max` bytes. False at the end. */
static bool next_part(const struct box *b, struct part *p, size_t max)
{
	bool first = !p->w;
	size_t x = first ? 0 : p->x + p->w, y = first ? 0 : p->y, z = first ? 0 : p->z;

	if (!first && x == b->w) {
		x = 0;
		y += p->h;
		if (y == b->h) {
			y = 0;
			z += p->d;
		}
	}
	if (z == b->d || !b->w || !b->h)
		return false;
	*p = (struct part){x, y, z, b->w - x, 1, 1};
	if (p->w > max) {
		p->w = max;
		return true;
	}
	if (x)
		return true;
	p->h = max / b->w < b->h - y ? max / b->w : b->h - y;
	if (p->h == b->h && max / b->w / b->h > 1)
		p->d = max / b->w / b->h < b->d - z ? max / b->w / b->h : b->d - z;
	return true;
}

static CUresult issue_box(const struct box *b, const struct part *p, void *host)
{
	CUDA_MEMCPY3D c = {
		.srcXInBytes = b->src.x + p->x,
		.srcY = b->src.y + p->y,
		.srcZ = b->src.z + p->z,
		.srcLOD = b->src.lod,
		.srcMemoryType = b->src.type,
		.srcDevice = b->src.device,
		.srcArray = b->src.array,
		.srcPitch = b->src.pitch,
		.srcHeight = b->src.height,
		.dstXInBytes = b->dst.x + p->x,
		.dstY = b->dst.y + p->y,
		.dstZ = b->dst.z + p->z,
		.dstLOD = b->dst.lod,
		.dstMemoryType = b->dst.type,
		.dstDevice = b->dst.device,
		.dstArray = b->dst.array,
		.dstPitch = b->dst.pitch,
		.dstHeight = b->dst.height,
		.WidthInBytes = p->w,
		.Height = p->h,
		.Depth = p->d,
	};

	if (b->src.type == CU_MEMORYTYPE_HOST) {
		c.srcHost = host;
		c.srcXInBytes = c.srcY = c.srcZ = 0;
		c.srcPitch = p->w;
		c.srcHeight = p->h;
	}
	if (b->dst.type == CU_MEMORYTYPE_HOST) {
		c.dstHost = host;
		c.dstXInBytes = c.dstY = c.dstZ = 0;
		c.dstPitch = p->w;
		c.dstHeight = p->h;
	}
	return drv.cuMemcpy3DAsync_v2(&c, b->stream);
}

static CUresult issue(const struct box *b, const struct part *p, void *host)
{
	if (!b->linear)
		return issue_box(b, p, host);
	if (b->src.type == CU_MEMORYTYPE_HOST)
		return drv.cuMemcpyHtoDAsync_v2(b->dst.device + p->x, host, p->w, b->stream);
	return drv.cuMemcpyDtoHAsync_v2(host, b->src.device + p->x, p->w, b->stream);
}

/* From the record's bulk to the device. */
static CUresult receive(struct exec *x, const struct box *b)
{
	struct stage *stage = stage_get();
	struct part p = {0};
	CUresult r = CUDA_SUCCESS;

	if (!stage)
		return CUDA_ERROR_OUT_OF_MEMORY;
	while (!r && next_part(b, &p, STAGE_SLOT)) {
		struct slot *slot = stage_take(stage, b->use);

		if (!slot)
			return drv.cuStreamSynchronize(b->stream); /* says what the context is lost to */
		if (!exec_bulk(x, slot->p, p.w * p.h * p.d)) {
			stage_release(stage, slot);
			return SERVE_BAD;
		}
		r = issue(b, &p, slot->p);
		CUresult put = stage_put(stage, slot, b->stream);

		r = r ? r : put;
	}
	return r;
}

/* Sends what is left of a transfer that failed. */
static bool send_zeros(struct exec *x, uint64_t transfer, uint64_t offset, uint64_t total)
{
	static const uint8_t zeros[64 << 10];
	bool ok = true;

	for (; ok && offset < total; offset += sizeof zeros)
		ok = exec_send_data(x, transfer, offset, zeros,
			total - offset < sizeof zeros ? total - offset : sizeof zeros);
	return ok;
}

struct flight {
	struct slot *slot;
	size_t n;
};

/* From the device to the program's transfer: two pieces are on their way from the device while one is
 * sent. */
static CUresult send(struct exec *x, const struct box *b, uint64_t transfer, uint64_t total)
{
	struct stage *stage = stage_get();
	struct flight flight[2] = {{0}};
	unsigned head = 0, n = 0;
	uint64_t offset = 0;
	struct part p = {0};
	size_t most = total <= COPY_MEDIUM ? COPY_PIECE : STAGE_SLOT;
	CUresult r = stage ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	bool more = stage != NULL, ok = true;

	while (more || n) {
		while (more && n < 2) {
			struct slot *slot = r   ? NULL
					    : n ? stage_try(stage, b->use)
						: stage_take(stage, b->use);

			if (!slot && n && !r)
				break;
			if (!slot && !r) {
				r = drv.cuStreamSynchronize(b->stream);
				r = r ? r : CUDA_ERROR_UNKNOWN;
			}
			more = !r && next_part(b, &p, most);
			if (!more) {
				if (slot)
					stage_release(stage, slot);
				break;
			}
			r = issue(b, &p, slot->p);
			r = r ? r : stage_record(slot, b->stream);
			if (r) {
				stage_release(stage, slot);
				break;
			}
			flight[(head + n++) % 2] = (struct flight){slot, p.w * p.h * p.d};
		}
		if (!n)
			break;
		struct flight f = flight[head];

		head = (head + 1) % 2;
		n--;
		CUresult done = stage_wait(f.slot);

		r = r ? r : done;
		if (!r && ok) {
			ok = exec_send_data(x, transfer, offset, f.slot->p, f.n);
			offset += f.n;
		}
		stage_release(stage, f.slot);
	}
	if (ok)
		ok = send_zeros(x, transfer, offset, total);
	return ok ? r : SERVE_BAD;
}

struct delivery_later {
	struct later later;
	struct piece *piece;
};

static int piece_finished(struct later *l, bool callback)
{
	struct delivery_later *d = (struct delivery_later *)l;

	return piece_state(d->piece, callback);
}

static void later_release(struct later *l)
{
	struct delivery_later *d = (struct delivery_later *)l;

	piece_release(d->piece);
	free(d);
}

/* Starts a copy to the host whose bytes are told later. */
static CUresult deliver(struct exec *x, const struct box *b, uint64_t transfer, size_t n)
{
	struct piece *piece = piece_take(n);
	struct delivery_later *d = piece ? calloc(1, sizeof *d) : NULL;
	CUresult r;

	if (!d) {
		if (piece)
			piece_release(piece);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	r = issue(b, &(struct part){.w = b->w, .h = b->h, .d = b->d}, piece->p);
	r = r ? r : piece_mark(piece, b->stream);
	if (r) {
		piece_release(piece);
		free(d);
		return r;
	}
	d->piece = piece;
	d->later = (struct later){.transfer = transfer,
		.p = piece->p,
		.n = n,
		.finished = piece_finished,
		.release = later_release};
	session_deliver_later(x, &d->later);
	return CUDA_SUCCESS;
}

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

	return copy_end(&b, mode, receive(x, &b));
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
	if (x->frame.kind == FRAME_POST)
		return transfer && total <= COPY_DELIVERY ? deliver(x, b, transfer, total) : SERVE_BAD;
	if (transfer)
		return send(x, b, transfer, total);
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
		r = copy_end(b, COPY_SYNC, issue(b, &(struct part){.w = b->w, .h = b->h, .d = b->d}, p));
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
		if (transfer && x->frame.kind == FRAME_WAIT && !send_zeros(x, transfer, 0, n))
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
		if (to && transfer && x->frame.kind == FRAME_WAIT && !send_zeros(x, transfer, 0, total))
			return SERVE_BAD;
		return x->handle_code;
	}
	b.stream = copy_stream(x, mode, stream);
	b.use = slot_use(mode, from);
	if (to)
		return to_host(x, &b, mode, transfer, total);
	if (from)
		return copy_end(&b, mode, receive(x, &b));
	return copy_end(&b, mode, issue_box(&b, &(struct part){.w = b.w, .h = b.h, .d = b.d}, NULL));
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
