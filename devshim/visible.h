/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the server's devices the application sees, and in which order: CUDA_DEVICE_ORDER and
 * CUDA_VISIBLE_DEVICES. Thread rule: no state. */
#pragma once
#include "devshim/device.h"

/* Fills out[] with indices of all[0..n); returns how many. NULL: the variable is not set. */
unsigned visible_select(const struct device *all, unsigned n, const char *order, const char *visible,
		unsigned *out);
