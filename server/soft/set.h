/* SPDX-License-Identifier: Apache-2.0 */
/* From the parameters of a fill to a piece of work.
 *
 * Thread rule: see state.h. */
#pragma once
#include "server/soft/stream.h"

/* width in elements of `element` bytes. w's height is 0 when there is nothing to do. */
CUresult set_box(CUdeviceptr p, size_t pitch, unsigned value, unsigned element, size_t width, size_t height,
	struct work *w);
