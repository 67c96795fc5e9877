/* SPDX-License-Identifier: Apache-2.0 */
/* Primary contexts that are reset under their users, by the calls of today and by their first names; and what
 * the first names of the calls for contexts ask of one: that it is on no thread's stack before it is pushed,
 * that nobody else has attached to it. */
#include "check.h"
#include <dlfcn.h>
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

typedef CUresult of_device(CUdevice);
typedef CUresult of_context(CUcontext);
static of_device *release_first, *reset_first;
static of_context *push_first, *destroy_first;
static CUresult (*pop_first)(CUcontext *);
static CUresult (*set_flags_first)(CUdevice, unsigned);

static void names(void)
{
	*(void **)&release_first = dlsym(RTLD_DEFAULT, "cuDevicePrimaryCtxRelease");
	*(void **)&reset_first = dlsym(RTLD_DEFAULT, "cuDevicePrimaryCtxReset");
	*(void **)&set_flags_first = dlsym(RTLD_DEFAULT, "cuDevicePrimaryCtxSetFlags");
	*(void **)&push_first = dlsym(RTLD_DEFAULT, "cuCtxPushCurrent");
	*(void **)&pop_first = dlsym(RTLD_DEFAULT, "cuCtxPopCurrent");
	*(void **)&destroy_first = dlsym(RTLD_DEFAULT, "cuCtxDestroy");
	if (!release_first || !reset_first || !set_flags_first || !push_first || !pop_first ||
		!destroy_first) {
		SAY("a first name is missing");
		exit(3);
	}
	NEED(cuInit(0));
	NEED(cuDeviceGet(&device, 0));
}

static void state(const char *when)
{
	unsigned flags = 99;
	int active = 99;

	NEED(cuDevicePrimaryCtxGetState(device, &flags, &active));
	SAY("%s: flags %#x active %d", when, flags, active);
}

static void now(const char *when)
{
	CUcontext c = NULL;
	CUdeviceptr p;
	CUresult r;

	NEED(cuCtxGetCurrent(&c));
	r = cuMemAlloc(&p, 64);
	SAY("%s: current %s, cuMemAlloc -> %s", when,
		!c             ? "none"
		: c == context ? "the one"
			       : "another",
		name_of(r));
}

/* Both ways of each: of today, and of before. */
static void resets(of_device *reset, of_device *release)
{
	CUcontext c;

	names();
	ASK(release(device));
	ASK(reset(device));
	ASK(cuDevicePrimaryCtxSetFlags(device, CU_CTX_SCHED_SPIN));
	state("flags set");
	ASK(reset(device));
	state("reset before it is active");
	ASK(cuDevicePrimaryCtxSetFlags(device, CU_CTX_SCHED_YIELD));
	NEED(cuDevicePrimaryCtxRetain(&context, device));
	NEED(cuCtxSetCurrent(context));
	state("retained");
	now("retained");
	ASK(reset(device));
	state("reset with one user");
	now("reset with one user");
	ASK(reset(device));
	ASK(release(device));
	state("released while it is not active");
	now("released while it is not active");
	ASK(release(device));
	NEED(cuDevicePrimaryCtxRetain(&c, device));
	SAY("the same %d", c == context);
	state("retained again");
	ASK(release(device));
	state("released");
	ASK(release(device));
	now("released");
	NEED(cuDevicePrimaryCtxRetain(&c, device));
	NEED(cuDevicePrimaryCtxRetain(&c, device));
	ASK(reset(device));
	NEED(cuDevicePrimaryCtxRetain(&c, device));
	state("one of three came after the reset");
	for (int i = 0; i < 4; i++) {
		ASK(release(device));
		state("released");
	}
	now("at the end");
}

static void today(void)
{
	names();
	resets(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxRelease);
}

static void before(void)
{
	names();
	resets(reset_first, release_first);
}

/* Flags while it is active, and what is left of them. */
static void flags(void)
{
	unsigned f = 99;

	names();
	ASK(set_flags_first(device, CU_CTX_SCHED_BLOCKING_SYNC));
	state("set by the first name");
	NEED(cuDevicePrimaryCtxRetain(&context, device));
	NEED(cuCtxSetCurrent(context));
	ASK(cuCtxGetFlags(&f));
	SAY("flags %#x", f);
	ASK(set_flags_first(device, CU_CTX_SCHED_SPIN));
	state("set by the first name while it is active");
	ASK(cuDevicePrimaryCtxSetFlags(device, CU_CTX_SCHED_YIELD | CU_CTX_LMEM_RESIZE_TO_MAX));
	state("set while it is active");
	ASK(cuCtxGetFlags(&f));
	SAY("flags %#x", f);
	ASK(cuDevicePrimaryCtxRelease(device));
	state("released");
	NEED(cuDevicePrimaryCtxRetain(&context, device));
	state("retained");
	ASK(cuCtxGetFlags(&f));
	SAY("flags %#x", f);
	ASK(cuDevicePrimaryCtxReset(device));
	state("reset");
}

/* What lived in it, after a reset under its users. */
static void under_users(void)
{
	CUstream s;
	CUevent e;
	CUdeviceptr p, q;
	unsigned v = 0;

	begin();
	p = zeroed(64);
	NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	NEED(cuEventCreate(&e, 0));
	ASK(cuDevicePrimaryCtxReset(device));
	now("reset");
	ASK(cuMemcpyDtoH(&v, p, 4));
	ASK(cuMemsetD32(p, 1, 1));
	ASK(cuCtxSynchronize());
	NEED(cuDevicePrimaryCtxRetain(&context, device));
	now("retained again");
	ASK(cuMemFree(p));
	ASK(cuMemAlloc(&q, 64));
	ASK(cuMemsetD32(q, 7, 1));
	SAY("value %u", word(q));
	ASK(cuDevicePrimaryCtxRelease(device));
	now("one of two released");
	ASK(cuDevicePrimaryCtxRelease(device));
	now("both released");
	ASK(cuDevicePrimaryCtxRelease(device));
}

static void *other_thread(void *p)
{
	CUcontext a = p, got = NULL;

	ASK(push_first(a));
	ASK(cuCtxGetCurrent(&got));
	SAY("in the other thread %d", got == a);
	ASK(destroy_first(a));
	ASK(pop_first(&got));
	return NULL;
}

/* The first names ask that a context is on one thread's stack at most. */
static void floating(void)
{
	CUcontext a, b, got = NULL;
	pthread_t t;

	names();
	NEED(cuCtxCreate(&a, NULL, 0, device));
	ASK(push_first(a));
	ASK(push_first(NULL));
	NEED(cuCtxCreate(&b, NULL, 0, device));
	ASK(push_first(a));
	ASK(pop_first(&got));
	SAY("popped b %d", got == b);
	ASK(push_first(b));
	ASK(pop_first(NULL));
	ASK(push_first(b));
	ASK(pop_first(&got));
	/* b floats; a is current here. */
	pthread_create(&t, NULL, other_thread, b);
	pthread_join(t, NULL);
	pthread_create(&t, NULL, other_thread, a);
	pthread_join(t, NULL);
	ASK(cuCtxGetCurrent(&got));
	SAY("current a %d", got == a);
	ASK(cuCtxAttach(&got, 0));
	ASK(pop_first(&got));
	ASK(cuCtxGetCurrent(&got));
	SAY("current a %d", got == a);
	if (!got)
		ASK(cuCtxSetCurrent(a));
	ASK(destroy_first(a));
	ASK(cuCtxGetCurrent(&got));
	SAY("current a %d, none %d", got == a, !got);
}

/* The same of a context that the calls of today put there, and of the primary one. */
static void mixed(void)
{
	CUcontext a, got = NULL;

	names();
	NEED(cuCtxCreate(&a, NULL, 0, device));
	ASK(cuCtxPopCurrent(&got));
	ASK(cuCtxSetCurrent(a));
	ASK(push_first(a));
	ASK(cuCtxSetCurrent(NULL));
	ASK(push_first(a));
	ASK(cuCtxPushCurrent(a));
	ASK(pop_first(&got));
	ASK(push_first(a));
	ASK(cuCtxGetCurrent(&got));
	SAY("current a %d", got == a);
	ASK(pop_first(&got));
	ASK(pop_first(&got));
	ASK(pop_first(&got));
	NEED(cuDevicePrimaryCtxRetain(&context, device));
	ASK(push_first(context));
	ASK(push_first(context));
	ASK(pop_first(&got));
	SAY("popped the primary one %d", got == context);
	ASK(destroy_first(context));
	ASK(destroy_first(NULL));
	ASK(destroy_first(a));
}

SECTIONS({"today", today}, {"before", before}, {"flags", flags}, {"under_users", under_users},
	{"floating", floating}, {"mixed", mixed})
