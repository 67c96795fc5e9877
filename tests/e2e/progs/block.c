/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks in one call for a minute, unless something ends it: says "blocking", and afterwards "code N after M
 * ms". Then tries three more calls, which must give an error at once. Argument: sync (default), copy (the
 * blocking call is a copy to the host), or alloc. One thread. */
#include "tests/e2e/progs/prog.h"

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "sync";
	unsigned word = 0;
	CUdeviceptr p;
	CUresult r;

	prog_up();
	CHECK(cuMemAlloc_v2(&p, 4096));
	CHECK(cuCtxSynchronize());
	CHECK(prog_launch(prog_function("slow"), p, 7, 60000, 1, NULL));
	say("blocking");
	int64_t start = prog_ms();
	r = !strcmp(how, "copy") ? cuMemcpyDtoH_v2(&word, p, 4) : cuCtxSynchronize();
	printf("code %d after %lld ms\n", (int)r, (long long)(prog_ms() - start));
	start = prog_ms();
	CUresult later[3] = {cuCtxSynchronize(), cuMemAlloc_v2(&p, 4096), cuMemcpyHtoD_v2(p, &word, 4)};
	for (int i = 0; i < 3; i++)
		printf("later %d\n", (int)later[i]);
	printf("later calls took %lld ms\n", (long long)(prog_ms() - start));
	fflush(stdout);
	return r ? 0 : 1;
}
