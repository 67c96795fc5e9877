/* SPDX-License-Identifier: Apache-2.0 */
/* mma in every shape and type: the registers of a warp are filled from matrices by the layouts that the PTX
 * manual gives, and the product of the matrices is compared with what is in the registers behind the
 * instruction. `check_matrix text` prints the kernels.
 *
 * Thread rule: one thread. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "server/soft/engine.h"
#include "server/soft/memory.h"
#include "tests/soft/engine/matrix_values.h"
#include "tests/soft/engine/text.h"

enum { LANES = 32, MAX_CASES = 256, REGS = 16, SIDE = 256 };

struct test {
	char name[96];
	unsigned m, n, k;
	char a, b, c; /* c: of the sum and of what it is added to */
	bool a_column, b_row, saturate;
	char op; /* 'x' xor, '&' and, 0: multiplication */
};
static struct test tests[MAX_CASES];
static unsigned ntests;

static bool quads(const struct test *t)
{
	return t->k == 4 && t->a == 'h';
}

static unsigned registers(const struct test *t, char which)
{
	unsigned rows = which == 'b' ? t->k : t->m, cols = which == 'a' ? t->k : t->n;
	unsigned bits = kind(which == 'a' ? t->a : which == 'b' ? t->b : t->c)->bits;
	return rows * cols * (quads(t) ? 4 : 1) / LANES * bits / (bits == 64 ? 64 : 32);
}

static void list(char prefix, unsigned first, unsigned n)
{
	add("{");
	for (unsigned i = 0; i < n; i++)
		add("%s%%%c%u", i ? "," : "", prefix, first + i);
	add("}");
}

static void define(unsigned m, unsigned n, unsigned k, const char *types, const char *layout,
		const char *more, char op)
{
	struct test *t = &tests[ntests++];
	*t = (struct test){.m = m, .n = n, .k = k, .a = types[1], .b = types[2], .c = types[0], .op = op};
	t->a_column = !strncmp(layout, "col", 3);
	t->b_row = strlen(layout) > 4 && !strcmp(layout + 4, "row");
	t->saturate = strstr(more, "satfinite");
	snprintf(t->name, sizeof t->name, "mma.sync.aligned.m%un%uk%u.%s%s.%s.%s.%s.%s%s", m, n, k, layout,
			more,
		kind(t->c)->name, kind(t->a)->name, kind(t->b)->name, kind(t->c)->name,
		op == 'x' ? ".xor.popc" : op == '&' ? ".and.popc" : "");
	char pa = t->a == 'd' ? 'd' : 'r', pc = t->c == 'd' ? 'd' : t->c == 'f' ? 'f' : 'r';
	unsigned na = registers(t, 'a'), nb = registers(t, 'b'), nc = registers(t, 'c'),
			w = pa == 'd' ? 8 : 4;
	add(".visible .entry k%u(.param .u64 p)\n{\n .reg .b32 %%r<64>; .reg .f32 %%f<64>; "
			".reg .f64 %%d<64>; .reg .b64 "
	    "%%q<4>;\n ld.param.u64 %%q0,[p]; mov.u32 %%r63,%%tid.x; mul.wide.u32 %%q1,%%r63,%u; "
	    "add.u64 %%q0,%%q0,%%q1;\n",
		ntests - 1, 4 * REGS * 8);
	const char *ta = pa == 'd' ? "f64" : "b32", *tc = pc == 'd' ? "f64" : pc == 'f' ? "f32" : "b32";
	for (unsigned i = 0; i < na; i++)
		add(" ld.global.%s %%%c%u,[%%q0+%u];\n", ta, pa, i, i * 8);
	for (unsigned i = 0; i < nb; i++)
		add(" ld.global.%s %%%c%u,[%%q0+%u];\n", ta, pa, 16 + i, REGS * 8 + i * 8);
	for (unsigned i = 0; i < nc; i++)
		add(" ld.global.%s %%%c%u,[%%q0+%u];\n", tc, pc, 32 + i, 2 * REGS * 8 + i * 8);
	add(" %s ", t->name);
	list(pc, 48, nc);
	add(",");
	list(pa, 0, na);
	add(",");
	list(pa, 16, nb);
	add(",");
	list(pc, 32, nc);
	add(";\n");
	for (unsigned i = 0; i < nc; i++)
		add(" st.global.%s [%%q0+%u],%%%c%u;\n", tc, 3 * REGS * 8 + i * 8, pc, 48 + i);
	add(" ret;\n}\n");
	(void)w;
}

/* Of element i of a lane; *part: which of the four products of m8n8k4. */
static void place(const struct test *t, char which, unsigned i, unsigned lane, unsigned *row, unsigned *col,
		unsigned *part)
{
	unsigned group = lane / 4, in = lane % 4;
	*part = 0;
	if (quads(t)) {
		unsigned up = lane < 16 ? 0 : 4;
		*part = lane % 16 / 4;
		if (which == 'a') {
			*row = t->a_column ? i % 4 + up : in + up;
			*col = t->a_column ? in : i;
		} else if (which == 'b') {
			*row = t->b_row ? in : i;
			*col = t->b_row ? i + up : in + up;
		} else if (t->c == 'h') {
			*row = in + up;
			*col = i;
		} else {
			*row = (lane & 1) + (i & 2) + up;
			*col = (i & 4) + (lane & 2) + (i & 1);
		}
		return;
	}
	unsigned bits = kind(which == 'a' ? t->a : t->b)->bits, e = bits >= 32 ? 1 : 32 / bits, step = 4 * e;
	if (which == 'a') {
		bool lower = t->m == 16 && i / e % 2 == 1;
		*row = group + (lower ? 8 : 0);
		*col = in * e + i % e + i / e / (t->m == 16 ? 2 : 1) * step;
	} else if (which == 'b') {
		*row = in * e + i % e + i / e * step;
		*col = group;
	} else {
		*row = i < 2 ? group : group + 8;
		*col = in * 2 + i % 2;
	}
}

static double a[4][16][SIDE], b[4][SIDE][32], c[4][16][32];

static void put(uint64_t *regs, unsigned bits, unsigned i, uint64_t v)
{
	if (bits == 64)
		regs[i] = v;
	else
		regs[i * bits / 32] |= (v & (bits == 32 ? ~0u : (1u << bits) - 1)) << i * bits % 32;
}

static bool run(struct engine_module *module, unsigned k, uint64_t *memory, bool large)
{
	const struct test *t = &tests[k];
	memset(memory, 0, LANES * 4 * REGS * 8);
	for (unsigned p = 0; p < 4; p++) {
		for (unsigned i = 0; i < t->m; i++)
			for (unsigned j = 0; j < t->k; j++)
				a[p][i][j] = value(t->a);
		for (unsigned i = 0; i < t->k; i++)
			for (unsigned j = 0; j < t->n; j++)
				b[p][i][j] = value(t->b);
		for (unsigned i = 0; i < t->m; i++)
			for (unsigned j = 0; j < t->n; j++)
				c[p][i][j] = large ? (noise() & 1 ? 2147480000.0 : -2147480000.0) :
						value(t->c);
	}
	unsigned row, col, part, count[3] = {registers(t, 'a'), registers(t, 'b'), registers(t, 'c')};
	for (unsigned l = 0; l < LANES; l++)
		for (unsigned w = 0; w < 3; w++) {
			char type = w == 0 ? t->a : w == 1 ? t->b : t->c;
			unsigned bits = kind(type)->bits, n = count[w] * (bits == 64 ? 1 : 32 / bits);
			for (unsigned i = 0; i < n; i++) {
				place(t, "abc"[w], i, l, &row, &col, &part);
				double v = w == 0 ? a[part][row][col] : w == 1 ? b[part][row][col] :
						c[part][row][col];
				put(memory + l * 4 * REGS + w * REGS, bits, i, encode(type, v));
			}
		}
	char name[16];
	uint64_t params = (uint64_t)memory;
	snprintf(name, sizeof name, "k%u", k);
	struct engine_launch launch = {.function = engine_function_find(module, name),
		.grid = {1, 1, 1},
		.block = {LANES, 1, 1},
		.cluster = {1, 1, 1},
		.params = &params,
		.time_limit_s = 10};
	struct engine_error error;
	int r = engine_launch(&launch, &error);
	if (r) {
		printf("FAILED %s: %d %s\n", t->name, r, error.text);
		return false;
	}
	unsigned bits = kind(t->c)->bits;
	for (unsigned l = 0; l < LANES; l++) {
		uint64_t want[REGS] = {0}, *got = memory + l * 4 * REGS + 3 * REGS;
		for (unsigned i = 0; i < count[2] * (bits == 64 ? 1 : 32 / bits); i++) {
			place(t, 'c', i, l, &row, &col, &part);
			double s = c[part][row][col];
			for (unsigned j = 0; j < t->k; j++) {
				double x = a[part][row][j], y = b[part][j][col];
				s += t->op == 'x' ? (double)(x != y) : x * y;
			}
			if (t->c == 'i' && t->saturate)
				s = s > 2147483647.0 ? 2147483647.0 : s < -2147483648.0 ? -2147483648.0 : s;
			put(want, bits, i, encode(t->c, s));
		}
		for (unsigned i = 0; i < count[2]; i++)
			if ((bits == 64 ? want[i] : (uint32_t)want[i]) != got[i]) {
				printf("FAILED %s, lane %u, register %u: %#llx, want %#llx\n", t->name, l, i,
					(unsigned long long)got[i], (unsigned long long)want[i]);
				return false;
			}
	}
	return true;
}

static void define_all(void)
{
	static const char *const layouts[] = {"row.col", "row.row", "col.col", "col.row"};
	for (unsigned i = 0; i < 4; i++) {
		define(8, 8, 4, "fhh", layouts[i], "", 0);
		define(8, 8, 4, "hhh", layouts[i], "", 0);
	}
	for (unsigned k = 8; k <= 16; k += 8) {
		define(16, 8, k, "fhh", "row.col", "", 0);
		define(16, 8, k, "hhh", "row.col", "", 0);
		define(16, 8, k, "fbb", "row.col", "", 0);
	}
	define(16, 8, 4, "ftt", "row.col", "", 0);
	define(16, 8, 8, "ftt", "row.col", "", 0);
	define(8, 8, 4, "ddd", "row.col", "", 0);
	for (unsigned k = 4; k <= 16; k *= 2)
		define(16, 8, k, "ddd", "row.col", "", 0);
	for (unsigned i = 0; i < 8; i++) {
		const char types[4] = {i & 4 ? 'h' : 'f', i & 1 ? '5' : '4', i & 2 ? '5' : '4', 0};
		define(16, 8, 16, types, "row.col", "", 0);
		define(16, 8, 32, types, "row.col", "", 0);
	}
	for (unsigned i = 0; i < 8; i++) {
		const char bytes[4] = {'i', i & 1 ? 'C' : 'c', i & 2 ? 'C' : 'c', 0},
			   parts[4] = {'i', i & 1 ? 'N' : 'n', i & 2 ? 'N' : 'n', 0},
			   *more = i & 4 ? ".satfinite" : "";
		define(8, 8, 16, bytes, "row.col", more, 0);
		define(16, 8, 16, bytes, "row.col", more, 0);
		define(16, 8, 32, bytes, "row.col", more, 0);
		define(8, 8, 32, parts, "row.col", more, 0);
		define(16, 8, 32, parts, "row.col", more, 0);
		define(16, 8, 64, parts, "row.col", more, 0);
	}
	for (unsigned i = 0; i < 2; i++) {
		define(8, 8, 128, "i11", "row.col", "", i ? '&' : 'x');
		define(16, 8, 128, "i11", "row.col", "", i ? '&' : 'x');
		define(16, 8, 256, "i11", "row.col", "", i ? '&' : 'x');
	}
}

int main(int argc, char **argv)
{
	add(".version 8.7\n.target sm_90\n.address_size 64\n");
	define_all();
	if (argc > 1 && !strcmp(argv[1], "text"))
		return fwrite(text, 1, used, stdout) != used;
	struct engine_module *m;
	struct engine_error error;
	if (soft_mem_init((size_t)1 << 30))
		return 1;
	engine_init(1);
	if (engine_module_load((const char *const[]){text}, &used, 1, &m, &error)) {
		printf("FAILED load: line %u: %s\n", error.line, error.text);
		return 1;
	}
	uint64_t *memory = (uint64_t *)soft_alloc(LANES * 4 * REGS * 8, 256);
	unsigned good = 0;
	for (unsigned k = 0; k < ntests; k++) {
		bool ok = run(m, k, memory, false) && run(m, k, memory, false);
		if (ok && tests[k].c == 'i' && tests[k].saturate)
			ok = run(m, k, memory, true);
		good += ok;
	}
	printf("matrices: %u of %u shapes and types of mma\n", good, ntests);
	engine_module_unload(m);
	return good != ntests;
}
