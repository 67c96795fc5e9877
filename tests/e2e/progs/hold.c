/* SPDX-License-Identifier: Apache-2.0 */
/* Holds a session and some memory (argument: bytes, default 1 MiB): says "ready", waits for standard input,
 * then works once more and says "right". One thread. */
#include "tests/e2e/progs/prog.h"

int main(int argc, char **argv)
{
	size_t bytes = argc > 1 ? strtoull(argv[1], NULL, 0) : 1 << 20;
	unsigned words[256];
	CUdeviceptr p;

	prog_up();
	CHECK(cuMemAlloc_v2(&p, bytes));
	CHECK(cuCtxSynchronize());
	say("ready");
	await();
	CHECK(prog_launch(prog_function("fill"), p, 100, 256, 256, NULL));
	CHECK(cuMemcpyDtoH_v2(words, p, sizeof(words)));
	for (unsigned i = 0; i < 256; i++)
		REQUIRE(words[i] == 100 + i);
	CHECK(cuMemFree_v2(p));
	say("right");
	return 0;
}
