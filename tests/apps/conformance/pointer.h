/* SPDX-License-Identifier: Apache-2.0 */
/* What a driver tells of a pointer. Threads: none. */
#pragma once
#include "check.h"

static inline void show(const char *what, CUdeviceptr p)
{
	CUresult r;
	unsigned type = 0;
	int managed = -1, ordinal = -1;
	CUcontext c = NULL;
	CUdeviceptr start = 0;
	size_t size = 0;
	void *host = NULL;

	r = cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p);
	SAY("%s: memory type -> %s %u", what, name_of(r), type);
	r = cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p);
	SAY("%s: managed -> %s %d", what, name_of(r), managed);
	r = cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p);
	SAY("%s: ordinal -> %s %d", what, name_of(r), ordinal);
	r = cuPointerGetAttribute(&c, CU_POINTER_ATTRIBUTE_CONTEXT, p);
	SAY("%s: context -> %s ours %d", what, name_of(r), c == context);
	r = cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, p);
	SAY("%s: host pointer -> %s", what, name_of(r));
	r = cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p);
	SAY("%s: start -> %s %zu before", what, name_of(r), r ? 0 : (size_t)(p - start));
	r = cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p);
	SAY("%s: size -> %s %zu", what, name_of(r), size);
}
