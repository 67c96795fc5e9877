/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and stores that use one address register again and again, with everything between them that changes
 * the register, the lanes that are there, or the width: the engine finds out the shape of the addresses once
 * and has to notice. Each kernel's result is a sum per lane that a few lines of C give, too.
 *
 * Thread rule: one thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/soft/engine/device.h"

enum { LANES = 32, WORDS = 256, SALT = 7 };

#define W(k) ((uint32_t)(k)*SALT)
static uint32_t s_twice(uint32_t l)
{
	return W(l) + W(l + 1) + W(l + 9);
}
static uint32_t s_moved(uint32_t l)
{
	return W(0) + W(2 * l) + W(2 * l + 1);
}
static uint32_t s_some(uint32_t l)
{
	return W(l) + (l & 1 ? W(l + 40) : W(l));
}
static uint32_t s_chase(uint32_t l)
{
	return W(W(l % 4) / 4 % WORDS) + W(W(W(l % 4) / 4 % WORDS) / 4 % WORDS);
}
static uint32_t s_loop(uint32_t l)
{
	uint32_t sum = 0;
	for (uint32_t k = 0; k < 4; k++)
		sum += W(l * k) + W(l * k + 3);
	return sum;
}
static uint32_t s_meet(uint32_t l)
{
	uint32_t first = 2 * W(l), at = l < 16 ? 2 * l : 90 - l;
	return first + W(at) + W(at) + (l ^ 1);
}
static uint32_t s_width(uint32_t l)
{
	return W(2 * l) + W(2 * l) + W(2 * l + 1);
}
static uint32_t s_store(uint32_t l)
{
	return W(l + 1) + (l + 1) + (LANES - l) * 3;
}
static uint32_t s_barrier(uint32_t l)
{
	return W(l) + W(l) + W(64 - l);
}

#define LOAD(at) "ld.shared.u32 %r10,[" at "]; add.u32 %r9,%r9,%r10; "
#define GLOBAL(at) "ld.global.u32 %r10,[" at "]; add.u32 %r9,%r9,%r10; "
#define LANE_S "shl.b32 %r2,%r1,2; add.u32 %r8,%r8,%r2; "
#define LANE_G "mul.wide.u32 %d2,%r1,4; add.u64 %d8,%d8,%d2; "
/* Word k of both memories is k * SALT. %r1 lane; %r8 an address in shared memory, %d8 one in global memory;
 * %r9 the sum. */
#define PAIR "ld.shared.v2.u32 {%r10,%r11},[%r8]; add.u32 %r9,%r9,%r10; add.u32 %r9,%r9,%r11; "
static const struct {
	const char *name, *text;
	uint32_t (*sum)(uint32_t l);
} tests[] = {
	{"again, shared", LANE_S LOAD("%r8") LOAD("%r8+4") LOAD("%r8+36"), s_twice},
	{"again, global", LANE_G GLOBAL("%d8") GLOBAL("%d8+4") GLOBAL("%d8+36"), s_twice},
	{"moved, shared", LOAD("%r8") LANE_S "add.u32 %r8,%r8,%r2; " LOAD("%r8") LOAD("%r8+4"), s_moved},
	{"moved, global", GLOBAL("%d8") LANE_G "add.u64 %d8,%d8,%d2; " GLOBAL("%d8") GLOBAL("%d8+4"),
		s_moved},
	{"some moved, shared", LANE_S LOAD("%r8") "@%p1 add.u32 %r8,%r8,160; " LOAD("%r8"), s_some},
	{"some moved, global", LANE_G GLOBAL("%d8") "@%p1 add.u64 %d8,%d8,160; " GLOBAL("%d8"), s_some},
	{"onto itself",
		"and.b32 %r2,%r1,3; shl.b32 %r2,%r2,2; add.u32 %r8,%r8,%r2; mov.u32 %r3,%r7; "
		"ld.shared.u32 %r8,[%r8]; and.b32 %r8,%r8,1020; add.u32 %r8,%r8,%r3; "
		"ld.shared.u32 %r8,[%r8]; add.u32 %r9,%r9,%r8; and.b32 %r8,%r8,1020; add.u32 %r8,%r8,%r3; "
		"ld.shared.u32 %r8,[%r8]; add.u32 %r9,%r9,%r8; ",
		s_chase},
	{"in a loop",
		"shl.b32 %r2,%r1,2; mov.u32 %r4,0;\nAGAIN: " LOAD("%r8") "add.u32 %r4,%r4,1; " LOAD(
			"%r8+12") "add.u32 %r8,%r8,%r2; setp.lt.u32 %p2,%r4,4; @%p2 bra AGAIN; ",
		s_loop},
	{"apart, and together at a shuffle",
		LANE_S
		"mov.u32 %r4,0; mov.u32 %r11,0;\n"
		"AGAIN: " LOAD("%r8") "shfl.sync.bfly.b32 %r11,%r1,1,31,-1; " LOAD(
			"%r8") "setp.eq.u32 %p2,%r4,1; @%p2 bra OUT; mov.u32 %r4,1; setp.lt.u32 %p3,%r1,16; "
			       "@%p3 bra LOW;\n"
			       " sub.u32 %r5,90,%r1; shl.b32 %r5,%r5,2; add.u32 %r8,%r7,%r5; bra AGAIN;\n"
			       "LOW: shl.b32 %r5,%r1,3; add.u32 %r8,%r7,%r5; bra AGAIN;\n"
			       "OUT: add.u32 %r9,%r9,%r11; ",
		s_meet},
	{"another width", "shl.b32 %r2,%r1,3; add.u32 %r8,%r8,%r2; " LOAD("%r8") PAIR, s_width},
	{"a narrower width", "shl.b32 %r2,%r1,3; add.u32 %r8,%r8,%r2; " PAIR LOAD("%r8"), s_width},
	{"stores between",
		LANE_S LOAD("%r8+4") "bar.warp.sync -1; add.u32 %r5,%r1,1; st.shared.u32 [%r8],%r5; "
				     "st.shared.u32 [%r8+512],%r5; bar.warp.sync -1; " LOAD(
					     "%r8") "sub.u32 %r8,%r7,%r2; add.u32 %r8,%r8,124; ld.shared.u32 "
						    "%r10,[%r8]; mul.lo.u32 %r10,%r10,3; "
						    "add.u32 %r9,%r9,%r10; ",
		s_store},
	{"behind a barrier",
		LANE_S LOAD("%r8") "bar.sync 0; " LOAD(
			"%r8") "sub.u32 %r8,%r7,%r2; add.u32 %r8,%r8,256; " LOAD("%r8"),
		s_barrier},
};
enum { NTESTS = sizeof tests / sizeof *tests, TEXT = 1 << 16 };

int main(int argc, char **argv)
{
	static char text[TEXT];
	static size_t start[NTESTS + 1];
	size_t used = 0;
	if (!device_open(argc > 1 ? argv[1] : NULL))
		return 1;
	for (unsigned k = 0; k < NTESTS; k++) {
		used += (size_t)snprintf(text + used, TEXT - used,
			".visible .entry k%u(.param .u64 in, .param .u64 out) {\n .reg .pred %%p<4>; .reg "
			".b32 %%r<12>; .reg .b64 "
			"%%d<10>; .shared .align 16 .b8 room[1024];\n ld.param.u64 %%d8,[in]; ld.param.u64 "
			"%%d1,[out]; mov.u32 "
			"%%r1,%%tid.x; mov.u32 %%r7,room; mov.u32 %%r9,0; and.b32 %%r3,%%r1,1; setp.eq.u32 "
			"%%p1,%%r3,1;\n"
			" mov.u32 %%r4,%%r1;\nFILL: mul.lo.u32 %%r5,%%r4,%u; shl.b32 %%r6,%%r4,2; add.u32 "
			"%%r6,%%r6,%%r7; "
			"st.shared.u32 [%%r6],%%r5; add.u32 %%r4,%%r4,%u; setp.lt.u32 %%p2,%%r4,%u; @%%p2 "
			"bra FILL;\n"
			" bar.sync 0; mov.u32 %%r8,%%r7;\n %s\n mul.wide.u32 %%d3,%%r1,4; add.u64 "
			"%%d1,%%d1,%%d3; "
			"st.global.u32 [%%d1],%%r9; ret; }\n",
			k, SALT, LANES, WORDS, tests[k].text);
		start[k + 1] = used;
	}
	uint32_t *in = device_alloc(WORDS * 4), *out = device_alloc(LANES * 4);
	if (used >= TEXT || !in || !out ||
		device_load(".version 8.0\n.target sm_75\n.address_size 64\n", text, start, NTESTS) != NTESTS)
		return 1;
	for (uint32_t k = 0; k < WORDS; k++)
		in[k] = W(k);
	unsigned good = 0;
	for (unsigned k = 0; k < NTESTS; k++) {
		const char *why = "";
		memset(out, 0, LANES * 4);
		if (!device_launch(k, 1, LANES, (void *[]){in, out}, 2 * sizeof(void *), &why)) {
			printf("FAILED %s: %s\n", tests[k].name, why);
			continue;
		}
		uint32_t l = 0;
		while (l < LANES && out[l] == tests[k].sum(l))
			l++;
		if (l < LANES)
			printf("FAILED %s: lane %u: %u, want %u\n", tests[k].name, l, out[l],
				tests[k].sum(l));
		good += l == LANES;
	}
	printf("%s: shapes: %u of %u kernels\n", argc > 1 ? argv[1] : "default", good, (unsigned)NTESTS);
	device_close();
	return good != NTESTS;
}
