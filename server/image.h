/* SPDX-License-Identifier: Apache-2.0 */
/* The image of a load as a driver wants it, whether its bytes came with the record, out of the cache, or
 * were read ahead.
 *
 * Thread rule: an image belongs to its record. */
#pragma once
#include <stdbool.h>
#include "server/exec.h"
#include "wire/cuda_types.h"
#include "wire/digest.h"
#include "wire/image.h"

struct image {
	uint8_t *bytes; /* with IMAGE_TAIL zeros behind */
	size_t n;
	uint8_t digest[DIGEST]; /* ours, of the bytes */
	bool asked; /* only the digest came ... */
	bool known; /* ... and these are its bytes; always true of bytes that came */
	bool whole; /* the driver, which is told no size, stays inside */
	struct image_wrapper wrapper;
	const void **extra;
	const void *code; /* for the driver */
};

/* Takes kind, part sizes and digest from the head and the bytes from the bulk, or from the cache when none
 * came. False when malformed. image_finish in any case. */
bool image_get(struct exec *x, struct image *i);
/* The driver has taken it: worth keeping. */
void image_keep(const struct image *i);
void image_finish(struct image *i);
