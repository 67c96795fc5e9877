/* SPDX-License-Identifier: Apache-2.0 */
/* What the matrix product of a warpgroup carries beside its slots.
 *
 * Thread rule: constant once decoded. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum { WGMMA_ROWS = 64, WGMMA_WIDTH = 256, WGMMA_BYTES = 32, WGMMA_WARPS = 4 };

/* D = A B, or D + A B. A has 64 rows, B `n` columns, and both WGMMA_BYTES bytes along k. */
struct wgmma_op {
	uint16_t n, k; /* k: elements */
	uint8_t a_type, b_type, d_type; /* enum ptx_type; both of integers, or both of floats */
	bool registers; /* A is in registers, as mma.m16n8 has it */
	bool a_column, b_row; /* consecutive elements are those of a column of A, of a row of B */
	bool minus; /* the product is subtracted */
	bool saturate;
	bool adds; /* scale_d is NONE: D is added to */
	uint32_t a[4]; /* slots; [0]: of the descriptor where A is in shared memory */
	uint32_t b; /* slot of a descriptor */
	uint32_t scale_d; /* slot of a predicate or UINT32_MAX */
	uint32_t nd, d[WGMMA_WIDTH / 2]; /* slots */
};
