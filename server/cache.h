/* SPDX-License-Identifier: Apache-2.0 */
/* Module images on the server's disk, so that a program sends each of them once and the next program only
 * its digest; and notes of what programs asked of each image (server/notes.h), so that the answer to the next
 * load brings it.
 *
 * Each client has a part of its own, by key or user: what one has loaded is neither served to another nor
 * told. What is there is believed only as far as its digest: a damaged file is as good as none.
 *
 * Thread rule: cache_prepare in the listener, cache_open before a session has threads, the rest from any of
 * them; sessions of one client share its part through the file system, where files appear whole or not. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "wire/digest.h"

/* The folder that is meant without --cache: the service manager's, or one in the user's home; "" when there
 * is neither. */
void cache_default(char *out, size_t cap);
/* Makes the folder, for nobody but this user. 0, or -errno and why. */
int cache_prepare(const char *dir, const char **why);

/* From now on this process uses the part of `client`. Without (dir "" or unusable): nothing is found and
 * nothing kept. */
void cache_open(const char *dir, const char *client);
/* Whether images can be found at all. */
bool cache_is_open(void);
/* The image of n bytes with that digest, malloc'ed with `tail` zero bytes behind, or NULL. */
void *cache_read(const uint8_t d[DIGEST], size_t n, size_t tail);
/* Keeps an image. The oldest of the client's files make room; a disk that is nearly full gets no more. */
void cache_write(const uint8_t d[DIGEST], const void *p, size_t n);
/* The notes kept with an image, as they were appended; malloc'ed, or NULL. */
uint8_t *cache_notes(const uint8_t d[DIGEST], size_t *n);
/* Appends to them. */
void cache_note(const uint8_t d[DIGEST], const void *p, size_t n);
void cache_forget_notes(const uint8_t d[DIGEST]);
