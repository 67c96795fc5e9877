/* SPDX-License-Identifier: Apache-2.0 */
/* Scalar models of minimum and maximum in their rarer forms (three operands, absolute values, the sign of a
 * product), of .ftz on pairs of halves, comparisons of pairs, and of lop3 with a test.
 *
 * Thread rule: pure functions. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "tests/soft/engine/check_insn.h"
#include "tests/soft/engine/model_round.h"

struct format {
	unsigned bits;
	uint64_t infinity, sign;
};

static struct format format_of(const char *type)
{
	return !strcmp(type, "f32")        ? (struct format){32, 0x7f800000, 0x80000000}
	       : !strncmp(type, "bf16", 4) ? (struct format){16, 0x7f80, 0x8000}
					   : (struct format){16, 0x7c00, 0x8000};
}

static bool nan_of(struct format f, uint64_t v)
{
	return (v & ~f.sign) > f.infinity;
}

static uint64_t flushed(struct format f, uint64_t v)
{
	return v & f.infinity ? v : v & f.sign;
}

/* Floats ordered as integers. */
static int64_t order(struct format f, uint64_t v)
{
	return v & f.sign ? -(int64_t)(v & ~f.sign) - 1 : (int64_t)v;
}

static uint64_t pick(const struct test *t, struct format f, uint64_t a, uint64_t b)
{
	if (nan_of(f, a) || nan_of(f, b)) {
		bool both = nan_of(f, a) && nan_of(f, b);
		return both || holds(t, ".NaN") ? f.sign - 1 : nan_of(f, a) ? b : a;
	}
	bool first = order(f, a) < order(f, b);
	return first == !!starts(t, "min") ? a : b;
}

static uint64_t m_extreme(const struct test *t, const uint64_t *in)
{
	struct format f = format_of(t->type[0]);
	uint64_t r = 0, mask = f.bits == 32 ? 0xffffffff : 0xffff;
	for (unsigned at = 0; at < (strstr(t->type[0], "x2") ? 32 : f.bits); at += f.bits) {
		uint64_t v[3] = {0}, sign = 0;
		for (unsigned k = 0; k + 1 < t->n; k++) {
			v[k] = in[k] >> at & mask;
			if (holds(t, ".ftz"))
				v[k] = flushed(f, v[k]);
			sign ^= v[k] & f.sign;
			if (holds(t, ".abs"))
				v[k] &= ~f.sign;
		}
		uint64_t x = pick(t, f, v[0], v[1]);
		if (t->n > 3)
			x = pick(t, f, x, v[2]);
		if (holds(t, ".xorsign") && !nan_of(f, x))
			x = (x & ~f.sign) | sign;
		r |= x << at;
	}
	return r;
}

/* Arithmetic of pairs with subnormal numbers taken as zero, and given as zero. */
static uint64_t m_flushed(const struct test *t, const uint64_t *in)
{
	uint64_t r = 0;
	for (unsigned at = 0; at < 32; at += 16) {
		uint64_t h[3] = {in[0] >> at & 0xffff, in[1] >> at & 0xffff, in[2] >> at & 0xffff}, x;
		__float128 a = half_flush(true, h[0]), b = half_flush(true, h[1]), c = half_flush(true, h[2]),
			   v;
		if (starts(t, "abs") || starts(t, "neg")) {
			x = nan_of(format_of("f16"), h[0]) ? 0x7fff
			    : starts(t, "abs")             ? h[0] & 0x7fff
							   : h[0] ^ 0x8000;
		} else {
			v = starts(t, "add")   ? a + b
			    : starts(t, "sub") ? a - b
			    : starts(t, "mul") ? a * b
					       : a * b + c;
			x = half_round(true, v, 'n');
		}
		r |= flushed(format_of("f16"), x) << at;
	}
	return r;
}

static bool compare(const struct test *t, uint64_t a, uint64_t b, struct format f)
{
	if (holds(t, ".ftz"))
		a = flushed(f, a), b = flushed(f, b);
	if (nan_of(f, a) || nan_of(f, b))
		return holds(t, "u.");
	int64_t x = (a & ~f.sign) == 0 ? 0 : order(f, a), y = (b & ~f.sign) == 0 ? 0 : order(f, b);
	x += x < 0, y += y < 0; /* -0 is 0 */
	return holds(t, ".eq")   ? x == y
	       : holds(t, ".ne") ? x != y
	       : holds(t, ".lt") ? x < y
	       : holds(t, ".le") ? x <= y
	       : holds(t, ".gt") ? x > y
				 : x >= y;
}

static uint64_t m_set_pair(const struct test *t, const uint64_t *in)
{
	struct format f = format_of(t->type[1]);
	uint64_t r = 0;
	for (unsigned at = 0; at < 32; at += 16) {
		bool yes = compare(t, in[0] >> at & 0xffff, in[1] >> at & 0xffff, f);
		if (t->n > 3)
			yes = holds(t, ".and.")  ? yes && in[2] & 1
			      : holds(t, ".or.") ? yes || in[2] & 1
						 : yes != (in[2] & 1);
		uint64_t one = holds(t, "32.") ? 0xffff : f.infinity == 0x7c00 ? 0x3c00 : 0x3f80;
		r |= (yes ? one : 0) << at;
	}
	return r;
}

static uint64_t m_lop3_test(const struct test *t, const uint64_t *in)
{
	uint32_t v = 0, table = strstr(t->before, "0x6a") ? 0x6a : 0x80;
	for (unsigned i = 0; i < 32; i++)
		v |= (table >> ((in[0] >> i & 1) * 4 + (in[1] >> i & 1) * 2 + (in[2] >> i & 1)) & 1u) << i;
	bool q = in[3] & 1, p = strstr(t->before, ".and") ? v && q : v || q;
	return v + (p ? 1000 : 0);
}

void define_extreme(void)
{
	static const char *const ops[] = {"min", "max"}, *const nan[] = {"", ".NaN"},
				 *const ftz[] = {"", ".ftz"},
				 *const types[] = {"f32", "f16", "bf16", "f16x2", "bf16x2"};
	char name[64], list[64];
	for (unsigned k = 0; k < 8; k++) {
		const char *op = ops[k & 1], *n = nan[k >> 1 & 1], *f = ftz[k >> 2];
		for (unsigned i = 0; i < 5; i++) {
			if (*f && types[i][0] == 'b')
				continue;
			snprintf(name, sizeof name, "%s%s%s.xorsign.abs.%s", op, f, n, types[i]);
			snprintf(list, sizeof list, "%s:%s,%s", types[i], types[i], types[i]);
			define(name, list, m_extreme, 0);
			if (*f && i == 3) {
				snprintf(name, sizeof name, "%s%s%s.%s", op, f, n, types[i]);
				define(name, list, m_extreme, 0);
			}
		}
		for (unsigned i = 0; i < 2; i++) {
			snprintf(name, sizeof name, "%s%s%s%s.f32", op, f, n, i ? ".abs" : "");
			define(name, "f32:f32,f32,f32", m_extreme, 0);
		}
	}
	define("add.ftz.f16x2", "f16x2:f16x2,f16x2", m_flushed, 0);
	define("sub.ftz.f16x2", "f16x2:f16x2,f16x2", m_flushed, 0);
	define("mul.ftz.f16x2", "f16x2:f16x2,f16x2", m_flushed, 0);
	define("fma.rn.ftz.f16x2", "f16x2:f16x2,f16x2,f16x2", m_flushed, 0);
	define("abs.ftz.f16x2", "f16x2:f16x2", m_flushed, 0);
	define("neg.ftz.f16x2", "f16x2:f16x2", m_flushed, 0);
	static const char *const
		compares[] = {"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu"},
		*const results[] = {"u32", "s32", "f16x2"}, *const with[] = {"", ".and", ".or", ".xor"};
	for (unsigned k = 0; k < 48; k++) {
		const char *type = types[3 + (k >> 1 & 1)], *f = k & 1 && *type == 'f' ? ".ftz" : "",
			   *r = results[k % 3], *c = with[k / 12];
		snprintf(name, sizeof name, "set.%s%s%s.%s.%s", compares[k % 12], c, f,
			r[0] == 'f' ? type : r, type);
		snprintf(list, sizeof list, "%s:%s,%s%s", r[0] == 'f' ? type : "u32", type, type,
			*c ? ",pred" : "");
		define(name, list, m_set_pair, 0);
	}
	for (unsigned k = 0; k < 4; k++) {
		char before[320];
		snprintf(before, sizeof before,
			"%s_%u: lop3%s.b32 %%r13|%%p6,%%r9,%%r10,%%r11,%s,%%p4; selp.u32 %%r14,1000,0,%%p6; "
			"%s",
			k & 1 ? "and" : "or", k / 2, k & 1 ? ".and" : ".or", k & 2 ? "0x6a" : "0x80",
			k & 2 ? "" : "lop3.or.b32 _|%p5,%r9,%r10,%r11,0x80,%p4;");
		define_before(before, "add.u32", "u32:!u32,!u32,!u32,!pred,#%r13,#%r14", m_lop3_test);
	}
}
