/* SPDX-License-Identifier: Apache-2.0 */
/* A program that calls from inside a call: what a launch reads lies in a page that may not be read yet, and
 * the signal's handler, which opens it, makes a call of its own. The launch is then refused, and nothing
 * else is. */
#include <signal.h>
#include <sys/mman.h>
#include "prog.h"

struct arguments { CUdeviceptr p; unsigned v, n; };
static struct arguments *page;
static volatile int faults;
static CUresult inside;

static void on_fault(int sig)
{
	size_t now, total;

	(void)sig;
	faults++;
	if (mprotect(page, 4096, PROT_READ | PROT_WRITE))
		_exit(3);
	inside = cuMemGetInfo_v2(&now, &total);
}

static CUresult launch(CUfunction f)
{
	void *arguments[] = {&page->p, &page->v, &page->n};

	return cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, NULL, arguments, NULL);
}

int main(void)
{
	unsigned got[64];
	CUresult r;

	prog_up();
	CUfunction fill = prog_function("fill");
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(page != MAP_FAILED);
	CHECK(cuMemAlloc_v2(&page->p, sizeof got));
	page->v = 7;
	page->n = 64;
	CHECK(launch(fill));
	CHECK(cuCtxSynchronize());
	page->v = 9;
	signal(SIGSEGV, on_fault);
	REQUIRE(!mprotect(page, 4096, PROT_NONE));
	r = launch(fill);
	REQUIRE(faults == 1);
	CHECK(inside);
	REQUIRE(r == CUDA_ERROR_UNKNOWN);
	/* It did not run, and the session goes on. */
	for (unsigned v = 7; v < 10; v += 2) {
		CHECK(cuMemcpyDtoH_v2(got, page->p, sizeof got));
		for (unsigned i = 0; i < 64; i++)
			REQUIRE(got[i] == v + i);
		CHECK(launch(fill));
	}
	say("right");
	return 0;
}
