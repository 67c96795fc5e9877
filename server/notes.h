/* SPDX-License-Identifier: Apache-2.0 */
/* What programs asked of an image, kept with it for the client's next load of the same: its functions,
 * answers about their occupancy, and which image was loaded after it (wire/notes.h). All of it is an
 * image's, a driver's and a device's, so an entry counts only for the driver and the devices that said
 * it.
 *
 * Thread rule: any thread; notes.c has a lock. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "server/exec.h"
#include "wire/digest.h"
#include "wire/notes.h"

struct image;
struct jit;

/* A module or library with this handle id came from the image, by these compiler options. */
void notes_begin(uint64_t id, const struct image *i, const struct jit *j);
/* It was unloaded. */
void notes_end(uint64_t id);
/* Puts its entries, as long as `out` stays below `most` bytes. */
void notes_put(uint64_t id, struct msg *out, size_t most);
/* Adds an entry, unless there is one that begins with the same `same` bytes; later loads of the image
 * find it. */
void notes_add(uint64_t id, const void *entry, size_t n, size_t same);

/* Whether images are known that followed this one. */
bool notes_has_next(uint64_t id);
/* Reads the images that followed this one, and puts the digest and the entries of each, and a nil, then
 * another. Loads find them with notes_take. */
void notes_put_ahead(uint64_t id, struct msg *out);
/* The bytes of an image that was read ahead, or NULL; the caller frees them. */
void *notes_take(const uint8_t d[DIGEST], size_t n);
