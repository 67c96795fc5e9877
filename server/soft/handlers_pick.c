/* SPDX-License-Identifier: Apache-2.0 */
/* Which build of the vector handlers runs, and finding a handler by its name.
 *
 * Thread rule: any thread; the choice is made once. */
#include "server/soft/handlers.h"
#include "server/soft/decode.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define W_u8 4
#define W_s8 4
#define W_u16 4
#define W_s16 4
#define W_u32 4
#define W_s32 4
#define W_u64 8
#define W_s64 8
#define W_f16 4
#define W_bf16 4
#define W_f32 4
#define W_n32 4
#define W_f64 8
#define W_p 4

static const struct {
	const char *name;
	uint8_t width[4];
} table[H_COUNT] = {
	[H_NONE] = {"", {0}},
#define U1(n, D, A, ...) [H_##n] = {#n, {W_##D, W_##A}},
#define B2(n, D, A, B, ...) [H_##n] = {#n, {W_##D, W_##A, W_##B}},
#define T3(n, D, A, B, C, ...) [H_##n] = {#n, {W_##D, W_##A, W_##B, W_##C}},
#define RAW(n) [H_##n] = {#n, {0}},
#include "server/soft/handlers.inc"
};

enum { BUCKETS = 4096 };
static uint16_t bucket[BUCKETS], chain[H_COUNT];
static const struct handler_pair *picked;
static const char *picked_name;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static unsigned hash(const char *s)
{
	uint32_t h = 2166136261u;
	while (*s)
		h = (h ^ (unsigned char)*s++) * 16777619u;
	return (h ^ h >> 15) % BUCKETS;
}

static void start(void)
{
	for (unsigned h = H_COUNT; --h > H_NONE;) {
		unsigned b = hash(table[h].name);
		chain[h] = bucket[b];
		bucket[b] = (uint16_t)h;
	}
	const char *want = secure_getenv("SCUDA_SOFT_SIMD");
	bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
		      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
	bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
	if (avx512 && (!want || !strcmp(want, "avx512"))) {
		picked = handlers_avx512;
		picked_name = "avx512";
	} else if (avx2 && (!want || strcmp(want, "sse2"))) {
		picked = handlers_avx2;
		picked_name = "avx2";
	} else {
		picked = handlers_sse2;
		picked_name = "sse2";
	}
}

const struct handler_pair *handlers_pick(void)
{
	pthread_once(&once, start);
	return picked;
}

const char *handlers_name(void)
{
	pthread_once(&once, start);
	return picked_name;
}

enum handler_id handlers_find(const char *name)
{
	pthread_once(&once, start);
	for (unsigned h = bucket[hash(name)]; h; h = chain[h])
		if (!strcmp(table[h].name, name))
			return h;
	return H_NONE;
}

unsigned handler_width(enum handler_id h, unsigned operand)
{
	return table[h].width[operand] ? table[h].width[operand] : 4;
}
