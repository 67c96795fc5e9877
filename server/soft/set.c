/* SPDX-License-Identifier: Apache-2.0 */
/* Filling memory: all widths, linear and pitched.
 *
 * Thread rule: see state.h. */
#include "server/soft/set.h"
#include "server/soft/allocation.h"

CUresult set_box(CUdeviceptr p, size_t pitch, unsigned value, unsigned element, size_t width, size_t height,
	struct work *w)
{
	size_t row, span;
	if (p % element || __builtin_mul_overflow(width, (size_t)element, &row))
		return CUDA_ERROR_INVALID_VALUE;
	if (height > 1 && (pitch < row || pitch % element))
		return CUDA_ERROR_INVALID_VALUE;
	*w = (struct work){
		.type = WORK_SET, .set = {(char *)(uintptr_t)p, pitch, width, height, value, element}};
	if (!width || !height) {
		w->set.height = 0;
		return CUDA_SUCCESS;
	}
	if (!p || !box_span(row, height, 1, pitch, 0, &span))
		return CUDA_ERROR_INVALID_VALUE;
	if (p + span < p) {
		/* the driver's own check wraps around here, and the device finds out */
		if (!allocation_covers(p, 1))
			return CUDA_ERROR_INVALID_VALUE;
		*w = (struct work){.type = WORK_FAULT};
		return CUDA_SUCCESS;
	}
	return allocation_covers(p, span) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult set(CUdeviceptr p, size_t pitch, unsigned value, unsigned element, size_t width,
	size_t height, CUstream stream, bool async)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	CUresult r = CUDA_SUCCESS;
	struct stream *s = stream_named(g.context, stream, &r);
	if (!s)
		return r;
	struct work w;
	r = set_box(p, pitch, value, element, width, height, &w);
	if (r || (w.type == WORK_SET && !w.set.height && !s->capture))
		return r;
	return async ? stream_submit(s, &w, NULL) : stream_submit_eager(s, &w);
}

CUresult cuMemsetD8Async(CUdeviceptr p, unsigned char v, size_t n, CUstream s)
{
	return set(p, 0, v, 1, n, 1, s, true);
}
CUresult cuMemsetD16Async(CUdeviceptr p, unsigned short v, size_t n, CUstream s)
{
	return set(p, 0, v, 2, n, 1, s, true);
}
CUresult cuMemsetD32Async(CUdeviceptr p, unsigned v, size_t n, CUstream s)
{
	return set(p, 0, v, 4, n, 1, s, true);
}
CUresult cuMemsetD2D8Async(CUdeviceptr p, size_t pitch, unsigned char v, size_t w, size_t h, CUstream s)
{
	return set(p, pitch, v, 1, w, h, s, true);
}
CUresult cuMemsetD2D16Async(CUdeviceptr p, size_t pitch, unsigned short v, size_t w, size_t h, CUstream s)
{
	return set(p, pitch, v, 2, w, h, s, true);
}
CUresult cuMemsetD2D32Async(CUdeviceptr p, size_t pitch, unsigned v, size_t w, size_t h, CUstream s)
{
	return set(p, pitch, v, 4, w, h, s, true);
}

CUresult cuMemsetD8_v2(CUdeviceptr p, unsigned char v, size_t n)
{
	return set(p, 0, v, 1, n, 1, NULL, false);
}
CUresult cuMemsetD16_v2(CUdeviceptr p, unsigned short v, size_t n)
{
	return set(p, 0, v, 2, n, 1, NULL, false);
}
CUresult cuMemsetD32_v2(CUdeviceptr p, unsigned v, size_t n)
{
	return set(p, 0, v, 4, n, 1, NULL, false);
}
CUresult cuMemsetD2D8_v2(CUdeviceptr p, size_t pitch, unsigned char v, size_t w, size_t h)
{
	return set(p, pitch, v, 1, w, h, NULL, false);
}
CUresult cuMemsetD2D16_v2(CUdeviceptr p, size_t pitch, unsigned short v, size_t w, size_t h)
{
	return set(p, pitch, v, 2, w, h, NULL, false);
}
CUresult cuMemsetD2D32_v2(CUdeviceptr p, size_t pitch, unsigned v, size_t w, size_t h)
{
	return set(p, pitch, v, 4, w, h, NULL, false);
}
