/* SPDX-License-Identifier: Apache-2.0 */
/* Remembered answers about occupancy, kept with their function until one of its attributes changes. Thread
 * rule: any thread. */
#pragma once
#include "devshim/function.h"

void occupancy_free(struct function *f);
void occupancy_forget(struct function *f);
