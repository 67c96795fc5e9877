/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a load: where the caller is told what went wrong, and how long it took.
 *
 * Thread rule: no shared state. */
#include "server/soft/jit.h"
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "wire/log.h"

static uint64_t clock_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void jit_begin(struct jit *j)
{
	j->begun = clock_ns();
}

CUresult jit_read(struct jit *j, unsigned n, const CUjit_option *options, void **values)
{
	bool nowhere[2] = {false, false}; /* a log has a place, which is NULL */
	*j = (struct jit){0};
	jit_begin(j);
	if (n > CU_JIT_NUM_OPTIONS * 4u || (n && (!options || !values)))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < n; i++) {
		switch (options[i]) {
		case CU_JIT_ERROR_LOG_BUFFER:
			j->error = values[i];
			nowhere[0] = !values[i];
			break;
		case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
			j->error_size = (uint32_t)(uintptr_t)values[i];
			j->error_count = &values[i];
			break;
		case CU_JIT_INFO_LOG_BUFFER:
			j->info = values[i];
			nowhere[1] = !values[i];
			break;
		case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
			j->info_size = (uint32_t)(uintptr_t)values[i];
			j->info_count = &values[i];
			break;
		case CU_JIT_WALL_TIME: j->wall_time = (float *)&values[i]; break;
		default:
			if ((unsigned)options[i] >= CU_JIT_NUM_OPTIONS)
				return CUDA_ERROR_INVALID_VALUE;
			break;
		}
	}
	if ((nowhere[0] && j->error_size) || (nowhere[1] && j->info_size))
		return CUDA_ERROR_INVALID_VALUE;
	/* A log of no bytes gets its NUL all the same, as on a real device. */
	if (j->error && j->error_count)
		j->error[0] = 0;
	if (j->info && j->info_count)
		j->info[0] = 0;
	return CUDA_SUCCESS;
}

static void write_line(struct jit *j, const char *line)
{
	if (!j || !j->error || !j->error_size)
		return;
	size_t have = strnlen(j->error, j->error_size);
	if (have < j->error_size)
		snprintf(j->error + have, j->error_size - have, "%s%s", have ? "\n" : "", line);
}

void jit_error(struct jit *j, const char *fmt, ...)
{
	char line[1024];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	log_warning("%s", line);
	write_line(j, line);
}

void jit_wrong(struct jit *j, unsigned long line, const char *fmt, ...)
{
	const char *input = j && j->input && *j->input ? j->input : "application ptx input";
	char text[1024];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	jit_error(j, "ptxas %s, line %lu; error   : %s", input, line, text);
	write_line(j, "ptxas fatal   : Ptx assembly aborted due to errors");
}

void jit_end(struct jit *j)
{
	if (j->error_count)
		*j->error_count = (void *)(uintptr_t)(j->error ? strnlen(j->error, j->error_size) : 0);
	if (j->info_count)
		*j->info_count = (void *)(uintptr_t)(j->info ? strnlen(j->info, j->info_size) : 0);
	uint64_t now = clock_ns();
	j->spent += now - j->begun;
	j->begun = now;
	if (j->wall_time)
		*j->wall_time = (float)j->spent / 1e6f;
}
