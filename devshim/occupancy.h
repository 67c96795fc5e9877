/* SPDX-License-Identifier: Apache-2.0 */
/* Remembered answers about occupancy, kept with their function. Thread rule: any thread. */
#pragma once
#include "devshim/function.h"
#include "wire/notes.h"

void occupancy_free(struct function *f);
/* The server tells an answer ahead, which holds in the device's primary context. */
void occupancy_told(struct function *f, enum note kind, CUdevice device, const struct occupancy_question *q,
	CUresult code, uint64_t answer);
/* The program has chosen a cache configuration, of whatever: what is remembered from before holds no more. */
void occupancy_configured(void);
/* A context has ended, and what was chosen for it with it. */
void occupancy_context_died(void);
