/* SPDX-License-Identifier: Apache-2.0 */
/* The images that applications hand to the driver: what kind they are, and exactly how long (no length is
 * ever passed). The shim looks at an image's frame only, never at code.
 *
 * Thread rule: no state; an image is read by the thread that was given it. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "wire/cuda_types.h"
#include "wire/image.h"

#define IMAGE_PARTS 4096 /* fatbins of one wrapper */
#define IMAGE_PIECES 65536 /* byte runs of one image */

/* Bytes in the application's memory that make up the image, in order. */
struct image_piece {
	const void *p;
	size_t n;
};
struct image {
	enum image_kind kind;
	unsigned nparts; /* fatbins; 1 for the other kinds */
	size_t *part_size; /* bytes to send of each part */
	struct image_piece *piece; /* headers and entries kept, of all parts in order */
	size_t npieces, total;
	uint8_t (*header)[16]; /* rewritten fatbin headers, one per part */
};

/* Which compute capabilities an image must serve: of a fatbin only the entries that can are kept. */
struct image_target {
	unsigned n;
	int cc[64]; /* 10 * major + minor */
	bool ptx_only; /* the software device reads nothing but PTX */
	bool force_ptx; /* CUDA_FORCE_PTX_JIT: cubins are of no use */
};

/* Reads `code`; returns 0, 200 (INVALID_IMAGE) or 2. The image points into `code`. */
CUresult image_read(const void *code, const struct image_target *t, struct image *out);
/* The same for an image of n bytes. */
CUresult image_read_sized(const void *code, size_t n, const struct image_target *t, struct image *out);
void image_finish(struct image *i);
/* Copies the kept bytes one behind the other; out has room for i->total. */
void image_pack(const struct image *i, void *out);
