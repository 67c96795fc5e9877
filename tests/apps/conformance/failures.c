/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that fail: which call tells, with which code, that it stays, and what still answers. */
#include "check.h"

static const char failing[] =
	".version 7.5\n.target sm_75\n.address_size 64\n"
	".visible .entry wild(.param .u64 p) { .reg .b64 %p; ld.param.u64 %p, [p]; st.global.u32 [%p], 1; "
	"ret; }\n"
	".visible .entry stop(.param .u64 p) { trap; ret; }\n"
	".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 "
	"e);\n"
	".global .align 1 .b8 text[] = {110, 111, 0};\n"
	".visible .entry claim(.param .u64 p) { .reg .b64 %p<2>; mov.u64 %p0, text; "
	"cvta.global.u64 %p1, %p0;\n"
	" { .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e; "
	"st.param.b64 [a], %p1; st.param.b64 [b], %p1;\n"
	" st.param.b32 [c], 7; st.param.b64 [d], %p1; st.param.b64 [e], 1; "
	"call.uni __assertfail, (a, b, c, d, e); } ret; }\n";

enum way { STREAM, CONTEXT, EVENT, QUERY, COPY };

static void run(const char *name, CUdeviceptr where, enum way way)
{
	CUmodule m;
	CUfunction f;
	CUstream s, other;
	CUevent e;
	CUdeviceptr p, q;
	CUdevice d;
	CUcontext c;
	unsigned *pin, flags, v = 0;
	int n;
	size_t size;

	begin();
	p = zeroed(64);
	NEED(cuModuleLoadData(&m, failing));
	NEED(cuModuleGetFunction(&f, m, name));
	NEED(cuFuncLoad(f));
	NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	NEED(cuEventCreate(&e, 0));
	NEED(cuMemAllocHost((void **)&pin, 64));
	*pin = 55;
	if (!where)
		where = p + 2;
	ASK(LAUNCH(f, way == COPY ? NULL : s, &where));
	switch (way) {
	case STREAM: ASK(cuStreamSynchronize(s)); break;
	case CONTEXT: ASK(cuCtxSynchronize()); break;
	case EVENT:
		VARY(cuEventRecord(e, s));
		ASK(cuEventSynchronize(e));
		break;
	case QUERY: {
		CUresult r;

		while ((r = cuStreamQuery(s)) == CUDA_ERROR_NOT_READY)
			;
		SAY("query until it is over -> %s", name_of(r));
		break;
	}
	case COPY: ASK(cuMemcpyDtoH(&v, p, 4)); break;
	}
	ASK(cuCtxSynchronize());
	ASK(cuStreamSynchronize(s));
	ASK(cuStreamQuery(s));
	ASK(cuEventRecord(e, s));
	ASK(cuEventQuery(e));
	ASK(LAUNCH(f, s, &where));
	ASK(cuMemAlloc(&q, 4));
	ASK(cuMemcpyDtoH(&v, p, 4));
	ASK(cuMemcpyHtoDAsync(p, pin, 4, s));
	ASK(cuMemsetD8Async(p, 0, 4, s));
	ASK(cuStreamCreate(&other, 0));
	ASK(cuModuleLoadData(&m, kernels));
	ASK(cuMemGetInfo(&size, &size));
	ASK(cuCtxGetCurrent(&c));
	ASK(cuCtxGetDevice(&d));
	ASK(cuCtxGetFlags(&flags));
	ASK(cuDeviceGetCount(&n));
	ASK(cuDeviceGetAttribute(&n, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device));
	ASK(cuPointerGetAttribute(&v, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
	SAY("pinned memory is readable %u", *pin);
	ASK(cuMemFree(p));
	ASK(cuStreamDestroy(s));
	ASK(cuEventDestroy(e));
}

static void wild(void) { run("wild", 64, STREAM); }
static void wild_event(void) { run("wild", 64, EVENT); }
static void wild_query(void) { run("wild", 64, QUERY); }
static void wild_copy(void) { run("wild", 64, COPY); }
static void misaligned(void) { run("wild", 0, CONTEXT); }
static void stop(void) { run("stop", 64, CONTEXT); }
static void claim(void) { run("claim", 64, STREAM); }

SECTIONS({"wild", wild}, {"wild_event", wild_event}, {"wild_query", wild_query}, {"wild_copy", wild_copy},
		{"misaligned", misaligned},
	 {"stop", stop}, {"claim", claim})
