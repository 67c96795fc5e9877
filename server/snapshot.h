/* SPDX-License-Identifier: Apache-2.0 */
/* What a server tells of its devices (wire/frame.h, snapshot map): read from the driver once, encoded as
 * often as asked, with fresh free memory.
 *
 * Thread rule: snapshot_read once; snapshot_encode from any thread afterwards. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "wire/limits.h"

struct msg;
struct driver_choice;
struct snapshot;

/* Asks the driver, whose table is filled and which has `devices` devices. NULL and a reason. */
struct snapshot *snapshot_read(const struct driver_choice *choice, int devices, const char **why);
/* Puts the map; m->bad when it does not fit. With `values`: what changes too (wire/values.h), for mounts;
 * programs have no use for it. */
void snapshot_encode(const struct snapshot *s, unsigned sessions, bool values, struct msg *m);
/* "real libcuda.so.1 13.0, 1 device: NVIDIA H200" */
void snapshot_describe(const struct snapshot *s, char *out, size_t cap);
