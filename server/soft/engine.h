/* SPDX-License-Identifier: Apache-2.0 */
/* The PTX engine of the software CUDA device: reads PTX text, runs kernels on CPU threads. It knows nothing
 * of the driver API; the driver (module.c, stream.c, ...) knows nothing of PTX. A device pointer is the host
 * address inside the range of memory.h.
 *
 * Thread rule: engine_module_load and engine_launch may be called from any thread at the same time; a module
 * must outlive its launches. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ENGINE_CLUSTER = 16 };

struct engine_module;
struct engine_function;

/* Why a module could not be loaded. code is a CUresult (218 INVALID_PTX, 222 UNSUPPORTED_PTX_VERSION, 2
 * OUT_OF_MEMORY, ...). */
struct engine_error {
	int code;
	unsigned line;     /* of the PTX text, from 1; 0: none */
	bool unresolved;   /* a name that a further text may define */
	char text[256];    /* lines: go to the JIT error log and the server's log */
};

/* Reads `n` bytes of PTX (terminating NULs are allowed and ignored) and places its globals and constants in
 * device memory with soft_alloc. Several texts are linked into one module (`-rdc=true`): extern functions and
 * variables resolve across them. Returns 0 or error->code. */
int engine_module_load(const char *const *text, const size_t *n, unsigned count, struct engine_module **out,
		struct engine_error *error);
void engine_module_unload(struct engine_module *m);     /* NULL is fine */

/* Entries (kernels) of the module, in order of appearance; NULL past the last / when unknown. */
struct engine_function *engine_function_at(struct engine_module *m, unsigned i);
struct engine_function *engine_function_find(struct engine_module *m, const char *name);

struct engine_param { uint32_t offset, size; };
struct engine_function_info {
	const char *name;
	const struct engine_param *params;
	unsigned nparams;
	size_t param_bytes;             /* of the packed parameter block */
	size_t shared_bytes;            /* static */
	size_t local_bytes, const_bytes;
	int registers;                  /* an honest guess for the attribute; >= 1 */
	int max_threads;                /* .maxntid product, or 1024; .reqntid is not in it */
	unsigned required[3];           /* .reqntid, or 0,0,0 */
	unsigned cluster[3];            /* .reqnctapercluster, or 0,0,0 */
	int ptx_version;                /* of the .target directive: 10 * major + minor; 0: none */
	/* Instructions that the engine lacks, "tex.2d.v4.f32.f32 at line 12, ..."; NULL: runnable. */
	const char *uncovered;
};
const struct engine_function_info *engine_function_info(const struct engine_function *f);

/* Address and bytes of a __device__, __constant__ or __managed__ variable. Returns false when there is none
 * of that name. */
bool engine_global_find(struct engine_module *m, const char *name, uint64_t *address, size_t *bytes,
		bool *managed);
/* The i-th variable; false past the last. */
bool engine_global_at(struct engine_module *m, unsigned i, const char **name, uint64_t *address,
		size_t *bytes, bool *managed);

/* The 8 bytes of a texture (else a surface) reference, in which the handle of an object stands. False when
 * there is none of that name. */
bool engine_reference_find(struct engine_module *m, const char *name, bool surface, uint64_t **cell);

struct engine_launch {
	const struct engine_function *function;
	unsigned grid[3], block[3];
	/* blocks of a cluster, ENGINE_CLUSTER at most, dividing the grid; 1,1,1: no clusters */
	unsigned cluster[3];
	size_t dynamic_shared;          /* bytes */
	const void *params;             /* param_bytes bytes, packed as engine_param says */
	bool cooperative;               /* all blocks resident, grid barrier works */
	double time_limit_s;            /* 0: none; past it the launch ends with 702 LAUNCH_TIMEOUT */
	const volatile bool *cancel;    /* set by another thread: end soon with 999; may be NULL */
};
/* Runs the kernel to its end on the worker threads (any number of launches may be under way). Returns 0 or
 * the CUresult that the real device would report: 700 illegal address, 716 misaligned address, 710 assert,
 * 715 illegal instruction, 719 launch failure (trap), 702 time-out, 801 for a function with uncovered
 * instructions. Output of printf goes into the FIFO of engine_printf_flush. */
int engine_launch(const struct engine_launch *l, struct engine_error *error);

/* Writes what kernels have printed so far, in launch order, to standard output. Called by the driver when a
 * synchronisation ends. */
void engine_printf_flush(void);
/* Sizes of the printf FIFO and of the device malloc heap, bytes (cuCtxSetLimit). */
void engine_set_printf_fifo(size_t bytes);
void engine_set_malloc_heap(size_t bytes);

/* Checked mode: a list of bounds, init, race, all, fail, continue, limit=N (docs/software-device.md); NULL or
 * empty: off. Called once, after soft_mem_init and before the first module is loaded. False, and why, for a
 * list that is none. */
bool engine_set_check(const char *text, char *why, size_t n);

/* Worker threads; called once before the first launch. 0: one per CPU. */
void engine_init(unsigned workers);
unsigned engine_workers(void);

/* Who is told what kernels set a condition of a graph to; it answers false when there is no such condition.
 * Set before the first launch that may. */
void engine_on_condition(bool (*set)(uint64_t handle, uint32_t value));
