/* SPDX-License-Identifier: Apache-2.0 */
/* A copy, whatever call it came from: a box of rows between two sides, a linear one being a box of one row. copy.c decides how it travels.
 *
 * Thread rule: a struct copy belongs to its call; the rest is called from any thread. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "wire/cuda_types.h"

struct copy_side {
	CUmemorytype type;          /* HOST: memory of this program; DEVICE, ARRAY: the server's */
	uint64_t address;           /* of either */
	CUarray array;
	size_t x, y, z, lod, pitch, height;
	bool pinned;                /* HOST */
	bool known;                 /* DEVICE: the range table shows that all of it is there */
};

struct copy {
	struct copy_side src, dst;
	size_t w, h, d;             /* bytes, rows, slices; none is 0 */
	bool linear;
};

/* Runs it. async: on `stream`, else on the default stream and to its end. Returns what the call returns. */
CUresult copy_run(const struct copy *k, bool async, CUstream stream);
/* A linear copy. `host` tells how an address that is in no table is meant. */
CUresult copy_linear(uint64_t dst, bool dst_host, uint64_t src, bool src_host, size_t n, bool async, CUstream stream);
/* Before a host function: has the bytes of finished copies brought, which it may look at. */
void copy_collect(void);
