/* SPDX-License-Identifier: Apache-2.0 */
/* What every file of the software device's driver shares: the one lock, options, objects behind handles.
 *
 * Thread rule: one lock for all state of the driver. API functions hold it from entry to return; waits give
 * it away; kernels, copies, host functions and module loads run without it. `progress` is told whenever a
 * piece of work has ended. */
#pragma once
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "wire/cuda.h"

enum kind {
	KIND_CONTEXT = 1,
	KIND_STREAM,
	KIND_EVENT,
	KIND_MODULE,
	KIND_FUNCTION,
	KIND_LIBRARY,
	KIND_KERNEL,
	KIND_POOL,
	KIND_ARRAY,
	KIND_MIPMAP,
	KIND_GRAPH,
	KIND_NODE,
	KIND_EXEC,
	KIND_LINK,
	KIND_USER,
	KIND_MEMORY,
	KIND_TEXTURE,
	KIND_SURFACE,
	KIND_REFERENCE,
	KIND_NOTICE,
};

struct context;
/* First member of whatever a handle stands for. */
struct object {
	enum kind kind;
	unsigned refs; /* the handle's own included */
	uint64_t handle; /* 0: destroyed by its user, but still needed by queued work */
	struct context *context; /* dies with it; NULL: belongs to the process */
	void (*finish)(
		struct object *o); /* called with the lock held when the last reference goes; frees o */
};

struct state {
	pthread_mutex_t lock;
	pthread_cond_t progress;
	bool initialised;
	bool forked; /* a child of the process that called cuInit: nothing works here */
	int devices; /* that the program sees */
	int place[8]; /* of each: its number on the machine */
	int major, minor; /* compute capability to present */
	unsigned workers;
	size_t memory; /* bytes per device */
	double time_limit; /* seconds per launch; 0: none */
	uint64_t next_id; /* for contexts, streams, graphs, ... */
	uint64_t serial; /* of queued work, in order */
};
extern struct state soft;

/* State of the calling thread. */
#define THREAD_STACK 64 /* contexts that one thread may push */
struct stream;
struct thread {
	uint64_t stack[THREAD_STACK]; /* handles; a context may die while it is on a stack */
	unsigned depth;
	unsigned ptds; /* > 0: stream 0 is the per-thread stream in the call under way */
	bool callback; /* inside a host function: no API calls that need a context */
	CUstreamCaptureMode mode;
	struct stream *streams; /* per-thread default streams, linked by next_own */
};
struct thread *thread_self(void);

/* Gives a new object (refs 1) its handle. False: out of memory; the object is untouched. */
bool object_open(struct object *o, enum kind kind, struct context *context, void (*finish)(struct object *));
/* The live object of that kind, or NULL. */
void *object_find(const void *handle, enum kind kind);
/* Takes the handle away and drops its reference. */
void object_close(struct object *o);
void *object_ref(void *o);
void object_unref(void *o);
/* The next live object of that kind from *i on, which starts at 0; NULL at the end. */
struct object *object_next(enum kind kind, uint32_t *i);
/* Any object that dies with the context, NULL when none is left. */
struct object *object_of(const struct context *c, enum kind kind);
#define HANDLE(o) ((void *)(uintptr_t)(o)->object.handle)

/* What an API function holds while it runs; see context.h for the ways in. */
struct guard {
	CUresult error; /* not CUDA_SUCCESS: return it at once, nothing is held */
	struct context *context; /* current context, where the way in asks for one */
	bool held;
};
void guard_leave(struct guard *g);
#define guarded __attribute__((cleanup(guard_leave))) struct guard

/* Takes what CUDA_VISIBLE_DEVICES leaves of the devices (device.c). Inside state_init. */
void devices_choose(void);
static inline bool device_valid(CUdevice d)
{
	return d >= 0 && d < soft.devices;
}
/* The ordinal of a device by its number on the machine; -1: not seen. */
CUdevice device_at(int place);

/* In: initialised. */
struct guard enter(void);
/* Initialises on first use. */
CUresult state_init(void);
uint64_t now_ns(void);
/* unsupported.c: logs once per name and returns CUDA_ERROR_NOT_SUPPORTED. */
CUresult soft_unsupported(const char *name);
