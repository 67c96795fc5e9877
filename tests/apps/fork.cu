// SPDX-License-Identifier: Apache-2.0
// fork: a child made after the parent initialised CUDA has none (error 3, not a hang and not the parent's
// session), leaves the parent unharmed whether it ends by exit or by _exit, and exec gives it a CUDA of its
// own; two processes that fork before they initialise both work, at the same time.
#include "app.h"

__global__ void triple(int *p, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] *= 3;
}

static int *d;

static void work(int v)
{
	enum { N = 5000 };
	static int h[N];

	for (int i = 0; i < N; i++)
		h[i] = i + v;
	if (!d)
		CK(cudaMalloc(&d, sizeof(h)));
	CK(cudaMemcpy(d, h, sizeof(h), cudaMemcpyHostToDevice));
	triple<<<(N + 255) / 256, 256>>>(d, N);
	CK(cudaMemcpy(h, d, sizeof(h), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++)
		if (h[i] != (i + v) * 3)
			fail("element %d is %d, expected %d", i, h[i], (i + v) * 3);
}

static int alone(void *arg)
{
	for (int i = 0; i < 20; i++)
		work(*(int *)arg + i);
	return 0;
}

/* In a child of a process that uses CUDA: every call that needs the device says 3. */
static int refused(void *)
{
	int h, n;
	void *p;

	if (cudaMemcpy(&h, d, sizeof(h), cudaMemcpyDeviceToHost) != cudaErrorInitializationError)
		return 2;
	if (cudaMalloc(&p, 16) != cudaErrorInitializationError)
		return 3;
	triple<<<1, 1>>>(d, 1);
	if (cudaGetLastError() != cudaErrorInitializationError)
		return 4;
	if (cudaDeviceSynchronize() != cudaErrorInitializationError)
		return 5;
	(void)n;
	return 0;
}

static int leave(void *)
{
	_exit(0);
}

static char *self;
static int again(void *)
{
	execl(self, self, "alone", (char *)NULL);
	return 9;
}

int main(int argc, char **argv)
{
	int a = 100, b = 9000, status;
	pid_t p;

	self = argv[0];
	if (argc > 1)
		return alone(&a);
	fflush(NULL);
	p = fork();
	if (p < 0)
		fail("fork: %s", strerror(errno));
	if (!p) {
		alarm(100);
		exit(alone(&a));
	}
	alone(&b);
	if (waitpid(p, &status, 0) != p || status)
		fail("the process that forked before it used CUDA ended with %#x", status);
	fork_check("child after initialisation", refused, NULL, 30);
	work(1);
	fork_check("child that only leaves", leave, NULL, 30);
	work(2);
	fork_check("child that executes the program again", again, NULL, 60);
	work(3);
	CK(cudaFree(d));
	return pass();
}
