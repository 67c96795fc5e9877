// SPDX-License-Identifier: Apache-2.0
/* cuGetProcAddress of the library as it was built: the symbol that each version and flavour gets, and how it
 * says no. No session is needed. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include "tests/unit/unit.h"
#include "wire/cuda_types.h"

typedef CUresult (*get_v2)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);
typedef CUresult (*get_v1)(const char *, void **, int, cuuint64_t);
static void *lib;
static get_v2 get2;
static get_v1 get1;

static void setup(void)
{
	char path[512];
	snprintf(path, sizeof path, "%s/lib/libcuda.so.1", getenv("B") ? getenv("B") : "build");
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	ck_assert_msg(lib != NULL, "%s", dlerror());
	get2 = (get_v2)dlsym(lib, "cuGetProcAddress_v2");
	get1 = (get_v1)dlsym(lib, "cuGetProcAddress");
	ck_assert(get2 && get1);
}

static const struct { const char *base; int version; unsigned flags; const char *symbol; } found[] = {
	{"cuInit", 2000, 0, "cuInit"},
	{"cuInit", 13000, 2, "cuInit"},
	{"cuInit", 99000, 1, "cuInit"},
	{"cuCtxCreate", 2000, 0, "cuCtxCreate"},
	{"cuCtxCreate", 3019, 0, "cuCtxCreate"},
	{"cuCtxCreate", 3020, 0, "cuCtxCreate_v2"},
	{"cuCtxCreate", 11040, 0, "cuCtxCreate_v3"},
	{"cuCtxCreate", 13000, 0, "cuCtxCreate_v4"},
	{"cuMemcpyHtoD", 2000, 2, "cuMemcpyHtoD"},
	{"cuMemcpyHtoD", 3020, 2, "cuMemcpyHtoD_v2"},
	{"cuMemcpyHtoD", 7000, 0, "cuMemcpyHtoD_v2"},
	{"cuMemcpyHtoD", 7000, 1, "cuMemcpyHtoD_v2"},
	{"cuMemcpyHtoD", 7000, 2, "cuMemcpyHtoD_v2_ptds"},
	{"cuStreamBeginCapture", 10000, 0, "cuStreamBeginCapture"},
	{"cuStreamBeginCapture", 10000, 2, "cuStreamBeginCapture_ptsz"},
	{"cuStreamBeginCapture", 10010, 2, "cuStreamBeginCapture_v2_ptsz"},
	{"cuStreamGetCaptureInfo", 11030, 0, "cuStreamGetCaptureInfo_v2"},
	{"cuStreamGetCaptureInfo", 13000, 2, "cuStreamGetCaptureInfo_v3_ptsz"},
	{"cuStreamWaitValue32", 8000, 0, "cuStreamWaitValue32"},
	{"cuStreamWaitValue32", 11070, 0, "cuStreamWaitValue32_v2"},
	{"cuGetProcAddress", 11030, 0, "cuGetProcAddress"},
	{"cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2"},
	{"cuEventElapsedTime", 12070, 0, "cuEventElapsedTime"},
	{"cuEventElapsedTime", 12080, 0, "cuEventElapsedTime_v2"},
	{"cuCtxSynchronize", 12000, 0, "cuCtxSynchronize"},
	{"cuCtxSynchronize", 13000, 0, "cuCtxSynchronize_v2"},
	{"cuLaunchKernelEx", 13000, 2, "cuLaunchKernelEx_ptsz"},
};

START_TEST(finds)
{
	void *fn = NULL, *fn1 = NULL;
	CUdriverProcAddressQueryResult status = (CUdriverProcAddressQueryResult)9;
	void *want = dlsym(lib, found[_i].symbol);
	ck_assert_msg(want != NULL, "%s is not exported", found[_i].symbol);
	ck_assert_int_eq(get2(found[_i].base, &fn, found[_i].version, found[_i].flags, &status),
			CUDA_SUCCESS);
	ck_assert_msg(fn == want, "%s %d", found[_i].base, found[_i].version);
	ck_assert_int_eq(status, CU_GET_PROC_ADDRESS_SUCCESS);
	ck_assert_int_eq(get1(found[_i].base, &fn1, found[_i].version, found[_i].flags), CUDA_SUCCESS);
	ck_assert_ptr_eq(fn1, want);
}
END_TEST

static const struct { const char *base; int version; CUdriverProcAddressQueryResult status; } missing[] = {
	{"cuNoSuchFunction", 13000, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND},
	{"", 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND},
	{"cuMemAlloc_v2", 13000, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND},
	{"cuLaunchKernelEx", 11050, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT},
	{"cuInit", 0, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT},
	{"zzz", 13000, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND},
};

START_TEST(says_no)
{
	void *fn = &fn;
	CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
	ck_assert_int_eq(get2(missing[_i].base, &fn, missing[_i].version, 0, &status), CUDA_SUCCESS);
	ck_assert_ptr_null(fn);
	ck_assert_int_eq(status, missing[_i].status);
	fn = &fn;
	ck_assert_int_eq(get2(missing[_i].base, &fn, missing[_i].version, 0, NULL), CUDA_ERROR_NOT_FOUND);
	ck_assert_ptr_null(fn);
	fn = &fn; /* the first version leaves it */
	ck_assert_int_eq(get1(missing[_i].base, &fn, missing[_i].version, 0), CUDA_ERROR_NOT_FOUND);
	ck_assert_ptr_eq(fn, &fn);
}
END_TEST

START_TEST(bad_arguments)
{
	void *fn;
	ck_assert_int_eq(get2(NULL, &fn, 13000, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	ck_assert_int_eq(get2("cuInit", NULL, 13000, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	ck_assert_int_eq(get2("cuInit", &fn, 13000, 3, NULL), CUDA_ERROR_INVALID_VALUE);
	ck_assert_int_eq(get2("cuInit", &fn, 13000, 4, NULL), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(exports_only_the_interface)
{
	static const char *const hidden[] = {"call_begin", "channel_open", "put_u64", "procs",
			"tables_context_died", "msgpack_pack_int"};
	for (unsigned i = 0; i < sizeof hidden / sizeof *hidden; i++)
		ck_assert_msg(dlsym(lib, hidden[i]) == NULL, "%s is visible", hidden[i]);
	ck_assert(dlsym(lib, "scudafs_shim_marker") != NULL);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("procs");
	TCase *t = tcase_create("library");
	tcase_add_unchecked_fixture(t, setup, NULL);
	tcase_add_loop_test(t, finds, 0, sizeof found / sizeof *found);
	tcase_add_loop_test(t, says_no, 0, sizeof missing / sizeof *missing);
	tcase_add_test(t, bad_arguments);
	tcase_add_test(t, exports_only_the_interface);
	suite_add_tcase(s, t);
	return unit_run(s);
}
