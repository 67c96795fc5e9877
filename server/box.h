/* SPDX-License-Identifier: Apache-2.0 */
/* What a copy copies: a box (2D, 3D, arrays), of which a linear copy is one of one row, and its parts, as
 * they are given to the driver. Thread rule: as exec.h; no state. */
#pragma once
#include "server/exec.h"
#include "server/staging.h"

struct side {
	CUmemorytype type; /* HOST: the program's */
	uint64_t device;
	CUarray array;
	size_t x, y, z, lod, pitch, height;
};

struct box {
	struct side src, dst;
	size_t w, h, d;
	CUstream stream;
	bool linear;
	enum slot_use use;
};

/* One piece of a box: rows y.. of slice z.., or a part of one row. */
struct part {
	size_t x, y, z, w, h, d;
};

/* The part after `p` (all zero: the first) of at most `max` bytes. False at the end. */
bool box_next(const struct box *b, struct part *p, size_t max);
/* Starts the copy of a part; `host`: the memory for the side that is the program's, rows packed. */
CUresult box_issue(const struct box *b, const struct part *p, void *host);
