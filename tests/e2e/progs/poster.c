/* SPDX-License-Identifier: Apache-2.0 */
/* Posts a launch each few milliseconds and never waits: says "posting", and when a launch fails "code N". One
 * thread. */
#include "tests/e2e/progs/prog.h"
#include <unistd.h>

int main(void)
{
	CUresult r = CUDA_SUCCESS;
	CUdeviceptr p;

	prog_up();
	CHECK(cuMemAlloc_v2(&p, 4096));
	CUfunction f = prog_function("fill");

	say("posting");
	for (int i = 0; i < 20000 && !r; i++) {
		r = prog_launch(f, p, 1, 1, 1, NULL);
		usleep(3000);
	}
	printf("code %d\n", (int)r);
	fflush(stdout);
	return !r;
}
