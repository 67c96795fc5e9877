/* SPDX-License-Identifier: Apache-2.0 */
/* What a driver call costs the program that makes it. Driver API only, so that the numbers are the
 * driver's or the shim's. Prints `name value` lines (times in microseconds, rates in GB/s) which bench.sh
 * puts beside each other; waits_vectoradd is the number of round trips of a first vector addition, where
 * the mount tells it (SCUDAFS_MOUNT). `micro quick` does a tenth of the repetitions, `micro slow` a few: for
 * a slow network. Each figure is the median of five batches. One thread. */
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NEED(call) need((call), #call, __LINE__)

static const char ptx[] =
	".version 7.5\n.target sm_75\n.address_size 64\n"
	".visible .entry nothing() { ret; }\n"
	".visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n) {\n"
	" .reg .pred %q; .reg .b32 %r<6>; .reg .b64 %d<8>; .reg .f32 %f<3>;\n"
	" ld.param.u64 %d0,[a]; ld.param.u64 %d1,[b]; ld.param.u64 %d2,[c]; ld.param.u32 %r0,[n];\n"
	" mov.u32 %r1,%ctaid.x; mov.u32 %r2,%ntid.x; mov.u32 %r3,%tid.x; mad.lo.u32 %r4,%r1,%r2,%r3; "
	"setp.ge.u32 %q,%r4,%r0; @%q ret;\n"
	" mul.wide.u32 %d3,%r4,4; add.u64 %d4,%d0,%d3; add.u64 %d5,%d1,%d3; add.u64 %d6,%d2,%d3;\n"
	" ld.global.f32 %f0,[%d4]; ld.global.f32 %f1,[%d5]; add.f32 %f2,%f0,%f1; st.global.f32 [%d6],%f2; "
	"ret; }\n";

enum { BATCHES = 5, BURSTS = 25, BURST = 1000 };
static CUfunction nothing, add;
static CUdeviceptr device_word, device_big;
static unsigned host_word;
static enum { SLOW, QUICK, FULL } how = FULL;

static void need(CUresult r, const char *what, int line)
{
	const char *s = NULL;

	if (r == CUDA_SUCCESS)
		return;
	cuGetErrorName(r, &s);
	fprintf(stderr, "micro: line %d: %s -> %s\n", line, what, s ? s : "?");
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void launch(void)
{
	NEED(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
}

static void synchronize(void)
{
	NEED(cuCtxSynchronize());
}

static void launch_and_wait(void)
{
	launch();
	synchronize();
}

static void mem_get_info(void)
{
	size_t a, b;

	NEED(cuMemGetInfo(&a, &b));
}

static void allocate(void)
{
	CUdeviceptr p;

	NEED(cuMemAlloc(&p, 1 << 20));
	NEED(cuMemFree(p));
}

static void word_to_device(void)
{
	NEED(cuMemcpyHtoD(device_word, &host_word, sizeof(host_word)));
}

static void word_to_host(void)
{
	NEED(cuMemcpyDtoH(&host_word, device_word, sizeof(host_word)));
}

static void event_query(void)
{
	static CUevent e;

	if (!e) {
		NEED(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
		NEED(cuEventRecord(e, NULL));
		synchronize();
	}
	NEED(cuEventQuery(e));
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Microseconds a call. The device is idle before each batch; what a batch leaves to do is not in its time,
 * but in *rest. */
static double per_call(void (*f)(void), int n, double *rest)
{
	double t[BATCHES], full[BATCHES];

	/* What waits is what is done less often in full, too. */
	n = (how == FULL ? n : how == QUICK || n > 2000 ? n / 10 : n / 500) + 1;
	for (int i = 0; i < n / 10 + 1; i++)
		f();
	for (int b = 0; b < BATCHES; b++) {
		double s;

		synchronize();
		s = now();
		for (int i = 0; i < n; i++)
			f();
		t[b] = (now() - s) * 1e6 / n;
		synchronize();
		full[b] = (now() - s) * 1e6 / n;
	}
	qsort(t, BATCHES, sizeof(*t), by_value);
	qsort(full, BATCHES, sizeof(*full), by_value);
	if (rest)
		*rest = full[BATCHES / 2];
	return t[BATCHES / 2];
}

/* Microseconds a call in a burst that begins with an idle device. */
static double issue(void (*f)(void))
{
	double t[BURSTS];

	for (int b = 0; b < BURSTS; b++) {
		double s;

		synchronize();
		s = now();
		for (int i = 0; i < BURST; i++)
			f();
		t[b] = (now() - s) * 1e6 / BURST;
	}
	synchronize();
	qsort(t, BURSTS, sizeof(*t), by_value);
	return t[BURSTS / 2];
}

/* The same beside much memory: 5,000 allocations and 1,000 pinned buffers. */
static double issue_beside(void)
{
	static CUdeviceptr device[5000];
	static void *pinned[1000];
	double t;

	for (int i = 0; i < 5000; i++)
		NEED(cuMemAlloc(&device[i], 512));
	for (int i = 0; i < 1000; i++)
		NEED(cuMemAllocHost(&pinned[i], 4096));
	t = issue(launch);
	for (int i = 0; i < 5000; i++)
		NEED(cuMemFree(device[i]));
	for (int i = 0; i < 1000; i++)
		NEED(cuMemFreeHost(pinned[i]));
	return t;
}

static double rate(int to_host, void *h, size_t n)
{
	double t[5];

	for (int b = -1; b < 5; b++) {
		int times = n > 8 << 20 ? 1 : how == SLOW ? 2 : 8;
		double s = now();

		for (int i = 0; i < times; i++) {
			if (to_host)
				NEED(cuMemcpyDtoH(h, device_big, n));
			else
				NEED(cuMemcpyHtoD(device_big, h, n));
		}
		synchronize();
		if (b >= 0)
			t[b] = (double)n * times / (now() - s) / 1e9;
	}
	qsort(t, 5, sizeof(*t), by_value);
	return t[2];
}

/* The mount's count of round trips, -1 where there is none. */
static long round_trips(void)
{
	const char *mount = getenv("SCUDAFS_MOUNT");
	char path[4096];
	long n = -1;
	FILE *f;

	if (!mount)
		return -1;
	snprintf(path, sizeof(path), "%s/stats/waits", mount);
	f = fopen(path, "r");
	if (!f)
		return -1;
	if (fscanf(f, "%ld", &n) != 1)
		n = -1;
	fclose(f);
	return n;
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = {64 << 10, 1 << 20, 16 << 20, 256 << 20};
	enum { N = 1 << 16 };
	static float a[N], b[N], c[N];
	double start = now(), rest;
	CUdevice dev;
	CUcontext ctx;
	CUmodule m;
	CUdeviceptr da, db, dc;
	unsigned n = N;
	long before, first_kernel, after;
	char *plain;
	void *pinned;

	if (argc > 1)
		how = !strcmp(argv[1], "quick") ? QUICK : !strcmp(argv[1], "slow") ? SLOW : FULL;
	before = round_trips();
	NEED(cuInit(0));
	NEED(cuDeviceGet(&dev, 0));
	NEED(cuDevicePrimaryCtxRetain(&ctx, dev));
	NEED(cuCtxSetCurrent(ctx));
	NEED(cuModuleLoadData(&m, ptx));
	NEED(cuModuleGetFunction(&add, m, "add"));
	for (int i = 0; i < N; i++) {
		a[i] = (float)i;
		b[i] = 1;
	}
	NEED(cuMemAlloc(&da, sizeof(a)));
	NEED(cuMemAlloc(&db, sizeof(a)));
	NEED(cuMemAlloc(&dc, sizeof(a)));
	NEED(cuMemcpyHtoD(da, a, sizeof(a)));
	NEED(cuMemcpyHtoD(db, b, sizeof(b)));
	NEED(cuLaunchKernel(add, N / 256, 1, 1, 256, 1, 1, 0, NULL, (void *[]){&da, &db, &dc, &n}, NULL));
	first_kernel = round_trips();
	NEED(cuMemcpyDtoH(c, dc, sizeof(c)));
	after = round_trips();
	printf("first_result_ms %.1f\n", (now() - start) * 1e3);
	for (int i = 0; i < N; i++)
		if (c[i] != a[i] + b[i]) {
			fprintf(stderr, "micro: c[%d] is %g\n", i, c[i]);
			return 1;
		}
	if (before >= 0) {
		printf("waits_first_kernel %ld\n", first_kernel - before);
		printf("waits_vectoradd %ld\n", after - before);
	}

	NEED(cuModuleGetFunction(&nothing, m, "nothing"));
	NEED(cuMemAlloc(&device_word, 256));
	/* A thread that launches for long goes at the pace of the device, natively and through a mount: what
	 * a launch itself takes is seen in bursts. */
	printf("launch_issue_us %.3f\n", issue(launch));
	if (how != SLOW)
		printf("launch_issue_beside_us %.3f\n", issue_beside());
	per_call(launch, 20000, &rest);
	printf("launch_rate_us %.3f\n", rest);
	printf("launch_sync_us %.3f\n", per_call(launch_and_wait, 2000, NULL));
	printf("sync_idle_us %.3f\n", per_call(synchronize, 20000, NULL));
	printf("event_query_us %.3f\n", per_call(event_query, 20000, NULL));
	printf("memgetinfo_us %.3f\n", per_call(mem_get_info, 2000, NULL));
	printf("alloc_free_us %.3f\n", per_call(allocate, 1000, NULL));
	printf("htod4_us %.3f\n", issue(word_to_device));
	printf("dtoh4_us %.3f\n", per_call(word_to_host, 2000, NULL));
	fflush(stdout);

	NEED(cuMemAlloc(&device_big, 256 << 20));
	NEED(cuMemAllocHost(&pinned, 256 << 20));
	plain = malloc(256 << 20);
	if (!plain)
		return 1;
	memset(plain, 1, 256 << 20);
	memset(pinned, 2, 256 << 20);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		size_t s = sizes[i];

		if (how != FULL && s > 16 << 20)
			continue;
		printf("htod_pageable_%zuK_gbs %.3f\n", s >> 10, rate(0, plain, s));
		printf("dtoh_pageable_%zuK_gbs %.3f\n", s >> 10, rate(1, plain, s));
		printf("htod_pinned_%zuK_gbs %.3f\n", s >> 10, rate(0, pinned, s));
		printf("dtoh_pinned_%zuK_gbs %.3f\n", s >> 10, rate(1, pinned, s));
		fflush(stdout);
	}
	NEED(cuMemFree(device_big));
	NEED(cuMemFreeHost(pinned));
	free(plain);
	NEED(cuModuleUnload(m));
	NEED(cuDevicePrimaryCtxRelease(dev));
	return 0;
}
