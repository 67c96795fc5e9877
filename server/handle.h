/* SPDX-License-Identifier: Apache-2.0 */
/* A session's typed table of handles: ids that the program uses (wire/handle.h) to what the driver gave, and
 * back. The program chooses numbers below HANDLE_SERVER, the table those from there on. Nothing here knows
 * the driver.
 *
 * Thread rule: every function may be called from any thread; the table has its own lock. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "wire/handle.h"

struct handles;
struct handles *handles_create(void);
void handles_destroy(struct handles *h);

/* The driver's handle of a live id of that type, NULL if none. */
void *handle_real(struct handles *h, unsigned type, uint64_t id);
/* The id of the driver's handle, 0 if it has none. */
uint64_t handle_id(struct handles *h, unsigned type, const void *real);
/* The same, made when missing; it ends with `parent` unless that is 0. 0 past LIMIT_HANDLES or without
 * memory. */
uint64_t handle_add(struct handles *h, unsigned type, void *real, uint64_t parent);
/* An id that the program chose. False when it may not choose it, when it is alive for something else, or
 * past the limit. */
bool handle_bind(struct handles *h, unsigned type, uint64_t id, void *real);
/* Another handle of the driver's for a live id: what the program knows is made anew. */
void handle_replace(struct handles *h, uint64_t id, void *real);
/* The same for what ends with `parent`, and which may have another id already that stays good. */
bool handle_bind_child(struct handles *h, unsigned type, uint64_t id, void *real, uint64_t parent);
/* What it was added under; 0 when that is nothing, or id is dead. */
uint64_t handle_parent(struct handles *h, uint64_t id);
/* The program has set an attribute of what has that id: it is not as it was made any more. */
void handle_change(struct handles *h, uint64_t id);
bool handle_changed(struct handles *h, uint64_t id);
/* Forgets an id and everything whose parent it is. By id, because the driver may have given the same
 * handle of its own to another thread already. */
void handle_drop(struct handles *h, uint64_t id);
/* Ahead of the driver's call that ends what id names: the same real handle may be a new one of another
 * thread's before that call returns, and is given an id of its own. Taken back (false) when the call has
 * failed. */
void handle_ending(struct handles *h, uint64_t id, bool ending);
