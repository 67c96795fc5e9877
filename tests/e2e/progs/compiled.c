/* SPDX-License-Identifier: Apache-2.0 */
/* A compiler's side of the private table by which NVRTC asks a driver for what it compiled before:
 *     compiled STEP INPUT OPTIONS COMPILER [RESULT]   looks, and keeps the result when it is not there
 *     compiled many N BYTES                           keeps N results of so many bytes
 *     compiled nvrtc LIBRARY FILE                     a compilation by NVRTC itself, its machine code to FILE
 * Prints what it was answered. Threads: none. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "wire/cuda.h"

static struct {
	uintptr_t bytes;
	CUresult (*key)(void **key, int step, const void *input, size_t n, const char *options,
			const char *by);
	CUresult (*forget)(void *key);
	CUresult (*find)(void *key, void *unused, void **data, uint32_t *n);
	CUresult (*keep)(void *key, void *unused, const void *data, uint32_t n);
	void *unseen;
	CUresult (*release)(void *data);
} *table;

static void *key_of(int step, const char *input, const char *options, const char *by)
{
	void *key = NULL;
	CUresult r = table->key(&key, step, input, strlen(input), options, by);

	if (r) {
		printf("no key %d\n", (int)r);
		exit(3);
	}
	return key;
}

static void one(char **a, int n)
{
	void *key = key_of(atoi(a[0]), a[1], a[2], a[3]), *data = NULL;
	/* The caller has 32 bits for the size, and something of its own behind them. */
	uint32_t size[2] = {77, 77};
	CUresult r = table->find(key, NULL, &data, size);

	if (size[1] != 77)
		printf("more than the size was written\n");
	if (!r) {
		printf("found %.*s\n", (int)size[0], (char *)data);
		table->release(data);
	} else {
		printf("not found %d\n", (int)r);
		if (n > 4) {
			r = table->keep(key, NULL, a[4], (uint32_t)strlen(a[4]));
			printf("keeping it answers %d\n", (int)r);
		}
	}
	table->forget(key);
}

static void many(unsigned count, size_t bytes)
{
	char *data = calloc(1, bytes), name[16];
	unsigned kept = 0, found = 0;
	uint32_t n;
	void *p;

	for (unsigned i = 0; i < count; i++) {
		snprintf(name, sizeof name, "%u", i);
		void *key = key_of(1, name, "", "");

		kept += !table->keep(key, NULL, data, (uint32_t)bytes);
		if (!table->find(key, NULL, &p, &n)) {
			found++;
			table->release(p);
		}
		table->forget(key);
	}
	printf("%u kept, %u found\n", kept, found);
	free(data);
}

#define FUNCTION(type, name) __typeof__(type) name = (__typeof__(type))dlsym(library, "nvrtc" #name)

static int nvrtc(const char *path, const char *to)
{
	void *library = dlopen(path, RTLD_NOW), *program;

	if (!library)
		return 4;
	FUNCTION(int (*)(void **, const char *, const char *, int, void *, void *), CreateProgram);
	FUNCTION(int (*)(void *, int, const char *const *), CompileProgram);
	FUNCTION(int (*)(void *, size_t *), GetCUBINSize);
	FUNCTION(int (*)(void *, char *), GetCUBIN);
	FUNCTION(int (*)(void *, size_t *), GetProgramLogSize);
	FUNCTION(int (*)(void *, char *), GetProgramLog);
	const char *const options[] = {"-arch=sm_90", "--enable-cache-trace"};
	const char *text = "extern \"C\" __global__ void k(float *a, float b) { *a = sinf(*a) * b; }";
	size_t n = 0, log = 0;

	if (!CreateProgram || !GetCUBINSize || CreateProgram(&program, text, "k.cu", 0, NULL, NULL) ||
		CompileProgram(program, 2, options) || GetCUBINSize(program, &n) ||
		GetProgramLogSize(program, &log))
		return 5;
	char *code = malloc(n), *said = calloc(1, log + 1);

	if (GetCUBIN(program, code) || GetProgramLog(program, said))
		return 6;
	FILE *f = fopen(to, "w");

	if (!f || fwrite(code, 1, n, f) != n || fclose(f))
		return 7;
	printf("%s\n", said);
	free(code);
	free(said);
	return 0;
}

int main(int argc, char **argv)
{
	static const char name[] = "\xda\x91\x51\xd3\x3a\xe6\xcc\x41\xa5\xc0\x4f\x26\xd5\x33\xe3\x28";
	CUuuid id;

	memcpy(id.bytes, name, sizeof id.bytes);
	if (argc > 3 && !strcmp(argv[1], "nvrtc"))
		return nvrtc(argv[2], argv[3]);
	/* Compilers ask before anything else. */
	if (cuGetExportTable((const void **)&table, &id) || !table || table->bytes < sizeof *table)
		return 2;
	if (argc > 3 && !strcmp(argv[1], "many"))
		many((unsigned)atoi(argv[2]), (size_t)atoi(argv[3]));
	else if (argc > 4)
		one(argv + 1, argc - 1);
	return 0;
}
