/* SPDX-License-Identifier: Apache-2.0 */
/* Instruction conformance: one small kernel per mnemonic, made from a table, run over edge and random values
 * with full warps, partial warps and single lanes, and compared with the scalar models of model.c, which
 * share no code with the engine. Prints how many mnemonics were covered. `check_insn sse2|avx2|avx512` picks
 * the build of the handlers; `check_insn list` prints the mnemonics, `check_insn text FILE` writes
 * the kernels; SHOWN is how many wrong lanes of a case are
 * printed. Linked with device_cuda.c it runs on a GPU.
 *
 * Thread rule: one thread. */
#include "tests/soft/engine/check_insn.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/soft/engine/device.h"
#include "tests/soft/engine/golden.h"
#include "tests/soft/engine/text.h"

enum { MAX_TESTS = 4096, TUPLES = 1024, IN_WORDS = 4 };

static struct test tests[MAX_TESTS];
static unsigned ntests, failures, shown = 3;
static size_t start[MAX_TESTS + 1];

void define(const char *mnemonic, const char *types, model *m, double ulps)
{
	if (ntests == MAX_TESTS) {
		printf("too many tests\n");
		exit(1);
	}
	struct test *t = &tests[ntests++];
	snprintf(t->mnemonic, sizeof t->mnemonic, "%s", mnemonic);
	t->model = m;
	t->ulps = ulps;
	const char *p = types;
	while (*p && t->n < sizeof t->type / sizeof *t->type) {
		char name[16] = "";
		sscanf(p, "%15[^:,]", name);
		snprintf(t->type[t->n++], sizeof t->type[0], "%s", name);
		p += strlen(name);
		p += *p == ':' || *p == ',';
	}
}

void define_near(const char *mnemonic, const char *types, model *m, double ulps, double absolute)
{
	define(mnemonic, types, m, ulps);
	tests[ntests - 1].absolute = absolute;
}

void define_before(const char *before, const char *mnemonic, const char *types, model *m)
{
	define(mnemonic, types, m, 0);
	snprintf(tests[ntests - 1].before, sizeof tests[0].before, "%s", before);
}

unsigned type_bits(const char *t)
{
	t += *t == '!';
	if (!strcmp(t, "pred"))
		return 1;
	if (strstr(t, "x2"))
		return 32;
	while (*t && (*t < '0' || *t > '9'))
		t++;
	return (unsigned)atoi(t);
}

/* A literal operand is written as #value in the type list: only its text is used. */
static void kernel(unsigned k, const struct test *t)
{
	add(".visible .entry k%u(.param .u64 in, .param .u64 out, .param .u32 n) {\n .reg .pred %%p<8>; .reg "
	    ".b16 %%h<8>; .reg .b32 %%r<16>; .reg .b64 %%d<16>;\n"
	    " ld.param.u64 %%d0,[in]; ld.param.u64 %%d1,[out]; ld.param.u32 %%r0,[n]; mov.u32 "
	    "%%r1,%%ctaid.x; mov.u32 %%r2,%%ntid.x; mov.u32 %%r3,%%tid.x;\n"
	    " mad.lo.u32 %%r4,%%r1,%%r2,%%r3; setp.ge.u32 %%p0,%%r4,%%r0; @%%p0 ret; mul.wide.u32 "
	    "%%d2,%%r4,32; add.u64 %%d0,%%d0,%%d2;\n"
	    " mul.wide.u32 %%d2,%%r4,8; add.u64 %%d1,%%d1,%%d2;\n",
		k);
	char ops[256] = "";
	for (unsigned i = 1; i < t->n; i++) {
		unsigned b = type_bits(t->type[i]);
		char name[24];
		if (t->type[i][0] == '#') {
			snprintf(name, sizeof name, "%s", t->type[i] + 1);
		} else if (b == 1) {
			add(" ld.global.u32 %%r5,[%%d0+%u]; and.b32 %%r5,%%r5,1; setp.ne.u32 %%p%u,%%r5,0;\n",
				(i - 1) * 8, i);
			snprintf(name, sizeof name, "%%p%u", i);
		} else if (b == 64) {
			add(" ld.global.u64 %%d%u,[%%d0+%u];\n", i + 4, (i - 1) * 8);
			snprintf(name, sizeof name, "%%d%u", i + 4);
		} else if (b == 32) {
			add(" ld.global.u32 %%r%u,[%%d0+%u];\n", i + 8, (i - 1) * 8);
			snprintf(name, sizeof name, "%%r%u", i + 8);
		} else {
			add(" ld.global.u16 %%h%u,[%%d0+%u];\n", i, (i - 1) * 8);
			snprintf(name, sizeof name, b == 8 ? "%%h%u" : "%%h%u", i);
		}
		const char *more = strchr(t->type[i], '/');
		if (t->type[i][0] != '!') /* !: loaded for the text in front, no operand */
			strcat(strcat(ops, more && more[1] == '-' ? ",-" : ","), name);
		if (more && more[1] == '.')
			strcat(ops, more + 1);
	}
	unsigned b = type_bits(t->type[0]);
	const char *dst = b == 1 ? "%p7" : b == 64 ? "%d4" : b == 32 ? "%r8" : "%h0";
	const char *field = strchr(t->type[0], '/');
	add(" %s%s%s %s%s%s;\n", t->before, *t->before ? "\n " : "", t->mnemonic, dst, field ? field + 1 : "",
			ops);
	if (b == 1)
		add(" selp.u32 %%r8,1,0,%%p7; st.global.u32 [%%d1],%%r8; ret; }\n");
	else
		add(" st.global.u%u [%%d1],%s; ret; }\n", b == 8 ? 16 : b, dst);
}

static uint64_t mask_of(unsigned bits)
{
	return bits >= 64 ? ~0ull : bits == 1 ? 1 : (1ull << bits) - 1;
}

static bool close_enough(const struct test *t, uint64_t got, uint64_t want)
{
	const char *d = t->type[0];
	if (got == want)
		return true;
	if (!strcmp(d, "f32")) {
		float g, w;
		memcpy(&g, &got, 4);
		memcpy(&w, &want, 4);
		if (isnan(w))
			return isnan(g);
		if (!t->ulps || isinf(w) || isinf(g))
			return false;
		float gap = nextafterf(fabsf(w), INFINITY) - fabsf(w);
		return fabs((double)g - w) <= t->ulps * gap || fabs((double)g - w) <= t->absolute;
	}
	if (!strcmp(d, "f64")) {
		double g, w;
		memcpy(&g, &got, 8);
		memcpy(&w, &want, 8);
		return isnan(w)
			       ? isnan(g)
			       : t->ulps && fabs(g - w) <= t->ulps * (nextafter(fabs(w), INFINITY) - fabs(w));
	}
	bool half = !strncmp(d, "f16", 3), brain = !strncmp(d, "bf16", 4);
	if (half || brain) {
		for (unsigned k = 0; k < (strstr(d, "x2") ? 2u : 1u); k++) {
			uint32_t g = got >> 16 * k & 0xffff, w = want >> 16 * k & 0xffff,
				 inf = half ? 0x7c00 : 0x7f80;
			bool nan = (w & 0x7fff) > inf;
			int gap = (int)g - (int)w;
			if (nan ? (g & 0x7fff) <= inf : g != w && (!t->ulps || abs(gap) > t->ulps))
				return false;
		}
		return true;
	}
	return false;
}

/* A result as the file of a GPU's results has it: there is one NaN. */
static uint64_t plain(const struct test *t, uint64_t v)
{
	const char *d = t->type[0];
	v &= mask_of(type_bits(d));
	if (!strcmp(d, "f32"))
		return (v & 0x7fffffff) > 0x7f800000 ? 0x7fffffff : v;
	if (!strcmp(d, "f64"))
		return (v & ~0ull >> 1) > 0x7ffull << 52 ? ~0ull >> 1 : v;
	if (strncmp(d, "f16", 3) && strncmp(d, "bf16", 4))
		return v;
	for (unsigned k = 0; k < type_bits(d); k += 16)
		if ((v >> k & 0x7fff) > (*d == 'f' ? 0x7c00 : 0x7f80))
			v |= 0x7fffull << k;
	return v;
}

static bool near(const void *what, uint64_t got, uint64_t recorded)
{
	return close_enough(what, got, recorded);
}

/* How far a result of an approximation is from the model, in units of the last place; infinite for other
 * kinds. */
static double distance(const struct test *t, uint64_t got, uint64_t want)
{
	if (got == want)
		return 0;
	if (!strcmp(t->type[0], "f32")) {
		float g, w;
		memcpy(&g, &got, 4);
		memcpy(&w, &want, 4);
		return isnan(g) && isnan(w)   ? 0
		       : isfinite(g) && isfinite(w)
		       		? fabs((double)g - w) / (nextafterf(fabsf(w), INFINITY) - fabsf(w))
						    : INFINITY;
	}
	if (!strcmp(t->type[0], "f64")) {
		double g, w;
		memcpy(&g, &got, 8);
		memcpy(&w, &want, 8);
		return isnan(g) && isnan(w)   ? 0
		       : isfinite(g) && isfinite(w) ? fabs(g - w) / (nextafter(fabs(w), INFINITY) - fabs(w))
						    : INFINITY;
	}
	double far = 0;
	for (unsigned k = 0; k < type_bits(t->type[0]); k += 16) {
		double d = abs((int)(got >> k & 0xffff) - (int)(want >> k & 0xffff));
		far = d > far ? d : far;
	}
	return far;
}

/* n lanes; the results go to the golden file when `golden`. */
static bool run(unsigned k, const uint64_t *in, uint64_t *out, unsigned n, unsigned threads, bool golden)
{
	const struct test *t = &tests[k];
	struct {
		const uint64_t *in;
		uint64_t *out;
		uint32_t n;
	} params = {in, out, n};
	const char *why = "";
	memset(out, 0, TUPLES * 8);
	if (!device_launch(k, (n + threads - 1) / threads, threads, &params, 20, &why)) {
		printf("FAILED %s: %s\n", t->mnemonic, why);
		return false;
	}
	unsigned bits = type_bits(t->type[0]), wrong = 0;
	double far = 0;
	for (unsigned i = 0; i < n; i++) {
		const uint64_t *v = in + i * IN_WORDS;
		uint64_t a[sizeof t->type / sizeof *t->type] = {0};
		for (unsigned j = 1; j < t->n; j++)
			a[j - 1] = t->type[j][0] == '#' ? strtoull(t->type[j] + 1, NULL, 0)
							: v[j - 1] & mask_of(type_bits(t->type[j]));
		uint64_t want = t->model(t, a) & mask_of(bits), got = out[i] & mask_of(bits);
		if (golden)
			golden_result(plain(t, got));
		if (t->ulps)
			far = fmax(far, distance(t, plain(t, got), plain(t, want)));
		if (close_enough(t, got, want) || wrong++ >= shown)
			continue;
		printf("FAILED %s (%u threads): %#llx %#llx %#llx %#llx -> %#llx, want %#llx\n", t->mnemonic,
				threads,
			(unsigned long long)a[0], (unsigned long long)a[1], (unsigned long long)a[2],
			(unsigned long long)a[3], (unsigned long long)got, (unsigned long long)want);
	}
	if (wrong > shown)
		printf("FAILED %s: %u lanes of %u in all\n", t->mnemonic, wrong, n);
	if (t->ulps && getenv("SHOWN") && golden)
		printf("%s: at most %g units of the last place from the model, %g allowed\n", t->mnemonic,
				far, t->ulps);
	return !wrong;
}

/* What names a case in the golden file. */
static void key_of(const struct test *t, char *key, size_t n)
{
	size_t used_key = (size_t)snprintf(key, n, "%s", t->mnemonic);
	for (unsigned i = 0; i < t->n; i++)
		used_key += (size_t)snprintf(key + used_key, n - used_key, "%c%s",
				i == 1 ? ':' : i ? ',' : ' ',
			t->type[i]);
	if (*t->before)
		snprintf(key + used_key, n - used_key, " %.*s", (int)strcspn(t->before, " "), t->before);
}

static uint64_t seed = 88172645463325252ull;
static uint64_t noise(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

static uint64_t edge(const char *type)
{
	type += *type == '!';
	static const uint64_t ints[] = {0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 24, 30, 31, 32, 33, 63, 64, 65,
		127, 128, 255, 256, 32767, 32768, 65535, 65536, 0x7fffffff, 0x80000000, 0x80000001,
		0xffffffff, 0x100000000, 0x7fffffffffffffff, 0x8000000000000000, ~0ull, ~0ull - 1, ~0ull - 7,
		0x5555555555555555, 0xaaaaaaaaaaaaaaaa};
	static const float singles[] = {0, -0.0f, 1, -1, 0.5f, -0.5f, 1.5f, 2.5f, -2.5f, 3.5f, INFINITY,
		-INFINITY, NAN, 1e-45f, -1e-45f, 1.17549421e-38f, 1.17549435e-38f, 3.40282347e38f,
		-3.40282347e38f, 3.14159274f, 1e10f, -1e10f, 2147483648.0f, -2147483648.0f, 4294967296.0f,
		9.2e18f, 1.8446744e19f, 65504, 65520, 65519.996f, 6e-8f, 6.1e-5f, 0.1f, 100.25f, -7.75f,
		127.5f, 255.5f, 1e-40f, 88.0f, -100.0f};
	static const double doubles[] = {0, -0.0, 1, -1, 0.5, 1.5, 2.5, -2.5, INFINITY, -INFINITY, NAN,
		5e-324, 2.2250738585072009e-308, 2.2250738585072014e-308, 1.7976931348623157e308,
		3.141592653589793, 1e10, -1e10, 2147483648.5, -2147483649.0, 4294967295.5, 9.3e18, -9.3e18,
		1.9e19, 65504, 65520, 1e-8, 6e-8, 0.1, 1e39, 1e-40, 1.00000005960464478,
		3.4028235677973366e38, 1e-46};
	static const uint16_t halves[] = {0, 0x8000, 0x3c00, 0xbc00, 0x3800, 0x3e00, 0x4100, 0x7bff, 0xfbff,
		0x7c00, 0xfc00, 0x7e00, 1, 0x8001, 0x3ff, 0x400, 0x3c01, 0x4248, 0x7f80, 0xff80, 0x3f80,
		0x4049, 0x7f7f, 0x80, 0x7f};
	uint64_t v = noise(), k = noise();
	if (k & 1) {
		if (!strcmp(type, "f32") && k & 2) { /* random, but of a size that does not vanish */
			float f =
				(float)((double)(int64_t)v / 0x1p63 * exp2((double)(int)(k >> 8 & 31) - 12));
			v = 0;
			memcpy(&v, &f, 4);
		} else if (!strcmp(type, "f64") && k & 2) {
			double f = (double)(int64_t)v / 0x1p63 * exp2((double)(int)(k >> 8 & 63) - 24);
			memcpy(&v, &f, 8);
		}
		return v;
	}
	if (!strcmp(type, "f32")) {
		uint64_t r = 0;
		memcpy(&r, &singles[k / 2 % (sizeof singles / sizeof *singles)], 4);
		return r;
	}
	if (!strcmp(type, "f64")) {
		memcpy(&v, &doubles[k / 2 % (sizeof doubles / sizeof *doubles)], 8);
		return v;
	}
	if (strstr(type, "f16")) {
		uint64_t a = halves[k / 2 % (sizeof halves / sizeof *halves)],
			 b = halves[k / 512 % (sizeof halves / sizeof *halves)];
		return a | b << 16;
	}
	return ints[k / 2 % (sizeof ints / sizeof *ints)];
}

static const char head[] = ".version 8.7\n.target sm_90\n.address_size 64\n";

static bool save(const char *name)
{
	FILE *f = fopen(name, "w");
	if (!f)
		return false;
	bool good = fputs(head, f) >= 0 && fwrite(text, 1, used, f) == used;
	return !fclose(f) && good;
}

/* The inputs of a case depend on its name alone. */
static bool check(unsigned k, uint64_t *in, uint64_t *out)
{
	const struct test *t = &tests[k];
	char key[160] = "insn ";
	key_of(t, key + strlen(key), sizeof key - strlen(key));
	seed = 88172645463325252ull;
	for (const char *p = key; *p; p++)
		seed = (seed ^ (unsigned char)*p) * 1099511628211u;
	for (unsigned i = 0; i < TUPLES; i++)
		for (unsigned j = 0; j < IN_WORDS; j++)
			in[i * IN_WORDS + j] = j + 1 < t->n ? edge(t->type[j + 1]) : 0;
	if (device_refusal(k)) {
		return golden_refused(key, device_refusal(k));
	}
	golden_begin(key, t->ulps ? near : NULL, t);
	golden_input(in, TUPLES * IN_WORDS * 8);
	bool good = run(k, in, out, TUPLES, 64, true);
	good = golden_end() && good;
	return good && run(k, in, out, TUPLES / 4, 13, false) && run(k, in, out, 40, 1, false);
}

int main(int argc, char **argv)
{
	define_integer();
	define_float();
	define_convert();
	define_wide();
	define_video();
	define_small();
	define_extreme();
	if (argc > 1 && !strcmp(argv[1], "list")) {
		for (unsigned k = 0; k < ntests; k++)
			printf("%s\n", tests[k].mnemonic);
		return 0;
	}
	if (getenv("SHOWN"))
		shown = (unsigned)atoi(getenv("SHOWN"));
	for (unsigned k = 0; k < ntests; k++) {
		kernel(k, &tests[k]);
		start[k + 1] = used;
	}
	if (argc > 2 && !save(argv[2]))
		return 1;
	if (argc > 2 && !strcmp(argv[1], "text"))
		return 0;
	if (!device_open(argc > 1 ? argv[1] : NULL) || !golden_open())
		return 1;
	if (!device_load(head, text, start, ntests))
		return 1;
	uint64_t *in = device_alloc(TUPLES * IN_WORDS * 8), *out = device_alloc(TUPLES * 8);
	if (!in || !out)
		return 1;
	unsigned covered = 0, distinct = 0;
	for (unsigned k = 0; k < ntests; k++) {
		bool first = true;
		for (unsigned i = 0; i < k && first; i++)
			first = strcmp(tests[i].mnemonic, tests[k].mnemonic) != 0;
		distinct += first;
		bool good = check(k, in, out);
		failures += !good;
		covered += good;
	}
	printf("%s: %u of %u tests as the model says, %u mnemonics\n", argc > 1 ? argv[1] : "default",
		covered, ntests, distinct);
	failures += !golden_close("insn ");
	device_close();
	return failures != 0;
}
