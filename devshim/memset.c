/* SPDX-License-Identifier: Apache-2.0 */
/* Memsets of every width, plain and of rows. Where the range table shows that the driver would accept one
 * it is posted; where it would refuse, the program is told; where the table does not know, the server's
 * driver is asked. Pinned memory is the program's own and filled here.
 *
 * Thread rule: any thread. */
#include <string.h>
#include "devshim/call.h"
#include "devshim/context.h"
#include "devshim/mirror.h"
#include "devshim/range.h"
#include "devshim/work.h"
#include "wire/cuda.h"
#include "cuda.calls.h"
#include "cuda.remote.h"

struct fill {
	unsigned id;
	CUdeviceptr to;
	size_t pitch, width, height; /* width in elements; pitch 0: not of rows */
	unsigned value, element; /* element: 1, 2 or 4 bytes */
	bool async;
	CUstream stream;
};

static void fill_host(const struct fill *f)
{
	for (size_t y = 0; y < f->height; y++) {
		uint8_t *row = (uint8_t *)(uintptr_t)f->to + y * f->pitch;

		for (size_t i = 0; i < f->width; i++)
			memcpy(row + i * f->element, &f->value, f->element);
	}
}

/* Bytes from the first to behind the last; false when they overflow. */
static bool extent(const struct fill *f, size_t *n)
{
	size_t row;

	if (!f->width || !f->height)
		return *n = 0, true;
	return !__builtin_mul_overflow(f->width, (size_t)f->element, &row) &&
	       !__builtin_mul_overflow(f->height - 1, f->pitch, n) && !__builtin_add_overflow(*n, row, n);
}

/* What the driver is known to accept without a question. */
static bool plain(const struct fill *f, bool rows)
{
	if (f->to % f->element)
		return false;
	return !rows || f->height <= 1 || (f->pitch % f->element == 0 && f->pitch / f->element >= f->width);
}

static CUresult fill(struct fill *f, bool rows)
{
	struct context *ctx;
	struct range range;
	struct call c;
	size_t n = 0;
	CUresult r = context_check(&ctx);

	if (!r && !extent(f, &n))
		r = CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	bool found = range_find(f->to, &range);

	if (found && range_is_here(&range)) {
		struct work *w = work_of(f->async ? f->stream : NULL);

		if (n > range.size - (f->to - range.base))
			return CUDA_ERROR_INVALID_VALUE;
		r = work_is_busy(w) ? (f->async ? cuStreamSynchronize(f->stream) : remote_cuCtxSynchronize())
				    : CUDA_SUCCESS;
		if (!r)
			fill_host(f);
		return r;
	}
	if (found && range_is_whole(&range) && !range_has(&range, f->to, n))
		return CUDA_ERROR_INVALID_VALUE;
	if (found && range.mirrored)
		r = mirror_send(false);
	if (!r)
		r = call_begin(&c, f->id);
	if (r)
		return r;
	put_u64(&c.out, f->to);
	if (rows)
		put_u64(&c.out, f->pitch);
	put_u64(&c.out, f->value);
	put_u64(&c.out, f->width);
	if (rows)
		put_u64(&c.out, f->height);
	if (f->async && !put_handle(&c, HANDLE_CUstream, f->stream))
		return handle_error(HANDLE_CUstream);
	struct work *w = work_of(f->async ? f->stream : NULL);

	/* A memset without a stream may wait for the default one: it must not hold up the server behind a
	 * host function. */
	if (found && range_has(&range, f->to, n) && plain(f, rows) && !work_capturing() &&
		(f->async ? w && !work_is_foreign(f->stream) && !work_is_full(w) : !work_is_gated(w))) {
		r = call_post(&c);
	} else {
		r = call_wait(&c);
		r = call_end(&c, r);
	}
	if (!r)
		work_posted(w, c.seq);
	/* The program may look at once. */
	if (!r && found && range.mirrored && !f->async && !work_capturing())
		r = cuStreamSynchronize(NULL);
	return r;
}

static CUresult linear(
	unsigned id, CUdeviceptr to, unsigned value, unsigned element, size_t n, bool async, CUstream s)
{
	struct fill f = {.id = id,
		.to = to,
		.width = n,
		.height = 1,
		.value = value,
		.element = element,
		.async = async,
		.stream = s};

	return fill(&f, false);
}

CUresult cuMemsetD8_v2(CUdeviceptr p, unsigned char v, size_t n)
{
	return linear(CALL_cuMemsetD8_v2, p, v, 1, n, false, NULL);
}
CUresult cuMemsetD16_v2(CUdeviceptr p, unsigned short v, size_t n)
{
	return linear(CALL_cuMemsetD16_v2, p, v, 2, n, false, NULL);
}
CUresult cuMemsetD32_v2(CUdeviceptr p, unsigned int v, size_t n)
{
	return linear(CALL_cuMemsetD32_v2, p, v, 4, n, false, NULL);
}

CUresult cuMemsetD8Async(CUdeviceptr p, unsigned char v, size_t n, CUstream s)
{
	return linear(CALL_cuMemsetD8Async, p, v, 1, n, true, s);
}

CUresult cuMemsetD16Async(CUdeviceptr p, unsigned short v, size_t n, CUstream s)
{
	return linear(CALL_cuMemsetD16Async, p, v, 2, n, true, s);
}

CUresult cuMemsetD32Async(CUdeviceptr p, unsigned int v, size_t n, CUstream s)
{
	return linear(CALL_cuMemsetD32Async, p, v, 4, n, true, s);
}

static CUresult of_rows(unsigned id, CUdeviceptr to, size_t pitch, unsigned value, unsigned element,
	size_t width, size_t height, bool async, CUstream s)
{
	struct fill f = {.id = id,
		.to = to,
		.pitch = pitch,
		.width = width,
		.height = height,
		.value = value,
		.element = element,
		.async = async,
		.stream = s};

	return fill(&f, true);
}

CUresult cuMemsetD2D8_v2(CUdeviceptr p, size_t pitch, unsigned char v, size_t width, size_t height)
{
	return of_rows(CALL_cuMemsetD2D8_v2, p, pitch, v, 1, width, height, false, NULL);
}

CUresult cuMemsetD2D16_v2(CUdeviceptr p, size_t pitch, unsigned short v, size_t width, size_t height)
{
	return of_rows(CALL_cuMemsetD2D16_v2, p, pitch, v, 2, width, height, false, NULL);
}

CUresult cuMemsetD2D32_v2(CUdeviceptr p, size_t pitch, unsigned int v, size_t width, size_t height)
{
	return of_rows(CALL_cuMemsetD2D32_v2, p, pitch, v, 4, width, height, false, NULL);
}

CUresult cuMemsetD2D8Async(
	CUdeviceptr p, size_t pitch, unsigned char v, size_t width, size_t height, CUstream s)
{
	return of_rows(CALL_cuMemsetD2D8Async, p, pitch, v, 1, width, height, true, s);
}

CUresult cuMemsetD2D16Async(
	CUdeviceptr p, size_t pitch, unsigned short v, size_t width, size_t height, CUstream s)
{
	return of_rows(CALL_cuMemsetD2D16Async, p, pitch, v, 2, width, height, true, s);
}

CUresult cuMemsetD2D32Async(
	CUdeviceptr p, size_t pitch, unsigned int v, size_t width, size_t height, CUstream s)
{
	return of_rows(CALL_cuMemsetD2D32Async, p, pitch, v, 4, width, height, true, s);
}
