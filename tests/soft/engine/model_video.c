/* SPDX-License-Identifier: Apache-2.0 */
/* Scalar models of the video instructions, which take everything from the mnemonic and the names of the
 * operands' parts.
 *
 * Thread rule: pure functions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/soft/engine/check_insn.h"

typedef __int128 wide;

static bool has(const struct test *t, const char *word)
{
	const char *p = strstr(t->mnemonic, word);
	char after = p ? p[strlen(word)] : 0;
	return p && (after == 0 || after == '.');
}

/* Is the k-th type of the mnemonic s32? */
static bool is_signed(const struct test *t, unsigned k)
{
	for (const char *p = strchr(t->mnemonic, '.'); p; p = strchr(p + 1, '.'))
		if (!strncmp(p + 1, "u32", 3) || !strncmp(p + 1, "s32", 3))
			if (k-- == 0)
				return p[1] == 's';
	return false;
}

/* A field of v: ".b2", ".h1", "": all. */
static wide field(const char *type, uint64_t v, bool sign)
{
	const char *f = strchr(type, '/');
	unsigned bits = 32, at = 0;
	if (f && f[1] == '.') {
		bits = f[2] == 'b' ? 8 : 16;
		at = (unsigned)(f[3] - '0');
	}
	wide x = 0;
	for (unsigned k = 0; k < bits; k++)
		if (v >> (at * bits + k) & 1)
			x += k == bits - 1 && sign ? -((wide)1 << k) : (wide)1 << k;
	return x;
}

static bool compared(const struct test *t, wide a, wide b)
{
	return has(t, ".eq")   ? a == b
	       : has(t, ".ne") ? a != b
	       : has(t, ".lt") ? a < b
	       : has(t, ".le") ? a <= b
	       : has(t, ".gt") ? a > b
			       : a >= b;
}

static wide limited(wide v, unsigned bits, bool sign)
{
	wide top = (wide)1 << (sign ? bits - 1 : bits), least = sign ? -top : 0;
	return v >= top ? top - 1 : v < least ? least : v;
}

static wide operation(const struct test *t, wide a, wide b)
{
	if (starts(t, "vadd"))
		return a + b;
	if (starts(t, "vsub"))
		return a - b;
	if (starts(t, "vabsdiff"))
		return a < b ? b - a : a - b;
	if (starts(t, "vmin"))
		return a < b ? a : b;
	if (starts(t, "vmax"))
		return a < b ? b : a;
	if (starts(t, "vavrg"))
		return a + b < 0 ? -((-(a + b)) / 2 + (-(a + b)) % 2) : (a + b + 1) / 2;
	if (starts(t, "vset"))
		return compared(t, a, b);
	unsigned n = has(t, ".wrap") ? (unsigned)(b % 32) : b > 32 ? 32 : (unsigned)b;
	return starts(t, "vshl") ? a * ((wide)1 << n)
	       : a >= 0          ? a / ((wide)1 << n)
				 : -((-a - 1) / ((wide)1 << n) + 1);
}

/* The scalar instructions are what the GPU's assembler makes of them, in 64 bits, and that is not what PTX
 * says where a result leaves its range: recorded on an H200 (tests/soft/golden). */
static wide saturated(const struct test *t, wide v, unsigned bits, bool sign)
{
	if (starts(t, "vsh")) { /* 34 bits of it, whatever part is written */
		wide low = v & (((wide)1 << 34) - 1);
		return limited(low >> 33 ? low - ((wide)1 << 34) : low, 32, sign);
	}
	if (bits < 32) { /* below is above */
		wide top = ((wide)1 << (sign ? bits - 1 : bits)) - 1;
		return v < 0 || v > top ? top : v;
	}
	return sign ? limited(v, 32, true) : v < 0 ? 0 : v;
}

static uint64_t m_scalar(const struct test *t, const uint64_t *in)
{
	bool set = starts(t, "vset"), dsign = is_signed(t, 0), sat = has(t, ".sat");
	wide a = field(t->type[1], in[0], is_signed(t, set ? 0 : 1)),
	     b = field(t->type[2], in[1], is_signed(t, set ? 1 : 2));
	wide v = operation(t, a, b);
	const char *to = strchr(t->type[0], '/');
	unsigned bits = !to ? 32 : to[2] == 'b' ? 8 : 16, at = to ? (unsigned)(to[3] - '0') * bits : 0;
	if (sat)
		v = saturated(t, v, bits, dsign);
	uint32_t r = (uint32_t)v, c = (uint32_t)in[2];
	if (to) {
		if (bits == 16)
			r >>= at; /* .h1: the upper half of the result */
		for (unsigned k = 0; k < bits; k++)
			c = (c & ~(1u << (at + k))) | (r >> k & 1) << (at + k);
		return c;
	}
	if (has(t, ".add"))
		return r + c;
	if (starts(t, "vadd") || starts(t, "vsub") || (starts(t, "vsh") && sat))
		v = (int32_t)r;
	v = (int64_t)v;
	bool less = dsign ? v < (int32_t)c : (uint64_t)v < c, more = dsign ? v > (int32_t)c : (uint64_t)v > c;
	return has(t, ".min") ? (less ? r : c) : has(t, ".max") ? (more ? r : c) : r;
}

static uint64_t m_mad(const struct test *t, const uint64_t *in)
{
	bool sa = is_signed(t, 1), sb = is_signed(t, 2),
	     product = (t->type[1][4] == '-') != (t->type[2][4] == '-');
	bool minus_c = t->type[3][3] == '/', sign = sa || sb || product || minus_c;
	/* whole words are signed numbers, whatever their types say, and so is c */
	wide a = field(t->type[1], in[0], sa || !strchr(t->type[1], '.')),
	     b = field(t->type[2], in[1], sb || !strchr(t->type[2], '.')), c = field("u32", in[2], true),
	     v = a * b;
	/* the complement and one more: one, even if two are taken */
	if (has(t, ".po"))
		v = v + c + 1;
	else if (product)
		v = c - v;
	else if (minus_c)
		v = v + field("u32", ~in[2], true) + 1;
	else
		v = v + c;
	unsigned shift = has(t, ".shr7") ? 7 : has(t, ".shr15") ? 15 : 0;
	uint64_t logical = (uint64_t)v >> shift;
	if (!sign && shift)
		v = logical;
	else
		v >>= shift;
	return (uint64_t)(has(t, ".sat") ? limited(v, 32, sign) : v);
}

/* Lane k as the names of the lanes have it: "h10" and "b7654" name the upper one first. */
static wide lane(const char *type, unsigned k, unsigned lanes, unsigned first, const uint64_t *in, bool sign)
{
	const char *f = strchr(type, '/');
	unsigned at = f ? (unsigned)(f[3 + lanes - 1 - k] - '0') : first + k, bits = 32 / lanes;
	char one[24];
	snprintf(one, sizeof one, "u32/.%c%u", bits == 8 ? 'b' : 'h', at % lanes);
	return field(one, in[at / lanes], sign);
}

static uint64_t m_packed(const struct test *t, const uint64_t *in)
{
	unsigned lanes = (unsigned)(strchr(t->mnemonic, '.')[-1] - '0'), bits = 32 / lanes;
	bool set = starts(t, "vset"), dsign = !set && is_signed(t, 0);
	uint32_t sum = (uint32_t)in[2], merged = (uint32_t)in[2];
	const char *to = strchr(t->type[0], '/');
	for (unsigned k = 0; k < lanes; k++) {
		if (to && !strchr(to + 3, (int)('0' + k)))
			continue;
		wide v = operation(t, lane(t->type[1], k, lanes, 0, in, is_signed(t, set ? 0 : 1)),
			lane(t->type[2], k, lanes, lanes, in, is_signed(t, set ? 1 : 2)));
		if (has(t, ".sat"))
			v = limited(v, bits, dsign);
		sum += (uint32_t)v;
		for (unsigned i = 0; i < bits; i++)
			merged = (merged & ~(1u << (k * bits + i))) | (uint32_t)(v >> i & 1)
									      << (k * bits + i);
	}
	return has(t, ".add") ? sum : merged;
}

static const char *const type[2] = {"u32", "s32"};

static void scalar(const char *op, unsigned signs, const char *more)
{
	char name[64], types[64];
	static const char *const part[4][3] = {
		{"", "", ""}, {"/.b1", "/.h1", ""}, {"/.h0", "/.b3", "/.b2"}, {"", "/.b0", "/.h1"}};
	static const char *const with[] = {"", ".add", ".min", ".max"};
	bool shift = !strncmp(op, "vsh", 3);
	for (unsigned k = 0; k < 8; k++) {
		const char *const *p = part[k % 4], *then = k < 2       ? ""
							    : k % 4 < 2 ? with[1 + (k / 2 + signs) % 3]
									: "";
		bool third = *then || *p[2];
		if (k > 5 ||
			(k + signs) % 2) /* half of them each time: all pairs of parts and signs come by */
			continue;
		snprintf(name, sizeof name, "%s.%s.%s.%s%s%s", op, type[signs & 1], type[signs >> 1 & 1],
			shift ? "u32" : type[signs >> 2 & 1], more, then);
		snprintf(types, sizeof types, "u32%s:u32%s,u32%s%s", p[2], p[0], p[1], third ? ",u32" : "");
		define(name, types, m_scalar, 0);
	}
}

/* What scalar() leaves out: every part that can be written, and what may follow, both with and without
 * .sat. */
static void scalar_ends(const char *op, unsigned signs, const char *more)
{
	static const char *const parts[] = {"u32/.b0:u32,u32,u32", "u32/.b1:u32,u32/.h0,u32",
		"u32/.b3:u32,u32/.b2,u32", "u32/.h0:u32/.h1,u32,u32", "u32/.h1:u32,u32,u32"};
	static const char *const then[] = {".add", ".min", ".max"};
	char name[64];
	bool shift = !strncmp(op, "vsh", 3);
	for (unsigned k = 0; k < 8; k++) {
		snprintf(name, sizeof name, "%s.%s.%s.%s%s%s", op, type[signs & 1], type[signs >> 1 & 1],
			shift ? "u32" : type[signs >> 2 & 1], more, k < 5 ? "" : then[k - 5]);
		define(name, k < 5 ? parts[k] : "u32:u32,u32/.h0,u32", m_scalar, 0);
	}
}

static void multiply_add(unsigned signs, const char *more)
{
	static const char *const minus[] = {
		"u32:u32/.b0,u32/.h1,u32", "u32:u32/-,u32,u32", "u32:u32,u32,u32/-", "u32:u32,u32,u32"};
	char name[64];
	bool po = strstr(more, ".po");
	for (unsigned k = 0; k < 4; k++) {
		if (po && (k == 1 || k == 2))
			continue;
		snprintf(name, sizeof name, "vmad.%s.%s.%s%s", type[signs & 1], type[signs >> 1 & 1],
			type[signs >> 2 & 1], more);
		define(name, minus[k], m_mad, 0);
	}
}

static void packed(const char *op, unsigned lanes, unsigned signs, const char *more, bool set)
{
	char name[64];
	static const char *const choice[2][3] = {
		{"u32:u32,u32,u32", "u32/.h1:u32/.h21,u32/.h03,u32", "u32/.h10:u32/.h33,u32/.h10,u32"},
		{"u32:u32,u32,u32", "u32/.b20:u32/.b7052,u32/.b1436,u32",
			"u32/.b321:u32/.b3210,u32/.b0123,u32"}};
	static unsigned turn;
	for (unsigned k = turn++ % 3; k < 3; k += 3) {
		if (set)
			snprintf(name, sizeof name, "%s%u.%s.%s%s", op, lanes, type[signs >> 1 & 1],
				type[signs & 1], more);
		else
			snprintf(name, sizeof name, "%s%u.%s.%s.%s%s", op, lanes, type[signs & 1],
				type[signs >> 1 & 1], type[signs >> 2 & 1], more);
		define(name, choice[lanes == 4][k], m_packed, 0);
	}
}

void define_video(void)
{
	static const char *const ops[] = {"vadd", "vsub", "vabsdiff", "vmin", "vmax"},
				 *const shifts[] = {"vshl", "vshr"},
				 *const compares[] = {".eq", ".ne", ".lt", ".le", ".gt", ".ge"},
				 *const ends[] = {"", ".sat", ".add"};
	char more[24], name[64];
	for (unsigned signs = 0; signs < 8; signs++) {
		for (unsigned k = 0; k < 10; k++) {
			scalar(ops[k / 2], signs, k % 2 ? ".sat" : "");
			if (k / 2 == signs % 5 || k / 2 == (signs + 3) % 5)
				scalar_ends(ops[k / 2], signs, k % 2 ? ".sat" : "");
		}
		for (unsigned k = 0; k < 8 && signs < 4; k++) {
			snprintf(more, sizeof more, "%s%s", k & 1 ? ".sat" : "", k & 2 ? ".clamp" : ".wrap");
			scalar(shifts[k / 4], signs, more);
			scalar_ends(shifts[k / 4], signs, more);
		}
		for (unsigned k = 0; k < 12; k++) {
			snprintf(more, sizeof more, "%s%s%s", k & 1 ? ".po" : "", k & 2 ? ".sat" : "",
				k < 4   ? ""
				: k < 8 ? ".shr7"
					: ".shr15");
			multiply_add(signs, more);
		}
		for (unsigned k = 0; k < 36; k++)
			packed(k / 6 == 5 ? "vavrg" : ops[k / 6], k % 2 ? 4 : 2, signs, ends[k / 2 % 3],
				false);
	}
	for (unsigned k = 0; k < 24; k++) {
		static const char *const parts[] = {
			"u32:u32,u32", "u32:u32/.b1,u32/.h1,u32", "u32/.h0:u32,u32/.b2,u32"};
		for (unsigned n = 0; n < 3; n++) {
			snprintf(name, sizeof name, "vset.%s.%s%s%s", type[k & 1], type[k >> 1 & 1],
				compares[k / 4],
				n != 1       ? ""
				: k % 3 == 0 ? ".add"
				: k % 3 == 1 ? ".min"
					     : ".max");
			define(name, parts[n], m_scalar, 0);
		}
		for (unsigned n = 0; n < 4; n++) {
			snprintf(more, sizeof more, "%s%s", compares[k / 4], n & 1 ? ".add" : "");
			packed("vset", n & 2 ? 4 : 2, k & 3, more, true);
		}
	}
}
