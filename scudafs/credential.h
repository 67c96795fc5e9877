/* SPDX-License-Identifier: Apache-2.0 */
/* The mount's key, and connections with it. A server that refuses it may have been given another one, as the
 * user's file has meanwhile: the file is then read again, so that a key can be changed without remounting.
 *
 * Thread rule: any thread that may block, but for credential_load and credential_free. */
#pragma once
#include <stdint.h>

struct credential;
struct stream;

/* Reads a client's key file, which has exactly one key. Returns 0 or -errno, with the reason in *why (a
 * constant). path stays the caller's. */
int credential_load(const char *path, struct credential **out, const char **why);
void credential_free(struct credential *c);

/* As stream_connect, with the key of c; NULL: in clear. */
int credential_connect(struct credential *c, const char *address, unsigned flags, int timeout_ms,
		struct stream **out, const char **why);
