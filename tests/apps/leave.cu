// SPDX-License-Identifier: Apache-2.0
// Ends without cleaning up: return from main, exit, _exit, from a thread, with work pending, with a device
// reset, with everything left allocated; none may hang, crash or change the exit status; and the memory comes
// back for the next one.
#include "app.h"

__global__ void spin(long long *p, int n)
{
	long long v = threadIdx.x;

	for (int i = 0; i < n; i++)
		v = v * 6364136223846793005ll + 1442695040888963407ll;
	p[threadIdx.x] = v;
}

static long long *p;

static void begin(void)
{
	cudaStream_t s;
	cudaEvent_t e;
	void *h;

	CK(cudaStreamCreate(&s));
	CK(cudaEventCreate(&e));
	CK(cudaMallocHost(&h, 1 << 20));
	CK(cudaMalloc(&p, 16 << 20));
	spin<<<1, 32, 0, s>>>(p, 100000);
	CK(cudaEventRecord(e, s));
	CK(cudaMemcpyAsync(h, p, 1 << 20, cudaMemcpyDeviceToHost, s));
}

static int by_return(void *)
{
	begin();
	return 10;
}

static int by_exit(void *)
{
	begin();
	exit(11);
}

static int by_quick_exit(void *)
{
	begin();
	_exit(12);
}

static void *from_thread(void *)
{
	begin();
	exit(13);
}

static int by_thread(void *)
{
	pthread_t t;

	CK(cudaFree(0));
	if (pthread_create(&t, NULL, from_thread, NULL))
		return 1;
	for (;;)
		pause();
}

static void late(void)
{
	cudaFree(p); /* at exit, when the runtime may be gone: any answer, no crash */
}

static int by_handler(void *)
{
	begin();
	atexit(late);
	exit(14);
}

static int after_reset(void *)
{
	int h = 0, *d;

	begin();
	CK(cudaDeviceReset());
	CK(cudaMalloc(&d, sizeof(h)));
	CK(cudaMemset(d, 1, sizeof(h)));
	CK(cudaMemcpy(&h, d, sizeof(h), cudaMemcpyDeviceToHost));
	return h == 0x01010101 ? 15 : 1;
}

/* Takes most of the memory and leaves with it; what the last process had comes back within two seconds. */
static int most_of_memory(void *)
{
	double deadline = seconds() + 3;
	size_t free_now, total;
	void *big;

	do {
		CK(cudaMemGetInfo(&free_now, &total));
		if (free_now >= total / 10 * 6) {
			CK(cudaMalloc(&big, total / 10 * 6 - (32 << 20)));
			return 16;
		}
		sleep_ms(20);
	} while (seconds() < deadline);
	fail("%zu of %zu bytes are free", free_now, total);
}

int main(void)
{
	static const struct {
		const char *name;
		int (*f)(void *);
		int status;
	} ways[] = {{"return", by_return, 10}, {"exit", by_exit, 11}, {"_exit", by_quick_exit, 12},
			{"exit in a thread", by_thread, 13},
		    {"exit handler", by_handler, 14}, {"reset", after_reset, 15}, {"most of the memory",
				most_of_memory, 16},
		    {"most of the memory again", most_of_memory, 16}};

	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		int status = fork_run(ways[i].f, NULL, 40);

		if (!WIFEXITED(status) || WEXITSTATUS(status) != ways[i].status)
			fail("%s: wait status %#x, expected exit %d", ways[i].name, status, ways[i].status);
	}
	return pass();
}
