/* SPDX-License-Identifier: Apache-2.0 */
/* What the shim knows about functions and kernels: name, where they come from, parameter layout,
 * attributes. It arrives with the answer that names them, and the calls that ask for it are answered from
 * here.
 *
 * Thread rule: any thread. A struct function is never unmapped while its handle lives; what changes in it
 * is atomic or under function.c's lock. */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "devshim/call.h"
#include "wire/cuda_types.h"

#define ATTRIBUTES 16
_Static_assert(CU_FUNC_ATTRIBUTE_MAX <= ATTRIBUTES, "attributes of a function");

struct attributes {
	struct attributes *next;
	CUdevice device;
	_Atomic uint32_t known; /* bit a: value[a] is right */
	_Atomic uint32_t accepted; /* bit a: value[a] is what the program set last, and the driver took it */
	_Atomic int value[ATTRIBUTES];
};

struct occupancy;
struct resolved;
struct context;
struct function {
	void *handle; /* CUfunction or CUkernel; NULL: the server has told of it, the program has not taken it
		       */
	unsigned type; /* HANDLE_CUfunction or HANDLE_CUkernel */
	void *parent; /* its CUmodule or CUlibrary */
	char *name;
	bool laid_out; /* nparams, offset and size are known */
	unsigned nparams;
	uint32_t *offset, *size; /* bytes */
	size_t bytes; /* of all parameters */
	/* a function has those of its device; a kernel of each where it was asked for */
	struct attributes *_Atomic attributes;
	_Atomic uint64_t asked; /* bit d: asked the server in a context of device d */
	struct resolved *resolved; /* a kernel's CUfunctions */
	struct function *kernel; /* whose function it is in its context, or NULL */
	struct occupancy *_Atomic occupancy; /* remembered answers */
	_Atomic uint32_t shape; /* of blocks that the driver took: 0 none yet, one, or SHAPE_ANY */
	_Atomic uint64_t chosen; /* last cache configuration, and of which handle and device; 0: none */
	struct function *next, **back; /* in the list of all */
};

/* That of a live function or kernel; NULL when there is none. Asks the server the first time where it came
 * by enumeration. */
struct function *function_of(const void *f);
/* Takes handle, layout and attributes from an answer; the rest from the call. NULL when the answer was
 * bad. */
struct function *function_get(struct call *c, unsigned type, void *parent, const char *name);
/* The driver has loaded this CUfunction: it tells no attributes of one that it has not. */
bool function_loaded(const struct function *f);
/* Takes what follows a name that is told: device, layout, attributes. Without a parent it is only passed
 * over. */
void function_told(struct msg *m, unsigned type, void *parent, const char *name);
/* That of a module or library by its name, if it is known. */
struct function *function_named(unsigned type, const void *parent, const char *name);
/* The program has taken one that was told, under that handle. */
void function_taken(struct function *f, void *handle);
/* Those of a module or library that were told and not taken go. */
void function_drop_untaken(const void *parent);
/* A new function, with a handle of ours, that knows what is known of the kernel on the device. NULL without
 * memory, or when its attributes there are not known. */
struct function *function_like(struct function *kernel, CUdevice dev);
/* Notes handles that came by enumeration. */
struct function *function_note(void *handle, unsigned type, void *parent);
/* All that is known of its attributes on a device, or NULL. */
struct attributes *function_attributes(const struct function *f, CUdevice dev);
/* Asks the server for name, layout and attributes in the current context. */
CUresult function_ask(struct function *f);
/* Before it is launched: its layout is known when this returns 0, or it has none. Not while a call is begun.
 */
CUresult function_ready(struct function *f);
/* An attribute on a device if it is known. */
bool function_attribute(const struct function *f, CUfunction_attribute a, CUdevice dev, int *v);
/* A driver has taken blocks of that shape. */
void function_shape_taken(struct function *f, uint32_t shape);
/* Functions of a module or kernels of a library, whose handles die with it. */
void function_drop_parent(void *parent);

/* ---- function_take.c ---- */
/* For a program that takes a function by name, in the current context if there is one: gives its handle when
 * it is known, or enough is known to take it by a post of the call `id`; NULL when the server has to be
 * asked. */
CUresult function_take(unsigned id, unsigned type, void *parent, const char *name, void **handle);
/* The program enumerates: handles come from the server from now on. */
void function_forget_told(const void *parent);
/* The CUfunction that a kernel is in the current context, in the same way. */
CUresult function_in_context(struct function *kernel, struct context *ctx, void **handle);
/* The server has answered it. */
void function_resolve(struct function *kernel, CUcontext ctx, struct function *f);
/* What is remembered of a kernel that goes. */
void function_forget_resolved(struct function *kernel);
/* For those of a kernel's functions that are of that device. */
void function_each_resolved(struct function *kernel, CUdevice dev,
	void (*each)(struct function *f, int a, int v, CUdevice dev), int a, int v);
