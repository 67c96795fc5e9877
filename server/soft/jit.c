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
#include "server/soft/names.h"
#include "wire/log.h"

enum { UNSUPPORTED_PTX_VERSION = 222, OLDEST_TARGET = 30 };

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

/* CU_TARGET_COMPUTE_*: a capability, in the bits above it what code for it alone or for its family is. */
static bool target_known(unsigned long v)
{
	unsigned long kind = v >> JIT_TARGET_KIND, sm = v & ((1ul << JIT_TARGET_KIND) - 1);
	return kind <= 2 && sm >= OLDEST_TARGET && engine_target_known((unsigned)sm);
}

static CUresult read_plain(struct jit *j, CUjit_option o, uintptr_t v)
{
	switch (o) {
	case CU_JIT_TARGET:
		j->target = (unsigned)v;
		return target_known(v) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_JIT_CACHE_MODE:
		return (unsigned)v <= CU_JIT_CACHE_OPTION_CA ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_JIT_FALLBACK_STRATEGY: j->fallback = true; break;
	case CU_JIT_LOG_VERBOSE: j->verbose = (unsigned)v; break;
	case CU_JIT_SPLIT_COMPILE: j->split = (int)v; break;
	default: break;
	}
	return (unsigned)o < CU_JIT_NUM_OPTIONS ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult jit_read(struct jit *j, unsigned n, const CUjit_option *options, void **values)
{
	bool nowhere[2] = {false, false}; /* a log has a place, which is NULL */
	CUresult r;
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
			r = read_plain(j, options[i], (uintptr_t)values[i]);
			if (r)
				return r;
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
	size_t have = strnlen(j->error, j->error_size), room = j->error_size - have;
	int n = room ? snprintf(j->error + have, room, "%s%s", have ? "\n" : "", line) : 0;
	j->cut |= n < 0 || (size_t)n >= room;
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

void jit_wrong(struct jit *j, const struct engine_error *error)
{
	bool newer = error->code == UNSUPPORTED_PTX_VERSION;
	if (!error->line) {
		jit_error(j, "ptxas fatal   : %s", error->text);
		return;
	}
	for (const char *at = error->text; *at; at += strspn(at, "\n")) {
		int n = (int)strcspn(at, "\n");
		jit_error(j, "ptxas application ptx input, line %u; %s   : %.*s", error->line,
			newer ? "fatal" : "error", n, at);
		at += n;
	}
	if (!newer)
		write_line(j, "ptxas fatal   : Ptx assembly aborted due to errors");
}

/* The bytes of what was written. Of a log that was cut its room is told, the NUL included. */
static size_t told(const struct jit *j)
{
	return j->cut && j->error_size > 1 ? j->error_size : strnlen(j->error, j->error_size);
}

void jit_end(struct jit *j)
{
	if (j->error_count)
		*j->error_count = (void *)(uintptr_t)(j->error ? told(j) : 0);
	if (j->info_count)
		*j->info_count = (void *)(uintptr_t)(j->info ? strnlen(j->info, j->info_size) : 0);
	uint64_t now = clock_ns();
	j->spent += now - j->begun;
	j->begun = now;
	if (j->wall_time)
		*j->wall_time = (float)j->spent / 1e6f;
}
