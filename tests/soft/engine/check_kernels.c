/* SPDX-License-Identifier: Apache-2.0 */
/* check_kernels FILE.ptx: runs the kernels of kernels.cu as nvcc compiled them and checks what they compute.
 *
 * Thread rule: one thread; the engine has its own workers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "server/soft/engine.h"
#include "server/soft/memory.h"

static struct engine_module *m;
static int bad;
#define CHECK(c)                                                                                             \
	do {                                                                                                 \
		if (!(c)) {                                                                                  \
			printf("FAILED line %d: %s\n", __LINE__, #c);                                        \
			bad++;                                                                               \
		}                                                                                            \
	} while (0)
#define U(p) ((unsigned long)(p))

static int launch(
	const char *name, unsigned gx, unsigned gy, unsigned bx, unsigned by, void *params, bool cooperative)
{
	struct engine_function *f = engine_function_find(m, name);
	if (!f) {
		printf("FAILED: no kernel %s\n", name);
		exit(1);
	}
	struct engine_launch l = {.function = f,
		.grid = {gx, gy, 1},
		.block = {bx, by, 1},
		.cluster = {1, 1, 1},
		.params = params,
		.cooperative = cooperative,
		.time_limit_s = 60};
	struct engine_error e;
	int r = engine_launch(&l, &e);
	if (r && r != 710 && r != 700 && r != 716)
		printf("%s: %d %s\n", name, r, e.text);
	return r;
}
#define L(name, gx, gy, bx, by, ...) launch(name, gx, gy, bx, by, (unsigned long[]){__VA_ARGS__}, false)
#define LC(name, gx, gy, bx, by, shared, params, cooperative)                                                \
	launch(name, gx, gy, bx, by, params, cooperative)

static float h2f(unsigned short h)
{
	_Float16 x;
	memcpy(&x, &h, 2);
	return x;
}
static unsigned short f2h(float f)
{
	_Float16 x = (_Float16)f;
	unsigned short h;
	memcpy(&h, &x, 2);
	return h;
}

static void memory_and_barriers(void)
{
	{
		int n = 1 << 20;
		float *a = (float *)soft_alloc(4 * n, 256), *b = (float *)soft_alloc(4 * n, 256),
		      *d = (float *)soft_alloc(4 * n, 256);
		for (int i = 0; i < n; i++)
			a[i] = i, b[i] = 2 * i;
		L("vecadd", (n + 255) / 256, 1, 256, 1, (unsigned long)a, (unsigned long)b, (unsigned long)d,
			n - 3);
		int ok = 1;
		for (int i = 0; i < n; i++)
			ok &= d[i] == (i < n - 3 ? 3.f * i : 0);
		CHECK(ok);
		float *s = (float *)soft_alloc(4, 256);
		for (int i = 0; i < n; i++)
			a[i] = 1;
		L("reduce", (n + 255) / 256, 1, 256, 1, (unsigned long)a, (unsigned long)s, n);
		CHECK(*s == n);
		unsigned char *u = (void *)a;
		for (int i = 0; i < n; i++)
			u[i] = i * 7;
		unsigned *h = (unsigned *)soft_alloc(1024, 256);
		L("hist", 16, 1, 256, 1, (unsigned long)u, (unsigned long)h, n);
		for (int i = 0; i < 256; i++)
			CHECK(h[i] == (unsigned)n / 256);
	}
	{
		int n = 256;
		float *a = (float *)soft_alloc(4 * n * n, 256), *b = (float *)soft_alloc(4 * n * n, 256),
		      *d = (float *)soft_alloc(4 * n * n, 256);
		for (int i = 0; i < n * n; i++)
			a[i] = i % 7, b[i] = i % 5;
		for (int T = 16; T <= 32; T += 16) {
			memset(d, 0, 4 * n * n);
			L(T == 16 ? "matmul16" : "matmul32", n / T, n / T, T, T, (unsigned long)a,
				(unsigned long)b, (unsigned long)d, n);
			int ok = 1;
			for (int i = 0; i < n; i++)
				for (int j = 0; j < n; j++) {
					float s = 0;
					for (int k = 0; k < n; k++)
						s += a[i * n + k] * b[k * n + j];
					ok &= s == d[i * n + j];
				}
			CHECK(ok);
		}
	}
}

static void calls_and_divergence(void)
{
	int *o = (int *)soft_alloc(1 << 20, 256);
	float *fo = (void *)o;
	(void)fo;
	L("sym", 1, 1, 32, 1, (unsigned long)o);
	for (int i = 0; i < 32; i++) {
		int ga[8] = {1, 2, 3};
		CHECK(fo[i] == (i & 3) + 1 + 3 + ga[i & 7]);
	}
	{
		uint64_t p = 0;
		size_t n;
		bool mg;
		CHECK(engine_global_find(m, "gcount", &p, &n, &mg) && n == 4 && *(int *)p == 4);
	}
	{
		struct {
			int v[1000];
			unsigned long o;
		} pk;
		for (int i = 0; i < 1000; i++)
			pk.v[i] = i * 3;
		pk.o = (unsigned long)o;
		LC("bigp", 1, 1, 100, 1, 0, &pk, 0);
		for (int i = 0; i < 100; i++)
			CHECK(o[i] == i * 9 + 999 * 3);
	}
	{
		struct {
			unsigned long o;
			int w, h, it;
		} pk = {(unsigned long)o, 256, 256, 100};
		LC("mandel", 16, 16, 16, 16, 0, &pk, 0);
		int df = 0;
		for (int y = 0; y < 256; y++)
			for (int x = 0; x < 256; x++) {
				float cr = -2 + 3.f * x / 256, ci = -1.5f + 3.f * y / 256, zr = 0, zi = 0;
				int k = 0;
				while (k < 100 && zr * zr + zi * zi < 4) {
					float t = zr * zr - zi * zi + cr;
					zi = 2 * zr * zi + ci;
					zr = t;
					k++;
				}
				df += k != o[y * 256 + x];
			}
		CHECK(df < 300);
	}
	{
		int n = 4096;
		float *a = (float *)soft_alloc(4 * n * 8, 256);
		float *d = (float *)soft_alloc(4 * n * 8, 256);
		for (int i = 0; i < n * 8; i++)
			a[i] = sinf(i);
		L("softmax", 8, 1, 256, 1, (unsigned long)a, (unsigned long)d, n);
		for (int r = 0; r < 8; r++) {
			double s = 0, mx = -1e9;
			for (int i = 0; i < n; i++)
				mx = fmax(mx, a[r * n + i]);
			for (int i = 0; i < n; i++)
				s += exp(a[r * n + i] - mx);
			double e = 0;
			for (int i = 0; i < n; i++)
				e = fmax(e, fabs(d[r * n + i] / (exp(a[r * n + i] - mx) / s) - 1));
			CHECK(e < 2e-6);
		}
	}
	L("pr", 1, 1, 3, 1, 5);
	engine_printf_flush();
	L("recur", 1, 1, 64, 1, (unsigned long)o);
	{
		int f[10] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34};
		for (int i = 0; i < 64; i++)
			CHECK(o[i] == f[i % 10]);
	}
	struct P {
		int a;
		double b;
		char c[5];
	};
	struct P *ps = (void *)o;
	L("structs", 1, 1, 40, 1, (unsigned long)o);
	for (int i = 0; i < 40; i++) {
		CHECK(ps[i].a == 2 * i);
		CHECK(ps[i].b == i);
		for (int k = 0; k < 5; k++)
			CHECK(ps[i].c[k] == (k == i % 5 ? i : k));
	}
	L("fptr", 1, 1, 64, 1, (unsigned long)o);
	for (int i = 0; i < 64; i++)
		CHECK(o[i] == (i & 1 ? 2 * i : i + 1));
	L("virt", 1, 1, 64, 1, (unsigned long)o);
	for (int i = 0; i < 64; i++)
		CHECK(o[i] == (i % 3 ? i + 100 : i * 7));
	{
		int *l = (int *)soft_alloc(64, 256);
		L("spin", 4, 1, 64, 1, (unsigned long)l, (unsigned long)(l + 1));
		CHECK(l[1] == 256);
	}
	L("sw", 1, 1, 64, 1, (unsigned long)o);
	for (int x = 0; x < 64; x++) {
		int r;
		switch (x % 12) {
		case 0: r = x * 3; break;
		case 1: r = x ^ 5; break;
		case 2: r = x - 9; break;
		case 3: r = x << 2; break;
		case 4: r = 7 * x + 1; break;
		case 5: r = ~x; break;
		case 6: r = x / 3; break;
		case 7: r = x % 5; break;
		case 8: r = x | 64; break;
		default: r = -x;
		}
		CHECK(o[x] == r);
	}
}

static void warps_and_mathematics(void)
{
	int *o = (int *)soft_alloc(1 << 20, 256);
	float *fo = (void *)o;
	(void)fo;
	{
		struct {
			unsigned long o;
			int n;
		} pk = {(unsigned long)o, 5};
		LC("gsync", 16, 1, 64, 1, 0, &pk, 1);
		for (int b = 0; b < 16; b++)
			CHECK(o[b + 64] == (b + 4) % 16 + 4);
	}
	{
		unsigned short *a = (void *)soft_alloc(1024, 256);
		for (int i = 0; i < 512; i++)
			a[i] = 0x3c00 + i;
		struct {
			unsigned long a, b, c, d, e, f;
		} pk = {(long)a, (long)(a + 100), (long)o, (long)o + 4096, (long)o + 8192, (long)o + 12288};
		LC("halfs", 1, 1, 64, 1, 0, &pk, 0);
		CHECK(((unsigned short *)o)[1] == 0x4034 && (unsigned)o[1025] == 0x3e983e02);
	}
	CHECK(LC("asrt", 1, 1, 32, 1, 0, (int[]){3}, 0) == 710);
	L("mall", 1, 1, 64, 1, (unsigned long)o);
	CHECK(L("mfree", 1, 1, 64, 1, (unsigned long)o) == 0);
	L("warpf", 1, 1, 32, 1, (unsigned long)o);
	{
		unsigned *g = (void *)o;
		for (unsigned t = 0; t < 32; t++) {
			unsigned r = 0xaaaaaaaa + __builtin_popcount(t) + (t ? __builtin_clz(t) : 32) +
				     __builtin_ffs(t);
			unsigned br = 0;
			for (int i = 0; i < 32; i++)
				br |= (t >> i & 1) << (31 - i);
			r += br;
			{
				unsigned long long vv = (unsigned long long)~t << 32 | t;
				unsigned q = 0;
				for (int i = 0; i < 4; i++)
					q |= (unsigned)((vv >> 8 * ((0x1234 >> 4 * i) & 7)) & 255) << 8 * i;
				r += q;
			}
			r += (unsigned)((((unsigned long long)(t * 7) << 32) | t) << (t & 31) >> 32);
			unsigned mm = 0;
			for (unsigned k = 0; k < 32; k++)
				mm |= (unsigned)(k % 5 == t % 5) << k;
			r += mm + ~0u + 1 + 1;
			r ^= ((t ^ 5) * 3) + ((t & 7) < 3 ? t : t - 3) + ((t + 9) % 32) * ((t + 9) % 32);
			CHECK(g[t] == r);
		}
	}
	double *dd = (void *)o;
	L("dbl", 1, 1, 64, 1, (unsigned long)o);
	{
		double e = 0;
		for (int i = 0; i < 64; i++) {
			double x = i * 0.37 + .1, r = sin(x) + exp(x) * log(x) + sqrt(x) / pow(x, 1.3) +
						      fma(x, x, x) + nextafter(x, 1e9) + erf(x) + tanh(x);
			e = fmax(e, fabs(dd[i] / r - 1));
		}
		CHECK(e < 1e-14);
	}
	L("fl", 1, 1, 64, 1, (unsigned long)o);
	{
		double e = 0;
		for (int i = 0; i < 64; i++) {
			float x = i * 0.37f + .1f;
			double r = sinf(x) + expf(x) * logf(x) + sqrtf(x) / powf(x, 1.3f) + sinf(x) +
				   1 / sqrtf(x) + x / 3 + tanhf(x) + atan2f(x, 2);
			e = fmax(e, fabs(fo[i] / r - 1));
		}
		CHECK(e < 1e-5);
	}
	long long *ll = (void *)o;
	L("i64", 1, 1, 64, 1, (unsigned long)o);
	for (long long i = 0; i < 64; i++) {
		long long r = (i * 123456789123LL) / (i + 7) + (i << 40) % (i + 3) +
			      (long long)(((__int128)(i << 40) * (i << 41)) >> 64) +
			      __builtin_popcountll(i * 77) + (i ? __builtin_clzll(i) : 64) +
			      (long long)rintf(i * .7f);
		CHECK(ll[i] == r);
	}
	L("divg", 1, 1, 64, 1, (unsigned long)o);
	for (int x = 0; x < 64; x++) {
		int s = 0;
		for (int i = 0; i < x; i++) {
			if (i % 3 == x % 3)
				continue;
			if (i > 20 && x & 1)
				break;
			s += i;
		}
		CHECK(o[x] == s);
	}
	CHECK(L("divg", 1, 1, 64, 1, 16) == 700);
	CHECK(L("divg", 1, 1, 64, 1, (unsigned long)o + 1) == 716);
	CHECK(L("divg", 1, 1, 64, 1, (unsigned long)soft_mem_end - 65536) == 700);
}

static void matrices(void)
{
	unsigned short *a = (void *)soft_alloc(4096, 256), *b = (void *)soft_alloc(4096, 256);
	int *o = (int *)soft_alloc(1 << 20, 256);
	float *fo = (void *)o;
	(void)fo;
	for (int i = 0; i < 256; i++)
		a[i] = f2h((i * 7 % 23 - 11) * .25f), b[i] = f2h((i * 5 % 19 - 9) * .5f);
	L("wm", 1, 1, 32, 1, (long)a, (long)b, (long)o);
	for (int i = 0; i < 16; i++)
		for (int j = 0; j < 16; j++) {
			float s = 0;
			for (int k = 0; k < 16; k++)
				s += h2f(a[i * 16 + k]) * h2f(b[j * 16 + k]);
			CHECK(fo[i * 16 + j] == s);
		}
	unsigned short *ho = (void *)o;
	for (int i = 0; i < 256; i++)
		ho[i] = f2h(i);
	L("wmh", 1, 1, 32, 1, (long)a, (long)b, (long)o);
	for (int i = 0; i < 16; i++)
		for (int j = 0; j < 16; j++) {
			float s = i * 16 + j;
			for (int k = 0; k < 16; k++)
				s += h2f(a[k * 16 + i]) * h2f(b[k * 16 + j]);
			CHECK(ho[i * 16 + j] == f2h(s));
		}
	signed char *ca = (void *)a, *cb = (void *)b;
	for (int i = 0; i < 256; i++)
		ca[i] = i * 37, cb[i] = i * 91;
	L("wmi", 1, 1, 32, 1, (long)a, (long)b, (long)o);
	for (int i = 0; i < 16; i++)
		for (int j = 0; j < 16; j++) {
			int s = 0;
			for (int k = 0; k < 16; k++)
				s += ca[i * 16 + k] * cb[j * 16 + k];
			CHECK(o[i * 16 + j] == s);
		}
	for (int i = 0; i < 1024; i++)
		((unsigned char *)a)[i] = i * 11;
	L("pipek", 1, 1, 64, 1, (long)a, (long)o);
	for (int i = 0; i < 64; i++)
		CHECK(!memcmp((char *)o + i * 16, (char *)a + (63 - i) * 16, 16));
	L("barr", 1, 1, 128, 1, (long)o);
	for (int i = 0; i < 128; i++)
		CHECK(o[i] == 127 - i + 2);
	if (!engine_function_find(m, "imma"))
		return;
	for (int i = 0; i < 256; i++)
		a[i] = f2h((i * 7 % 23 - 11) * .25f), b[i] = f2h((i * 5 % 19 - 9) * .5f);
	L("mma16816", 1, 1, 32, 1, 0, 0, (long)o, (long)a, (long)b);
	for (int i = 0; i < 16; i++)
		for (int j = 0; j < 8; j++) {
			float s = 0;
			for (int k = 0; k < 16; k++)
				s += h2f(a[i * 16 + k]) * h2f(b[j * 16 + k]);
			CHECK(fo[i * 8 + j] == s);
		}
	for (int i = 0; i < 512; i++)
		ca[i] = i * 37, cb[i] = i * 91;
	L("imma", 1, 1, 32, 1, (long)a, (long)b, (long)o);
	for (int i = 0; i < 16; i++)
		for (int j = 0; j < 8; j++) {
			int s = 0;
			for (int k = 0; k < 32; k++)
				s += ca[i * 32 + k] * cb[j * 32 + k];
			CHECK(o[i * 8 + j] == s);
		}
}

int main(int argc, char **argv)
{
	FILE *f = argc > 1 ? fopen(argv[1], "r") : NULL;
	enum { MOST = 16 << 20 };
	char *text = malloc(MOST);
	size_t n = f && text ? fread(text, 1, MOST, f) : 0;
	struct engine_error e;
	if (!n || soft_mem_init((size_t)2 << 30)) {
		printf("FAILED: no text\n");
		return 1;
	}
	fclose(f);
	engine_init(0);
	if (engine_module_load((const char *const[]){text}, &n, 1, &m, &e)) {
		printf("FAILED: line %u: %s\n", e.line, e.text);
		return 1;
	}
	for (unsigned i = 0; engine_function_at(m, i); i++) {
		const struct engine_function_info *info = engine_function_info(engine_function_at(m, i));
		if (info->uncovered) {
			printf("FAILED: %s lacks %s\n", info->name, info->uncovered);
			bad++;
		}
	}
	memory_and_barriers();
	calls_and_divergence();
	warps_and_mathematics();
	matrices();
	printf("%d checks failed\n", bad);
	engine_module_unload(m);
	free(text);
	return bad != 0;
}
