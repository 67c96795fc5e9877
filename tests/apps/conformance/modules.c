/* SPDX-License-Identifier: Apache-2.0 */
/* Modules, functions, libraries and the linker: codes of wrong use, attributes, globals, logs. */
#include "check.h"

#define HEAD ".version 7.5\n.target sm_75\n.address_size 64\n"

static void load(void)
{
	static char log[2048];
	CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {log, (void *)sizeof(log)};
	CUmodule m = NULL;

	begin();
	ASK(cuModuleLoadData(&m, HEAD));
	ASK(cuModuleUnload(m));
	ASK(cuModuleLoadData(NULL, kernels));
	ASK(cuModuleLoadData(&m, NULL));
	ASK(cuModuleLoadData(&m, HEAD ".visible .entry k() { wrong.instruction; }\n"));
	ASK(cuModuleLoadData(&m, HEAD ".visible .entry k() { mov.u32 %undeclared, 1; ret; }\n"));
	ASK(cuModuleLoadData(&m, HEAD ".visible .entry k() { ret;\n"));
	ASK(cuModuleLoadData(&m, "this is no module at all"));
	ASK(cuModuleLoadData(&m,
			".version 99.0\n.target sm_75\n.address_size 64\n.visible .entry k() { ret; }\n"));
	ASK(cuModuleLoadDataEx(&m, HEAD ".visible .entry k() { wrong.instruction; }\n", 2, options, values));
	SAY("the log has text %d", log[0] != 0);
	ASK(cuModuleLoad(&m, "/no/such/file"));
	ASK(cuModuleLoad(&m, NULL));
	ASK(cuModuleUnload(NULL));
	ASK(cuModuleLoadData(&m, kernels));
	ASK(cuModuleUnload(m));
}

static void functions(void)
{
	static const CUfunction_attribute list[] = {CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
			CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES,
						    CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
								CU_FUNC_ATTRIBUTE_PTX_VERSION,
						    CU_FUNC_ATTRIBUTE_CACHE_MODE_CA};
	CUfunction f, g;
	CUmodule m;
	CUdeviceptr p;
	const char *name = NULL;
	size_t n, offset;
	unsigned count = 9;
	int v = -1;

	begin();
	ASK(cuModuleGetFunction(&f, module, "with_shared"));
	ASK(cuModuleGetFunction(&g, module, "number"));
	ASK(cuModuleGetFunction(&g, module, "nowhere"));
	ASK(cuModuleGetFunction(&g, module, ""));
	ASK(cuModuleGetFunction(&g, module, NULL));
	ASK(cuModuleGetFunction(NULL, module, "store"));
	ASK(cuModuleGetFunction(&g, NULL, "store"));
	ASK(cuModuleGetFunctionCount(&count, module));
	SAY("%u functions", count);
	for (size_t i = 0; i < COUNT(list); i++) {
		CUresult r = cuFuncGetAttribute(&v, list[i], f);

		SAY("attribute %d -> %s %d", list[i], name_of(r), v);
	}
	ASK(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
	SAY("threads %d", v);
	ASK(cuFuncGetAttribute(&v, 999, f));
	ASK(cuFuncGetAttribute(NULL, CU_FUNC_ATTRIBUTE_NUM_REGS, f));
	ASK(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_NUM_REGS, NULL));
	ASK(cuFuncGetModule(&m, f));
	SAY("module %d", m == module);
	ASK(cuFuncGetName(&name, f));
	SAY("name %s", name ? name : "none");
	NEED(cuModuleGetFunction(&f, module, "store"));
	ASK(cuFuncGetParamInfo(f, 0, &offset, &n));
	SAY("parameter at %zu, %zu bytes", offset, n);
	ASK(cuFuncGetParamInfo(f, 1, &offset, &n));
	SAY("parameter at %zu, %zu bytes", offset, n);
	ASK(cuFuncGetParamInfo(f, 2, &offset, &n));
	ASK(cuModuleGetGlobal(&p, &n, module, "number"));
	SAY("%zu bytes, %u", n, word(p));
	ASK(cuModuleGetGlobal(&p, &n, module, "bytes"));
	SAY("%zu bytes, %#x", n, word(p));
	ASK(cuModuleGetGlobal(&p, &n, module, "store"));
	ASK(cuModuleGetGlobal(&p, &n, module, "nowhere"));
	ASK(cuModuleGetGlobal(&p, NULL, module, "number"));
	ASK(cuModuleGetGlobal(NULL, &n, module, "number"));
	ASK(cuModuleGetGlobal(NULL, NULL, module, "number"));
	ASK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&v, f, 128, 0));
	SAY("at least one %d", v >= 1);
	ASK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&v, f, 0, 0));
	ASK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&v, f, 2048, 0));
	ASK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&v, NULL, 128, 0));
}

static void libraries(void)
{
	CUlibrary lib;
	CUkernel k, list[8];
	CUfunction f;
	CUmodule m;
	CUdeviceptr p;
	unsigned count = 0;
	size_t n;
	int v = -1;
	const char *name = NULL;

	begin();
	ASK(cuLibraryLoadData(&lib, kernels, NULL, NULL, 0, NULL, NULL, 0));
	ASK(cuLibraryLoadData(NULL, kernels, NULL, NULL, 0, NULL, NULL, 0));
	ASK(cuLibraryLoadFromFile(&lib, "/no/such/file", NULL, NULL, 0, NULL, NULL, 0));
	NEED(cuLibraryLoadData(&lib, kernels, NULL, NULL, 0, NULL, NULL, 0));
	ASK(cuLibraryGetKernelCount(&count, lib));
	SAY("%u kernels", count);
	ASK(cuLibraryEnumerateKernels(list, 8, lib));
	ASK(cuLibraryGetKernel(&k, lib, "store"));
	ASK(cuLibraryGetKernel(&k, lib, "nowhere"));
	NEED(cuLibraryGetKernel(&k, lib, "store"));
	ASK(cuKernelGetName(&name, k));
	SAY("name %s", name ? name : "none");
	ASK(cuKernelGetFunction(&f, k));
	ASK(cuLibraryGetModule(&m, lib));
	ASK(cuKernelGetAttribute(&v, CU_FUNC_ATTRIBUTE_PTX_VERSION, k, device));
	SAY("%d", v);
	ASK(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1000, k, device));
	ASK(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_NUM_REGS, 1, k, device));
	ASK(cuLibraryGetGlobal(&p, &n, lib, "number"));
	SAY("%zu bytes, %u", n, word(p));
	ASK(cuLibraryGetGlobal(&p, &n, lib, "nowhere"));
	ASK(cuLibraryGetManaged(&p, &n, lib, "number"));
	ASK(cuLibraryUnload(lib));
	ASK(cuLibraryUnload(NULL));
}

SECTIONS({"load", load}, {"functions", functions}, {"libraries", libraries})
