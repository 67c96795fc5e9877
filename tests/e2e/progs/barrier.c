/* SPDX-License-Identifier: Apache-2.0 */
/* Copies from memory that may not be read yet, and to memory that may not be written yet: the handler of
 * SIGSEGV opens it page by page, as a garbage collector's does. "bad BYTES to|from": there is no handler,
 * and the program ends by the signal. One thread, but the handler runs on each that copies. */
#include <signal.h>
#include <sys/mman.h>
#include "prog.h"

#define SIZE ((size_t)4 << 20)
static uint8_t *buffer, back[SIZE];
static _Atomic int faults;

static void on_fault(int sig, siginfo_t *info, void *context)
{
	uintptr_t at = (uintptr_t)info->si_addr & ~(uintptr_t)4095;

	(void)sig, (void)context;
	if (at < (uintptr_t)buffer || at >= (uintptr_t)buffer + SIZE)
		_exit(3);
	faults++;
	if (mprotect((void *)at, 4096, PROT_READ | PROT_WRITE))
		_exit(4);
}

static bool all_are(const uint8_t *p, size_t n, int value)
{
	return p[0] == value && !memcmp(p, p + 1, n - 1);
}

static void round_trip(CUdeviceptr d, size_t n, bool async, int value)
{
	memset(buffer, value, SIZE);
	faults = 0;
	REQUIRE(!mprotect(buffer, SIZE, PROT_NONE));
	CHECK(async ? cuMemcpyHtoDAsync_v2(d, buffer, n, NULL) : cuMemcpyHtoD_v2(d, buffer, n));
	CHECK(cuCtxSynchronize());
	REQUIRE(faults >= 1);
	CHECK(cuMemcpyDtoH_v2(back, d, n));
	REQUIRE(all_are(back, n, value));
	CHECK(cuMemsetD8_v2(d, (unsigned char)(value + 1), n));
	REQUIRE(!mprotect(buffer, SIZE, PROT_READ));
	faults = 0;
	CHECK(async ? cuMemcpyDtoHAsync_v2(buffer, d, n, NULL) : cuMemcpyDtoH_v2(buffer, d, n));
	CHECK(cuCtxSynchronize());
	REQUIRE(faults >= 1);
	REQUIRE(all_are(buffer, n, value + 1));
	REQUIRE(!mprotect(buffer, SIZE, PROT_READ | PROT_WRITE));
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = {100, 4096, 20000, 70000, 200000, (1 << 20) + 1, SIZE};
	CUdeviceptr d;

	prog_up();
	CHECK(cuMemAlloc_v2(&d, SIZE));
	buffer = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(buffer != MAP_FAILED);
	if (argc == 4) {
		REQUIRE(!mprotect(buffer, SIZE, PROT_NONE));
		CUresult r = !strcmp(argv[3], "to") ? cuMemcpyHtoD_v2(d, buffer, (size_t)atol(argv[2])) :
						      cuMemcpyDtoH_v2(buffer, d, (size_t)atol(argv[2]));
		printf("goes on with %d\n", (int)r);
		return 1;
	}
	struct sigaction act = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
	REQUIRE(!sigaction(SIGSEGV, &act, NULL));
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (int async = 0; async < 2; async++)
			round_trip(d, sizes[i], async, (int)(2 * i + 1));
	say("right");
	return 0;
}
