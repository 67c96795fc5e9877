/* SPDX-License-Identifier: Apache-2.0 */
/* The image of a load as a driver wants it, whether its bytes came with the record or out of the cache; and
 * which functions programs took from it, told with the load's answer.
 *
 * Thread rule: an image belongs to its record. The told_ functions take their own lock. */
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

/* A kernel's attributes on a device before a program changes any. They are an image's, a device's and a
 * driver's, so they are kept with the name, and a later load need not make the driver load the kernel, which
 * it otherwise does at the first launch, and waits for the device then. */
struct attributes {
	int device;         /* the driver's ordinal; -1: nothing is known */
	uint32_t known;     /* bit i: value[i] */
	int value[CU_FUNC_ATTRIBUTE_MAX];
};

/* A module or library with this handle id came from the image, by these compiler options. */
struct jit;
void told_begin(uint64_t id, const struct image *i, const struct jit *j);
/* Calls `tell` with each name that was asked of its image before, and the attributes on `device` if they were
 * noted, else NULL. */
void told_each(uint64_t id, int device, bool (*tell)(void *arg, const char *name, const struct attributes *a),
	void *arg);
/* A program has asked for that function; a: NULL for none. */
void told_asked(uint64_t id, const char *name, const struct attributes *a);
/* It was unloaded. */
void told_end(uint64_t id);
