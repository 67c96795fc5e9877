/* SPDX-License-Identifier: Apache-2.0 */
/* The tests' device is the first one of whatever libcuda.so.1 is found. The kernels are compiled in groups on
 * several threads; a group that is refused is halved until the kernels that spoil it are alone.
 *
 * Thread rule: one thread calls; those of device_load take groups by an atomic counter. */
#include "tests/soft/engine/device.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "wire/cuda.h"

enum { GROUP = 16, MAX_THREADS = 32, LOG = 512, TIME_LIMIT_S = 10, MAX_PARAMS = 64 };

#define EACH_CALL(X)                                                                                         \
	X(cuInit)                                                                                            \
	X(cuDeviceGet) X(cuDeviceGetName) X(cuDevicePrimaryCtxRetain) X(cuCtxSetCurrent)                     \
		X(cuMemAllocManaged) X(cuModuleLoadDataEx) X(cuModuleGetFunction) X(cuLaunchKernel)          \
			X(cuStreamQuery) X(cuGetErrorName) X(cuDriverGetVersion)
#define X(f) static __typeof__(f) *p_##f;
EACH_CALL(X)
#undef X

static CUcontext context;
static struct kernel {
	CUfunction function;
	char refusal[LOG];
} * kernels;
static struct {
	const char *head, *text;
	const size_t *start;
	unsigned n;
	_Atomic unsigned next, taken;
} job;

static bool good(CUresult r, const char *what)
{
	const char *name = "?";
	if (r)
		p_cuGetErrorName(r, &name);
	if (r)
		printf("FAILED %s: %s\n", what, name);
	return !r;
}

bool device_open(const char *simd)
{
	(void)simd;
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);
	if (!lib) {
		printf("FAILED %s\n", dlerror());
		return false;
	}
#define X(f)                                                                                                 \
	if (!(p_##f = (__typeof__(f) *)dlsym(lib, #f))) {                                                    \
		printf("FAILED no " #f "\n");                                                                \
		return false;                                                                                \
	}
	EACH_CALL(X)
#undef X
	CUdevice d;
	char name[128];
	int version;
	if (!good(p_cuInit(0), "cuInit") || !good(p_cuDeviceGet(&d, 0), "cuDeviceGet") ||
		!good(p_cuDeviceGetName(name, sizeof name, d), "cuDeviceGetName") ||
		!good(p_cuDriverGetVersion(&version), "cuDriverGetVersion") ||
		!good(p_cuDevicePrimaryCtxRetain(&context, d), "cuDevicePrimaryCtxRetain") ||
		!good(p_cuCtxSetCurrent(context), "cuCtxSetCurrent"))
		return false;
	printf("on %s, driver %d\n", name, version);
	return true;
}

void *device_alloc(size_t bytes)
{
	CUdeviceptr p;
	return good(p_cuMemAllocManaged(&p, bytes, CU_MEM_ATTACH_GLOBAL), "cuMemAllocManaged") ? (void *)p
											       : NULL;
}

/* Kernels from..to in one module, or in smaller ones. */
static void load(unsigned from, unsigned to)
{
	size_t h = strlen(job.head), n = job.start[to] - job.start[from];
	char *whole = malloc(h + n + 1), log[LOG] = "";
	if (!whole)
		return;
	memcpy(whole, job.head, h);
	memcpy(whole + h, job.text + job.start[from], n);
	whole[h + n] = 0;
	CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {log, (void *)(uintptr_t)sizeof log};
	CUmodule m;
	CUresult r = p_cuModuleLoadDataEx(&m, whole, 2, options, values);
	free(whole);
	if (r && to - from > 1) {
		unsigned half = from + (to - from) / 2;
		load(from, half);
		load(half, to);
		return;
	}
	for (unsigned k = from; k < to; k++) {
		char name[16];
		const char *code = "no memory";
		snprintf(name, sizeof name, "k%u", k);
		CUresult found = r ? r : p_cuModuleGetFunction(&kernels[k].function, m, name);
		if (!found) {
			atomic_fetch_add(&job.taken, 1);
			continue;
		}
		p_cuGetErrorName(found, &code);
		snprintf(kernels[k].refusal, LOG, "%s %.400s", code, log);
		for (char *c = kernels[k].refusal; *c; c++)
			*c = *c == '\n' || *c == '\t' ? ' ' : *c;
	}
}

static void *loader(void *unused)
{
	(void)unused;
	if (!good(p_cuCtxSetCurrent(context), "cuCtxSetCurrent"))
		return NULL;
	for (unsigned k; (k = atomic_fetch_add(&job.next, GROUP)) < job.n;)
		load(k, k + GROUP < job.n ? k + GROUP : job.n);
	return NULL;
}

unsigned device_load(const char *head, const char *text, const size_t *start, unsigned n)
{
	kernels = calloc(n, sizeof *kernels);
	if (!kernels)
		return 0;
	for (unsigned k = 0; k < n; k++)
		snprintf(kernels[k].refusal, LOG, "not loaded");
	job.head = head, job.text = text, job.start = start, job.n = n;
	pthread_t t[MAX_THREADS];
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int threads = 0;
	while (threads < cpus && threads < MAX_THREADS && !pthread_create(&t[threads], NULL, loader, NULL))
		threads++;
	if (!threads)
		loader(NULL);
	while (threads)
		pthread_join(t[--threads], NULL);
	return job.taken;
}

const char *device_refusal(unsigned k)
{
	return kernels[k].function ? NULL : kernels[k].refusal;
}

/* A kernel that does not end, or that ends the context, ends the test: nothing can be run behind it. */
bool device_launch(
	unsigned k, unsigned grid, unsigned block, const void *params, size_t bytes, const char **why)
{
	static char text[LOG];
	char room[MAX_PARAMS];
	if (bytes > sizeof room)
		return false;
	memcpy(room, params, bytes);
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, room, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
		CU_LAUNCH_PARAM_END};
	const char *name = "no end";
	CUresult r = p_cuLaunchKernel(kernels[k].function, grid, 1, 1, block, 1, 1, 0, NULL, NULL, extra);
	time_t end = time(NULL) + TIME_LIMIT_S;
	while (!r && (r = p_cuStreamQuery(NULL)) == CUDA_ERROR_NOT_READY && time(NULL) < end)
		r = CUDA_SUCCESS;
	if (!r)
		return true;
	p_cuGetErrorName(r, &name);
	if (r != CUDA_ERROR_INVALID_VALUE && r != CUDA_ERROR_NOT_SUPPORTED) {
		printf("FAILED kernel %u: %s\n", k, r == CUDA_ERROR_NOT_READY ? "does not end" : name);
		fflush(NULL);
		_exit(2);
	}
	snprintf(text, sizeof text, "%s", name);
	*why = text;
	return false;
}

void device_close(void)
{
	free(kernels);
	kernels = NULL;
}
