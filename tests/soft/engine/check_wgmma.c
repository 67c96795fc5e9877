/* SPDX-License-Identifier: Apache-2.0 */
/* wgmma: matrices are laid into shared memory by the layouts of the PTX manual (along k and across it, in
 * tiles of 8 by 16 bytes or swizzled by 32, 64 and 128 bytes), and the product of four warps is compared with
 * the sum that the manual means. Numbers are small and whole, so that every sum is exact. Linked with
 * device_cuda.c it runs on a GPU of capability 9.0. `check_wgmma text FILE` writes the kernels.
 *
 * Thread rule: one thread. */
#include <stdbool.h>
#include <stdio.h>
#include "tests/soft/engine/device.h"
#include "tests/soft/engine/matrix_values.h"
#include "tests/soft/engine/text.h"

enum {
	THREADS = 128,
	ROWS = 64,
	MAX_N = 256,
	MAX_K = 256,
	IMAGE_A = 8192,
	IMAGE_B = 32768,
	IMAGE = IMAGE_A + IMAGE_B,
	FRAGMENT = 128, /* words of D that a thread may have */
	MAX_CASES = 512
};

struct test {
	char name[96];
	unsigned n, k;
	char a, b, c; /* types, by the letters of matrix_values.h */
	unsigned wide_a, wide_b; /* bytes of a swizzled row; 16: none */
	bool registers, across_a, across_b;
	unsigned into; /* bytes: where in their rows the elements of the first k lie */
	int sign_a, sign_b;
	bool adds, twice, saturates;
};
static struct test tests[MAX_CASES];
static unsigned ntests;
static size_t start[MAX_CASES + 1];

static unsigned words(const struct test *t)
{
	return t->n / (t->c == 'h' ? 4 : 2);
}

static void product(const struct test *t, const char *predicate)
{
	char reg = t->c == 'f' ? 'f' : 'r';
	bool sixteen = t->a == 'h' || t->a == 'b', floats = t->c != 'i';
	add(" %s {", t->name);
	for (unsigned i = 0; i < words(t); i++)
		add("%s%%%c%u", i ? "," : "", reg, 32 + i);
	add("},%s,%%d4,%s", t->registers ? "{%r10,%r11,%r12,%r13}" : "%d3", predicate);
	if (floats)
		add(",%d,%d", t->sign_a, t->sign_b);
	if (sixteen && !t->registers)
		add(",%d", t->across_a);
	if (sixteen)
		add(",%d", t->across_b);
	add(";\n");
}

/* Parameters: what is to lie in shared memory, then D's fragments, then A's; where D goes; two descriptors
 * that lack the addresses; whether D is added to. */
static void kernel(const struct test *t, unsigned number)
{
	char reg = t->c == 'f' ? 'f' : 'r';
	const char *type = t->c == 'f' ? "f32" : "b32";
	add(".visible .entry k%u(.param .u64 in, .param .u64 out, .param .u64 da, .param .u64 db, "
			".param .u32 s)\n{\n"
	    " .reg .pred %%p<4>; .reg .b32 %%r<160>; .reg .f32 %%f<160>; .reg .b64 %%d<16>; "
	    ".shared .align 1024 .b8 tile[%u];\n"
	    " ld.param.u64 %%d0,[in]; ld.param.u64 %%d1,[out]; ld.param.u64 %%d3,[da]; "
	    "ld.param.u64 %%d4,[db];\n"
	    " ld.param.u32 %%r0,[s]; setp.ne.u32 %%p0,%%r0,0; setp.eq.u32 %%p3,%%r0,%%r0; "
	    "mov.u32 %%r1,%%tid.x; mov.u32 %%r2,tile;\n"
	    " mov.u32 %%r3,%%r1;\nFILL: shl.b32 %%r4,%%r3,4; cvt.u64.u32 %%d5,%%r4; add.u64 %%d5,%%d0,%%d5; "
	    "add.u32 %%r4,%%r4,%%r2;\n"
	    " ld.global.v4.u32 {%%r5,%%r6,%%r7,%%r8},[%%d5]; st.shared.v4.u32 [%%r4],{%%r5,%%r6,%%r7,%%r8};\n"
	    " add.u32 %%r3,%%r3,%u; setp.lt.u32 %%p1,%%r3,%u; @%%p1 bra FILL;\n fence.proxy.async; "
	    "bar.sync 0;\n"
	    " shr.u32 %%r2,%%r2,4; cvt.u64.u32 %%d5,%%r2; add.u64 %%d3,%%d3,%%d5; add.u64 %%d4,%%d4,%%d5;\n"
	    " mul.wide.u32 %%d6,%%r1,%u; add.u64 %%d7,%%d0,%%d6; add.u64 %%d8,%%d1,%%d6;\n",
		number, IMAGE, THREADS, IMAGE / 16, FRAGMENT * 4);
	for (unsigned i = 0; i < words(t); i++)
		add(" ld.global.%s %%%c%u,[%%d7+%u];\n", type, reg, 32 + i, IMAGE + 4 * i);
	add(" mul.wide.u32 %%d6,%%r1,16; add.u64 %%d7,%%d0,%%d6; "
			"ld.global.v4.u32 {%%r10,%%r11,%%r12,%%r13},[%%d7+%u];\n",
		IMAGE + THREADS * FRAGMENT * 4);
	add(" wgmma.fence.sync.aligned;\n");
	product(t, "%p0");
	add(" wgmma.commit_group.sync.aligned;\n");
	if (t->twice) {
		product(t, "%p3");
		add(" wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 1;\n");
	}
	add(" wgmma.wait_group.sync.aligned 0;\n");
	for (unsigned i = 0; i < words(t); i++)
		add(" st.global.%s [%%d8+%u],%%%c%u;\n", type, 4 * i, reg, 32 + i);
	add(" ret;\n}\n");
}

static void define(const char *types, unsigned n, bool registers, bool across_a, bool across_b, unsigned turn)
{
	static const unsigned wide[] = {16, 32, 64, 128};
	struct test *t = &tests[ntests];
	*t = (struct test){.n = n, .a = types[1], .b = types[2], .c = types[0]};
	t->wide_a = wide[turn % 4];
	t->wide_b = wide[turn / 4 % 4];
	t->registers = registers;
	t->across_a = across_a;
	t->across_b = across_b;
	t->k = 256 / kind(t->a)->bits;
	t->into = t->wide_a == t->wide_b && !across_a && !across_b &&
			t->wide_a > 32 ? turn % (t->wide_a / 32) * 32 : 0;
	bool floats = t->c != 'i';
	t->sign_a = floats && turn % 3 == 1 ? -1 : 1;
	t->sign_b = floats && turn % 5 == 1 ? -1 : 1;
	t->adds = turn % 7 != 3;
	t->twice = turn % 2;
	t->saturates = t->a != '1' && !floats && turn % 3 == 0;
	snprintf(t->name, sizeof t->name, "wgmma.mma_async.sync.aligned.m64n%uk%u%s.%s.%s.%s%s", n, t->k,
		t->saturates ? ".satfinite" : "", kind(t->c)->name, kind(t->a)->name, kind(t->b)->name,
		t->a == '1' ? ".and.popc" : "");
	kernel(t, ntests);
	start[++ntests] = used;
}

static void define_all(void)
{
	static const char *const sixteen[] = {"fhh", "hhh", "fbb"},
				 *const others[] = {"ftt", "f44", "f45", "h54", "f55", "icc", "icC", "iCc",
				 "iCC", "i11"};
	static const unsigned sizes[] = {8, 64, 128, 16, 256, 32, 96, 24};
	unsigned turn = 0;
	for (unsigned k = 0; k < 3 * 16 * 6; k++, turn++) {
		unsigned way = k / 16 % 6;
		define(sixteen[k / 96], sizes[turn * 5 % 8], way % 3 == 0, way % 3 == 2, way >= 3, k % 16);
	}
	for (unsigned k = 0; k < 10 * 16; k++, turn++)
		define(others[k / 16], sizes[turn * 3 % 8], k % 16 / 4 % 2, false, false, k % 16);
}

/* ---- matrices in memory */

static uint8_t image[IMAGE];

static void write_bits(unsigned byte, unsigned bit, unsigned bits, uint64_t v)
{
	if (bits == 1)
		image[byte] |= (uint8_t)(v << bit);
	else
		memcpy(image + byte, &v, bits / 8);
}

/* Of matrix A or B, whose rows (of B: columns) are `r`; returns the descriptor. Rows come in groups of 8. */
static uint64_t lay(unsigned base, unsigned rows, unsigned depth, unsigned bits, unsigned wide, bool across,
		unsigned into,
	uint64_t (*element)(unsigned r, unsigned k))
{
	unsigned leading, stride, swizzle = wide == 128 ? 1 : wide == 64 ? 2 : wide == 32 ? 3 : 0;
	/* tiles of 128 bytes; those along k follow all that are below each other */
	if (!across && wide == 16) {
		stride = 128;
		leading = rows / 8 * 128;
	} else if (!across) {
		stride = 8 * wide;
		leading = 16; /* counts for nothing */
	} else if (wide == 16) {
		stride = 128 * (depth / 8);
		leading = 128;
	} else { /* blocks of 8 places of k, as wide as a swizzled row; those of other rows lie apart */
		stride = 8 * wide;
		leading = depth / 8 * stride;
	}
	for (unsigned r = 0; r < rows; r++)
		for (unsigned k = 0; k < depth; k++) {
			unsigned line, byte, at; /* 8 lines of `wide` bytes, from `at` on */
			if (!across) {
				line = r % 8;
				byte = k * bits / 8 + into;
				at = r / 8 * stride + (wide == 16 ? byte / 16 * leading : 0);
				byte %= wide == 16 ? 16 : 1024;
			} else {
				unsigned columns = wide / 2; /* elements of 16 bits in a line */
				line = k % 8;
				byte = r % columns * 2;
				at = wide == 16 ? r / 8 * stride + k / 8 * leading :
						r / columns * leading + k / 8 * stride;
			}
			/* the 16-byte pieces of a line change places: by its number, its half, its quarter */
			unsigned turn = wide == 128 ? line : wide == 64 ? line / 2 : wide == 32 ? line / 4 :
					0;
			unsigned piece = byte / 16 ^ turn;
			write_bits(base + at + line * wide + piece * 16 + byte % 16, k * bits % 8, bits,
					element(r, k));
		}
	return (uint64_t)swizzle << 62 | (uint64_t)(stride >> 4) << 32 | (uint64_t)(leading >> 4) << 16 |
			(base + into) >> 4;
}

static double a[ROWS][MAX_K], b[MAX_K][MAX_N], c[ROWS][MAX_N];
static const struct test *current;

static uint64_t element_a(unsigned r, unsigned k)
{
	return encode(current->a, a[r][k]);
}

static uint64_t element_b(unsigned r, unsigned k)
{
	return encode(current->b, b[k][r]);
}

static void put(uint32_t *regs, unsigned bits, unsigned i, uint64_t v)
{
	regs[i * bits / 32] |= (uint32_t)((v & (bits == 32 ? ~0u : (1u << bits) - 1)) << i * bits % 32);
}

/* Elements of A that a thread holds: quarters of a row of 16 bytes, of two rows, of both halves of k. */
static void fragment_a(const struct test *t, uint32_t *to)
{
	unsigned bits = kind(t->a)->bits, each = 32 / bits;
	for (unsigned thread = 0; thread < THREADS; thread++)
		for (unsigned i = 0; i < 4 * each; i++) {
			unsigned word = i / each, row = thread / 32 * 16 + thread % 32 / 4 + word % 2 * 8,
				 k = word / 2 * 4 * each + thread % 4 * each + i % each;
			put(to + thread * 4, bits, i, encode(t->a, a[row][k]));
		}
}

static void where(unsigned thread, unsigned i, unsigned *row, unsigned *column)
{
	*row = thread / 32 * 16 + thread % 32 / 4 + (i % 4 < 2 ? 0 : 8);
	*column = i / 4 * 8 + thread % 4 * 2 + i % 2;
}

static void fragment_c(const struct test *t, uint32_t *to)
{
	unsigned bits = kind(t->c)->bits, row, column;
	for (unsigned thread = 0; thread < THREADS; thread++)
		for (unsigned i = 0; i < t->n / 2; i++) {
			where(thread, i, &row, &column);
			put(to + thread * FRAGMENT, bits, i, encode(t->c, c[row][column]));
		}
}

static void multiply(const struct test *t)
{
	for (unsigned i = 0; i < ROWS; i++)
		for (unsigned j = 0; j < t->n; j++) {
			double s = t->adds ? c[i][j] : 0;
			for (unsigned times = 0; times < 1u + t->twice; times++) {
				double sum = 0;
				for (unsigned k = 0; k < t->k; k++)
					sum += a[i][k] * b[k][j];
				s += sum * t->sign_a * t->sign_b;
				if (t->saturates)
					s = s > 2147483647.0 ? 2147483647.0 :
							s < -2147483648.0 ? -2147483648.0 : s;
			}
			c[i][j] = s;
		}
}

static void numbers(const struct test *t)
{
	for (unsigned i = 0; i < ROWS; i++)
		for (unsigned k = 0; k < t->k; k++)
			a[i][k] = value(t->a);
	for (unsigned k = 0; k < t->k; k++)
		for (unsigned j = 0; j < t->n; j++)
			b[k][j] = value(t->b);
	for (unsigned i = 0; i < ROWS; i++)
		for (unsigned j = 0; j < t->n; j++)
			c[i][j] = t->saturates ? (noise() & 1 ? 2147400000.0 : -2147400000.0) : value(t->c);
}

static bool run(unsigned number, uint8_t *in, uint32_t *out)
{
	const struct test *t = current = &tests[number];
	static uint32_t want[THREADS * FRAGMENT], first[THREADS * FRAGMENT], held[THREADS * 4];
	struct {
		const void *in;
		void *out;
		uint64_t da, db;
		uint32_t scale;
	} params = {in, out, 0, 0, t->adds};
	memset(image, 0, sizeof image);
	memset(want, 0, sizeof want);
	memset(first, 0, sizeof first);
	memset(held, 0, sizeof held);
	numbers(t);
	if (!t->registers)
		params.da = lay(0, ROWS, t->k, kind(t->a)->bits, t->wide_a, t->across_a, t->into, element_a);
	params.db = lay(IMAGE_A, t->n, t->k, kind(t->b)->bits, t->wide_b, t->across_b, t->into, element_b);
	fragment_a(t, held);
	fragment_c(t, first);
	multiply(t);
	fragment_c(t, want);
	memcpy(in, image, IMAGE);
	memcpy(in + IMAGE, first, sizeof first);
	memcpy(in + IMAGE + sizeof first, held, sizeof held);
	memset(out, 0, sizeof want);
	const char *why = device_refusal(number);
	if (why || !device_launch(number, 1, THREADS, &params, 36, &why)) {
		printf("FAILED %s: %s\n", t->name, why);
		return false;
	}
	for (unsigned i = 0; i < THREADS * FRAGMENT; i++)
		if (out[i] != want[i]) {
			printf("FAILED %s (%s, rows of %u and %u bytes%s%s, from byte %u), thread %u, "
					"word %u: %#x, want %#x\n", t->name,
				t->registers ? "A in registers" : "A in memory", t->wide_a, t->wide_b,
				t->across_a ? ", A across" : "", t->across_b ? ", B across" : "", t->into,
				i / FRAGMENT,
				i % FRAGMENT, out[i], want[i]);
			return false;
		}
	return true;
}

int main(int argc, char **argv)
{
	static const char head[] = ".version 8.7\n.target sm_90a\n.address_size 64\n";
	define_all();
	if (argc > 2 && !strcmp(argv[1], "text")) {
		FILE *f = fopen(argv[2], "w");
		return !f || fputs(head, f) < 0 || fwrite(text, 1, used, f) != used || fclose(f);
	}
	if (!device_open(argc > 1 ? argv[1] : NULL))
		return 1;
	uint8_t *in = device_alloc(IMAGE + THREADS * (FRAGMENT + 4) * 4);
	uint32_t *out = device_alloc(THREADS * FRAGMENT * 4);
	if (!in || !out || !device_load(head, text, start, ntests))
		return 1;
	unsigned good = 0;
	for (unsigned k = 0; k < ntests; k++)
		good += run(k, in, out);
	printf("%s: warpgroups: %u of %u products as the model says\n", argc > 1 ? argv[1] : "default", good,
			ntests);
	device_close();
	return good != ntests;
}
