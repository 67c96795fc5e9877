/* SPDX-License-Identifier: Apache-2.0 */
/* Modules, libraries, functions and kernels: images of code and what is in them.
 *
 * A library is loaded once per context that uses it, for each context has its own variables; the first
 * instance is made when the library is loaded and belongs to the context that asks first. Thread rule: see
 * state.h; images are read without the lock. */
#pragma once
#include "server/soft/image.h"
#include "server/soft/state.h"

struct engine_module;
struct engine_function;
struct library;

struct function_settings {
	int dynamic_shared; /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES; -1: never set */
	int carveout;
	int cluster[3], must_set, non_portable, scheduling;
	CUfunc_cache cache;
};

struct module {
	struct object object;
	struct engine_module *code;
	struct library *library; /* NULL: loaded as a module */
	struct module *next; /* instances of the library */
	struct function *functions; /* handed out so far, linked by next */
	unsigned count; /* kernels in the code */
};

struct function {
	struct object object;
	struct module *module; /* a reference */
	struct function *next;
	const struct engine_function *code;
	struct kernel *kernel; /* of a library; may be NULL */
	struct function_settings settings;
	bool loaded; /* taken by name, loaded or launched: attributes are told of no other */
	struct prepared *prepared; /* by the calls of legacy.c; NULL: none was made */
};

struct kernel {
	struct object object;
	struct library *library;
	struct kernel *next;
	const char *name; /* in the first instance's code */
	struct function_settings settings;
};

struct library {
	struct object object;
	struct image image; /* kept for further instances */
	struct module *instances;
	struct kernel *kernels;
	unsigned count;
};

/* Loads PTX texts; lock given away meanwhile. */
CUresult module_load(
	const struct image *im, struct context *c, struct library *l, struct jit *jit, struct module **out);
/* Refuses what can be read but no PTX assembler would take; *count: the entries looked at. */
CUresult module_acceptable(struct engine_module *code, unsigned *count, struct jit *jit);
/* What only the device runtime has, and it is not here: a kernel that calls it cannot run, others can. */
bool module_of_device_runtime(const char *name);
/* The function object of code inside m, made on first use. */
struct function *module_function(struct module *m, const struct engine_function *code);
/* What a CUfunction argument means in that context: a function, or a library's kernel. NULL: the code in
 * *why. */
struct function *function_named(CUfunction handle, struct context *c, CUresult *why);
/* The library's module in that context. */
struct module *library_instance(struct library *l, struct context *c, CUresult *why);
/* An instance, of whatever context. */
struct module *library_any(struct library *l, CUresult *why);
/* The library's kernel of that name, which its code has, made on first use. NULL: memory is short. */
struct kernel *kernel_named(struct library *l, const char *name);
struct function *kernel_function(struct kernel *k, struct context *c, CUresult *why);
/* The attribute as cuFuncGetAttribute tells it. */
CUresult function_attribute(const struct engine_function *code, const struct function_settings *s,
	CUfunction_attribute a, int *out);
CUresult function_set(
	const struct engine_function *code, struct function_settings *s, CUfunction_attribute a, int value);
void settings_init(struct function_settings *s);
/* A kernel is asked of an image that was empty, or whose machine code somebody left out on the way: says so,
 * and returns the code for it. */
CUresult module_empty(const char *name);
/* A whole file, ended by NULs; NULL: cannot be read. */
char *image_file(const char *path, size_t *size);
void libraries_context_died(struct context *c);
