/* SPDX-License-Identifier: Apache-2.0 */
/* A short program: one kernel, one copy each way, every word checked; says "right". One thread. */
#include "tests/e2e/progs/prog.h"

int main(void)
{
	unsigned words[4096], n = sizeof(words) / sizeof(words[0]);
	CUdeviceptr p;

	for (unsigned i = 0; i < n; i++)
		words[i] = i * 2654435761u;
	prog_up();
	CHECK(cuMemAlloc_v2(&p, sizeof(words)));
	CHECK(cuMemcpyHtoD_v2(p, words, sizeof(words)));
	CHECK(prog_launch(prog_function("add"), p, 12345, n, n, NULL));
	memset(words, 0, sizeof(words));
	CHECK(cuMemcpyDtoH_v2(words, p, sizeof(words)));
	for (unsigned i = 0; i < n; i++)
		REQUIRE(words[i] == i * 2654435761u + 12345);
	CHECK(cuMemFree_v2(p));
	CHECK(cuModuleUnload(prog_module));
	CHECK(cuDevicePrimaryCtxRelease_v2(prog_device));
	say("right");
	return 0;
}
