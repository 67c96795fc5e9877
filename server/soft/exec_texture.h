/* SPDX-License-Identifier: Apache-2.0 */
/* What texture and surface operations carry beside their slots.
 *
 * Thread rule: constant once decoded. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum { TEX_FETCH, TEX_GATHER, TEX_QUERY, SURF_LOAD, SURF_STORE };
enum { QUERY_WIDTH, QUERY_HEIGHT, QUERY_DEPTH, QUERY_LAYERS, QUERY_LEVELS };
enum { LOD_NONE, LOD_BASE, LOD_GIVEN, LOD_GRADIENTS };
enum { HALF_NONE, HALF_EACH, HALF_PAIRS };
enum { OUT_TRAP, OUT_CLAMP, OUT_ZERO };

struct texture_op {
	uint8_t what; /* TEX_..., SURF_... */
	uint8_t dimensions; /* coordinates, the layer apart */
	bool layered; /* the first coordinate is the layer */
	bool cube; /* the coordinates are a direction */
	uint8_t lod; /* LOD_... */
	uint8_t half; /* results are halves: HALF_... */
	bool shifted; /* offsets in texels */
	bool whole; /* coordinates are integers */
	bool reads_float; /* the destination's type */
	uint8_t n; /* elements of the vector */
	uint8_t bytes; /* SURF: of each */
	uint8_t component; /* TEX_GATHER; TEX_QUERY: what is asked */
	uint8_t outside; /* SURF: OUT_... */
	const uint64_t *cell; /* a reference's variable, in which its object stands; NULL: it is in a slot */
	uint32_t handle; /* slots */
	uint32_t layer, at[3];
	uint32_t level; /* LOD_GIVEN; TEX_QUERY: NONE or a level */
	uint32_t gradient[2][3]; /* LOD_GRADIENTS */
	uint32_t offset[3]; /* shifted */
	uint32_t value[4]; /* UINT32_MAX: not wanted */
};

struct texture;
struct warp;
union texel {
	float f[4];
	uint32_t u[4];
};
/* exec_sample.c: what lane l reads; x->what is TEX_FETCH or TEX_GATHER. */
union texel texture_fetch(const struct warp *w, const struct texture *t, const struct texture_op *x,
		uint32_t l);
union texel texture_gather(const struct warp *w, const struct texture *t, const struct texture_op *x,
		uint32_t l);
