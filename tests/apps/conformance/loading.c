/* SPDX-License-Identifier: Apache-2.0 */
/* Compiler options and their logs, the linker, what is enumerated and when it is loaded, and what unloading
 * leaves. */
#include "check.h"

#define HEAD ".version 7.5\n.target sm_75\n.address_size 64\n"
#define WRONG HEAD ".visible .entry k() { wrong.instruction; }\n"

static const char caller[] =
	HEAD ".extern .func (.param .b32 r) twice(.param .b32 x);\n"
	".visible .entry call(.param .u64 p, .param .u32 v) { .reg .b64 %p; .reg .b32 %r<3>; "
	"ld.param.u64 %p, [p];\n"
	" ld.param.u32 %r0, [v]; { .param .b32 a; .param .b32 b; st.param.b32 [a], %r0; call.uni (b), "
	"twice, (a);\n"
	" ld.param.b32 %r1, [b]; } st.global.u32 [%p], %r1; ret; }\n";
static const char callee[] =
	HEAD ".visible .func (.param .b32 r) twice(.param .b32 x) { .reg .b32 %r<2>; ld.param.u32 %r0, [x];\n"
	" add.u32 %r1, %r0, %r0; st.param.b32 [r], %r1; ret; }\n";

static CUresult linked(CUlinkState l, const char *text, const char *name)
{
	return cuLinkAddData(l, CU_JIT_INPUT_PTX, (void *)(uintptr_t)text, strlen(text) + 1, name, 0, NULL,
			NULL);
}

static void options(void)
{
	static char info[1024], error[1024], tiny[8];
	CUjit_option o[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
			CU_JIT_ERROR_LOG_BUFFER,
		CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_LOG_VERBOSE, CU_JIT_WALL_TIME,
		CU_JIT_OPTIMIZATION_LEVEL,
		CU_JIT_MAX_REGISTERS, CU_JIT_GENERATE_DEBUG_INFO, CU_JIT_TARGET_FROM_CUCONTEXT};
	void *v[] = {info, (void *)sizeof info, error, (void *)sizeof error, (void *)1, NULL, (void *)4,
			(void *)32,
		(void *)0, NULL};
	CUjit_option small[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *room[] = {tiny, (void *)sizeof tiny}, *zero[] = {tiny, (void *)0},
			*nowhere[] = {NULL, (void *)64};
	CUjit_option unknown[] = {(CUjit_option)9999};
	void *one[] = {(void *)1};
	CUmodule m;
	CUlibrary l;

	begin();
	ASK(cuModuleLoadDataEx(&m, kernels, COUNT(o), o, v));
	SAY("error log empty %d", !error[0] && !v[3]);
	ASK(cuModuleUnload(m));
	v[1] = (void *)sizeof info;
	v[3] = (void *)sizeof error;
	ASK(cuModuleLoadDataEx(&m, WRONG, COUNT(o), o, v));
	SAY("error log has text %d, its size is told %d", error[0] != 0,
		(size_t)v[3] > 0 && (size_t)v[3] <= sizeof error);
	memset(tiny, 'x', sizeof tiny);
	ASK(cuModuleLoadDataEx(&m, WRONG, 2, small, room));
	SAY("a tiny log ends inside %d, size %d", memchr(tiny, 0, sizeof tiny) != NULL,
			(size_t)room[1] <= sizeof tiny);
	memset(tiny, 'x', sizeof tiny);
	ASK(cuModuleLoadDataEx(&m, WRONG, 2, small, zero));
	SAY("no room, nothing written %d", tiny[0] == 'x');
	ASK(cuModuleLoadDataEx(&m, WRONG, 2, small, nowhere));
	VARY(cuModuleLoadDataEx(&m, kernels, 1, unknown, one));
	ASK(cuModuleLoadDataEx(&m, kernels, 0, NULL, NULL));
	ASK(cuLibraryLoadData(&l, WRONG, small, room, 2, NULL, NULL, 0));
	ASK(cuLibraryLoadData(&l, kernels, o, v, COUNT(o), NULL, NULL, 0));
	ASK(cuLibraryUnload(l));
}

static void link_two(void)
{
	static char info[2048], error[2048];
	CUjit_option o[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
			CU_JIT_ERROR_LOG_BUFFER,
		CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *v[] = {info, (void *)sizeof info, error, (void *)sizeof error};
	CUlinkState l = NULL;
	CUfunction f;
	CUmodule m;
	CUdeviceptr p;
	unsigned x = 21;
	void *image = NULL;
	size_t n = 0;

	begin();
	NEED(cuMemAlloc(&p, 4));
	ASK(cuLinkCreate(COUNT(o), o, v, &l));
	ASK(linked(l, caller, "caller"));
	ASK(linked(l, callee, "callee"));
	ASK(cuLinkComplete(l, &image, &n));
	SAY("an image %d, error log empty %d, sizes told %d %d", image && n > 0, !error[0],
		(size_t)v[1] < sizeof info, (size_t)v[3] < sizeof error);
	ASK(cuModuleLoadData(&m, image));
	ASK(cuLinkDestroy(l));
	NEED(cuModuleGetFunction(&f, m, "call"));
	ASK(LAUNCH(f, NULL, &p, &x));
	SAY("twice 21 is %u", word(p));
	VARY(cuModuleGetFunction(&f, m, "twice"));
	ASK(cuModuleUnload(m));

	/* The same as a library, and of one input whose function is missing. */
	NEED(cuLinkCreate(0, NULL, NULL, &l));
	NEED(linked(l, caller, NULL));
	ASK(cuLinkComplete(l, &image, &n));
	ASK(cuLinkDestroy(l));
	v[1] = (void *)sizeof info;
	v[3] = (void *)sizeof error;
	NEED(cuLinkCreate(COUNT(o), o, v, &l));
	ASK(linked(l, WRONG, "wrong"));
	SAY("error log has text %d", error[0] != 0);
	ASK(cuLinkDestroy(l));
}

static void link_wrongly(void)
{
	CUlinkState l = NULL;
	void *image = NULL;
	size_t n = 0;

	begin();
	ASK(cuLinkCreate(0, NULL, NULL, NULL));
	NEED(cuLinkCreate(0, NULL, NULL, &l));
	ASK(cuLinkAddData(l, CU_JIT_INPUT_PTX, NULL, 10, "x", 0, NULL, NULL));
	ASK(cuLinkAddFile(l, CU_JIT_INPUT_PTX, "/no/such/file", 0, NULL, NULL));
	ASK(cuLinkAddData(l, CU_JIT_INPUT_CUBIN, (void *)(uintptr_t)"no cubin", 9, "x", 0, NULL, NULL));
	ASK(cuLinkComplete(l, NULL, &n));
	ASK(cuLinkDestroy(l));
	NEED(cuLinkCreate(0, NULL, NULL, &l));
	ASK(cuLinkComplete(l, &image, &n));
	ASK(cuLinkDestroy(l));
}

static const char *loading(CUfunction f)
{
	CUfunctionLoadingState s = (CUfunctionLoadingState)9;
	CUresult r = cuFuncIsLoaded(&s, f);

	return r ? name_of(r) : s == CU_FUNCTION_LOADING_STATE_LOADED ? "loaded" : "not loaded";
}

static int find(const CUfunction *f, unsigned n, const char *wanted)
{
	const char *name = NULL;

	for (unsigned i = 0; i < n; i++)
		if (!cuFuncGetName(&name, f[i]) && name && !strcmp(name, wanted))
			return (int)i;
	return -1;
}

static void enumerate_module(void)
{
	CUfunction f[8] = {0}, g;
	CUmodule m, of;
	CUdeviceptr p;
	CUresult r;
	unsigned n = 0, x = 77;
	int i, v = 0;

	begin();
	NEED(cuMemAlloc(&p, 4));
	NEED(cuModuleLoadData(&m, kernels));
	ASK(cuModuleGetFunctionCount(&n, m));
	SAY("%u", n);
	ASK(cuModuleGetFunctionCount(NULL, m));
	ASK(cuModuleEnumerateFunctions(NULL, 1, m));
	ASK(cuModuleEnumerateFunctions(f, 0, m));
	ASK(cuModuleEnumerateFunctions(f, 2, m));
	SAY("two of them %d", f[0] && f[1] && !f[2]);
	ASK(cuModuleEnumerateFunctions(f, 4, m));
	i = find(f, 4, "store");
	SAY("store is there %d", i >= 0);
	if (i < 0)
		return;
	ASK(cuFuncGetModule(&of, f[i]));
	SAY("of this module %d", of == m);
	SAY("enumerated: %s", loading(f[i]));
	r = cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f[i]);
	SAY("an attribute of it: %s", name_of(r));
	ASK(cuModuleGetFunction(&g, m, "store"));
	SAY("the same %d, %s", g == f[i], loading(f[i]));
	ASK(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f[i]));
	ASK(LAUNCH(f[i], NULL, &p, &x));
	SAY("stored %u", word(p));
	i = find(f, 4, "log_to");
	SAY("another: %s", loading(f[i]));
	ASK(cuFuncLoad(f[i]));
	SAY("now: %s", loading(f[i]));
	i = find(f, 4, "with_shared");
	ASK(LAUNCH(f[i], NULL, &p));
	SAY("launched without: %u, %s", word(p), loading(f[i]));
	ASK(cuModuleUnload(m));
}

static void enumerate_library(void)
{
	CUkernel k[8] = {0}, same;
	CUfunction f;
	CUlibrary l, of;
	CUdeviceptr p;
	const char *name = NULL;
	unsigned n = 0, x = 78;
	int i, v = 0;

	begin();
	NEED(cuMemAlloc(&p, 4));
	NEED(cuLibraryLoadData(&l, kernels, NULL, NULL, 0, NULL, NULL, 0));
	ASK(cuLibraryGetKernelCount(&n, l));
	SAY("%u", n);
	ASK(cuLibraryEnumerateKernels(k, 0, l));
	ASK(cuLibraryEnumerateKernels(NULL, 1, l));
	ASK(cuLibraryEnumerateKernels(k, 4, l));
	for (i = 0; i < 4; i++)
		if (!cuKernelGetName(&name, k[i]) && name && !strcmp(name, "store"))
			break;
	SAY("store is there %d", i < 4);
	if (i == 4)
		return;
	ASK(cuKernelGetLibrary(&of, k[i]));
	SAY("of this library %d", of == l);
	ASK(cuLibraryGetKernel(&same, l, "store"));
	SAY("the same %d", same == k[i]);
	ASK(cuKernelGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, k[i], device));
	ASK(LAUNCH((CUfunction)k[i], NULL, &p, &x));
	SAY("stored %u", word(p));
	x = 79;
	ASK(cuKernelGetFunction(&f, k[i]));
	ASK(LAUNCH(f, NULL, &p, &x));
	SAY("stored %u, %s", word(p), loading(f));
	ASK(cuLibraryUnload(l));
}

static void reload(void)
{
	CUmodule m;
	CUdeviceptr p, q = 0, first = 0;
	size_t n;
	unsigned x = 5;

	/* The same bytes over and over: each load starts with the initial values, whatever the last one
	 * left. */
	begin();
	for (int i = 0; i < 3; i++) {
		CUfunction f;

		NEED(cuModuleLoadData(&m, kernels));
		NEED(cuModuleGetGlobal(&p, &n, m, "number"));
		SAY("number is %u", word(p));
		NEED(cuModuleGetFunction(&f, m, "store"));
		ASK(LAUNCH(f, NULL, &p, &x));
		SAY("and now %u", word(p));
		if (i == 1)
			first = p;
		if (i != 1)
			ASK(cuModuleUnload(m));
	}
	NEED(cuModuleLoadData(&m, kernels));
	NEED(cuModuleGetGlobal(&q, &n, m, "number"));
	SAY("apart %d, the one that stayed %u", q != first, word(first));
}

SECTIONS({"options", options}, {"link_two", link_two}, {"link_wrongly", link_wrongly},
	{"enumerate_module", enumerate_module}, {"enumerate_library", enumerate_library}, {"reload", reload})
