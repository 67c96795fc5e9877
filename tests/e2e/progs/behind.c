/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU far behind its program: a kernel of several seconds, and behind it more launches than all queues on
 * the way hold, so that the program itself has to wait for room longer than any heartbeat. Every launch must
 * have happened once in the end. One thread. */
#include "tests/e2e/progs/prog.h"

#define LAUNCHES 180000u
#define SLOW_MS 9000u

int main(void)
{
	unsigned word = 0;
	CUdeviceptr p;

	prog_up();
	CUfunction slow = prog_function("slow"), add = prog_function("add");
	CHECK(cuMemAlloc_v2(&p, sizeof(word)));
	CHECK(prog_launch(slow, p, 7, SLOW_MS, 1, NULL));
	for (unsigned i = 0; i < LAUNCHES; i++)
		CHECK(prog_launch(add, p, 1, 1, 1, NULL));
	say("posted");
	CHECK(cuMemcpyDtoH_v2(&word, p, sizeof(word)));
	REQUIRE(word == 7 + LAUNCHES);
	say("right");
	return 0;
}
