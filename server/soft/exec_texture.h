/* SPDX-License-Identifier: Apache-2.0 */
/* What texture and surface operations carry beside their slots.
 *
 * Thread rule: constant once decoded. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum { TEX_FETCH, TEX_GATHER, TEX_QUERY, SURF_LOAD, SURF_STORE };
enum { QUERY_WIDTH, QUERY_HEIGHT, QUERY_DEPTH };
enum { OUT_TRAP, OUT_CLAMP, OUT_ZERO };

struct texture_op {
	uint8_t what; /* TEX_..., SURF_... */
	uint8_t dimensions; /* coordinates, the layer apart */
	bool layered; /* the first coordinate is the layer */
	bool whole; /* coordinates are integers */
	bool reads_float; /* the destination's type */
	uint8_t n; /* elements of the vector */
	uint8_t bytes; /* SURF: of each */
	uint8_t component; /* TEX_GATHER; TEX_QUERY: what is asked */
	uint8_t outside; /* SURF: OUT_... */
	const uint64_t *cell; /* a reference's variable, in which its object stands; NULL: it is in a slot */
	uint32_t handle; /* slots */
	uint32_t layer, at[3];
	uint32_t value[4]; /* UINT32_MAX: not wanted */
};
