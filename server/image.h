/* SPDX-License-Identifier: Apache-2.0 */
/* The image of a load as a driver wants it, whether its bytes came with the record, out of the cache, or
 * were read ahead.
 *
 * Thread rule: an image belongs to its record, or to its library. */
#pragma once
#include <stdbool.h>
#include "server/exec.h"
#include "wire/cuda_types.h"
#include "wire/digest.h"
#include "wire/image.h"

struct image {
	struct image *next;     /* of those that are preserved; `library` is theirs */
	uint64_t library;
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
 * came. NULL when malformed, or without memory; else the caller's, for image_free. */
struct image *image_get(struct exec *x);
/* The driver has taken it: worth keeping. */
void image_keep(const struct image *i);
/* The driver reads it as long as the library with this handle id lives (CU_LIBRARY_BINARY_IS_PRESERVED): it
 * is taken over. Thread rule of this and the next: any thread. */
void image_preserve(struct image *i, uint64_t library);
/* That of a library which is to be unloaded, the caller's again; NULL when there is none. */
struct image *image_release(uint64_t library);
/* Also of NULL. */
void image_free(struct image *i);
