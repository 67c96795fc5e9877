/* SPDX-License-Identifier: Apache-2.0 */
/* Remembered answers about occupancy, kept with their function. Thread rule: any thread. */
#pragma once
#include "devshim/function.h"

void occupancy_free(struct function *f);
