/* SPDX-License-Identifier: Apache-2.0 */
/* Prints what cuInit and cuDeviceGetCount answer: "init N count M". One thread. */
#include "tests/e2e/progs/prog.h"

int main(void)
{
	int count = -1;
	CUresult r = cuInit(0);

	if (!r)
		CHECK(cuDeviceGetCount(&count));
	printf("init %d count %d\n", (int)r, count);
	return 0;
}
