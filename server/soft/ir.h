/* SPDX-License-Identifier: Apache-2.0 */
/* A loaded module: its texts, resolved across each other, placed in device memory; functions are decoded when
 * first asked for.
 *
 * Thread rule: lock guards the decoding of functions; everything else is constant after ir_link. */
#pragma once
#include <pthread.h>
#include "server/soft/exec.h"
#include "server/soft/ptx.h"

struct engine_function {
	struct engine_function_info info;
	struct engine_module *module;
	struct ptx_func *func;
	bool ready; /* info.uncovered and the byte counts are known */
	_Atomic bool checked;
};

struct ptx_missing {
	const char *name;
	struct ptx_missing *next;
};

struct engine_module {
	struct arena *arena;
	struct ptx_unit **units;
	unsigned nunits;
	struct ptx_func **funcs; /* all with bodies, and externs that no text defines */
	unsigned nfuncs;
	struct engine_function *entries;
	unsigned nentries;
	struct ptx_var **globals; /* definitions in global and constant memory */
	unsigned nglobals;
	uint64_t memory[3]; /* device memory: globals, constants, managed */
	size_t const_bytes;
	uint32_t device_shared; /* bytes of shared variables that functions other than kernels use */
	uint32_t id;
	bool part; /* others complete it: initialisers may name what is not there */
	struct ptx_missing *missing; /* such names, of a part */
	pthread_mutex_t lock;
};

enum { IR_FUNC_SHIFT = 4, IR_MODULE_SHIFT = 28 };
/* What a function pointer holds. */
static inline uint64_t ir_func_value(const struct engine_module *m, const struct ptx_func *f)
{
	return (uint64_t)m->id << IR_MODULE_SHIFT | (uint64_t)(f->index + 1) << IR_FUNC_SHIFT;
}
struct ptx_func *ir_func_at(const struct engine_module *m, uint64_t value);

/* Resolves names across the units, lays out shared memory of functions, and places variables. Returns 0 or
 * error->code. */
int ir_link(struct engine_module *m, struct engine_error *error);
/* Offsets of the static shared variables that `entry` uses; returns their bytes. */
uint32_t ir_layout_shared(struct engine_module *m, struct ptx_func *entry);
