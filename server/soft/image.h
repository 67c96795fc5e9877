/* SPDX-License-Identifier: Apache-2.0 */
/* Code images as programs hand them over: PTX text, fat binaries, their wrappers, ELF. Out of them come the
 * PTX texts that this device can run.
 *
 * Thread rule: no shared state. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "server/soft/jit.h"

#define IMAGE_TEXTS 256 /* texts that one image may be linked from */
#define IMAGE_BYTES (64u << 20) /* of all texts of an image, unpacked; a second or two of reading */
#define IMAGE_FILE (512u << 20) /* of a file with all sorts of code in it */

struct image {
	unsigned count;
	size_t bytes; /* of all texts */
	char *text[IMAGE_TEXTS]; /* owned, each ended by a NUL */
	size_t size[IMAGE_TEXTS];
};

/* Takes an image apart. `size` 0: as long as its own headers say. The presented compute capability picks
 * among several PTX texts. */
CUresult image_read(struct image *im, const void *data, size_t size, int capability, struct jit *j);
/* All texts as one image that needs nothing else, a fat binary; the caller frees it. NULL: memory is short.
 */
void *image_pack(const struct image *im, int capability, size_t *size);
/* Adds the texts of one more image (linking). */
CUresult image_add(struct image *im, const void *data, size_t size, int capability, struct jit *j);
/* Takes the texts behind the first `count` away again. */
void image_shrink(struct image *im, unsigned count);
/* Does the fat binary hold machine code of functions? (What nvcc's linker adds to every program has none.) */
bool image_machine_code(const void *data, size_t size);
/* Is it a fat binary, wrapped or not? One that image_pack made? */
bool image_is_fatbin(const void *data, size_t size);
bool image_is_linked(const void *data, size_t size);
void image_free(struct image *im);
