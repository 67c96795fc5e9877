/* SPDX-License-Identifier: Apache-2.0 */
/* What the server tells ahead of being asked (wire/notes.h): functions of what was loaded, and images that
 * will probably be loaded next, whose loads need no answer then.
 *
 * Thread rule: any thread. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "wire/digest.h"
#include "wire/msg.h"

/* Takes entries up to the nil behind them, of functions (or kernels: `type`) of a module or library. Without
 * one (NULL) they are only passed over. m->bad when malformed. */
void told_functions(struct msg *m, unsigned type, void *parent);
/* Takes what an answer tells of images. False when malformed. */
bool told_images(const void *p, size_t n);
/* Some images are expected. */
bool told_any(void);
/* The entries of an expected image, which is expected no longer; the caller frees them. NULL: it is not. */
uint8_t *told_image(const uint8_t d[DIGEST], size_t *n);
