/* SPDX-License-Identifier: Apache-2.0 */
/* Code images as programs hand them over: PTX text, fat binaries, their wrappers, ELF. Out of them come the
 * PTX texts that this device can run.
 *
 * Thread rule: no shared state. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "wire/cuda_types.h"

#define IMAGE_TEXTS 256 /* texts that one image may be linked from */
#define IMAGE_BYTES (64u << 20) /* of all texts of an image, unpacked; a second or two of reading */
#define IMAGE_FILE (512u << 20) /* of a file with all sorts of code in it */

struct image {
	unsigned count;
	size_t bytes; /* of all texts */
	char *text[IMAGE_TEXTS]; /* owned, each ended by a NUL */
	size_t size[IMAGE_TEXTS];
};

/* Where a load tells the caller what went wrong: the JIT options. */
struct jit {
	char *error, *info; /* the caller's buffers; NULL: none */
	size_t error_size, info_size;
	void **error_count, **info_count; /* where the number of bytes written goes */
	float *wall_time; /* where the milliseconds spent go */
	const char *input; /* the linker's name of what is read; NULL: none */
	uint64_t begun, spent; /* nanoseconds: when the work under way began, what went before */
};

/* Reads the options; CUDA_ERROR_INVALID_VALUE for unknown ones. */
CUresult jit_read(struct jit *j, unsigned n, const CUjit_option *options, void **values);
/* Work begins, for the wall time; jit_read does that, too. */
void jit_begin(struct jit *j);
/* Writes a line to the error log, as printf does. */
void jit_error(struct jit *j, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same of a text that is wrong in that line, as the compiler in a driver writes it. The words are
 * ours. */
void jit_wrong(struct jit *j, unsigned long line, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Work ends: fills in what the caller learns of the logs' sizes and of the time. */
void jit_end(struct jit *j);

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
void image_free(struct image *im);
