// SPDX-License-Identifier: Apache-2.0
/* Heads as msgpack: msgpack-c's packer writes, a bounded cursor of our own reads (msgpack-c's unpacker
 * allocates a tree, which neither a launch nor a hostile peer should make us do). Format:
 * https://github.com/msgpack/msgpack/blob/master/spec.md */
#include "wire/msg.h"
#include <msgpack/pack.h>
#include "wire/limits.h"

static int append(void *data, const char *p, size_t n)
{
	struct msg *m = data;
	if (m->bad || n > m->cap - m->len) {
		m->bad = true;
		return -1;
	}
	memcpy(m->buf + m->len, p, n);
	m->len += n;
	return 0;
}

static inline msgpack_packer packer(struct msg *m)
{
	return (msgpack_packer){.data = m, .callback = append};
}

void put_u64(struct msg *m, uint64_t v)
{
	msgpack_packer p = packer(m);
	msgpack_pack_uint64(&p, v);
}

void put_i64(struct msg *m, int64_t v)
{
	msgpack_packer p = packer(m);
	msgpack_pack_int64(&p, v);
}

void put_f64(struct msg *m, double v)
{
	msgpack_packer p = packer(m);
	msgpack_pack_double(&p, v);
}

void put_nil(struct msg *m)
{
	msgpack_packer p = packer(m);
	msgpack_pack_nil(&p);
}

void put_bool(struct msg *m, bool v)
{
	msgpack_packer p = packer(m);
	v ? msgpack_pack_true(&p) : msgpack_pack_false(&p);
}

void put_bytes(struct msg *m, const void *b, size_t n)
{
	msgpack_packer p = packer(m);
	if (n > m->cap) {
		m->bad = true;
		return;
	}
	msgpack_pack_bin(&p, n);
	msgpack_pack_bin_body(&p, b, n);
}

void put_text(struct msg *m, const char *s)
{
	msgpack_packer p = packer(m);
	if (!s) {
		msgpack_pack_nil(&p);
		return;
	}
	size_t n = strlen(s);
	if (n > LIMIT_STRING) {
		m->bad = true;
		return;
	}
	msgpack_pack_str(&p, n);
	msgpack_pack_str_body(&p, s, n);
}

void put_array(struct msg *m, size_t n)
{
	msgpack_packer p = packer(m);
	msgpack_pack_array(&p, n);
}

void put_map(struct msg *m, size_t n)
{
	msgpack_packer p = packer(m);
	msgpack_pack_map(&p, n);
}

void put_encoded(struct msg *m, const void *p, size_t n)
{
	if (m->bad || n > m->cap - m->len) {
		m->bad = true;
		return;
	}
	memcpy(m->buf + m->len, p, n);
	m->len += n;
}

/* ---- reading ---- */

/* The next n bytes, or NULL and bad. */
static const uint8_t *take(struct msg *m, size_t n)
{
	if (m->bad || n > m->cap - m->len) {
		m->bad = true;
		return NULL;
	}
	const uint8_t *p = m->buf + m->len;
	m->len += n;
	return p;
}

static uint64_t big_endian(struct msg *m, unsigned n)
{
	const uint8_t *p = take(m, n);
	uint64_t v = 0;
	for (unsigned i = 0; p && i < n; i++)
		v = v << 8 | p[i];
	return v;
}

enum type { T_UINT, T_INT, T_FLOAT, T_NIL, T_BOOL, T_BIN, T_STR, T_ARRAY, T_MAP, T_EXT, T_BAD };
struct value { enum type type; uint64_t v; };   /* number, or length of what follows */

/* Reads a value's first bytes: the number itself, or the length of its body. */
static struct value head(struct msg *m)
{
	const uint8_t *p = take(m, 1);
	if (!p)
		return (struct value){T_BAD, 0};
	uint8_t b = *p;
	if (b < 0x80)
		return (struct value){T_UINT, b};
	if (b < 0x90)
		return (struct value){T_MAP, b & 15};
	if (b < 0xa0)
		return (struct value){T_ARRAY, b & 15};
	if (b < 0xc0)
		return (struct value){T_STR, b & 31};
	if (b >= 0xe0)
		return (struct value){T_INT, (uint64_t)(int64_t)(int8_t)b};
	switch (b) {
	case 0xc0: return (struct value){T_NIL, 0};
	case 0xc2: return (struct value){T_BOOL, 0};
	case 0xc3: return (struct value){T_BOOL, 1};
	case 0xc4: return (struct value){T_BIN, big_endian(m, 1)};
	case 0xc5: return (struct value){T_BIN, big_endian(m, 2)};
	case 0xc6: return (struct value){T_BIN, big_endian(m, 4)};
	case 0xca: {
		uint32_t u = big_endian(m, 4);
		float f;
		memcpy(&f, &u, 4);
		double d = f;
		uint64_t v;
		memcpy(&v, &d, 8);
		return (struct value){T_FLOAT, v};
	}
	case 0xcb: return (struct value){T_FLOAT, big_endian(m, 8)};
	case 0xcc: return (struct value){T_UINT, big_endian(m, 1)};
	case 0xcd: return (struct value){T_UINT, big_endian(m, 2)};
	case 0xce: return (struct value){T_UINT, big_endian(m, 4)};
	case 0xcf: return (struct value){T_UINT, big_endian(m, 8)};
	case 0xd0: return (struct value){T_INT, (uint64_t)(int64_t)(int8_t)big_endian(m, 1)};
	case 0xd1: return (struct value){T_INT, (uint64_t)(int64_t)(int16_t)big_endian(m, 2)};
	case 0xd2: return (struct value){T_INT, (uint64_t)(int64_t)(int32_t)big_endian(m, 4)};
	case 0xd3: return (struct value){T_INT, big_endian(m, 8)};
	case 0xd9: return (struct value){T_STR, big_endian(m, 1)};
	case 0xda: return (struct value){T_STR, big_endian(m, 2)};
	case 0xdb: return (struct value){T_STR, big_endian(m, 4)};
	case 0xdc: return (struct value){T_ARRAY, big_endian(m, 2)};
	case 0xdd: return (struct value){T_ARRAY, big_endian(m, 4)};
	case 0xde: return (struct value){T_MAP, big_endian(m, 2)};
	case 0xdf: return (struct value){T_MAP, big_endian(m, 4)};
	}
	m->bad = true;      /* extensions and the unused byte are never sent */
	return (struct value){T_BAD, 0};
}

/* A value of the wanted type, else bad and 0. */
static uint64_t want(struct msg *m, enum type type)
{
	struct value v = head(m);
	if (m->bad || v.type != type) {
		m->bad = true;
		return 0;
	}
	return v.v;
}

uint64_t get_u64(struct msg *m)
{
	struct value v = head(m);
	if (v.type == T_UINT || (v.type == T_INT && (int64_t)v.v >= 0))
		return m->bad ? 0 : v.v;
	m->bad = true;
	return 0;
}

int64_t get_i64(struct msg *m)
{
	struct value v = head(m);
	if (v.type == T_INT || (v.type == T_UINT && v.v <= INT64_MAX))
		return m->bad ? 0 : (int64_t)v.v;
	m->bad = true;
	return 0;
}

double get_f64(struct msg *m)
{
	uint64_t v = want(m, T_FLOAT);
	double d;
	memcpy(&d, &v, 8);
	return d;
}

bool get_bool(struct msg *m)
{
	return want(m, T_BOOL);
}

bool get_nil(struct msg *m)
{
	if (m->bad || m->len >= m->cap || m->buf[m->len] != 0xc0)
		return false;
	m->len++;
	return true;
}

void get_bytes(struct msg *m, void *p, size_t n)
{
	uint64_t have = want(m, T_BIN);
	if (have != n)
		m->bad = true;
	const uint8_t *b = m->bad ? NULL : take(m, n);
	if (b)
		memcpy(p, b, n);
	else
		memset(p, 0, n);
}

const void *get_blob(struct msg *m, size_t *n, size_t max)
{
	*n = want(m, T_BIN);
	if (*n > max)
		m->bad = true;
	const void *p = take(m, *n);
	if (!p)
		*n = 0;
	return p;
}

size_t get_text(struct msg *m, char *out, size_t cap)
{
	size_t n = want(m, T_STR);
	if (n >= cap)
		m->bad = true;
	const uint8_t *b = take(m, n);
	if (b && memchr(b, 0, n))
		m->bad = true;
	if (m->bad)
		n = 0;
	if (n)
		memcpy(out, b, n);
	if (cap)
		out[n] = 0;
	return n;
}

/* Every element needs at least `least` bytes: a count that cannot be there is refused before anyone allocates
 * for it. */
static size_t count(struct msg *m, enum type type, size_t max, size_t least)
{
	uint64_t n = want(m, type);
	if (n > max || n * least > m->cap - m->len)
		m->bad = true;
	return m->bad ? 0 : n;
}

size_t get_array(struct msg *m, size_t max)
{
	return count(m, T_ARRAY, max, 1);
}

size_t get_map(struct msg *m, size_t max)
{
	return count(m, T_MAP, max, 2);
}

static void skip(struct msg *m, unsigned depth)
{
	struct value v = head(m);
	switch (v.type) {
	case T_BIN: case T_STR:
		take(m, v.v);
		break;
	case T_ARRAY: case T_MAP:
		if (depth >= LIMIT_DEPTH || v.v > m->cap - m->len)
			m->bad = true;
		for (uint64_t i = 0, n = v.type == T_MAP ? 2 * v.v : v.v; i < n && !m->bad; i++)
			skip(m, depth + 1);
		break;
	default:
		break;
	}
}

void get_skip(struct msg *m)
{
	skip(m, 0);
}

bool get_end(const struct msg *m)
{
	return !m->bad && m->len == m->cap;
}
