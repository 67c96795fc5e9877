/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA arrays: plain device memory with a shape.
 *
 * Thread rule: see state.h. */
#pragma once
#include "server/soft/state.h"

struct mipmap;
struct array {
	struct object object;
	uint64_t base;
	size_t width, height, depth; /* elements; height and depth 0: fewer dimensions */
	CUarray_format format;
	unsigned channels, flags;
	size_t element, pitch, slice; /* bytes */
	bool owned; /* its memory is its own, not a mipmap's */
};

/* The shape of a level and where it lies; false: there is no such level. */
bool mipmap_level(const struct mipmap *m, unsigned level, struct array *a);
/* Bytes of one element, 0: unknown format. */
size_t array_element(CUarray_format format, unsigned channels);
