// SPDX-License-Identifier: Apache-2.0
// assert in a kernel: the launch succeeds, the synchronize reports cudaErrorAssert, the error sticks, and the
// message with file, line, block, thread and text appears on stderr. In a child, whose stderr is read back.
#include "app.h"
#include <assert.h>

__global__ void claim(int limit)
{
	assert((int)threadIdx.x < limit);
}

static int run(void *arg)
{
	int *d;

	if (dup2(*(int *)arg, 2) < 0)
		return 2;
	claim<<<1, 32>>>(32);
	if (cudaDeviceSynchronize() != cudaSuccess)
		return 3;
	claim<<<1, 32>>>(31);
	if (cudaGetLastError() != cudaSuccess)
		return 4;
	if (cudaDeviceSynchronize() != cudaErrorAssert)
		return 5;
	return cudaMalloc(&d, 16) == cudaErrorAssert ? 0 : 6;
}

int main(void)
{
	char text[4096];
	FILE *f = tmpfile();
	int fd, status;
	size_t n;

	if (!f)
		fail("tmpfile: %s", strerror(errno));
	fd = fileno(f);
	status = fork_run(run, &fd, 60);
	rewind(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = 0;
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		fail("child ended with status %#x, stderr: %s", status, text);
	if (!strstr(text, "assert.cu:") || !strstr(text, "block: [0,0,0]") || !strstr(text,
			"thread: [31,0,0]") ||
	    !strstr(text, "`(int)threadIdx.x < limit`"))
		fail("message is: %s", text);
	return pass();
}
