/* SPDX-License-Identifier: Apache-2.0 */
/* softcheck FILE.ptx ...: loads each text into the engine and lists what it lacks per kernel, with the time
 * that reading and decoding took. Exit status 1 when a text does not load, 2 when a kernel has an uncovered
 * instruction.
 *
 * Thread rule: one thread. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "server/soft/engine.h"
#include "server/soft/memory.h"

static double ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static char *slurp(const char *path, size_t *n)
{
	FILE *f = fopen(path, "r");
	char *b = NULL;
	if (f && !fseek(f, 0, SEEK_END)) {
		long size = ftell(f);
		rewind(f);
		b = size >= 0 ? malloc((size_t)size + 1) : NULL;
		*n = b ? fread(b, 1, (size_t)size, f) : 0;
	}
	if (f)
		fclose(f);
	return b;
}

int main(int argc, char **argv)
{
	int status = 0;
	if (soft_mem_init((size_t)1 << 30))
		return 1;
	for (int i = 1; i < argc; i++) {
		size_t n = 0;
		char *text = slurp(argv[i], &n);
		struct engine_module *m = NULL;
		struct engine_error error = {0};
		if (!text) {
			printf("%s: cannot be read\n", argv[i]);
			status = 1;
			continue;
		}
		double t0 = ms();
		int r = engine_module_load((const char *const[]){text}, &n, 1, &m, &error);
		double t1 = ms();
		free(text);
		if (r) {
			printf("%s:%u: error %d: %s\n", argv[i], error.line, r, error.text);
			status = 1;
			continue;
		}
		unsigned kernels = 0, lacking = 0;
		for (struct engine_function *f; (f = engine_function_at(m, kernels)); kernels++) {
			const struct engine_function_info *info = engine_function_info(f);
			if (!info->uncovered)
				continue;
			printf("%s: %s lacks %s\n", argv[i], info->name, info->uncovered);
			lacking++;
		}
		printf("%s: %u kernels, %u lacking, read %.2f ms, decoded %.2f ms\n", argv[i], kernels,
			lacking, t1 - t0, ms() - t1);
		if (lacking && !status)
			status = 2;
		engine_module_unload(m);
	}
	return status;
}
