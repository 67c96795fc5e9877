/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the free and the total bytes of device 0 as a session of its own sees them. One thread. */
#include "tests/e2e/progs/prog.h"

int main(void)
{
	size_t free_bytes, total;

	CHECK(cuInit(0));
	CHECK(cuDevicePrimaryCtxRetain(&prog_context, 0));
	CHECK(cuCtxSetCurrent(prog_context));
	CHECK(cuMemGetInfo_v2(&free_bytes, &total));
	printf("%zu %zu\n", free_bytes, total);
	return 0;
}
