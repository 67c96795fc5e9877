/* SPDX-License-Identifier: Apache-2.0 */
/* What may be taken by name: device functions, which are no kernels, variables of each space, names that are
 * there twice or not at all, from modules, libraries and linked images. */
#include "check.h"
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static const char texts[] =
	".version 7.5\n.target sm_75\n.address_size 64\n"
	".visible .global .align 4 .u32 counter = 5;\n"
	".global .align 4 .u32 hidden = 6;\n"
	".visible .const .align 4 .u32 factor = 7;\n"
	".visible .global .align 8 .u64 table[4];\n"
	".visible .func (.param .b32 r) twice(.param .b32 x) { .reg .b32 %r<2>; ld.param.u32 %r0, [x];\n"
	" add.u32 %r1, %r0, %r0; st.param.b32 [r], %r1; ret; }\n"
	".func (.param .b32 r) inner(.param .b32 x) { .reg .b32 %r<2>; ld.param.u32 %r0, [x];\n"
	" add.u32 %r1, %r0, 3; st.param.b32 [r], %r1; ret; }\n"
	".visible .entry call(.param .u64 p, .param .u32 v) { .reg .b64 %p; .reg .b32 %r<4>; ld.param.u64 "
	"%p, [p];\n"
	" ld.param.u32 %r0, [v]; { .param .b32 a; .param .b32 b; st.param.b32 [a], %r0; call.uni (b), twice, "
	"(a);\n"
	" ld.param.b32 %r1, [b]; } { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call.uni (b), "
	"inner, (a);\n"
	" ld.param.b32 %r2, [b]; } ld.global.u32 %r3, [hidden]; add.u32 %r2, %r2, %r3; st.global.u32 [%p], "
	"%r2; ret; }\n"
	".entry silent(.param .u64 p) { ret; }\n"
	".visible .entry again(.param .u64 p) { ret; }\n";

static void tell(CUfunction f)
{
	const char *name = NULL;
	size_t at = 77, size = 77;
	int v = 77;

	ASK(cuFuncGetName(&name, f));
	SAY("name %s", name ? name : "none");
	ASK(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
	SAY("threads %d", v);
	ASK(cuFuncGetParamInfo(f, 0, &at, &size));
	SAY("at %zu, %zu bytes", at, size);
}

/* Of a linked image a driver gives device functions, too, which nobody can launch; the software device does
 * not, for it links texts: those answers are told only. */
static void functions(CUmodule m, bool linked)
{
	CUfunction f = NULL, all[8] = {0};
	CUdeviceptr p = zeroed(64), g;
	CUtexref t;
	unsigned n = 77, x = 10;
	size_t size;

	ASK(cuModuleGetFunctionCount(&n, m));
	SAY("%u functions", n);
	ASK(cuModuleEnumerateFunctions(all, 7, m));
	SAY("behind the last, nothing %d", !all[n < 8 ? n : 7]);
	if (linked) {
		VARY(cuModuleGetFunction(&f, m, "twice"));
		VARY(cuModuleGetFunction(&f, m, "inner"));
		VARY(cuModuleGetGlobal(&g, &size, m, "twice"));
	} else {
		ASK(cuModuleGetFunction(&f, m, "twice"));
		ASK(cuModuleGetFunction(&f, m, "inner"));
		ASK(cuModuleGetGlobal(&g, &size, m, "twice"));
	}
	ASK(cuModuleGetFunction(&f, m, "counter"));
	ASK(cuModuleGetFunction(&f, m, ""));
	ASK(cuModuleGetFunction(&f, m, "cal"));
	ASK(cuModuleGetFunction(&f, m, "calls"));
	if (!ASK(cuModuleGetFunction(&f, m, "silent")))
		tell(f);
	if (!ASK(cuModuleGetFunction(&f, m, "call"))) {
		tell(f);
		ASK(LAUNCH(f, NULL, &p, &x));
		SAY("value %u", word(p));
	}
	ASK(cuModuleGetGlobal(&g, &size, m, "counter"));
	SAY("%zu bytes", size);
	if (!ASK(cuModuleGetGlobal(&g, &size, m, "hidden")))
		SAY("%zu bytes", size);
	ASK(cuModuleGetGlobal(&g, &size, m, "factor"));
	SAY("%zu bytes", size);
	ASK(cuModuleGetGlobal(&g, &size, m, "table"));
	SAY("%zu bytes", size);
	ASK(cuModuleGetGlobal(&g, &size, m, "call"));
	ASK(cuModuleGetGlobal(&g, &size, m, ""));
	ASK(cuModuleGetTexRef(&t, m, "counter"));
	ASK(cuModuleGetTexRef(&t, m, "call"));
	ASK(cuModuleGetTexRef(&t, m, ""));
	ASK(cuModuleGetSurfRef((CUsurfref *)&t, m, "nobody"));
}

static void of_module(void)
{
	CUmodule m;

	begin();
	NEED(cuModuleLoadData(&m, texts));
	functions(m, false);
	ASK(cuModuleUnload(m));
}

static void of_linked(void)
{
	CUlinkState l;
	CUmodule m;
	void *image;
	size_t n;

	begin();
	NEED(cuLinkCreate(0, NULL, NULL, &l));
	NEED(cuLinkAddData(
		l, CU_JIT_INPUT_PTX, (void *)(uintptr_t)texts, sizeof texts, "texts", 0, NULL, NULL));
	NEED(cuLinkComplete(l, &image, &n));
	NEED(cuModuleLoadData(&m, image));
	functions(m, true);
	ASK(cuLinkDestroy(l));
}

static void of_library(void)
{
	CUlibrary l;
	CUkernel k = NULL;
	CUfunction f;
	CUmodule m;
	CUdeviceptr p;
	void *unified = NULL;
	const char *name = NULL;
	unsigned n = 77;
	size_t size;
	int v = 77;

	begin();
	NEED(cuLibraryLoadData(&l, texts, NULL, NULL, 0, NULL, NULL, 0));
	ASK(cuLibraryGetKernelCount(&n, l));
	SAY("%u kernels", n);
	if (!ASK(cuLibraryGetKernel(&k, l, "twice"))) {
		ASK(cuKernelGetName(&name, k));
		ASK(cuKernelGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, k, device));
		ASK(cuKernelGetFunction(&f, k));
	}
	ASK(cuLibraryGetKernel(&k, l, "inner"));
	ASK(cuLibraryGetKernel(&k, l, "counter"));
	ASK(cuLibraryGetKernel(&k, l, ""));
	ASK(cuLibraryGetKernel(&k, l, "silent"));
	ASK(cuLibraryGetKernel(&k, l, "call"));
	ASK(cuLibraryGetGlobal(&p, &size, l, "counter"));
	ASK(cuLibraryGetGlobal(&p, &size, l, "factor"));
	if (!ASK(cuLibraryGetGlobal(&p, &size, l, "hidden")))
		SAY("%zu bytes", size);
	ASK(cuLibraryGetGlobal(&p, &size, l, "nobody"));
	ASK(cuLibraryGetGlobal(&p, &size, l, "call"));
	ASK(cuLibraryGetManaged(&p, &size, l, "counter"));
	ASK(cuLibraryGetUnifiedFunction(&unified, l, "twice"));
	ASK(cuLibraryGetUnifiedFunction(&unified, l, "nobody"));
	ASK(cuLibraryGetModule(&m, l));
	functions(m, false);
	ASK(cuModuleUnload(m));
	ASK(cuLibraryUnload(l));
}

SECTIONS({"of_module", of_module}, {"of_linked", of_linked}, {"of_library", of_library})
