/* SPDX-License-Identifier: Apache-2.0 */
/* The codec of heads: msgpack, written with msgpack-c's packer, read by a bounded cursor. Errors are sticky:
 * put and get never fail visibly; check `bad` once, after the last field. A message must be consumed
 * completely or it is bad. A msg is used by one thread at a time. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct msg {
	uint8_t *buf;       /* the caller's */
	size_t len, cap;    /* put: bytes used, room. get: bytes read, bytes there */
	bool bad;
};
static inline void msg_init(struct msg *m, void *buf, size_t cap)
{
	*m = (struct msg){.buf = buf, .cap = cap};
}

void put_u64(struct msg *m, uint64_t v);
void put_i64(struct msg *m, int64_t v);
void put_f64(struct msg *m, double v);
void put_nil(struct msg *m);
void put_bool(struct msg *m, bool v);
void put_bytes(struct msg *m, const void *p, size_t n);     /* bin */
void put_text(struct msg *m, const char *s);                /* str; NULL is sent as nil */
void put_array(struct msg *m, size_t n);
void put_map(struct msg *m, size_t n);
void put_encoded(struct msg *m, const void *p, size_t n);   /* values that were encoded before */

uint64_t get_u64(struct msg *m);
int64_t get_i64(struct msg *m);     /* accepts any integer that fits */
double get_f64(struct msg *m);
bool get_bool(struct msg *m);
bool get_nil(struct msg *m);        /* true and consumed when the next value is nil */
/* A bin of exactly n bytes, copied to p. */
void get_bytes(struct msg *m, void *p, size_t n);
/* A bin of any size up to max: a pointer into the message, valid as long as it; NULL when bad. */
const void *get_blob(struct msg *m, size_t *n, size_t max);
/* A str of at most cap - 1 bytes without NULs, terminated in out. Returns its length. */
size_t get_text(struct msg *m, char *out, size_t cap);
size_t get_array(struct msg *m, size_t max);
size_t get_map(struct msg *m, size_t max);
void get_skip(struct msg *m);       /* one value of any kind, nested up to LIMIT_DEPTH */
/* True when all was consumed and nothing was bad. */
bool get_end(const struct msg *m);
