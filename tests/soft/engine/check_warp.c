/* SPDX-License-Identifier: Apache-2.0 */
/* What the lanes of a warp do together, under full and partial masks, against models written as loops over
 * the lanes: shuffles with every segment width, votes, matches, reductions, elections, masks, reductions at
 * block barriers, products of matrices of which one is sparse. `check_warp text` prints the kernels.
 *
 * Thread rule: one thread. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/soft/engine/device.h"
#include "tests/soft/engine/golden.h"
#include "tests/soft/engine/text.h"

enum { LANES = 32, ROUNDS = 60 };

struct lanes {
	uint64_t a[LANES];
	uint32_t b[LANES], c, mask;
};
/* The result of one lane: low word the value, high word the predicate. */
typedef uint64_t model(const struct lanes *x, unsigned l, const char *op);
struct test {
	const char *op;
	model *m;
};

static bool has(const char *s, const char *x)
{
	return strstr(s, x) != NULL;
}

static uint64_t m_shfl(const struct lanes *x, unsigned l, const char *op)
{
	unsigned seg = x->c >> 8 & 31, clamp = x->c & 31, b = x->b[l] & 31, most = (l & seg) | (clamp & ~seg),
		 low = l & seg;
	int j = has(op, ".up")     ? (int)l - (int)b
		: has(op, ".down") ? (int)(l + b)
		: has(op, ".bfly") ? (int)(l ^ b)
				   : (int)(low | (b & ~seg));
	bool in = has(op, ".up") ? j >= (int)most : j <= (int)most;
	unsigned from = in ? (unsigned)j & 31 : l;
	return (x->mask >> from & 1 ? (uint32_t)x->a[from] : 0) | (uint64_t)in << 32;
}

static uint64_t m_vote(const struct lanes *x, unsigned l, const char *op)
{
	(void)l;
	uint32_t yes = 0;
	for (unsigned k = 0; k < LANES; k++)
		yes |= (uint32_t)(x->a[k] & 1) << k;
	yes &= x->mask;
	if (has(op, "ballot"))
		return yes;
	return has(op, "all") ? yes == x->mask : has(op, "any") ? yes != 0 : yes == 0 || yes == x->mask;
}

static uint64_t m_match(const struct lanes *x, unsigned l, const char *op)
{
	uint32_t same = 0;
	for (unsigned k = 0; k < LANES; k++)
		if (x->mask >> k & 1 &&
			(has(op, "b64") ? x->a[k] == x->a[l] : (uint32_t)x->a[k] == (uint32_t)x->a[l]))
			same |= 1u << k;
	if (has(op, "any"))
		return same;
	return same == x->mask ? same | 1ull << 32 : 0;
}

static uint64_t m_redux(const struct lanes *x, unsigned l, const char *op)
{
	(void)l;
	bool first = true;
	uint32_t r = 0;
	for (unsigned k = 0; k < LANES; k++) {
		if (!(x->mask >> k & 1))
			continue;
		uint32_t v = (uint32_t)x->a[k];
		bool less = has(op, "s32") ? (int32_t)v < (int32_t)r : v < r;
		if (first)
			r = v;
		else if (has(op, "add"))
			r += v;
		else if (has(op, "min"))
			r = less ? v : r;
		else if (has(op, "max"))
			r = less ? r : v;
		else
			r = has(op, "and") ? r & v : has(op, "xor") ? r ^ v : r | v;
		first = false;
	}
	return r;
}

static uint64_t m_mask(const struct lanes *x, unsigned l, const char *op)
{
	if (has(op, "activemask"))
		return x->mask;
	unsigned leader = (unsigned)__builtin_ctz(x->mask);
	return leader | (uint64_t)(l == leader) << 32;
}

static uint64_t m_bar(const struct lanes *x, unsigned l, const char *op)
{
	(void)l;
	unsigned n = 0, all = (unsigned)__builtin_popcount(x->mask);
	for (unsigned k = 0; k < LANES; k++)
		n += x->mask >> k & x->a[k] & 1;
	return has(op, "popc") ? n : has(op, "and") ? n == all : n != 0;
}

/* ---- products with a sparse A: registers are made of the lanes' values; see prepare */

struct kind {
	const char *name;
	unsigned bits;
	uint32_t fixed, free; /* a register's bits: so that sums are exact */
};
static const struct kind kinds[] = {{".s8", 8, 0, ~0u}, {".u8", 8, 0, ~0u}, {".s4", 4, 0, ~0u},
		{".u4", 4, 0, ~0u},
	{".f16.f16", 16, 0x3c003c00, 0x03000300}, {".bf16", 16, 0x3f803f80, 0x00600060},
		{".tf32", 32, 0x3f800000, 0x00600000},
	{".e4m3", 8, 0x38383838, 0x06060606}};

static const struct kind *kind_of(const char *op)
{
	for (unsigned k = 0; k < sizeof kinds / sizeof *kinds; k++)
		if (has(op, kinds[k].name))
			return &kinds[k];
	abort();
}

static bool whole(const char *op)
{
	return has(op, ".s32");
}

static void registers(const struct lanes *x, unsigned l, const char *op, uint32_t *a, uint32_t *b,
		uint32_t *e)
{
	const struct kind *k = kind_of(op);
	a[0] = (uint32_t)x->a[l], a[1] = (uint32_t)(x->a[l] >> 32);
	a[2] = a[0] * 0x1000193 + 1, a[3] = a[1] * 0x1000193 + 7;
	b[0] = a[0] ^ 0x5a5a1234, b[1] = a[1] + 0x13579bdf, b[2] = a[2] ^ 0x0f0f3c3c,
			b[3] = a[3] + 0x2468ace1;
	uint32_t m = a[0] * 0x9e3779b1 & 0x88888888;
	*e = 0x44444444 | m | (m >> 2 & (k->bits == 32 ? ~0u : a[1]));
	for (unsigned i = 0; i < 4; i++) {
		a[i] = k->fixed | (a[i] & k->free);
		b[i] = k->fixed | (b[i] & k->free);
	}
}

static int value(const char *op, const uint32_t *r, unsigned at)
{
	const struct kind *k = kind_of(op);
	uint32_t v = r[at * k->bits / 32] >> at * k->bits % 32;
	if (!whole(op)) /* quarters above one */
		return 4 + (int)(v / (k->free & -k->free) & 3);
	v &= (1u << k->bits) - 1;
	return (int)v - (k->name[1] == 's' && v >> (k->bits - 1) ? 1 << k->bits : 0);
}

static uint64_t m_sparse(const struct lanes *x, unsigned l, const char *op)
{
	uint32_t a[LANES][4], b[LANES][4], e[LANES];
	const struct kind *k = kind_of(op);
	unsigned each = 32 / k->bits, depth = (unsigned)atoi(strstr(op, "n8k") + 3),
			selector = (unsigned)(op[strlen(op) - 1] - '0');
	unsigned columns = k->bits == 4 ? 8 : k->bits == 32 ? 2 : 4; /* of a group */
	for (unsigned i = 0; i < LANES; i++)
		registers(x, i, op, a[i], b[i], &e[i]);
	int64_t sum = 0;
	for (unsigned i = 0; i < 4; i++) {
		unsigned row = l / 4 + i / 2 * 8, col = l % 4 * 2 + i % 2;
		int64_t s = 0;
		for (unsigned c = 0; c < depth / 2; c++) { /* what is stored of the row */
			unsigned group = c / (columns / 2), in = c % (columns / 2), chooser = row % 8 * 4,
					shift;
			if (k->bits <= 8) {
				chooser += selector * 2 + group / 8 * 2 + row / 8;
				shift = group % 8 * 4;
			} else {
				unsigned lanes = depth / (k->bits == 32 ? 8 : 16);
				chooser += selector * lanes + group / 4;
				shift = group % 4 * 4 + row / 8 * 16;
			}
			unsigned two = e[chooser] >> shift & 15, first = two & 3, second = two >> 2,
					at = group * columns;
			at += k->bits == 32 ? first / 2 :
					k->bits == 4 ? 2 * (in / 2 ? second : first) + in % 2 : in ? second :
							first;
			int p = value(op, a[row % 8 * 4 + c / each % 4],
					(c / (4 * each) * 2 + row / 8) * each + c % each),
			    q = value(op, b[col * 4 + at / each % 4], at / (4 * each) * each + at % each);
			s += (int64_t)p * q;
		}
		sum += s * (2 * (int64_t)i + 1);
	}
	return (uint32_t)sum;
}

/* In front of the instruction, and behind it: its four results as one number. */
static void prepare(const char *op)
{
	const struct kind *k = kind_of(op);
	add(" .reg .b32 %%a<4>,%%b<4>,%%e,%%t; .reg .b32 %%o<4>,%%z; .reg .f32 %%f<4>,%%y; "
			"mov.b64 {%%a0,%%a1},%%d9; mov.u32 %%z,0; mov.f32 %%y,0f00000000;\n"
	    " mad.lo.u32 %%a2,%%a0,0x1000193,1; mad.lo.u32 %%a3,%%a1,0x1000193,7; "
	    "xor.b32 %%b0,%%a0,0x5a5a1234; add.u32 %%b1,%%a1,0x13579bdf;\n"
	    " xor.b32 %%b2,%%a2,0x0f0f3c3c; add.u32 %%b3,%%a3,0x2468ace1; mul.lo.u32 %%t,%%a0,0x9e3779b1; "
	    "and.b32 %%t,%%t,0x88888888; shr.u32 %%e,%%t,2;\n"
	    " %s or.b32 %%e,%%e,%%t; or.b32 %%e,%%e,0x44444444;\n",
		k->bits == 32 ? "" : "and.b32 %e,%e,%a1;");
	for (unsigned i = 0; i < 8; i++)
		add(" and.b32 %%%c%u,%%%c%u,0x%x; or.b32 %%%c%u,%%%c%u,0x%x;\n", "ab"[i / 4], i % 4,
				"ab"[i / 4], i % 4, k->free, "ab"[i / 4], i % 4,
			"ab"[i / 4], i % 4, k->fixed);
}

static void combine(const char *op)
{
	for (unsigned i = 0; i < 4 && !whole(op); i++)
		add(" mul.f32 %%f%u,%%f%u,0f41800000; cvt.rni.s32.f32 %%o%u,%%f%u;\n", i, i, i, i);
	add(" mad.lo.u32 %%r13,%%o1,3,%%o0; mad.lo.u32 %%r13,%%o2,5,%%r13; mad.lo.u32 %%r13,%%o3,7,%%r13;\n");
}

#define SPARSE "mma.sp.sync.aligned."
#define ORDERED "mma.sp::ordered_metadata.sync.aligned."
#define WHOLE2 " {%o0,%o1,%o2,%o3},{%a0,%a1},{%b0,%b1},{%z,%z,%z,%z},%e,"
#define WHOLE4 " {%o0,%o1,%o2,%o3},{%a0,%a1,%a2,%a3},{%b0,%b1,%b2,%b3},{%z,%z,%z,%z},%e,"
#define FLOAT2 " {%f0,%f1,%f2,%f3},{%a0,%a1},{%b0,%b1},{%y,%y,%y,%y},%e,"
#define FLOAT4 " {%f0,%f1,%f2,%f3},{%a0,%a1,%a2,%a3},{%b0,%b1,%b2,%b3},{%y,%y,%y,%y},%e,"

/* %r9 the value, %d9 the wide one, %p1 its lowest bit, %r10 lane or delta, %r11 the clamp, %r12 the mask;
 * results: %r13 and %p2 */
static const struct test tests[] = {
	{"shfl.sync.up.b32 %r13|%p2,%r9,%r10,%r11,%r12", m_shfl},
	{"shfl.sync.down.b32 %r13|%p2,%r9,%r10,%r11,%r12", m_shfl},
	{"shfl.sync.bfly.b32 %r13|%p2,%r9,%r10,%r11,%r12", m_shfl},
	{"shfl.sync.idx.b32 %r13|%p2,%r9,%r10,%r11,%r12", m_shfl},
	{"vote.sync.all.pred %p2,%p1,%r12; selp.u32 %r13,1,0,%p2; setp.ne.u32 %p2,0,0", m_vote},
	{"vote.sync.any.pred %p2,%p1,%r12; selp.u32 %r13,1,0,%p2; setp.ne.u32 %p2,0,0", m_vote},
	{"vote.sync.uni.pred %p2,%p1,%r12; selp.u32 %r13,1,0,%p2; setp.ne.u32 %p2,0,0", m_vote},
	{"vote.sync.ballot.b32 %r13,%p1,%r12", m_vote},
	{"match.any.sync.b32 %r13,%r9,%r12", m_match},
	{"match.any.sync.b64 %r13,%d9,%r12", m_match},
	{"match.all.sync.b32 %r13|%p2,%r9,%r12", m_match},
	{"match.all.sync.b64 %r13|%p2,%d9,%r12", m_match},
	{"redux.sync.add.u32 %r13,%r9,%r12", m_redux},
	{"redux.sync.add.s32 %r13,%r9,%r12", m_redux},
	{"redux.sync.min.u32 %r13,%r9,%r12", m_redux},
	{"redux.sync.min.s32 %r13,%r9,%r12", m_redux},
	{"redux.sync.max.u32 %r13,%r9,%r12", m_redux},
	{"redux.sync.max.s32 %r13,%r9,%r12", m_redux},
	{"redux.sync.and.b32 %r13,%r9,%r12", m_redux},
	{"redux.sync.or.b32 %r13,%r9,%r12", m_redux},
	{"redux.sync.xor.b32 %r13,%r9,%r12", m_redux},
	{"activemask.b32 %r13", m_mask},
	{"elect.sync %r13|%p2,%r12", m_mask},
	{SPARSE "m16n8k32.row.col.s32.s8.s8.s32" WHOLE2 "0", m_sparse},
	{ORDERED "m16n8k32.row.col.s32.u8.u8.s32" WHOLE2 "1", m_sparse},
	{SPARSE "m16n8k64.row.col.s32.s8.s8.s32" WHOLE4 "0", m_sparse},
	{ORDERED "m16n8k64.row.col.s32.s4.s4.s32" WHOLE2 "1", m_sparse},
	{SPARSE "m16n8k128.row.col.s32.u4.u4.s32" WHOLE4 "0", m_sparse},
	{SPARSE "m16n8k16.row.col.f32.f16.f16.f32" FLOAT2 "0", m_sparse},
	{ORDERED "m16n8k16.row.col.f32.f16.f16.f32" FLOAT2 "3", m_sparse},
	{ORDERED "m16n8k32.row.col.f32.f16.f16.f32" FLOAT4 "1", m_sparse},
	{SPARSE "m16n8k16.row.col.f32.bf16.bf16.f32" FLOAT2 "2", m_sparse},
	{SPARSE "m16n8k32.row.col.f32.bf16.bf16.f32" FLOAT4 "0", m_sparse},
	{ORDERED "m16n8k8.row.col.f32.tf32.tf32.f32" FLOAT2 "1", m_sparse},
	{SPARSE "m16n8k16.row.col.f32.tf32.tf32.f32" FLOAT4 "1", m_sparse},
	{ORDERED "m16n8k64.row.col.f32.e4m3.e4m3.f32" FLOAT4 "0", m_sparse},
	{"barrier.red.popc.u32 %r13,1,%r14,%p1", m_bar},
	{"barrier.red.and.pred %p2,1,%r14,%p1; selp.u32 %r13,1,0,%p2; setp.ne.u32 %p2,0,0", m_bar},
	{"barrier.red.or.pred %p2,1,%r14,%p1; selp.u32 %r13,1,0,%p2; setp.ne.u32 %p2,0,0", m_bar},
};
enum { NTESTS = sizeof tests / sizeof *tests };

static uint64_t seed;
static uint64_t noise(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

static bool run(unsigned k, struct lanes *x, uint64_t *out)
{
	static const uint32_t clamps[] = {0x1f, 0x1c1f, 0x181f, 0x101f, 0x1e1f, 0, 0x1800, 0x100f};
	bool up = has(tests[k].op, ".up");
	uint64_t pick = noise();
	x->c = clamps[pick % 8];
	if (up)
		x->c &= 0x1f00;
	uint32_t mask = pick & 256 ? ~0u : (uint32_t)noise() | 1u << (pick >> 10 & 31);
	unsigned threads = pick & 512 ? LANES : 1 + (unsigned)(pick >> 20 & 31);
	uint32_t there = threads == LANES ? ~0u : (1u << threads) - 1;
	x->mask = mask & there ? mask & there : 1;
	if (has(tests[k].op, "barrier") || has(tests[k].op, "mma.")) { /* counts whole warps */
		threads = LANES;
		x->mask = ~0u;
	}
	for (unsigned l = 0; l < LANES; l++) {
		x->a[l] = pick & 1024 ? noise() : noise() % 3;
		if (pick & 2048 && !(pick & 4096))
			x->a[l] = 5;
		x->b[l] = (uint32_t)noise() % (pick & 8192 ? 33 : 6);
		out[l] = 0x1122334455667788;
	}
	const char *why = "";
	golden_input(x, sizeof *x);
	if (!device_launch(k, 1, threads, (void *[]){x, out}, 2 * sizeof(void *), &why)) {
		printf("FAILED %s: %s\n", tests[k].op, why);
		return false;
	}
	for (unsigned i = 0; i < LANES; i++)
		golden_result(out[i]);
	for (unsigned i = 0; i < LANES; i++) {
		uint64_t want = x->mask >> i & 1 ? tests[k].m(x, i, tests[k].op) : 0x1122334455667788;
		if (out[i] == want)
			continue;
		printf("FAILED %s: lane %u of mask %#x, c %#x, b %u: %#llx, want %#llx\n", tests[k].op, i,
				x->mask,
			x->c, x->b[i], (unsigned long long)out[i], (unsigned long long)want);
		return false;
	}
	return true;
}

/* The inputs of a case depend on its name alone. */
static bool check(unsigned k, struct lanes *x, uint64_t *out)
{
	char key[160];
	snprintf(key, sizeof key, "warp %s", tests[k].op);
	if (device_refusal(k)) {
		return golden_refused(key, device_refusal(k));
	}
	seed = 88172645463325252ull;
	for (const char *p = key; *p; p++)
		seed = (seed ^ (unsigned char)*p) * 1099511628211u;
	golden_begin(key, NULL, NULL);
	bool ok = true;
	for (unsigned i = 0; i < ROUNDS; i++)
		ok = run(k, x, out) && ok;
	return golden_end() && ok;
}

int main(int argc, char **argv)
{
	static const char top[] = ".version 8.6\n.target sm_90\n.address_size 64\n";
	static size_t start[NTESTS + 1];
	for (unsigned k = 0; k < NTESTS; k++) {
		add(".visible .entry k%u(.param .u64 in, .param .u64 out) {\n .reg .pred %%p<8>; .reg .b32 "
		    "%%r<16>; .reg .b64 %%d<16>;\n"
		    " ld.param.u64 %%d0,[in]; ld.param.u64 %%d1,[out]; mov.u32 %%r0,%%laneid; mul.wide.u32 "
		    "%%d2,%%r0,8; add.u64 %%d3,%%d0,%%d2; add.u64 %%d4,%%d1,%%d2;\n"
		    " mul.wide.u32 %%d5,%%r0,4; add.u64 %%d5,%%d0,%%d5; ld.global.u64 %%d9,[%%d3]; "
		    "cvt.u32.u64 %%r9,%%d9; ld.global.u32 %%r10,[%%d5+256];\n"
		    " ld.global.u32 %%r11,[%%d0+384]; ld.global.u32 %%r12,[%%d0+388]; popc.b32 %%r14,%%r12; "
		    "and.b32 %%r1,%%r9,1; setp.eq.u32 %%p1,%%r1,1; setp.ne.u32 %%p2,0,0;\n"
		    " shr.u32 %%r2,%%r12,%%r0; and.b32 %%r2,%%r2,1; setp.eq.u32 %%p3,%%r2,0; @%%p3 bra "
		    "OUT;\n",
			k);
		if (has(tests[k].op, "mma."))
			prepare(tests[k].op);
		add(" %s;\n", tests[k].op);
		if (has(tests[k].op, "mma."))
			combine(tests[k].op);
		add(" selp.u32 %%r15,1,0,%%p2; st.global.v2.u32 [%%d4],{%%r13,%%r15};\nOUT: ret; }\n");
		start[k + 1] = used;
	}
	if (argc > 1 && !strcmp(argv[1], "text"))
		return printf("%s%s", top, text) < 0;
	if (!device_open(argc > 1 ? argv[1] : NULL) || !golden_open())
		return 1;
	struct lanes *x = device_alloc(sizeof *x);
	uint64_t *out = device_alloc(LANES * 8);
	if (!x || !out || !device_load(top, text, start, NTESTS))
		return 1;
	unsigned good = 0;
	for (unsigned k = 0; k < NTESTS; k++)
		good += check(k, x, out);
	printf("%s: warps: %u of %u mnemonics as the model says\n", argc > 1 ? argv[1] : "default", good,
		(unsigned)NTESTS);
	bool same = golden_close("warp ");
	device_close();
	return good != NTESTS || !same;
}
