/* SPDX-License-Identifier: Apache-2.0 */
/* What the conformance programs share. A program is a list of sections; each runs in a child of its own,
 * forked before any CUDA call, so that a lost context or a crash ends one section. Every line is a call
 * and its answer, or a value; the golden files hold what a real driver said. A line that begins with "~ "
 * may differ between devices or runs and is not compared. Threads: none, but where a section makes its
 * own. */
#pragma once
#include <cuda.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ASK(call) answer("", #call, (call))              /* a call whose answer is compared */
#define VARY(call) answer("~ ", #call, (call))           /* one whose answer is only told */
#define NEED(call) need(#call, (call), __LINE__)         /* one that the section cannot do without */
#define SAY(...) (printf(__VA_ARGS__), putchar('\n'))
#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define ADDRESS(p) ((CUdeviceptr)(uintptr_t)(p))
#define LAUNCH(f, stream, ...) cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){__VA_ARGS__}, NULL)

struct section {
	const char *name;
	void (*run)(void);
};

static inline const char *name_of(CUresult r)
{
	static __thread char unknown[24];
	const char *s = NULL;

	if (cuGetErrorName(r, &s) == CUDA_SUCCESS && s)
		return s;
	snprintf(unknown, sizeof(unknown), "%d", (int)r);
	return unknown;
}

static inline CUresult answer(const char *mark, const char *call, CUresult r)
{
	printf("%s%s -> %s\n", mark, call, name_of(r));
	return r;
}

/* A text that may differ, each of its lines for itself. */
static inline void vary(const char *text)
{
	for (size_t n; *text; text += n + (text[n] == '\n')) {
		n = strcspn(text, "\n");
		printf("~ [%.*s]\n", (int)n, text);
	}
}

static inline void need(const char *call, CUresult r, int line)
{
	if (r == CUDA_SUCCESS)
		return;
	printf("cannot go on: line %d: %s -> %s\n", line, call, name_of(r));
	exit(3);
}

/* store: *p = v. log_to: appends v to the log at p, whose first word counts. */
static const char kernels[] =
	".version 7.5\n.target sm_75\n.address_size 64\n"
	".visible .global .align 4 .u32 number = 12;\n"
	".visible .const .align 8 .b8 bytes[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};\n"
	".visible .entry nothing() { ret; }\n"
	".visible .entry store(.param .u64 p, .param .u32 v) {\n"
	" .reg .b64 %p; .reg .b32 %r; ld.param.u64 %p, [p]; ld.param.u32 %r, [v]; st.global.u32 [%p], %r; "
	"ret; }\n"
	".visible .entry log_to(.param .u64 p, .param .u32 v) {\n"
	" .reg .b64 %p<3>; .reg .b32 %r<3>; ld.param.u64 %p0, [p]; ld.param.u32 %r0, [v]; "
	"ld.global.u32 %r1, [%p0];\n"
	" mul.wide.u32 %p1, %r1, 4; add.u64 %p2, %p0, %p1; st.global.u32 [%p2+4], %r0; add.u32 %r2, %r1, 1;\n"
	" st.global.u32 [%p0], %r2; ret; }\n"
	".visible .entry with_shared(.param .u64 p) {\n"
	" .shared .align 4 .b8 s[4096]; .reg .b64 %p; .reg .b32 %r<2>; ld.param.u64 %p, [p]; "
	"mov.u32 %r0, s;\n"
	" st.shared.u32 [%r0], 5; ld.shared.u32 %r1, [%r0]; st.global.u32 [%p], %r1; ret; }\n";

static CUdevice device;
static CUcontext context;
static CUmodule module;

/* The primary context current in this thread and the kernels above loaded. */
static inline void begin(void)
{
	NEED(cuInit(0));
	NEED(cuDeviceGet(&device, 0));
	NEED(cuDevicePrimaryCtxRetain(&context, device));
	NEED(cuCtxSetCurrent(context));
	NEED(cuModuleLoadData(&module, kernels));
}

/* Launched once, so that no first launch has to wait behind held work. */
static inline CUfunction kernel(const char *name)
{
	CUfunction f;

	NEED(cuModuleGetFunction(&f, module, name));
	NEED(cuFuncLoad(f));
	return f;
}

/* Blocks of one thread. */
static inline CUlaunchConfig config(unsigned blocks, CUstream s, CUlaunchAttribute *a, unsigned n)
{
	CUlaunchConfig c = {0};

	c.gridDimX = blocks;
	c.gridDimY = c.gridDimZ = c.blockDimX = c.blockDimY = c.blockDimZ = 1;
	c.hStream = s;
	c.attrs = a;
	c.numAttrs = n;
	return c;
}

static inline CUdeviceptr zeroed(size_t n)
{
	CUdeviceptr p;

	NEED(cuMemAlloc(&p, n));
	NEED(cuMemsetD8(p, 0, n));
	NEED(cuCtxSynchronize());
	return p;
}

static inline unsigned word(CUdeviceptr p)
{
	unsigned v = 0;

	NEED(cuMemcpyDtoH(&v, p, sizeof(v)));
	return v;
}

static inline int attribute(CUdevice_attribute a)
{
	int v = -1;

	NEED(cuDeviceGetAttribute(&v, a, device));
	return v;
}

/* A kernel's node of one thread. */
static inline CUDA_KERNEL_NODE_PARAMS one_thread(CUfunction f, void **args)
{
	CUDA_KERNEL_NODE_PARAMS k = {.func = f, .kernelParams = args};

	k.gridDimX = k.gridDimY = k.gridDimZ = k.blockDimX = k.blockDimY = k.blockDimZ = 1;
	return k;
}

/* Holds a stream until open_gate: a host function that waits. */
static sem_t gate_semaphore;
static inline void CUDA_CB gate_wait(void *s)
{
	while (sem_wait(s))
		;
}

static inline CUresult close_gate(CUstream s)
{
	sem_init(&gate_semaphore, 0, 0);
	return cuLaunchHostFunc(s, gate_wait, &gate_semaphore);
}

static inline void open_gate(void)
{
	sem_post(&gate_semaphore);
}

static inline int run_sections(const struct section *s, size_t n, const char *only)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < n; i++) {
		int status = 0;
		pid_t p;

		if (only && strcmp(only, s[i].name))
			continue;
		printf("== %s\n", s[i].name);
		fflush(stdout);
		p = fork();
		if (p < 0) {
			perror("fork");
			return 1;
		}
		if (!p) {
			alarm(60);
			s[i].run();
			exit(0);
		}
		while (waitpid(p, &status, 0) < 0 && errno == EINTR)
			;
		if (WIFSIGNALED(status))
			printf("== %s ended by signal %d\n", s[i].name, WTERMSIG(status));
		else if (WEXITSTATUS(status))
			printf("== %s exit status %d\n", s[i].name, WEXITSTATUS(status));
	}
	return 0;
}

#define SECTIONS(...) \
	int main(int argc, char **argv) \
	{ \
		static const struct section s[] = {__VA_ARGS__}; \
		return run_sections(s, COUNT(s), argc > 1 ? argv[1] : NULL); \
	}
