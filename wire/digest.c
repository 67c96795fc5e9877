/* SPDX-License-Identifier: Apache-2.0 */
/* BLAKE2bp (RFC 7693's compression function in a tree of four leaves and a root). The four leaves take
 * blocks of 128 bytes in turn; a vector holds the same word of all four. The last block of each leaf, whose
 * length may differ, and the root go through the scalar function.
 *
 * Thread rule: none, no state. Little-endian hosts only, like the frames. */
#include "wire/digest.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define BLOCK 128u
#define LANES 4u
#define ROUNDS 12

typedef uint64_t lanes __attribute__((vector_size(8 * LANES)));

static const uint64_t iv[8] = {0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b,
	0xa54ff53a5f1d36f1, 0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};
static const uint8_t sigma[10][16] = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
	{14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
	{11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
	{7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
	{9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
	{2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
	{12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
	{13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
	{6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
	{10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};

/* One text for a word and for a vector of words. The rounds are unrolled, so that what a round takes of the
 * message is known when it is compiled. */
#define TURN(x, n) ((x) >> (n) | (x) << (64 - (n)))
#define MIX(v, a, b, c, d, x, y) \
	do { \
		v[a] += v[b] + (x); \
		v[d] = TURN(v[d] ^ v[a], 32); \
		v[c] += v[d]; \
		v[b] = TURN(v[b] ^ v[c], 24); \
		v[a] += v[b] + (y); \
		v[d] = TURN(v[d] ^ v[a], 16); \
		v[c] += v[d]; \
		v[b] = TURN(v[b] ^ v[c], 63); \
	} while (0)
#define ROUND(v, m, s) \
	do { \
		MIX(v, 0, 4, 8, 12, m[s[0]], m[s[1]]); \
		MIX(v, 1, 5, 9, 13, m[s[2]], m[s[3]]); \
		MIX(v, 2, 6, 10, 14, m[s[4]], m[s[5]]); \
		MIX(v, 3, 7, 11, 15, m[s[6]], m[s[7]]); \
		MIX(v, 0, 5, 10, 15, m[s[8]], m[s[9]]); \
		MIX(v, 1, 6, 11, 12, m[s[10]], m[s[11]]); \
		MIX(v, 2, 7, 8, 13, m[s[12]], m[s[13]]); \
		MIX(v, 3, 4, 9, 14, m[s[14]], m[s[15]]); \
	} while (0)

/* A block of one node, `count` bytes of its input taken with it. */
static void block(uint64_t h[8], const uint8_t *p, uint64_t count, bool last, bool last_node)
{
	uint64_t v[16], m[16];

	memcpy(m, p, BLOCK);
	memcpy(v, h, 64);
	memcpy(v + 8, iv, 64);
	v[12] ^= count;
	if (last)
		v[14] = ~v[14];
	if (last && last_node)
		v[15] = ~v[15];
	for (int r = 0; r < ROUNDS; r++)
		ROUND(v, m, sigma[r % 10]);
	for (int i = 0; i < 8; i++)
		h[i] ^= v[i] ^ v[i + 8];
}

/* Without such a unit: one lane after the other. */
static void stripes_plain(lanes h[8], const uint8_t *p, size_t n)
{
	for (unsigned l = 0; l < LANES; l++) {
		uint64_t one[8];

		for (int i = 0; i < 8; i++)
			one[i] = h[i][l];
		for (size_t k = 0; k < n; k++)
			block(one, p + (k * LANES + l) * BLOCK, (k + 1) * BLOCK, false, false);
		for (int i = 0; i < 8; i++)
			h[i][l] = one[i];
	}
}

#ifdef __x86_64__
/* Four words of each lane, as four vectors of one word each. */
static inline __attribute__((always_inline)) void turn(lanes m[LANES], const uint8_t *p)
{
	lanes r[LANES], a, b, c, d;

	for (unsigned l = 0; l < LANES; l++)
		memcpy(&r[l], p + l * BLOCK, sizeof r[l]);
	a = __builtin_shuffle(r[0], r[1], (lanes){0, 4, 2, 6});
	b = __builtin_shuffle(r[0], r[1], (lanes){1, 5, 3, 7});
	c = __builtin_shuffle(r[2], r[3], (lanes){0, 4, 2, 6});
	d = __builtin_shuffle(r[2], r[3], (lanes){1, 5, 3, 7});
	m[0] = __builtin_shuffle(a, c, (lanes){0, 1, 4, 5});
	m[1] = __builtin_shuffle(b, d, (lanes){0, 1, 4, 5});
	m[2] = __builtin_shuffle(a, c, (lanes){2, 3, 6, 7});
	m[3] = __builtin_shuffle(b, d, (lanes){2, 3, 6, 7});
}

/* n blocks of all lanes. */
static inline __attribute__((always_inline)) void stripes(lanes h[8], const uint8_t *p, size_t n)
{
	for (size_t k = 0; k < n; k++, p += LANES * BLOCK) {
		lanes v[16], m[16];
		uint64_t count = (k + 1) * BLOCK;

		for (unsigned i = 0; i < 16; i += LANES)
			turn(m + i, p + 8 * i);
		for (int i = 0; i < 8; i++) {
			v[i] = h[i];
			v[i + 8] = (lanes){iv[i], iv[i], iv[i], iv[i]};
		}
		v[12] ^= (lanes){count, count, count, count};
#pragma GCC unroll 12
		for (int r = 0; r < ROUNDS; r++)
			ROUND(v, m, sigma[r % 10]);
		for (int i = 0; i < 8; i++)
			h[i] ^= v[i] ^ v[i + 8];
	}
}

__attribute__((target("avx2"))) static void stripes_avx2(lanes h[8], const uint8_t *p, size_t n)
{
	stripes(h, p, n);
}
__attribute__((target("avx512f,avx512vl"))) static void stripes_avx512(lanes h[8], const uint8_t *p, size_t n)
{
	stripes(h, p, n);
}
#endif

static void stripes_best(lanes h[8], const uint8_t *p, size_t n)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx512vl")) {
		stripes_avx512(h, p, n);
		return;
	}
	if (__builtin_cpu_supports("avx2")) {
		stripes_avx2(h, p, n);
		return;
	}
#endif
	stripes_plain(h, p, n);
}

/* A node before its first block: 64 bytes of digest, no key, a tree of four leaves and two levels. */
static void start(uint64_t h[8], uint64_t offset, unsigned level)
{
	memcpy(h, iv, 64);
	h[0] ^= 64u | LANES << 16 | 2u << 24;
	h[1] ^= offset;
	h[2] ^= level | 64u << 8;
}

/* What is left of a leaf's input behind `done` bytes of it: `p` is its next block, the following ones lie
 * LANES blocks further each, the input ends at `end`. */
static void finish_leaf(uint64_t h[8], const uint8_t *p, const uint8_t *end, uint64_t done, bool last_node)
{
	for (;;) {
		size_t n = p >= end ? 0 : (size_t)(end - p) < BLOCK ? (size_t)(end - p) : BLOCK;
		bool last = !n || (size_t)(end - p) <= LANES * BLOCK;
		uint8_t padded[BLOCK] = {0};

		if (n)
			memcpy(padded, p, n);
		done += n;
		block(h, padded, done, last, last_node);
		if (last)
			return;
		p += LANES * BLOCK;
	}
}

void digest(const void *bytes, size_t n, uint8_t out[DIGEST])
{
	const size_t stripe = LANES * BLOCK;
	/* The last block of every leaf is left: it is hashed otherwise. */
	size_t whole = n > 2 * stripe ? (n - stripe) / stripe - 1 : 0;
	uint64_t leaf[LANES][8], root[8];
	const uint8_t *p = bytes;
	uint8_t sums[LANES * 64];
	lanes h[8];

	for (unsigned l = 0; l < LANES; l++) {
		start(leaf[l], l, 0);
		for (int i = 0; i < 8; i++)
			h[i][l] = leaf[l][i];
	}
	stripes_best(h, p, whole);
	for (unsigned l = 0; l < LANES; l++) {
		size_t at = whole * stripe + l * BLOCK;

		for (int i = 0; i < 8; i++)
			leaf[l][i] = h[i][l];
		finish_leaf(leaf[l], p + (at < n ? at : n), p + n, whole * BLOCK, l == LANES - 1);
		memcpy(sums + l * 64, leaf[l], 64);
	}
	start(root, 0, 1);
	block(root, sums, BLOCK, false, true);
	block(root, sums + BLOCK, 2 * BLOCK, true, true);
	memcpy(out, root, DIGEST);
}

void digest_text(const uint8_t d[DIGEST], char out[2 * DIGEST + 1])
{
	for (unsigned i = 0; i < DIGEST; i++)
		sprintf(out + 2 * i, "%02x", d[i]);
}
