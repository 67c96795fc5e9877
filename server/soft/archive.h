/* SPDX-License-Identifier: Apache-2.0 */
/* What a linker takes beside code images: host objects and archives of them.
 *
 * Thread rule: no shared state. */
#pragma once
#include "server/soft/image.h"

/* Adds the PTX texts in an archive, a host object or, as image_add does, an image of `size` bytes. Host code
 * and objects without device code are passed over. CUDA_ERROR_NO_BINARY_FOR_GPU: some device code has machine
 * code only. What was added before an error stays: image_shrink. */
CUresult archive_add(struct image *im, const void *data, size_t size, int capability, struct jit *j);
/* Is it an archive? An ELF file of another machine than CUDA's? */
bool archive_is(const void *data, size_t size);
bool archive_is_object(const void *data, size_t size);
