// SPDX-License-Identifier: Apache-2.0
// A program with an interval timer whose handler interrupts system calls (no SA_RESTART), a thousand times a
// second: launches, copies of every kind and waits must not notice, and the program's handler and mask stay
// its own.
#include "app.h"
#include <sys/time.h>

__global__ void step(unsigned *p, unsigned n, unsigned v)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] = p[i] * 5 + v;
}

static volatile sig_atomic_t ticks;

static void tick(int)
{
	ticks = ticks + 1;
}

int main(void)
{
	enum { N = 1 << 17, ROUNDS = 60 };
	struct sigaction a = {}, seen;
	struct itimerval every = {{0, 1000}, {0, 1000}}, never = {};
	sigset_t mask;
	unsigned *d, *h = (unsigned *)malloc(N * 4), *pin, want = 0;
	cudaStream_t s;
	cudaEvent_t e;
	double end = seconds() + 3;

	a.sa_handler = tick;
	sigemptyset(&a.sa_mask);
	sigaction(SIGALRM, &a, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	CK(cudaStreamCreate(&s));
	CK(cudaEventCreate(&e));
	CK(cudaMalloc(&d, N * 4));
	CK(cudaMallocHost(&pin, N * 4));
	memset(h, 0, N * 4);
	CK(cudaMemcpy(d, h, N * 4, cudaMemcpyHostToDevice));
	for (int r = 0; r < ROUNDS || (ticks < 100 && seconds() < end); r++) {
		step<<<N / 256, 256, 0, s>>>(d, N, r);
		want = want * 5 + r;
		CK(cudaEventRecord(e, s));
		CK(r % 2 ? cudaEventSynchronize(e) : cudaStreamSynchronize(s));
		CK(r % 3 ? cudaMemcpy(h, d, N * 4, cudaMemcpyDeviceToHost) : cudaMemcpyAsync(pin, d, N * 4,
				cudaMemcpyDeviceToHost, s));
		CK(cudaStreamSynchronize(s));
		const unsigned *got = r % 3 ? h : pin;
		for (unsigned i = 0; i < N; i++)
			if (got[i] != want)
				fail("round %d: element %u is %u, expected %u", r, i, got[i], want);
		CK(cudaMemcpy(d, got, N * 4, cudaMemcpyHostToDevice));
	}
	sigaction(SIGALRM, NULL, &seen);
	if (seen.sa_handler != tick || seen.sa_flags & SA_RESTART)
		fail("the program's signal handler was changed");
	sigprocmask(SIG_BLOCK, NULL, &mask);
	if (sigismember(&mask, SIGALRM))
		fail("the program's signal mask was changed");
	setitimer(ITIMER_REAL, &never, NULL);
	if (ticks < 20)
		fail("only %d signals came: nothing was tested", (int)ticks);
	CK(cudaFree(d));
	CK(cudaFreeHost(pin));
	CK(cudaStreamDestroy(s));
	CK(cudaEventDestroy(e));
	free(h);
	return pass();
}
