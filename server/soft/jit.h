/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a load. Thread rule: no shared state. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "wire/cuda_types.h"

enum { JIT_TARGET_KIND = 16 }; /* the bit of CU_TARGET_* from which on it is told for whom code is */

struct engine_error;

/* Where a load tells the caller what went wrong: the JIT options. */
struct jit {
	char *error, *info; /* the caller's buffers; NULL: none */
	size_t error_size, info_size;
	void **error_count, **info_count; /* where the number of bytes written goes */
	float *wall_time; /* where the milliseconds spent go */
	bool cut; /* the error log had more to say than there was room */
	unsigned target; /* CU_TARGET_*; 0: the device's own */
	int split; /* threads to compile with */
	bool fallback, verbose;
	uint64_t begun, spent; /* nanoseconds: when the work under way began, what went before */
};

/* Reads the options; CUDA_ERROR_INVALID_VALUE for unknown ones, and for values that are none. */
CUresult jit_read(struct jit *j, unsigned n, const CUjit_option *options, void **values);
/* Work begins, for the wall time; jit_read does that, too. */
void jit_begin(struct jit *j);
/* Writes a line to the error log, as printf does. */
void jit_error(struct jit *j, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same of a text that cannot be read, as the compiler in a driver writes it. */
void jit_wrong(struct jit *j, const struct engine_error *error);
/* Work ends: fills in what the caller learns of the logs' sizes and of the time. */
void jit_end(struct jit *j);
