/* SPDX-License-Identifier: Apache-2.0 */
/* Loads, stores and atomics: one kernel per state space, type, vector and modifier. Each lane writes and
 * reads its own place, in rising, falling and scattered order, with full and partial warps; atomics are
 * compared with a scalar model. Prints how many mnemonics were covered.
 *
 * Thread rule: one thread. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/soft/engine/device.h"
#include "tests/soft/engine/golden.h"
#include "tests/soft/engine/text.h"

enum { MAX_TESTS = 2000, WORDS = 4, LANES = 32 };

struct test {
	char name[96]; /* what it covers, for messages */
	char type[8];
	unsigned vec, mnemonics;
	const char *atom; /* operation; NULL: a round trip */
	bool red;
};
static struct test tests[MAX_TESTS];
static unsigned ntests, covered, failures;
static size_t start[MAX_TESTS + 1];

static unsigned bits(const char *t)
{
	return (unsigned)atoi(t + (*t == 'b' && t[1] == 'f' ? 2 : 1));
}

/* Parameters: in, out (8 bytes each), multiplier. %d4: this lane's place in the space, %d5 its input, %d6 its
 * output. */
static void head(const char *space, unsigned bytes)
{
	start[ntests] = used;
	add(".visible .entry k%u(.param .u64 in, .param .u64 out, .param .u32 mul, .param .u64 spare) {\n "
	    ".reg .b16 %%h<4>; .reg .b32 %%r<16>; .reg .b64 %%d<32>; .reg .f32 %%f<8>; .reg .f64 %%g<8>;\n"
	    " .shared .align 16 .b8 tile[2048]; .local .align 16 .b8 depot[64];\n"
	    " ld.param.u64 %%d1,[in]; ld.param.u64 %%d2,[out]; ld.param.u32 %%r1,[mul]; ld.param.u64 "
	    "%%d10,[spare]; mov.u32 %%r2,%%tid.x;\n"
	    " mul.wide.u32 %%d3,%%r2,%u; add.u64 %%d5,%%d1,%%d3; add.u64 %%d6,%%d2,%%d3; mul.lo.u32 "
	    "%%r3,%%r2,%%r1; and.b32 %%r3,%%r3,31; mul.lo.u32 %%r4,%%r3,%u;\n",
		ntests, WORDS * 8, bytes);
	if (!strcmp(space, ".shared"))
		add(" mov.u32 %%r5,tile; add.u32 %%r5,%%r5,%%r4;\n");
	else if (!strcmp(space, ".local"))
		add(" mov.u64 %%d4,depot;\n");
	else if (!strcmp(space, "")) /* generic, to shared memory in odd kernels, else to global */
		add(ntests & 1 ? " mov.u64 %%d4,tile; cvta.shared.u64 %%d4,%%d4; cvt.u64.u32 %%d7,%%r4; "
				 "add.u64 %%d4,%%d4,%%d7;\n"
			       : " cvt.u64.u32 %%d7,%%r4; add.u64 %%d4,%%d10,%%d7;\n");
	else
		add(" cvt.u64.u32 %%d7,%%r4; add.u64 %%d4,%%d10,%%d7;\n");
}

static struct test *next(const char *name, const char *type, unsigned vec)
{
	if (ntests == MAX_TESTS)
		abort();
	struct test *t = &tests[ntests++];
	snprintf(t->name, sizeof t->name, "%s", name);
	snprintf(t->type, sizeof t->type, "%s", type);
	t->vec = vec;
	return t;
}

static void round_trip(const char *st, const char *ld, const char *space, const char *type, unsigned vec)
{
	unsigned b = bits(type);
	char v[16] = "", regs[2][64], name[96];
	const char *prefix = *type == 'f' ? (b == 32 ? "%f" : "%g") : "%d";
	if (vec > 1)
		snprintf(v, sizeof v, ".v%u", vec);
	for (int side = 0; side < 2; side++) {
		char *q = regs[side];
		q += sprintf(q, "%s", vec > 1 ? "{" : "");
		for (unsigned k = 0; k < vec; k++)
			q += sprintf(q, "%s%s%u", k ? "," : "", prefix,
				(*prefix == '%' && prefix[1] == 'd' ? 16u : 0u) + (unsigned)side * 4 + k);
		sprintf(q, "%s", vec > 1 ? "}" : "");
	}
	head(space, b / 8 * vec);
	const char *at = !strcmp(space, ".shared") ? "%r5" : "%d4";
	for (unsigned k = 0; k < vec; k++)
		add(" ld.global.%s %s%u,[%%d5+%u];\n", *type == 'f' ? type : "u64", prefix,
			(prefix[1] == 'd' ? 16u : 0u) + k, k * 8);
	add(" st%s%s%s.%s [%s],%s;\n ld%s%s%s.%s %s,[%s];\n", st, space, v, type, at, regs[0], ld, space, v,
		type, regs[1], at);
	for (unsigned k = 0; k < vec; k++)
		add(" st.global.%s [%%d6+%u],%s%u;\n", *type == 'f' ? type : "u64", k * 8, prefix,
			(prefix[1] == 'd' ? 20u : 4u) + k);
	add(" ret; }\n");
	snprintf(name, sizeof name, "st%s%s%s.%s and ld%s%s%s.%s", st, space, v, type, ld, space, v, type);
	next(name, type, vec)->mnemonics = 2;
}

static void atomic(const char *op, const char *space, const char *type, bool red, const char *order)
{
	unsigned b = bits(type);
	char name[96], r = b == 64 ? 'd' : b == 32 ? 'r' : 'h';
	unsigned base = r == 'd' ? 16 : r == 'r' ? 8 : 0;
	head(space, b / 8);
	const char *at = !strcmp(space, ".shared") ? "%r5" : "%d4";
	const char *half = *type == 'f' && b == 16 ? ".noftz" : "";
	add(" ld.global.u%u %%%c%u,[%%d5]; ld.global.u%u %%%c%u,[%%d5+8]; ld.global.u%u %%%c%u,[%%d5+16]; "
	    "st%s.u%u [%s],%%%c%u;\n",
		b, r, base, b, r, base + 1, b, r, base + 2, space, b, at, r, base);
	if (red)
		add(" red%s%s.%s%s.%s [%s],%%%c%u;\n", order, space, op, half, type, at, r, base + 1);
	else if (!strcmp(op, "cas"))
		add(" atom%s%s.cas.%s %%%c%u,[%s],%%%c%u,%%%c%u;\n", order, space, type, r, base + 3, at, r,
			base + 1, r, base + 2);
	else
		add(" atom%s%s.%s%s.%s %%%c%u,[%s],%%%c%u;\n", order, space, op, half, type, r, base + 3, at,
			r, base + 1);
	if (!red)
		add(" st.global.u%u [%%d6],%%%c%u;\n", b, r, base + 3);
	add(" ld%s.u%u %%%c%u,[%s]; st.global.u%u [%%d6+8],%%%c%u; ret; }\n", space, b, r, base, at, b, r,
		base);
	snprintf(name, sizeof name, "%s%s%s.%s%s.%s", red ? "red" : "atom", order, space, op, half, type);
	struct test *t = next(name, type, 1);
	t->mnemonics = 1;
	t->atom = op;
	t->red = red;
}

static uint64_t model(const struct test *t, uint64_t old, uint64_t v, uint64_t w)
{
	unsigned b = bits(t->type);
	uint64_t mask = b == 64 ? ~0ull : (1ull << b) - 1, sign = 1ull << (b - 1),
		 bias = *t->type == 's' ? sign : 0;
	old &= mask, v &= mask, w &= mask;
	const char *op = t->atom;
	if (!strcmp(t->type, "f32")) {
		float x, y;
		memcpy(&x, &old, 4);
		memcpy(&y, &v, 4);
		x += y;
		uint64_t r = 0;
		memcpy(&r, &x, 4);
		return r;
	}
	if (!strcmp(t->type, "f64")) {
		double x, y;
		memcpy(&x, &old, 8);
		memcpy(&y, &v, 8);
		x += y;
		memcpy(&old, &x, 8);
		return old;
	}
	if (!strcmp(t->type, "f16")) {
		_Float16 x, y;
		memcpy(&x, &old, 2);
		memcpy(&y, &v, 2);
		x += y;
		uint64_t r = 0;
		memcpy(&r, &x, 2);
		return r;
	}
	if (!strcmp(op, "add"))
		return (old + v) & mask;
	if (!strcmp(op, "and"))
		return old & v;
	if (!strcmp(op, "or"))
		return old | v;
	if (!strcmp(op, "xor"))
		return old ^ v;
	if (!strcmp(op, "exch"))
		return v;
	if (!strcmp(op, "cas"))
		return old == v ? w : old;
	if (!strcmp(op, "inc"))
		return old >= v ? 0 : old + 1;
	if (!strcmp(op, "dec"))
		return old == 0 || old > v ? v : old - 1;
	bool less = (old ^ bias) < (v ^ bias);
	return !strcmp(op, "min") == less ? old : v;
}

static uint64_t extended(const char *type, uint64_t v)
{
	unsigned b = bits(type);
	if (b == 64)
		return v;
	v &= (1ull << b) - 1;
	return *type == 's' && v >> (b - 1) ? v | ~0ull << b : v;
}

static uint64_t seed;
static uint64_t noise(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

static bool run(unsigned k, uint64_t *in, uint64_t *out, uint64_t spare, unsigned mul, unsigned threads)
{
	const struct test *t = &tests[k];
	for (unsigned i = 0; i < LANES * WORDS; i++) {
		in[i] = noise();
		if (t->atom && *t->type == 'f') { /* numbers of one size, so that no NaN and no rounding of
						     the model's own comes in */
			float f = (float)(i % 7) * 0.5f - 1;
			double d = f;
			_Float16 h = (_Float16)f;
			in[i] = 0;
			memcpy(&in[i],
				bits(t->type) == 64   ? (void *)&d
				: bits(t->type) == 32 ? (void *)&f
						      : (void *)&h,
				bits(t->type) / 8);
		}
		if (t->atom && !strcmp(t->atom, "cas") && i % WORDS == 1 && i & 4)
			in[i] = in[i - 1];
		out[i] = 0;
	}
	struct {
		uint64_t in, out;
		uint32_t mul;
		uint64_t spare;
	} params = {(uint64_t)in, (uint64_t)out, mul, spare};
	const char *why = "";
	golden_input(in, LANES * WORDS * 8);
	if (!device_launch(k, 1, threads, &params, sizeof params, &why)) {
		printf("FAILED %s: %s\n", t->name, why);
		return false;
	}
	for (unsigned i = 0; i < threads * WORDS; i++)
		golden_result(out[i]);
	for (unsigned i = 0; i < threads; i++) {
		const uint64_t *a = in + i * WORDS, *o = out + i * WORDS;
		uint64_t want[4], mask = bits(t->type) == 64 ? ~0ull : (1ull << bits(t->type)) - 1;
		for (unsigned k2 = 0; k2 < t->vec; k2++)
			want[k2] = *t->type == 'f' ? a[k2] & mask : extended(t->type, a[k2]);
		if (t->atom) {
			want[0] = t->red ? 0 : a[0] & mask;
			want[1] = model(t, a[0], a[1], a[2]);
		}
		if (memcmp(want, o, (t->atom ? 2 : t->vec) * 8)) {
			printf("FAILED %s (lane %u of %u, order %u): %#llx %#llx -> %#llx %#llx, want %#llx "
			       "%#llx\n",
				t->name, i, threads, mul, (unsigned long long)a[0], (unsigned long long)a[1],
				(unsigned long long)o[0], (unsigned long long)o[1],
				(unsigned long long)want[0], (unsigned long long)want[1]);
			return false;
		}
	}
	return true;
}

static void define(void)
{
	static const char *const types[] = {"b8", "u8", "s8", "b16", "u16", "s16", "b32", "u32", "s32", "f32",
		"b64", "u64", "s64", "f64"};
	static const char *const spaces[] = {"", ".global", ".shared", ".local"};
	for (unsigned s = 0; s < 4; s++)
		for (unsigned t = 0; t < sizeof types / sizeof *types; t++)
			for (unsigned v = 1; v <= 4; v *= 2)
				if (v * bits(types[t]) <= 128)
					round_trip("", "", spaces[s], types[t], v);
	static const char *const ld[] = {".volatile", ".relaxed.gpu", ".acquire.sys", ".relaxed.cta", ".weak",
		".acquire.gpu", ".relaxed.sys"};
	static const char *const st[] = {".volatile", ".relaxed.gpu", ".release.sys", ".relaxed.cta", ".weak",
		".release.gpu", ".relaxed.sys"};
	for (unsigned k = 0; k < sizeof ld / sizeof *ld; k++)
		for (unsigned s = 0; s < 3; s++) {
			round_trip(st[k], ld[k], spaces[s], "u32", 1);
			round_trip(st[k], ld[k], spaces[s], "u64", 1);
		}
	static const char *const orders[] = {
		"", ".relaxed.gpu", ".acq_rel.gpu", ".relaxed.cta", ".release.sys", ".acquire.gpu"};
	for (unsigned s = 0; s < 3; s++)
		for (unsigned o = 0; o < 6; o++) {
			static const char *const ops[] = {
				"add", "and", "or", "xor", "min", "max", "inc", "dec", "exch", "cas"};
			static const char *const of[] = {"u32 s32 u64 f32 f64 f16", "b32 b64", "b32 b64",
				"b32 b64", "u32 s32 u64 s64", "u32 s32 u64 s64", "u32", "u32", "b32 b64",
				"b32 b64 b16"};
			for (unsigned k = 0; k < 10; k++) {
				char list[64];
				snprintf(list, sizeof list, "%s", of[k]);
				for (char *p, *ty = strtok_r(list, " ", &p); ty;
					ty = strtok_r(NULL, " ", &p)) {
					atomic(ops[k], spaces[s], ty, false, orders[o]);
					if (k < 8 && o < 2)
						atomic(ops[k], spaces[s], ty, true, orders[o]);
				}
			}
		}
}

/* Rising, falling and scattered places; all lanes, some, one. The inputs of a case depend on its name
 * alone. */
static bool check(unsigned k, uint64_t *in, uint64_t *out, uint64_t spare)
{
	char key[128];
	snprintf(key, sizeof key, "memory %s", tests[k].name);
	if (device_refusal(k)) {
		return golden_refused(key, device_refusal(k));
	}
	seed = 88172645463325252ull;
	for (const char *p = key; *p; p++)
		seed = (seed ^ (unsigned char)*p) * 1099511628211u;
	golden_begin(key, NULL, NULL);
	bool ok = run(k, in, out, spare, 1, 32) && run(k, in, out, spare, 31, 32) &&
		  run(k, in, out, spare, 11, 32) && run(k, in, out, spare, 1, 13) &&
		  run(k, in, out, spare, 7, 1);
	return golden_end() && ok;
}

int main(int argc, char **argv)
{
	if (!device_open(argc > 1 ? argv[1] : NULL) || !golden_open())
		return 1;
	define();
	start[ntests] = used;
	uint64_t *in = device_alloc(LANES * WORDS * 8), *out = device_alloc(LANES * WORDS * 8),
		 *spare = device_alloc(4096);
	if (!in || !out || !spare ||
		!device_load(".version 8.1\n.target sm_90\n.address_size 64\n", text, start, ntests))
		return 1;
	unsigned mnemonics = 0;
	for (unsigned k = 0; k < ntests; k++) {
		bool ok = check(k, in, out, (uint64_t)spare);
		covered += ok;
		failures += !ok;
		mnemonics += ok ? tests[k].mnemonics : 0;
	}
	printf("%s: memory: %u of %u tests, %u mnemonics\n", argc > 1 ? argv[1] : "default", covered, ntests,
		mnemonics);
	failures += !golden_close("memory ");
	device_close();
	return failures != 0;
}
