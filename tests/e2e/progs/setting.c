/* SPDX-License-Identifier: Apache-2.0 */
/* setting BYTES: lets a kernel have so much dynamic shared memory before there is a context, then asks about
 * the kernel; 0: asks only. Says how much it may have. */
#include "prog.h"

int main(int argc, char **argv)
{
	int bytes = atoi(argv[1]), most = 0;
	CUlibrary library;
	const char *name;
	CUkernel k;
	char text[16];

	(void)argc;
	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&prog_device, 0));
	if (!bytes) {
		CHECK(cuDevicePrimaryCtxRetain(&prog_context, prog_device));
		CHECK(cuCtxSetCurrent(prog_context));
	}
	CHECK(cuLibraryLoadData(&library, prog_ptx, NULL, NULL, 0, NULL, NULL, 0));
	CHECK(cuLibraryGetKernel(&k, library, "fill"));
	if (bytes) {
		CHECK(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes, k,
				prog_device));
		CHECK(cuDevicePrimaryCtxRetain(&prog_context, prog_device));
		CHECK(cuCtxSetCurrent(prog_context));
	}
	CHECK(cuKernelGetName(&name, k));
	CHECK(cuKernelGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, k, prog_device));
	snprintf(text, sizeof text, "%d", most);
	say(text);
	return 0;
}
