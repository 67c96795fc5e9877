// SPDX-License-Identifier: Apache-2.0
// What the driver knows of a pointer: attributes of pinned, registered, device and plain memory, inside
// ranges and after they are gone, and copies whose direction it finds out.
#include "app.h"

enum { N = 20000 };

static void is(const char *what, const void *p, cudaMemoryType type, const void *device, const void *host)
{
	cudaPointerAttributes a;

	CK(cudaPointerGetAttributes(&a, p));
	if (a.type != type || (type == cudaMemoryTypeDevice && a.devicePointer != device) ||
	    (type == cudaMemoryTypeHost && a.hostPointer != host))
		fail("%s: type %d, expected %d", what, a.type, type);
}

static void check(const char *what, const int *p, int base)
{
	for (int i = 0; i < N; i++)
		if (p[i] != i + base)
			fail("%s: element %d is %d, expected %d", what, i, p[i], i + base);
}

int main(void)
{
	int *h, *r, *d, *e, *back = (int *)malloc(N * sizeof(int));
	cudaStream_t s;
	unsigned flags = 99;

	CK(cudaHostAlloc(&h, N * sizeof(int), cudaHostAllocPortable));
	CK(cudaMalloc(&d, N * sizeof(int)));
	CK(cudaMalloc(&e, N * sizeof(int)));
	CK(cudaStreamCreate(&s));
	r = (int *)aligned_alloc(4096, 128 << 10);
	CK(cudaHostRegister(r, 128 << 10, cudaHostRegisterDefault));
	is("pinned", h, cudaMemoryTypeHost, NULL, h);
	is("inside pinned", h + 7, cudaMemoryTypeHost, NULL, h + 7);
	is("registered", r + 100, cudaMemoryTypeHost, NULL, r + 100);
	is("device", d, cudaMemoryTypeDevice, d, NULL);
	is("inside device", d + 5, cudaMemoryTypeDevice, d + 5, NULL);
	is("plain", back, cudaMemoryTypeUnregistered, NULL, NULL);
	is("stack", &flags, cudaMemoryTypeUnregistered, NULL, NULL);
	CK(cudaHostGetFlags(&flags, h));
	if (!(flags & cudaHostAllocPortable))
		fail("flags of pinned memory are %#x", flags);

	for (int i = 0; i < N; i++)
		h[i] = i + 7;
	CK(cudaMemcpy(d, h, N * sizeof(int), cudaMemcpyDefault));
	CK(cudaMemcpy(e, d, N * sizeof(int), cudaMemcpyDefault));
	CK(cudaMemcpy(back, e, N * sizeof(int), cudaMemcpyDefault));
	check("device, device, plain", back, 7);
	CK(cudaMemcpyAsync(r, e, N * sizeof(int), cudaMemcpyDefault, s));
	CK(cudaStreamSynchronize(s));
	check("registered", r, 7);
	memset(back, 0, N * sizeof(int));
	CK(cudaMemcpy(back, r, N * sizeof(int), cudaMemcpyDefault));
	check("registered to plain", back, 7);
	for (int i = 0; i < N; i++)
		back[i] = i - 50;
	CK(cudaMemcpyAsync(h, back, N * sizeof(int), cudaMemcpyDefault, s));
	CK(cudaStreamSynchronize(s));
	check("plain to pinned", h, -50);

	CK(cudaHostUnregister(r));
	is("no longer registered", r, cudaMemoryTypeUnregistered, NULL, NULL);
	CK(cudaFree(d));
	is("freed", d, cudaMemoryTypeUnregistered, NULL, NULL);
	CK(cudaFreeHost(h));
	is("pinned no longer", h, cudaMemoryTypeUnregistered, NULL, NULL);
	CK(cudaFree(e));
	CK(cudaStreamDestroy(s));
	free(r);
	free(back);
	return pass();
}
