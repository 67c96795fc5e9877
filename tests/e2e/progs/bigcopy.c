/* SPDX-License-Identifier: Apache-2.0 */
/* Copies 1 GiB (256 MiB with the thread sanitizer) to the device again and again: says "copying" when the
 * first of its 16 pieces is through, "copied" after each round. The script kills it in the middle. Argument:
 * bytes. One thread. */
#include "tests/e2e/progs/prog.h"

#ifdef __SANITIZE_THREAD__     /* which takes ten times as long for each byte */
#define WHOLE ((size_t)256 << 20)
#else
#define WHOLE ((size_t)1 << 30)
#endif

int main(int argc, char **argv)
{
	size_t bytes = argc > 1 ? strtoull(argv[1], NULL, 0) : WHOLE;
	char *host = malloc(bytes);
	CUdeviceptr p;

	REQUIRE(host);
	memset(host, 0x5a, bytes);
	prog_up();
	CHECK(cuMemAlloc_v2(&p, bytes));
	CHECK(cuMemcpyHtoD_v2(p, host, bytes / 16));
	say("copying");
	for (;;) {
		CHECK(cuMemcpyHtoD_v2(p, host, bytes));
		CHECK(cuCtxSynchronize());
		say("copied");
	}
}
