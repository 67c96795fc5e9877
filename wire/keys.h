/* SPDX-License-Identifier: Apache-2.0 */
/* Key files: lines "name:64 hex digits", `#` comments. A client has one key, a server one per client. The
 * file must not be readable by group or others. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "wire/limits.h"

struct key { char name[LIMIT_NAME + 1]; uint8_t secret[32]; };
struct keys;

/* Reads a file with any number of keys. Returns 0 or -errno (-EPERM: mode too open, -EINVAL: a bad line) and
 * says why in *why (a constant). */
int keys_load(const char *path, struct keys **out, const char **why);
void keys_free(struct keys *k);
/* The key of that name, NULL if none; compares in constant time. */
const struct key *keys_find(const struct keys *k, const char *name);
/* The only key of a client's file, or NULL. */
const struct key *keys_first(const struct keys *k);
/* A new random key. 0 or -errno. */
int key_generate(const char *name, struct key *out);
/* "name:hex\n" into buf; returns its length. */
int key_format(const struct key *k, char *buf, size_t n);
