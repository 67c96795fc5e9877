/* SPDX-License-Identifier: Apache-2.0 */
/* Scalar models of the integer instructions, written with 128-bit arithmetic straight from what PTX says they
 * do.
 *
 * Thread rule: pure functions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/soft/engine/check_insn.h"

typedef __int128 wide;

static wide value(const char *type, uint64_t v)
{
	unsigned b = type_bits(type);
	if (b < 64)
		v &= (1ull << b) - 1;
	if (*type == 's' && v >> (b - 1) & 1)
		return (wide)v - ((wide)1 << b);
	return v;
}

/* The type in the mnemonic, which may differ from that of the operand's register. */
static const char *op_type(const struct test *t)
{
	return t->type[1];
}

static uint64_t clamp(wide v, wide lo, wide hi)
{
	return (uint64_t)(v < lo ? lo : v > hi ? hi : v);
}

static uint64_t m_arith(const struct test *t, const uint64_t *in)
{
	const char *ty = op_type(t);
	unsigned bits = type_bits(ty);
	wide a = value(ty, in[0]), b = value(ty, in[1]), c = value(t->type[3][0] ? t->type[3] : ty, in[2]), p,
	     r = 0;
	bool is_signed = *ty == 's';
	if (starts(t, "add"))
		r = a + b;
	else if (starts(t, "sub"))
		r = a - b;
	else if (starts(t, "mul24") || starts(t, "mad24")) {
		a = in[0] & 0xffffff, b = in[1] & 0xffffff;
		if (is_signed)
			a -= (a >> 23) << 24, b -= (b >> 23) << 24;
		p = a * b;
		r = (holds(t, ".hi") ? p >> 16 : p) + (starts(t, "mad24") ? c : 0);
		if (!holds(t, ".sat"))
			return (uint64_t)r;
		return clamp((holds(t, ".hi") ? p >> 16 : (int32_t)p) + c, INT32_MIN, INT32_MAX);
	} else if (starts(t, "mul") || starts(t, "mad")) {
		p = (wide)((unsigned __int128)a * (unsigned __int128)b);
		if (holds(t, ".hi"))
			p = is_signed || bits < 64 ? p >> bits
						   : (wide)((unsigned __int128)in[0] * in[1] >> 64);
		r = (wide)((unsigned __int128)p + (unsigned __int128)(starts(t, "mad") ? c : 0));
	} else if (starts(t, "div") || starts(t, "rem")) {
		if (!b)
			return ~0ull; /* as an H200 does */
		r = starts(t, "div") ? a / b : a % b;
	} else if (starts(t, "min"))
		r = a < b ? a : b;
	else if (starts(t, "max"))
		r = a > b ? a : b;
	else if (starts(t, "abs"))
		r = a < 0 ? -a : a;
	else if (starts(t, "neg"))
		r = -a;
	else if (starts(t, "sad"))
		r = c + (a > b ? a - b : b - a);
	if (holds(t, ".sat"))
		return clamp(r, INT32_MIN, INT32_MAX);
	if (holds(t, ".relu") && r < 0)
		r = 0;
	return (uint64_t)r;
}

static uint64_t m_logic(const struct test *t, const uint64_t *in)
{
	uint64_t a = in[0], b = in[1];
	if (starts(t, "and"))
		return a & b;
	if (starts(t, "or"))
		return a | b;
	if (starts(t, "xor"))
		return a ^ b;
	if (starts(t, "not"))
		return ~a;
	if (starts(t, "cnot"))
		return a == 0;
	if (starts(t, "lop3")) {
		uint64_t r = 0;
		for (int i = 0; i < 32; i++)
			r |= (in[3] >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | (in[2] >> i & 1)) & 1) << i;
		return r;
	}
	return in[2] & 1 ? a : b; /* selp */
}

static uint64_t m_shift(const struct test *t, const uint64_t *in)
{
	const char *ty = op_type(t);
	unsigned bits = type_bits(ty);
	uint64_t n = in[1] < bits ? in[1] : bits;
	wide a = value(ty, in[0]);
	if (starts(t, "shl"))
		return (uint64_t)((unsigned __int128)in[0] << n);
	return (uint64_t)(a >> n);
}

static uint64_t m_funnel(const struct test *t, const uint64_t *in)
{
	unsigned __int128 v = (unsigned __int128)(in[1] << 32 | in[0]);
	uint64_t n = holds(t, ".wrap") ? in[2] & 31 : in[2] < 32 ? in[2] : 32;
	return starts(t, "shf.l") ? (uint64_t)(v << n >> 32) : (uint64_t)(v >> n);
}

static uint64_t m_bits(const struct test *t, const uint64_t *in)
{
	const char *ty = op_type(t);
	int bits = (int)type_bits(ty);
	uint64_t a = in[0];
	int n = 0;
	if (starts(t, "popc")) {
		for (int i = 0; i < bits; i++)
			n += a >> i & 1;
		return (uint64_t)n;
	}
	if (starts(t, "clz")) {
		while (n < bits && !(a >> (bits - 1 - n) & 1))
			n++;
		return (uint64_t)n;
	}
	if (starts(t, "brev")) {
		uint64_t r = 0;
		for (int i = 0; i < bits; i++)
			r |= (a >> i & 1) << (bits - 1 - i);
		return r;
	}
	/* bfind: the highest bit that differs from the sign */
	uint64_t sign = *ty == 's' ? a >> (bits - 1) & 1 : 0;
	for (int i = bits - 1; i >= 0; i--)
		if ((a >> i & 1) != sign)
			return holds(t, "shiftamt") ? (uint64_t)(bits - 1 - i) : (uint64_t)i;
	return ~0ull;
}

static uint64_t m_field(const struct test *t, const uint64_t *in)
{
	const char *ty = op_type(t);
	unsigned bits = type_bits(ty);
	/* PTX says that 8 bits count; an H200 takes all of them where the field is one of 64 bits. */
	uint64_t few = bits == 32 ? 255 : 0xffffffff;
	if (starts(t, "bfe")) {
		uint64_t pos = in[1] & few, len = in[2] & few, msb = bits - 1;
		uint64_t top = pos + len - 1 < msb ? pos + len - 1 : msb;
		uint64_t sign = *ty == 'u' || !len ? 0 : in[0] >> top & 1, r = 0;
		for (unsigned i = 0; i < bits; i++)
			r |= (i < len && pos + i <= msb ? in[0] >> (pos + i) & 1 : sign) << i;
		return r;
	}
	if (starts(t, "bfi")) {
		uint64_t pos = in[2] & few, len = in[3] & few;
		uint64_t r = in[1];
		for (uint64_t i = 0; i < len && pos + i < bits; i++)
			r = (r & ~(1ull << (pos + i))) | (in[0] >> i & 1) << (pos + i);
		return r;
	}
	uint64_t a = in[0], b = in[1], r = 0;
	if (starts(t, "bmsk")) {
		if (holds(t, "wrap"))
			a &= 31, b &= 31;
		for (uint64_t i = 0; i < b && i < 32 && a + i < 32; i++)
			r |= 1ull << (a + i);
		return r;
	}
	/* szext */
	if (holds(t, "wrap"))
		b &= 31;
	if (b >= 32)
		return a;
	for (unsigned i = 0; i < 32; i++)
		r |= (i < b ? a >> i & 1 : *t->type[0] == 's' && b ? a >> (b - 1) & 1 : 0) << i;
	return r;
}

static uint64_t m_prmt(const struct test *t, const uint64_t *in)
{
	uint8_t byte[8];
	for (int i = 0; i < 8; i++)
		byte[i] = (uint8_t)((i < 4 ? in[0] : in[1]) >> 8 * (i & 3));
	unsigned k = in[2] & 3;
	int pick[4];
	for (int i = 0; i < 4; i++) {
		if (holds(t, "f4e"))
			pick[i] = (int)k + i;
		else if (holds(t, "b4e"))
			pick[i] = (int)(k - (unsigned)i) & 7;
		else if (holds(t, "rc8"))
			pick[i] = (int)k;
		else if (holds(t, "ecl"))
			pick[i] = i < (int)k ? (int)k : i;
		else if (holds(t, "ecr"))
			pick[i] = i > (int)k ? (int)k : i;
		else if (holds(t, "rc16"))
			pick[i] = (int)(k & 1) * 2 + (i & 1);
		else
			pick[i] = (int)(in[2] >> 4 * i & 15);
	}
	uint64_t r = 0;
	for (int i = 0; i < 4; i++) {
		uint8_t v = byte[pick[i] & 7];
		if (pick[i] & 8)
			v = v & 0x80 ? 0xff : 0;
		r |= (uint64_t)v << 8 * i;
	}
	return r;
}

static uint64_t m_dot(const struct test *t, const uint64_t *in)
{
	bool sa = *t->type[1] == 's', sb = *t->type[2] == 's';
	int64_t r = (int64_t)in[2];
	for (int i = 0; i < (starts(t, "dp4a") ? 4 : 2); i++) {
		int64_t a, b;
		if (starts(t, "dp4a")) {
			a = sa ? (int8_t)(in[0] >> 8 * i) : (uint8_t)(in[0] >> 8 * i);
			b = sb ? (int8_t)(in[1] >> 8 * i) : (uint8_t)(in[1] >> 8 * i);
		} else {
			unsigned s = (unsigned)(holds(t, ".hi") ? 16 : 0) + 8 * (unsigned)i;
			a = sa ? (int16_t)(in[0] >> 16 * i) : (uint16_t)(in[0] >> 16 * i);
			b = sb ? (int8_t)(in[1] >> s) : (uint8_t)(in[1] >> s);
		}
		r += a * b;
	}
	return (uint64_t)r;
}

static bool compare(const struct test *t, const char *ty, uint64_t x, uint64_t y)
{
	wide a = value(ty, x), b = value(ty, y);
	const char *c = strchr(t->mnemonic, '.') + 1;
	if (!strncmp(c, "eq", 2))
		return a == b;
	if (!strncmp(c, "ne", 2))
		return a != b;
	if (!strncmp(c, "lt", 2) || !strncmp(c, "lo", 2))
		return a < b;
	if (!strncmp(c, "le", 2) || !strncmp(c, "ls", 2))
		return a <= b;
	if (!strncmp(c, "gt", 2) || !strncmp(c, "hi", 2))
		return a > b;
	return a >= b;
}

static uint64_t m_setp(const struct test *t, const uint64_t *in)
{
	bool r = compare(t, t->type[1], in[0], in[1]), p = in[2] & 1;
	if (holds(t, ".and."))
		r = r && p;
	else if (holds(t, ".or."))
		r = r || p;
	else if (holds(t, ".xor."))
		r = r != p;
	if (starts(t, "setp"))
		return r;
	return !r ? 0 : holds(t, ".f32.") ? 0x3f800000 : ~0ull;
}

static uint64_t m_slct(const struct test *t, const uint64_t *in)
{
	if (holds(t, ".f32")) {
		uint32_t c = (uint32_t)in[2];
		bool nan = (c & 0x7fffffff) > 0x7f800000, negative = c >> 31 && (c & 0x7fffffff);
		return !nan && !negative ? in[0] : in[1];
	}
	return (int32_t)in[2] >= 0 ? in[0] : in[1];
}

static uint64_t m_pairs(const struct test *t, const uint64_t *in)
{
	uint64_t r = 0;
	for (int i = 0; i < 2; i++) {
		int32_t a = (uint16_t)(in[0] >> 16 * i), b = (uint16_t)(in[1] >> 16 * i), v;
		if (holds(t, "s16x2"))
			a = (int16_t)a, b = (int16_t)b;
		v = starts(t, "add") ? a + b : starts(t, "min") ? (a < b ? a : b) : a > b ? a : b;
		if (holds(t, ".relu") && v < 0)
			v = 0;
		r |= (uint64_t)(uint16_t)v << 16 * i;
	}
	return r;
}

static void all(const char *op, const char *types, const char *shape, model *m)
{
	char list[128], name[96], sig[96];
	snprintf(list, sizeof list, "%s", types);
	for (char *s, *ty = strtok_r(list, " ", &s); ty; ty = strtok_r(NULL, " ", &s)) {
		snprintf(name, sizeof name, "%s.%s", op, ty);
		char *q = sig;
		for (const char *p = shape; *p; p++) /* T: this type; W: twice as wide */
			if (*p == 'T')
				q += sprintf(q, "%s", ty);
			else if (*p == 'W')
				q += sprintf(q, "%c%u", *ty, type_bits(ty) * 2);
			else
				*q++ = *p;
		*q = 0;
		define(name, sig, m, 0);
	}
}

/* A chain over two words: the flag of the first operation enters the second one. */
static uint64_t m_carry(const struct test *t, const uint64_t *in)
{
	bool is64 = type_bits(t->type[0]) == 64;
	unsigned __int128 a = in[0], b = in[1], full = (unsigned __int128)1 << (is64 ? 64 : 32);
	if (starts(t, "addc"))
		return (uint64_t)(a + b + ((unsigned __int128)in[2] + in[2] >= full));
	if (starts(t, "subc"))
		return (uint64_t)(a - b - (in[2] < in[0]));
	/* madc.hi: the flag of mad.lo.cc on the same operands */
	unsigned __int128 p = a * b;
	return (uint64_t)((p >> (is64 ? 64 : 32)) + in[2] + ((p % full) + in[2] >= full));
}

static void chain(const char *before, const char *mnemonic, const char *types)
{
	define_before(before, mnemonic, types, m_carry);
}

void define_integer(void)
{
	const char *every = "u16 s16 u32 s32 u64 s64";
	all("add", every, "T:T,T", m_arith);
	all("sub", every, "T:T,T", m_arith);
	all("add.sat", "s32", "T:T,T", m_arith);
	all("sub.sat", "s32", "T:T,T", m_arith);
	all("mul.lo", every, "T:T,T", m_arith);
	all("mul.hi", every, "T:T,T", m_arith);
	all("mul.wide", "u16 s16 u32 s32", "W:T,T", m_arith);
	all("mad.lo", every, "T:T,T,T", m_arith);
	all("mad.hi", every, "T:T,T,T", m_arith);
	all("mad.hi.sat", "s32", "T:T,T,T", m_arith);
	all("mad.wide", "u16 s16 u32 s32", "W:T,T,W", m_arith);
	all("mul24.lo", "u32 s32", "T:T,T", m_arith);
	all("mul24.hi", "u32 s32", "T:T,T", m_arith);
	all("mad24.lo", "u32 s32", "T:T,T,T", m_arith);
	all("mad24.hi", "u32 s32", "T:T,T,T", m_arith);
	all("mad24.hi.sat", "s32", "T:T,T,T", m_arith);
	all("sad", every, "T:T,T,T", m_arith);
	all("div", every, "T:T,T", m_arith);
	all("rem", every, "T:T,T", m_arith);
	all("abs", "s16 s32 s64", "T:T", m_arith);
	all("neg", "s16 s32 s64", "T:T", m_arith);
	all("min", every, "T:T,T", m_arith);
	all("max", every, "T:T,T", m_arith);
	all("and", "pred b16 b32 b64", "T:T,T", m_logic);
	all("or", "pred b16 b32 b64", "T:T,T", m_logic);
	all("xor", "pred b16 b32 b64", "T:T,T", m_logic);
	all("not", "pred b16 b32 b64", "T:T", m_logic);
	all("cnot", "b16 b32 b64", "T:T", m_logic);
	all("selp", "b16 b32 b64 u16 s16 u32 s32 u64 s64 f32 f64", "T:T,T,pred", m_logic);
	for (unsigned k = 0; k < 256; k += 5) {
		char s[48];
		snprintf(s, sizeof s, "b32:b32,b32,b32,#%u", k);
		define("lop3.b32", s, m_logic, 0);
	}
	all("shl", "b16 b32 b64", "T:T,u32", m_shift);
	all("shr", "b16 b32 b64 u16 s16 u32 s32 u64 s64", "T:T,u32", m_shift);
	all("shf.l.wrap", "b32", "T:T,T,u32", m_funnel);
	all("shf.r.wrap", "b32", "T:T,T,u32", m_funnel);
	all("shf.l.clamp", "b32", "T:T,T,u32", m_funnel);
	all("shf.r.clamp", "b32", "T:T,T,u32", m_funnel);
	all("popc", "b32 b64", "u32:T", m_bits);
	all("clz", "b32 b64", "u32:T", m_bits);
	all("brev", "b32 b64", "T:T", m_bits);
	all("bfind", "u32 s32 u64 s64", "u32:T", m_bits);
	all("bfind.shiftamt", "u32 s32 u64 s64", "u32:T", m_bits);
	all("bfe", "u32 s32 u64 s64", "T:T,u32,u32", m_field);
	all("bfi", "b32 b64", "T:T,T,u32,u32", m_field);
	all("bmsk.clamp", "b32", "T:T,T", m_field);
	all("bmsk.wrap", "b32", "T:T,T", m_field);
	all("szext.clamp", "u32 s32", "T:T,u32", m_field);
	all("szext.wrap", "u32 s32", "T:T,u32", m_field);
	static const char *const prmt[] = {"prmt.b32", "prmt.b32.f4e", "prmt.b32.b4e", "prmt.b32.rc8",
		"prmt.b32.ecl", "prmt.b32.ecr", "prmt.b32.rc16"};
	for (unsigned k = 0; k < sizeof prmt / sizeof *prmt; k++)
		define(prmt[k], "b32:b32,b32,b32", m_prmt, 0);
	define("dp4a.u32.u32", "u32:u32,u32,u32", m_dot, 0);
	define("dp4a.s32.s32", "s32:s32,s32,s32", m_dot, 0);
	define("dp4a.u32.s32", "s32:u32,s32,s32", m_dot, 0);
	define("dp4a.s32.u32", "s32:s32,u32,s32", m_dot, 0);
	static const char *const two[] = {"lo", "hi"};
	for (int k = 0; k < 2; k++) {
		char n[48];
		static const char *const ty[] = {"u32", "s32"};
		for (int a = 0; a < 2; a++)
			for (int b = 0; b < 2; b++) {
				char s[48];
				snprintf(n, sizeof n, "dp2a.%s.%s.%s", two[k], ty[a], ty[b]);
				snprintf(s, sizeof s, "%s:%s,%s,s32", ty[a | b], ty[a], ty[b]);
				define(n, s, m_dot, 0);
			}
	}
	static const char *const cmp[] = {"eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"};
	for (unsigned k = 0; k < 10; k++) {
		char n[48];
		const char *ty = k < 6 ? every : "u16 u32 u64";
		snprintf(n, sizeof n, "setp.%s", cmp[k]);
		all(n, ty, "pred:T,T", m_setp);
		if (k < 2)
			all(n, "b16 b32 b64", "pred:T,T", m_setp);
		static const char *const comb[] = {"and", "or", "xor"};
		for (int c = 0; c < 3; c++) {
			snprintf(n, sizeof n, "setp.%s.%s", cmp[k], comb[c]);
			all(n, "u32 u64", "pred:T,T,pred", m_setp);
		}
		snprintf(n, sizeof n, "set.%s.u32", cmp[k]);
		all(n, "u32 u64", "u32:T,T", m_setp);
		snprintf(n, sizeof n, "set.%s.f32", cmp[k]);
		all(n, "u32", "u32:T,T", m_setp);
		snprintf(n, sizeof n, "set.%s.and.u32", cmp[k]);
		all(n, "u32", "u32:T,T,pred", m_setp);
	}
	define("slct.b32.s32", "b32:b32,b32,s32", m_slct, 0);
	define("slct.u32.s32", "u32:u32,u32,s32", m_slct, 0);
	define("slct.u64.s32", "u64:u64,u64,s32", m_slct, 0);
	define("slct.b16.s32", "b16:b16,b16,s32", m_slct, 0);
	define("slct.b32.f32", "b32:b32,b32,f32", m_slct, 0);
	define("slct.f64.f32", "f64:f64,f64,f32", m_slct, 0);
	static const char *const pairs[] = {
		"add.u16x2", "add.s16x2", "min.u16x2", "min.s16x2", "max.u16x2", "max.s16x2"};
	for (unsigned k = 0; k < 6; k++)
		define(pairs[k], "b32:b32,b32", m_pairs, 0);
	define("min.s16x2.relu", "b32:b32,b32", m_pairs, 0);
	define("max.s16x2.relu", "b32:b32,b32", m_pairs, 0);
	define("min.s32.relu", "s32:s32,s32", m_arith, 0);
	define("max.s32.relu", "s32:s32,s32", m_arith, 0);
	chain("add.cc.u32 %r8,%r11,%r11;", "addc.u32", "u32:u32,u32,!u32");
	chain("sub.cc.u32 %r8,%r11,%r9;", "subc.u32", "u32:u32,u32,!u32");
	chain("add.cc.u64 %d4,%d7,%d7;", "addc.u64", "u64:u64,u64,!u64");
	chain("sub.cc.u64 %d4,%d7,%d5;", "subc.cc.u64", "u64:u64,u64,!u64");
	chain("add.cc.u32 %r8,%r11,%r11;", "addc.cc.u32", "u32:u32,u32,!u32");
	chain("mad.lo.cc.u32 %r8,%r9,%r10,%r11;", "madc.hi.u32", "u32:u32,u32,u32");
	chain("mad.lo.cc.u64 %d4,%d5,%d6,%d7;", "madc.hi.cc.u64", "u64:u64,u64,u64");
}
