/* SPDX-License-Identifier: Apache-2.0 */
/* Two devices: peer access and its errors, attributes of the way between them, copies between contexts. A
 * program of its own, since most machines have one device: then it says so and nothing else. */
#include "check.h"

static CUcontext c0, c1;

static void both(void)
{
	CUdevice d1;

	NEED(cuInit(0));
	NEED(cuDeviceGet(&device, 0));
	NEED(cuDeviceGet(&d1, 1));
	NEED(cuDevicePrimaryCtxRetain(&c0, device));
	NEED(cuDevicePrimaryCtxRetain(&c1, d1));
	NEED(cuCtxSetCurrent(c0));
	context = c0;
}

static CUdeviceptr on(CUcontext c, unsigned v)
{
	CUdeviceptr p;

	NEED(cuCtxPushCurrent(c));
	NEED(cuMemAlloc(&p, 4096));
	NEED(cuMemsetD32(p, v, 1024));
	NEED(cuCtxSynchronize());
	NEED(cuCtxPopCurrent(NULL));
	return p;
}

static void ask(void)
{
	int v = -1;

	both();
	ASK(cuDeviceCanAccessPeer(NULL, 0, 1));
	ASK(cuDeviceCanAccessPeer(&v, 0, 99));
	ASK(cuDeviceCanAccessPeer(&v, 0, 0));
	SAY("itself %d", v);
	ASK(cuDeviceCanAccessPeer(&v, 0, 1));
	SAY("~ the other %d", v);
	for (CUdevice_P2PAttribute a = 0; a <= CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED + 2; a++) {
		CUresult r = cuDeviceGetP2PAttribute(&v, a, 0, 1);

		SAY("~ attribute %d -> %s %d", (int)a, name_of(r), v);
	}
	ASK(cuDeviceGetP2PAttribute(&v, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 0));
	ASK(cuDeviceGetP2PAttribute(&v, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 99));
	ASK(cuDeviceGetP2PAttribute(NULL, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1));
}

static void reach(void)
{
	int can = 0;
	CUdeviceptr p;
	CUresult r;

	both();
	NEED(cuDeviceCanAccessPeer(&can, 0, 1));
	ASK(cuCtxEnablePeerAccess(c0, 0));
	ASK(cuCtxEnablePeerAccess(NULL, 0));
	ASK(cuCtxDisablePeerAccess(c0));
	ASK(cuCtxDisablePeerAccess(c1));
	ASK(cuCtxEnablePeerAccess(c1, 1));
	r = cuCtxEnablePeerAccess(c1, 0);
	SAY("as the device says %d", r == (can ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_UNSUPPORTED));
	if (!can)
		return;
	SAY("~ again -> %s", name_of(cuCtxEnablePeerAccess(c1, 0)));
	p = on(c1, 5);
	NEED(cuModuleLoadData(&module, kernels));
	CUfunction f = kernel("store");
	unsigned v = 6;
	SAY("~ a kernel on the other's memory -> %s", name_of(LAUNCH(f, NULL, &p, &v)));
	SAY("~ its end -> %s", name_of(cuCtxSynchronize()));
	SAY("~ wrote %u", word(p));
	SAY("~ disable -> %s", name_of(cuCtxDisablePeerAccess(c1)));
	SAY("~ again -> %s", name_of(cuCtxDisablePeerAccess(c1)));
}

static void copies(void)
{
	CUdeviceptr p, q;
	CUstream s;
	CUDA_MEMCPY3D_PEER box = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
			.dstMemoryType = CU_MEMORYTYPE_DEVICE};
	void *pinned;
	unsigned own[4] = {1, 2, 3, 4};

	both();
	p = on(c0, 10), q = on(c1, 11);
	NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	NEED(cuMemAllocHost(&pinned, 4096));
	ASK(cuMemcpyPeer(p, c0, q, c1, 64));
	SAY("reads %u %u", word(p), word(p + 64));
	ASK(cuMemcpyPeerAsync(q + 128, c1, p, c0, 64, s));
	ASK(cuStreamSynchronize(s));
	SAY("reads %u", word(q + 128));
	ASK(cuMemcpyPeer(p, c0, q, c1, 0));
	ASK(cuMemcpyPeer(p, NULL, q, c1, 64));
	ASK(cuMemcpyPeer(p, c0, q, NULL, 64));
	ASK(cuMemcpyPeer(p, c1, q, c0, 64));
	ASK(cuMemcpyPeer(p, c0, q, c1, 8192));
	ASK(cuMemcpyPeer(0, c0, q, c1, 64));
	ASK(cuMemcpyPeer(p, c0, ADDRESS(pinned), c1, 64));
	ASK(cuMemcpyPeer(p, c0, ADDRESS(own), c1, 16));
	ASK(cuMemcpyPeer(p, c0, p + 2048, c0, 64));
	ASK(cuMemcpy(p, q + 256, 64));
	ASK(cuMemcpyAsync(q, p, 64, s));
	ASK(cuStreamSynchronize(s));
	ASK(cuMemcpyDtoD(p, q, 64));
	box.srcDevice = q, box.srcContext = c1, box.srcPitch = 64;
	box.dstDevice = p, box.dstContext = c0, box.dstPitch = 128;
	box.WidthInBytes = 32, box.Height = 4, box.Depth = 1;
	NEED(cuMemsetD32(p, 0, 1024));
	ASK(cuMemcpy3DPeer(&box));
	SAY("reads %u %u %u", word(p + 128), word(p + 128 + 32), word(p + 3 * 128));
	box.Height = 2;
	ASK(cuMemcpy3DPeerAsync(&box, s));
	ASK(cuStreamSynchronize(s));
	box.srcContext = NULL;
	ASK(cuMemcpy3DPeer(&box));
}

/* What belongs to one context in calls of the other. */
static void across(void)
{
	CUdeviceptr p;
	CUstream s;
	CUevent e, f;
	float ms;
	size_t a, b;

	both();
	p = on(c1, 3);
	NEED(cuEventCreate(&e, 0));
	NEED(cuCtxSetCurrent(c1));
	NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	NEED(cuEventCreate(&f, 0));
	NEED(cuCtxSetCurrent(c0));
	ASK(cuEventRecord(e, s));
	ASK(cuEventRecord(f, s));
	ASK(cuEventRecord(f, NULL));
	ASK(cuStreamWaitEvent(NULL, f, 0));
	ASK(cuEventSynchronize(f));
	ASK(cuEventRecord(e, NULL));
	ASK(cuEventSynchronize(e));
	ASK(cuEventElapsedTime(&ms, e, f));
	ASK(cuStreamSynchronize(s));
	ASK(cuMemsetD32Async(p, 9, 1, s));
	VARY(cuStreamQuery(s));
	ASK(cuStreamSynchronize(s));
	SAY("reads %u", word(p));
	ASK(cuMemFree(p));
	ASK(cuMemGetInfo(&a, &b));
	ASK(cuStreamDestroy(s));
}

static int devices(void)
{
	int n = 0, pipes[2];
	pid_t p;

	if (pipe(pipes))
		return 0;
	p = fork();
	if (!p) {
		if (cuInit(0) || cuDeviceGetCount(&n))
			n = 0;
		_exit(write(pipes[1], &n, sizeof n) != sizeof n);
	}
	close(pipes[1]);
	if (read(pipes[0], &n, sizeof n) != sizeof n)
		n = 0;
	close(pipes[0]);
	while (waitpid(p, NULL, 0) < 0 && errno == EINTR)
		;
	return n;
}

int main(int argc, char **argv)
{
	static const struct section s[] = {{"ask", ask}, {"access", reach}, {"copies", copies},
			{"across", across}};

	if (devices() < 2) {
		SAY("not supported by this device");
		return 0;
	}
	return run_sections(s, COUNT(s), argc > 1 ? argv[1] : NULL);
}
