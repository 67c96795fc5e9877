/* SPDX-License-Identifier: Apache-2.0 */
/* What the end-to-end programs share: a context with a few kernels, checks that say what failed, and words to
 * and from the shell script on standard output and input. The programs use the driver API through the
 * libcuda.so.1 that the library path gives them. One thread each unless a program says otherwise. */
#pragma once
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "wire/cuda.h"

/* fill: p[i] = v + i. add: p[i] += v. slow: waits ms milliseconds, then *p = v. */
static const char prog_ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry fill(.param .u64 p, .param .u32 v, .param .u32 n)\n{\n"
	"	.reg .pred %past;\n	.reg .b32 %r<8>;\n	.reg .b64 %d<4>;\n"
	"	ld.param.u64 %d0, [p];\n	ld.param.u32 %r0, [v];\n	ld.param.u32 %r1, [n];\n"
	"	mov.u32 %r2, %ctaid.x;\n	mov.u32 %r3, %ntid.x;\n	mov.u32 %r4, %tid.x;\n"
	"	mad.lo.u32 %r5, %r2, %r3, %r4;\n	setp.ge.u32 %past, %r5, %r1;\n	@%past bra done;\n"
	"	add.u32 %r6, %r0, %r5;\n	mul.wide.u32 %d1, %r5, 4;\n	add.u64 %d2, %d0, %d1;\n"
	"	st.global.u32 [%d2], %r6;\ndone:\n	ret;\n}\n"
	".visible .entry add(.param .u64 p, .param .u32 v, .param .u32 n)\n{\n"
	"	.reg .pred %past;\n	.reg .b32 %r<8>;\n	.reg .b64 %d<4>;\n"
	"	ld.param.u64 %d0, [p];\n	ld.param.u32 %r0, [v];\n	ld.param.u32 %r1, [n];\n"
	"	mov.u32 %r2, %ctaid.x;\n	mov.u32 %r3, %ntid.x;\n	mov.u32 %r4, %tid.x;\n"
	"	mad.lo.u32 %r5, %r2, %r3, %r4;\n	setp.ge.u32 %past, %r5, %r1;\n	@%past bra done;\n"
	"	mul.wide.u32 %d1, %r5, 4;\n	add.u64 %d2, %d0, %d1;\n	ld.global.u32 %r6, [%d2];\n"
	"	add.u32 %r6, %r6, %r0;\n	st.global.u32 [%d2], %r6;\ndone:\n	ret;\n}\n"
	".visible .entry slow(.param .u64 p, .param .u32 v, .param .u32 ms)\n{\n"
	"	.reg .pred %more;\n	.reg .b32 %r<4>;\n	.reg .b64 %d<2>;\n	.reg .b64 %t<4>;\n"
	"	ld.param.u64 %d0, [p];\n	ld.param.u32 %r0, [v];\n	ld.param.u32 %r1, [ms];\n"
	"	mul.wide.u32 %t2, %r1, 1000000;\n	mov.u64 %t0, %globaltimer;\n"
	"again:\n	nanosleep.u32 20000;\n	mov.u64 %t1, %globaltimer;\n	sub.u64 %t1, %t1, %t0;\n"
	"	setp.lt.u64 %more, %t1, %t2;\n	@%more bra again;\n	st.global.u32 [%d0], %r0;\n	"
	"ret;\n}\n";

static CUdevice prog_device;
static CUcontext prog_context;
static CUmodule prog_module;

static inline const char *prog_error(CUresult r)
{
	const char *name = NULL;

	return cuGetErrorName(r, &name) || !name ? "?" : name;
}

/* The API's functions leave errno alone, but for what an allocator that is made to fail says (no_memory). */
#define PROG_ERRNO 4242
static inline void prog_check(CUresult r, const char *what, int line)
{
	int e = errno;

	if (!r && (e == PROG_ERRNO || (e == ENOMEM && getenv("FAIL_AT"))))
		return;
	if (r)
		fprintf(stderr, "line %d: %s: %s (%d)\n", line, what, prog_error(r), (int)r);
	else
		fprintf(stderr, "line %d: %s: errno became %d\n", line, what, e);
	exit(1);
}
#define CHECK(call) (errno = PROG_ERRNO, prog_check(call, #call, __LINE__))

static inline void prog_require(bool ok, const char *what, int line)
{
	if (ok)
		return;
	fprintf(stderr, "line %d: it is not so that %s\n", line, what);
	exit(1);
}
#define REQUIRE(condition) prog_require(condition, #condition, __LINE__)

static inline void prog_up(void)
{
	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&prog_device, 0));
	CHECK(cuDevicePrimaryCtxRetain(&prog_context, prog_device));
	CHECK(cuCtxSetCurrent(prog_context));
	CHECK(cuModuleLoadData(&prog_module, prog_ptx));
}

static inline CUfunction prog_function(const char *name)
{
	CUfunction f;

	CHECK(cuModuleGetFunction(&f, prog_module, name));
	return f;
}

static inline CUresult prog_launch(
	CUfunction f, CUdeviceptr p, unsigned v, unsigned n, unsigned threads, CUstream s)
{
	void *arguments[] = {&p, &v, &n};
	unsigned block = threads < 256 ? threads : 256;

	return cuLaunchKernel(f, (threads + block - 1) / block, 1, 1, block, 1, 1, 0, s, arguments, NULL);
}

/* The next n bytes of a seed, which moves. A sanitizer that is asked about each of them takes minutes. */
__attribute__((noinline, unused, no_sanitize("thread", "address", "undefined")))
static void prog_fill_own(uint8_t *p, size_t n, unsigned *seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)((*seed += 2654435761u) >> 13);
}

/* Bytes that differ from those of another seed; a sanitizer looks at the copy. */
static inline void prog_fill(uint8_t *p, size_t n, unsigned seed)
{
	uint8_t own[4096];

	for (size_t at = 0, k; at < n; at += k) {
		k = n - at < sizeof own ? n - at : sizeof own;
		prog_fill_own(own, k, &seed);
		memcpy(p + at, own, k);
	}
}

static inline int64_t prog_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* The factor of all the tests' time limits. */
static inline int prog_slow(void)
{
	const char *slow = getenv("SLOW");

	return slow && atoi(slow) > 1 ? atoi(slow) : 1;
}

/* A line for the script. */
static inline void say(const char *word)
{
	puts(word);
	fflush(stdout);
}

/* Waits until the script closes or writes to standard input. */
static inline void await(void)
{
	char c;

	while (read(STDIN_FILENO, &c, 1) < 0 && errno == EINTR)
		;
}
