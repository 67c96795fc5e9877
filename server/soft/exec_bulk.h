/* SPDX-License-Identifier: Apache-2.0 */
/* Bulk copies and reductions between global and shared memory, of bytes or of boxes of a tensor.
 *
 * Thread rule: constant once decoded. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct bulk_op {
	uint32_t to, from; /* slots of generic addresses; a tensor's side: of its map */
	uint32_t bytes; /* slot; not for tensors */
	uint32_t barrier; /* slot of a generic address; UINT32_MAX: none is told */
	uint32_t mask; /* slot: blocks of the cluster that get it; UINT32_MAX: the one addressed */
	uint32_t bytes_mask; /* slot: which of 16 bytes are copied; UINT32_MAX: all */
	bool tensor, store; /* store: from shared to global memory */
	bool rows; /* four rows of a tensor, each with a coordinate of its own */
	uint8_t dimensions, reduce, type; /* reduce: ATOM_... + 1; 0: a copy */
	bool pixels; /* a tensor of images, pixel by pixel */
	uint32_t at[5]; /* slots of coordinates */
	uint32_t offset[3]; /* slots: what is added to those of a pixel; UINT32_MAX: nothing */
};

/* A tensor's map, 128 bytes that cuTensorMapEncodeTiled and its like make; only this device reads it. */
#define TENSOR_MAP_MAGIC 0x70616d74u
struct tensor_map {
	uint32_t magic;
	/* element: bytes; swizzle: log2 of its bytes, 0: none; fill: NaN */
	uint8_t dimensions, element, swizzle, fill;
	uint64_t address;
	uint64_t stride[4]; /* bytes, of dimensions 1 and up */
	uint32_t size[5]; /* elements - 1 */
	uint16_t box[5];
	uint8_t step[5];
	uint8_t type; /* enum ptx_type */
	uint8_t interleaved; /* what no copy knows */
	bool pixels; /* of images: channels, one to three dimensions of pixels, images */
	/* where in an image the pixels begin, and how far from its end the last one is */
	int16_t lower[3], upper[3];
	uint16_t channels, count; /* of a pixel, of pixels that one copy takes */
};
enum { TENSOR_MAP_BYTES = 128 };
_Static_assert(sizeof(struct tensor_map) <= TENSOR_MAP_BYTES, "it is a CUtensorMap");

/* What tensormap.replace puts into a map. */
enum map_field { MAP_ADDRESS, MAP_RANK, MAP_BOX, MAP_SIZE, MAP_STRIDE, MAP_STEP, MAP_TYPE, MAP_INTERLEAVE,
		MAP_SWIZZLE, MAP_FILL };
