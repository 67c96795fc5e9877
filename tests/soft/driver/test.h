/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the software device's driver share: checks that say where, and a device that is up.
 *
 * Thread rule: none. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "wire/cuda.h"

#define CHECK(what)                                                                                          \
	do {                                                                                                 \
		if (!(what)) {                                                                               \
			fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #what);             \
			exit(1);                                                                             \
		}                                                                                            \
	} while (0)
#define IS(call, code)                                                                                       \
	do {                                                                                                 \
		CUresult is_ = (call);                                                                       \
		if (is_ != (code)) {                                                                         \
			fprintf(stderr, "%s:%d: %s gave %d, expected %d\n", __FILE__, __LINE__, #call, is_,  \
				(code));                                                                     \
			exit(1);                                                                             \
		}                                                                                            \
	} while (0)
#define OK(call) IS(call, CUDA_SUCCESS)

#define PTX_HEAD ".version 7.5\n.target sm_75\n.address_size 64\n"
static const char add_ptx[] = PTX_HEAD ".visible .entry add(.param .u64 p, .param .u32 v) {\n"
				       " .reg .b32 %r<4>; .reg .b64 %d<4>;\n"
				       " ld.param.u64 %d0,[p]; ld.param.u32 %r0,[v]; mov.u32 %r1,%tid.x; "
				       "mul.wide.u32 %d1,%r1,4; add.u64 %d2,%d0,%d1;\n"
				       " ld.u32 %r2,[%d2]; add.u32 %r2,%r2,%r0; st.u32 [%d2],%r2; ret; }\n";

static inline CUcontext device_up(void)
{
	CUcontext c;
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&c, 0));
	OK(cuCtxSetCurrent(c));
	return c;
}

static inline CUfunction function(const char *ptx, const char *name)
{
	CUmodule m;
	CUfunction f;
	OK(cuModuleLoadData(&m, ptx));
	OK(cuModuleGetFunction(&f, m, name));
	return f;
}

static inline unsigned word(CUdeviceptr p)
{
	unsigned v = 0;
	OK(cuMemcpyDtoH_v2(&v, p, 4));
	return v;
}

/* One thread of the kernel in add_ptx. */
static inline void launch(CUfunction add, CUdeviceptr p, unsigned v, CUstream s)
{
	OK(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, s, (void *[]){&p, &v}, NULL));
}

/* The engine's workers keep a little for the next kernel; what a test takes is more than that. */
#define KEPT (256u << 10)

/* What the engine keeps for kernels is taken before memory is counted. */
static inline void warm_up(CUfunction add)
{
	CUdeviceptr p;
	OK(cuMemAlloc_v2(&p, 4));
	launch(add, p, 0, NULL);
	OK(cuMemFree_v2(p));
}
