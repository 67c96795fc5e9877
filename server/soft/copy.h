/* SPDX-License-Identifier: Apache-2.0 */
/* From the parameters of a copy to a piece of work.
 *
 * Thread rule: see state.h. */
#pragma once
#include "server/soft/stream.h"

struct copy_sides {
	bool src_pageable, dst_pageable;
};

/* Checks a 3D copy as the driver does; w has width 0 when there is nothing to do. */
CUresult copy_box(const CUDA_MEMCPY3D *p, struct work *w, struct copy_sides *sides);
/* n bytes between addresses, of device memory where `host` does not say otherwise (0: unified, 1: host, 2:
 * device). */
enum copy_kind { COPY_UNIFIED, COPY_HOST, COPY_DEVICE };
CUresult copy_linear(uint64_t dst, enum copy_kind dst_kind, uint64_t src, enum copy_kind src_kind, size_t n,
	struct work *w, struct copy_sides *sides);
/* The source is memory of the host, in the table or not. */
bool copy_from_host(const struct work *w);
CUDA_MEMCPY3D copy_from_2d(const CUDA_MEMCPY2D *p);
/* Runs or queues a copy; takes w. */
CUresult copy_submit(struct stream *s, struct work *w, const struct copy_sides *sides, bool async);
