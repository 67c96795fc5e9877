/* SPDX-License-Identifier: Apache-2.0 */
/* Staging memory lent to the mount: see lend.c. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct session;
struct stream;

/* Memory for one stage (staging.h), of STAGE_BYTES, that the mount may see; NULL: there is none, or no more.
 * lend_unmap: it is no stage any more; what of it was lent up to `ticket` may still be in use. */
uint8_t *lend_map(struct session *s);
void lend_unmap(uint8_t *p, uint64_t ticket);

/* By second.c's thread. A descriptor by which the mount can read it, and its size; -1: there is none. Then
 * the mount has taken it, and tells by that stream what it has taken of it. */
int lend_offer(struct session *s, uint64_t *size);
void lend_begin(struct stream *second);

/* Sends n bytes at p, the bulk of one DATA frame, by their place: returns a ticket, or 0: they are not lent.
 * p may be used for something else when that ticket is over; `wait`: waits for it, as long as the mount
 * lives. */
uint64_t lend_data(struct session *s, uint64_t transfer, uint64_t offset, const void *p, size_t n);
bool lend_is_over(uint64_t ticket, bool wait);
