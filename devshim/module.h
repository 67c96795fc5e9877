/* SPDX-License-Identifier: Apache-2.0 */
/* What modules, libraries and the linker share: loading an image, compiler options. Thread rule: as
 * call.h. */
#pragma once
#include "devshim/call.h"
#include "devshim/image.h"

#define LIMIT_OPTIONS 64 /* of one call */

struct jit {
	unsigned n;
	CUjit_option *options;
	void **values;
};

/* The devices that an image must serve. */
void image_target(struct image_target *t);
/* Loads an image as a module or library (`type`) by the call `id`. */
CUresult image_load(unsigned id, unsigned type, const struct image *i, const struct jit *j, void **handle);
/* Puts compiler options; 801 for those that hold pointers of the program's. */
CUresult put_jit(struct call *c, const struct jit *j);
/* Takes logs, their sizes and the time into the options' places. */
void get_jit(struct call *c, const struct jit *j);
/* Of an image that no compiler is asked about: empty logs. */
void jit_empty(const struct jit *j);
/* The program has taken the library's module in that context. */
bool library_has_module(CUlibrary library, CUcontext ctx);
/* A context has died: what was remembered of libraries in it is not true any more. */
void library_context_died(CUcontext ctx);
/* Notes the range of a variable of a module or library. */
void note_global(CUdeviceptr p, size_t n, const void *owner);
/* A file's bytes, with a NUL behind them; 301 when there is none. */
CUresult read_image_file(const char *path, void **bytes, size_t *n);
