/* SPDX-License-Identifier: Apache-2.0 */
/* Works and checks every result until standard input ends: copies of 256 KiB, launches, reads back. Says
 * "working" once, then "N rounds, longest M ms". With a number, so many milliseconds pass between two rounds.
 * One thread. */
#include <poll.h>
#include <stdlib.h>
#include "tests/e2e/progs/prog.h"

#define WORDS 65536

int main(int argc, char **argv)
{
	static unsigned words[WORDS];
	int64_t longest = 0;
	int between = argc > 1 ? atoi(argv[1]) : 0;
	unsigned rounds = 0;
	CUdeviceptr p;

	prog_up();
	CUfunction fill = prog_function("fill"), add = prog_function("add");
	CHECK(cuMemAlloc_v2(&p, sizeof(words)));
	for (;; rounds++) {
		struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
		int64_t start = prog_ms();
		memset(words, 0, sizeof(words));
		CHECK(cuMemcpyHtoD_v2(p, words, sizeof(words)));
		CHECK(prog_launch(fill, p, rounds, WORDS, WORDS, NULL));
		CHECK(prog_launch(add, p, 1000, WORDS, WORDS, NULL));
		CHECK(cuMemcpyDtoH_v2(words, p, sizeof(words)));
		for (unsigned i = 0; i < WORDS; i++)
			REQUIRE(words[i] == rounds + i + 1000);
		int64_t took = prog_ms() - start;
		longest = took > longest ? took : longest;
		if (!rounds)
			say("working");
		if (poll(&in, 1, between) > 0)
			break;
	}
	printf("%u rounds, longest %lld ms\n", rounds + 1, (long long)longest);
	return 0;
}
