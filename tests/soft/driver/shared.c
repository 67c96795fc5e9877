/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory as compilers count on it: what LLVM declares .extern with a size is the kernel's own (ptxas
 * gives it memory, too), and a vector may reach beyond the bytes that a launch asked for, inside their unit.
 *
 * Thread rule: one thread. */
#include "tests/soft/driver/test.h"

static const char text[] = PTX_HEAD
	".extern .shared .align 16 .b8 asked[];\n"
	".extern .shared .align 8 .b8 first[512];\n"
	".extern .shared .align 8 .b8 second[512];\n"
	".visible .entry sized(.param .u64 out) {\n"
	" .reg .b32 %r<8>; .reg .b64 %d<8>;\n"
	" ld.param.u64 %d0,[out]; mov.u32 %r0,%tid.x; mul.wide.u32 %d1,%r0,4;\n"
	" mov.u64 %d2,first; mov.u64 %d3,second;\n"
	" add.u64 %d2,%d2,%d1; add.u64 %d3,%d3,%d1; st.shared.u32 [%d2],%r0; add.u32 %r1,%r0,1000;\n"
	" st.shared.u32 [%d3],%r1; bar.sync 0; ld.shared.u32 %r2,[%d2]; ld.shared.u32 %r3,[%d3];\n"
	" add.u32 %r2,%r2,%r3; add.u64 %d0,%d0,%d1; st.global.u32 [%d0],%r2; ret; }\n"
	".visible .entry vector(.param .u64 out, .param .u32 at) {\n"
	" .reg .b32 %r<12>; .reg .b64 %d<8>;\n"
	" ld.param.u64 %d0,[out]; ld.param.u32 %r8,[at]; mov.u32 %r0,7;\n"
	" mov.u32 %r1,asked; add.u32 %r1,%r1,%r8;\n"
	" st.shared.u32 [%r1],%r0; st.shared.u32 [%r1+4],%r0; st.shared.u32 [%r1+8],%r0;\n"
	" ld.shared.v4.u32 {%r2,%r3,%r4,%r5},[%r1]; add.u32 %r2,%r2,%r3; add.u32 %r2,%r2,%r4;\n"
	" st.global.u32 [%d0],%r2; ret; }\n";

int main(void)
{
	CUmodule m;
	CUfunction sized, vector;
	CUdeviceptr out;
	unsigned got[128], at = 16;
	int bytes;
	void *params[] = {&out, &at};

	device_up();
	OK(cuModuleLoadData(&m, text));
	OK(cuModuleGetFunction(&sized, m, "sized"));
	OK(cuModuleGetFunction(&vector, m, "vector"));
	OK(cuFuncGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, sized));
	CHECK(bytes == 1024);
	OK(cuFuncGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, vector));
	CHECK(bytes == 0);
	OK(cuMemAlloc_v2(&out, sizeof(got)));
	OK(cuLaunchKernel(sized, 1, 1, 1, 128, 1, 1, 0, NULL, params, NULL));
	OK(cuMemcpyDtoH_v2(got, out, sizeof(got)));
	for (unsigned i = 0; i < 128; i++)
		CHECK(got[i] == 2 * i + 1000);
	OK(cuLaunchKernel(vector, 1, 1, 1, 1, 1, 1, 28, NULL, params, NULL)); /* its last word is beyond */
	OK(cuMemcpyDtoH_v2(got, out, sizeof(got)));
	CHECK(got[0] == 21);
	/* What was asked for counts beside what the kernel has anyway, also where both exceed 48 KiB together
	 * only. */
	IS(cuLaunchKernel(sized, 1, 1, 1, 128, 1, 1, 48 << 10, NULL, params, NULL), CUDA_ERROR_INVALID_VALUE);
	OK(cuFuncSetAttribute(sized, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 48 << 10));
	OK(cuLaunchKernel(sized, 1, 1, 1, 128, 1, 1, 48 << 10, NULL, params, NULL));
	OK(cuCtxSynchronize());
	at = 128; /* another unit */
	OK(cuLaunchKernel(vector, 1, 1, 1, 1, 1, 1, 28, NULL, params, NULL));
	IS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	puts("shared: ok");
	return 0;
}
