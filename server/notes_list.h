/* SPDX-License-Identifier: Apache-2.0 */
/* The list of notes of one image, in memory and in its file (server/cache.h): entries (wire/notes.h) in the
 * order in which they came, each with its length, and a check over it and over what this server and its
 * driver are, so that neither damage nor another's answers are taken for ours.
 *
 * Thread rule: a list belongs to whoever guards it; for those of notes.c that is its lock. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "wire/digest.h"

#define LIMIT_ENTRY 8192 /* bytes; what is longer is not noted */

struct notes {
	struct notes *next;
	unsigned loaded; /* as so many modules and libraries */
	uint8_t digest[DIGEST]; /* of the image and how it was compiled */
	size_t n;
	uint8_t *bytes;
};

/* Whether this machine's devices are of one kind, so that what one of them takes the others take, too. */
bool notes_one_kind(void);
/* Takes what is noted of the image t->digest on the disk; bytes NULL: nothing. */
void notes_read(struct notes *t);
/* The entry at *at, and *at behind it; NULL at the end. */
const uint8_t *notes_next(const struct notes *t, size_t *at, size_t *n);
/* Adds an entry, here and in the file, unless there is one that begins with the same `same` bytes, or no
 * room. */
void notes_append(struct notes *t, const uint8_t *entry, size_t n, size_t same);
