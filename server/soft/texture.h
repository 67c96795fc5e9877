/* SPDX-License-Identifier: Apache-2.0 */
/* Texture and surface objects, as kernels see them: a shape in memory and how to read it.
 *
 * Thread rule: constant while kernels run; texture_at takes no lock. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "wire/cuda_types.h"

enum texture_format {
	TEXTURE_U8,
	TEXTURE_U16,
	TEXTURE_U32,
	TEXTURE_S8,
	TEXTURE_S16,
	TEXTURE_S32,
	TEXTURE_HALF,
	TEXTURE_FLOAT
};
enum texture_mode { TEXTURE_WRAP, TEXTURE_CLAMP, TEXTURE_MIRROR, TEXTURE_BORDER };

enum { TEXTURE_LEVELS = 18 };
struct texture_level {
	uint64_t base;
	/* elements, each at least 1; depth: layers of a layered one, 6 for each cube */
	size_t width, height, depth;
	size_t pitch, slice; /* bytes */
};

struct texture {
	struct texture_level level[TEXTURE_LEVELS]; /* of a mipmap; else one */
	unsigned levels;
	enum texture_format format;
	unsigned channels, element; /* element: bytes of all channels */
	bool surface, buffer; /* buffer: linear memory, which has no address mode */
	enum texture_mode mode[3];
	bool filter, blend; /* linear; between levels */
	float bias, least, most; /* of levels */
	bool seamless; /* filters of a cube reach around its edges */
	bool srgb; /* red, green and blue of 8 bits are not linear */
	bool normalized; /* coordinates from 0 to 1 */
	bool integers; /* 8 and 16 bit integers are not turned into 0 to 1 */
	float border[4];
};

/* The object of that handle, NULL when there is none. */
const struct texture *texture_at(uint64_t handle);

/* Objects of a context, with the driver's lock held: made of a resource, a texture description (NULL: a
 * surface) and a view (may be NULL); and ended, when the context's work has. */
struct context;
CUresult texture_create(struct context *c, CUtexObject *out, const CUDA_RESOURCE_DESC *r,
	const CUDA_TEXTURE_DESC *d, const CUDA_RESOURCE_VIEW_DESC *w);
void texture_destroy(uint64_t handle);
