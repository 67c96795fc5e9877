/* SPDX-License-Identifier: Apache-2.0 */
/* soft WORKERS KERNELS.ptx [MODULE.ptx...]: the engine of the software device against plain C of the same
 * computation (gcc -O2, one core), and how long modules take to load and decode. Times are processor time of
 * the busiest thread, the best of several runs, so that other load on the machine counts little.
 *
 * Thread rule: one thread; the engine has its own workers. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "server/soft/engine.h"
#include "server/soft/handlers.h"
#include "server/soft/memory.h"

enum { N = 512, ROWS = 512, COLUMNS = 4096, ELEMENTS = 4 << 20, ROUNDS = 7, MAX_TASKS = 64 };

/* Seconds that each thread of the process has run. Linux makes a thread's clock of its number. */
static unsigned spent(double *s)
{
	unsigned n = 0;
	DIR *d = opendir("/proc/self/task");
	for (struct dirent *e; d && (e = readdir(d));) {
		struct timespec t;
		int id = atoi(e->d_name);
		if (id && n < MAX_TASKS && !clock_gettime((clockid_t)(~(unsigned)id << 3 | 6), &t))
			s[n++] = (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
	}
	if (d)
		closedir(d);
	return n;
}

static double wall(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Runs f once; the processor time of the thread that had most of it, and of all. */
static double busiest(void (*f)(void *), void *x, double *all)
{
	double before[MAX_TASKS] = {0}, after[MAX_TASKS] = {0}, most = 0;
	unsigned n = spent(before), m;
	f(x);
	m = spent(after);
	*all = 0;
	for (unsigned k = 0; k < m; k++) { /* threads are listed by age */
		double d = after[k] - (k < n ? before[k] : 0);
		*all += d;
		most = d > most ? d : most;
	}
	return most;
}

static float *a, *b, *c;

static void c_matmul(void *unused)
{
	(void)unused;
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++) {
			float sum = 0;
			for (int k = 0; k < N; k++)
				sum += a[i * N + k] * b[k * N + j];
			c[i * N + j] = sum;
		}
}

static void c_vector_add(void *unused)
{
	(void)unused;
	for (int i = 0; i < ELEMENTS; i++)
		c[i] = a[i] + b[i];
}

static void c_mandelbrot(void *unused)
{
	(void)unused;
	for (int y = 0; y < N; y++)
		for (int x = 0; x < N; x++) {
			float cx = -2.0f + 3.0f * (float)x / N, cy = -1.5f + 3.0f * (float)y / N, zx = 0,
			      zy = 0;
			int k = 0;
			while (k < 256 && zx * zx + zy * zy < 4) {
				float t = zx * zx - zy * zy + cx;
				zy = 2 * zx * zy + cy;
				zx = t;
				k++;
			}
			c[y * N + x] = (float)k;
		}
}

static void c_softmax(void *unused)
{
	(void)unused;
	for (int r = 0; r < ROWS; r++) {
		const float *row = a + r * COLUMNS;
		float most = -INFINITY, sum = 0;
		for (int i = 0; i < COLUMNS; i++)
			most = fmaxf(most, row[i]);
		for (int i = 0; i < COLUMNS; i++)
			sum += expf(row[i] - most);
		for (int i = 0; i < COLUMNS; i++)
			c[r * COLUMNS + i] = expf(row[i] - most) / sum;
	}
}

static void launch(void *l)
{
	struct engine_error error;
	if (engine_launch(l, &error)) {
		printf("FAILED %s\n", error.text);
		exit(1);
	}
}

static struct engine_module *load(const char *name, double *seconds, unsigned *lines)
{
	FILE *f = fopen(name, "r");
	char *text = NULL;
	size_t n = 0;
	if (!f || getdelim(&text, &n, 0, f) < 0) {
		printf("FAILED %s cannot be read\n", name);
		exit(1);
	}
	fclose(f);
	*lines = 0;
	for (const char *p = text; (p = strchr(p, '\n')); p++)
		++*lines;
	struct engine_module *m = NULL;
	struct engine_error error;
	*seconds = INFINITY;
	for (int round = 0; round < ROUNDS; round++) {
		engine_module_unload(m);
		size_t len = strlen(text);
		clock_t start = clock();
		if (engine_module_load((const char *const[]){text}, &len, 1, &m, &error)) {
			printf("FAILED %s: line %u: %s\n", name, error.line, error.text);
			exit(1);
		}
		for (unsigned k = 0; engine_function_at(m, k); k++) /* decodes it */
			engine_function_info(engine_function_at(m, k));
		*seconds = fmin(*seconds, (double)(clock() - start) / CLOCKS_PER_SEC);
	}
	free(text);
	return m;
}

int main(int argc, char **argv)
{
	if (argc < 3 || soft_mem_init((size_t)1 << 30))
		return 1;
	engine_init((unsigned)atoi(argv[1]));
	a = (float *)soft_alloc(ELEMENTS * 4, 256);
	b = (float *)soft_alloc(ELEMENTS * 4, 256);
	c = (float *)soft_alloc(ELEMENTS * 4, 256);
	for (int i = 0; i < ELEMENTS; i++) {
		a[i] = (float)(i % 257) / 257;
		b[i] = (float)(i % 263) / 263;
	}
	double seconds;
	unsigned lines;
	struct engine_module *m = load(argv[2], &seconds, &lines);
	static const struct {
		const char *name;
		void (*plain)(void *);
		unsigned grid[2], block[2];
		uint32_t n;
		double least; /* of plain C's speed; 0: no aim */
	} t[] = {{"matmul32", c_matmul, {N / 32, N / 32}, {32, 32}, N, 1.5},
		{"matmul16", c_matmul, {N / 16, N / 16}, {16, 16}, N, 0},
		{"mandelbrot", c_mandelbrot, {N / 32, N / 8}, {32, 8}, N, 1},
		{"vector_add", c_vector_add, {ELEMENTS / 256, 1}, {256, 1}, ELEMENTS, 0.12},
		{"softmax", c_softmax, {ROWS, 1}, {256, 1}, COLUMNS, 0.3}};
	printf("# %s, workers: %s; kernel, ms in C, ms of the busiest worker, times C's speed (aim), ms of "
	       "all workers, ms of wall time\n",
		handlers_name(), argv[1]);
	for (unsigned k = 0; k < sizeof t / sizeof *t; k++) {
		struct {
			const void *a, *b, *c;
			uint32_t n;
		} params = {a, b, c, t[k].n};
		struct engine_launch l = {.function = engine_function_find(m, t[k].name),
			.grid = {t[k].grid[0], t[k].grid[1], 1},
			.block = {t[k].block[0], t[k].block[1], 1},
			.cluster = {1, 1, 1},
			.params = &params};
		double plain = INFINITY, one = INFINITY, all = INFINITY, real = INFINITY;
		for (int round = 0; round < ROUNDS; round++) {
			double sum, start;
			plain = fmin(plain, busiest(t[k].plain, NULL, &sum));
			start = wall();
			one = fmin(one, busiest(launch, &l, &sum));
			real = fmin(real, wall() - start);
			all = fmin(all, sum);
		}
		char aim[16] = "-";
		if (t[k].least)
			snprintf(aim, sizeof aim, "%g", t[k].least);
		printf("%-10s %7.2f %7.2f %6.2f (%s) %7.2f %7.2f\n", t[k].name, plain * 1e3, one * 1e3,
			plain / one, aim, all * 1e3, real * 1e3);
	}
	printf("load %s: %u lines, %.2f ms\n", strrchr(argv[2], '/') ? strrchr(argv[2], '/') + 1 : argv[2],
		lines, seconds * 1e3);
	engine_module_unload(m);
	for (int k = 3; k < argc; k++) {
		m = load(argv[k], &seconds, &lines);
		printf("load %s: %u lines, %.2f ms\n",
			strrchr(argv[k], '/') ? strrchr(argv[k], '/') + 1 : argv[k], lines, seconds * 1e3);
		engine_module_unload(m);
	}
	return 0;
}
