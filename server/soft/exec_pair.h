/* SPDX-License-Identifier: Apache-2.0 */
/* The operation of exec_pair.c: x holds the number of elements and whether it loads, y the bytes of each (4
 * or 8).
 *
 * Thread rule: constant once decoded. */
#pragma once
#include "server/soft/exec.h"

enum { PAIR_COUNT = 7, PAIR_LOAD = 8 };
const struct op *x_pair(struct warp *w, const struct op *o);
