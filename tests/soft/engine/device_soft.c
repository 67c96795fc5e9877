/* SPDX-License-Identifier: Apache-2.0 */
/* The tests' device is the engine, without the driver around it.
 *
 * Thread rule: one thread; the engine has one worker. */
#include "tests/soft/engine/device.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "server/soft/engine.h"
#include "server/soft/handlers.h"
#include "server/soft/memory.h"

enum { MEMORY = 1 << 30, TIME_LIMIT_S = 10 };

static struct engine_module *module;
static struct engine_error error;

bool device_open(const char *simd)
{
	if (simd)
		setenv("SCUDA_SOFT_SIMD", simd, 1);
	if (simd && strcmp(handlers_name(), simd)) {
		printf("SKIPPED: this processor has no %s\n", simd);
		exit(0);
	}
	if (soft_mem_init(MEMORY))
		return false;
	char why[128];
	if (!engine_set_check(getenv("SCUDAFS_SOFT_CHECK"), why, sizeof why)) {
		printf("FAILED %s\n", why);
		return false;
	}
	engine_init(1);
	return true;
}

void *device_alloc(size_t bytes)
{
	return (void *)soft_alloc(bytes, 256);
}

unsigned device_load(const char *head, const char *text, const size_t *start, unsigned kernels)
{
	size_t n = strlen(head), all = n + start[kernels];
	char *whole = malloc(all);
	if (!whole)
		return 0;
	memcpy(whole, head, n);
	memcpy(whole + n, text, start[kernels]);
	int r = engine_module_load((const char *const[]){whole}, &all, 1, &module, &error);
	free(whole);
	if (r)
		printf("FAILED load: line %u: %s\n", error.line, error.text);
	return r ? 0 : kernels;
}

const char *device_refusal(unsigned k)
{
	(void)k;
	return NULL;
}

bool device_launch(
	unsigned k, unsigned grid, unsigned block, const void *params, size_t bytes, const char **why)
{
	(void)bytes;
	char name[16];
	snprintf(name, sizeof name, "k%u", k);
	struct engine_launch l = {.function = engine_function_find(module, name),
		.grid = {grid, 1, 1},
		.block = {block, 1, 1},
		.cluster = {1, 1, 1},
		.params = params,
		.time_limit_s = TIME_LIMIT_S};
	*why = error.text;
	return l.function && !engine_launch(&l, &error);
}

void device_close(void)
{
	engine_module_unload(module);
	module = NULL;
}
