/* SPDX-License-Identifier: Apache-2.0 */
/* What the calls of streams have in common. Thread rule: any thread. */
#pragma once
#include "devshim/call.h"
#include "devshim/context.h"
#include "devshim/work.h"
#include "cuda.calls.h"

/* The stream of a call that needs a context which is not lost. */
static inline CUresult stream_find(CUstream h, struct work **w)
{
	struct context *c;
	CUresult r = context_check(&c);

	if (r)
		return r;
	*w = work_of(h);
	return *w ? CUDA_SUCCESS : handle_error(HANDLE_CUstream);
}
