/* SPDX-License-Identifier: Apache-2.0 */
/* A copy's bytes between the program and the device, in pieces of a slot (staging.h), so that receiving one
 * and copying another overlap. SERVE_BAD: the connection has ended. Thread rule: as exec.h; no state of its
 * own. */
#pragma once
#include "server/box.h"

/* From the record's bulk to the device. */
CUresult transfer_receive(struct exec *x, const struct box *b);
/* From the device to the program's transfer, of `total` bytes, all of which are sent whatever happens. */
CUresult transfer_send(struct exec *x, const struct box *b, uint64_t transfer, uint64_t total);
/* Sends what is left of a transfer that failed. */
bool transfer_zeros(struct exec *x, uint64_t transfer, uint64_t offset, uint64_t total);
/* Starts a copy of n bytes to the host whose bytes are told later. */
CUresult transfer_deliver(struct exec *x, const struct box *b, uint64_t transfer, size_t n);
