// SPDX-License-Identifier: Apache-2.0
// printf from kernels: every kind of conversion, 32 arguments' width, text in order within a thread,
// delivered by a synchronize on this process's stdout and in order with its own writes. The program reads its
// own output back.
#include "app.h"

__global__ void say(int n, const char *text)
{
	printf("d %d u %u x %x X %#X c %c s %s %%\n", -n, n * 3000000000u, n * 48879, 255, 'a' + n, "device");
	printf("ll %lld %llx f %f %.3f e %.2e g %g p %d\n", -(1ll << 40), 1ull << 60, 1.5, 2.0 / 3, 12345.678,
			1e-7, text != 0);
	printf("[%5d] [%-5d] [%05d] [%+d]\n", n, n, n, n);
}

__global__ void many(void)
{
	for (int i = 0; i < 3; i++)
		printf("thread %d line %d\n", blockIdx.x * blockDim.x + threadIdx.x, i);
}

static char text[1 << 16];

int main(void)
{
	static const char first[] =
		"before\n"
		"d -7 u 3820130816 x 53889 X 0XFF c h s device %\n"
		"ll -1099511627776 1000000000000000 f 1.500000 0.667 e 1.23e+04 g 1e-07 p 1\n"
		"[    7] [7    ] [00007] [+7]\n"
		"after\n";
	FILE *f = tmpfile();
	int out = dup(1), next[96] = {0}, t, line, used, lines = 0;
	char *d, *p;
	size_t n;

	if (!f || out < 0)
		fail("tmpfile: %s", strerror(errno));
	CK(cudaMalloc(&d, 16));
	fflush(stdout);
	dup2(fileno(f), 1);
	printf("before\n");
	fflush(stdout);
	say<<<1, 1>>>(7, d);
	CK(cudaDeviceSynchronize());
	printf("after\n");
	fflush(stdout);
	many<<<3, 32>>>();
	CK(cudaDeviceSynchronize());
	fflush(stdout);
	dup2(out, 1);
	rewind(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = 0;
	if (strncmp(text, first, sizeof(first) - 1))
		fail("printed:\n%.*s\nexpected:\n%s", (int)sizeof(first) + 80, text, first);
	for (p = text + sizeof(first) - 1; sscanf(p, "thread %d line %d\n%n", &t, &line, &used) == 2;
			p += used, lines++) {
		if (t < 0 || t >= 96 || line != next[t]++)
			fail("thread %d printed line %d out of order", t, line);
	}
	if (*p || lines != 288)
		fail("%d lines of 288, then: %.40s", lines, p);
	CK(cudaFree(d));
	return pass();
}
