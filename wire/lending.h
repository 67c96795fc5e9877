/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that one end of a connection lends the other (wire/frame.h, Lent memory): a memfd whose size nobody
 * can change, for reading. Thread rule: any thread. */
#pragma once
#include <stdint.h>
#include "wire/frame.h"

/* A memfd of that size, sealed, of which only the pages in use exist. A descriptor or -errno. */
int lending_create(const char *name, uint64_t size);
/* A descriptor of the same memory by which nobody can write to it, for the peer. Or -errno. */
int lending_readonly(int fd);
/* Memory of a peer, mapped for reading: NULL, and why, when it is none that can be trusted to stay as large
 * as it is, or of another size, or the kernel does not map it. fd stays the caller's. */
const uint8_t *lending_map(int fd, uint64_t size, const char **why);

/* What each says when both have met, with the descriptor beside it unless that is -1. 0 or -errno; *fd is -1
 * or the caller's. */
int lending_send(int socket, const struct lending *l, int fd);
int lending_receive(int socket, struct lending *l, int *fd, int timeout_ms);
