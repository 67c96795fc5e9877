/* SPDX-License-Identifier: Apache-2.0 */
/* What the shim knows about its process and its threads: whether CUDA is initialised, what every call has to
 * answer when it is not, fork, exit, and the state of the calling thread.
 *
 * Thread rule: process_code is read without a lock by every call. A struct thread belongs to its thread. */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "wire/cuda_types.h"

struct context;

/* What a call answers at once: 3 before cuInit and in a forked child, 4 once the process exits, 806 or 810
 * after the session died; 0: go on. */
extern _Atomic int process_code;
static inline CUresult process_check(void)
{
	return (CUresult)atomic_load_explicit(&process_code, memory_order_acquire);
}
/* The session is over because of -errno or a malformed answer (-EPROTO). Returns the code that sticks. */
CUresult process_die(int error, const char *what);
/* The folder of the session node, without a slash behind it. */
const char *process_directory(void);
/* CUDA_LAUNCH_BLOCKING was set at cuInit. */
extern bool process_blocking;
/* The server keeps images: ask for one before sending it. Set inside cuInit. */
extern bool process_server_keeps;
/* The driver version to report: the server's after cuInit, before it the one that this build speaks. */
int process_driver_version(void);
/* CUDA calls this to start a thread of ours: all signals blocked but SIGSEGV and SIGBUS, detached, small
 * stack when stack is not 0. Returns 0 or -errno. */
int process_thread(void *(*run)(void *), void *arg, size_t stack, const char *name);

struct thread {
	uint32_t id;                /* in records, from 1; 0: no record yet */
	unsigned ptds;              /* depth of ptds_begin */
	struct context *current;    /* top of the stack */
	struct context **stack;     /* below it */
	unsigned depth, room;
	bool host_function;         /* runs one: it may not call CUDA */
	uint32_t calls;             /* that it has begun */
	bool exchanged;             /* the thread has sent a record, so its end is told */
	uint64_t began;             /* when its call did, for hops */
	uint8_t *out;               /* room for one record: header and head, and parameters (launch_room) */
};

/* The calling thread's state, made at its first use. NULL without memory. */
extern _Thread_local struct thread *thread_cached __attribute__((tls_model("initial-exec")));
struct thread *thread_create(void);
static inline struct thread *thread_self(void)
{
	struct thread *t = thread_cached;
	return __builtin_expect(t != 0, 1) ? t : thread_create();
}
