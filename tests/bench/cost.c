/* SPDX-License-Identifier: Apache-2.0 */
/* What the program's calls cost in processor time and memory, of the program itself and of processes whose
 * pids are given: the daemon, and the server, whose children count. Driver API only, so that the same runs
 * natively. Prints `name value` lines. One thread.
 *
 *     cost cpu [daemon=PID] [server=PID]      microseconds a launch (of many, and of one waited for), and
 *                                             seconds a GB (10^9 bytes) of pageable memory
 *     cost idle                               KiB that the library and its calls made the process larger by,
 *                                             once it has a context, a module and one launch behind it; then
 *                                             waits for the end of standard input
 *     cost steps                              nothing: 3,000 times a launch and a synchronization, for
 *                                             hops.sh */
#include <cuda.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define NEED(call) need((call), #call, __LINE__)
enum { PIECE = 64 << 20, SECONDS = 2, OTHERS = 2, STEPS = 3000 };

static const char ptx[] =
		".version 7.5\n.target sm_75\n.address_size 64\n.visible .entry nothing() { ret; }\n";
static CUfunction nothing;
static CUdeviceptr device;
static char *host;
static struct { const char *name; long pid; } other[OTHERS] = {{"daemon", 0}, {"server", 0}};

static void need(CUresult r, const char *what, int line)
{
	const char *s = NULL;

	if (r == CUDA_SUCCESS)
		return;
	cuGetErrorName(r, &s);
	fprintf(stderr, "cost: line %d: %s -> %s\n", line, what, s ? s : "?");
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double own_cpu(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
			(double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

/* Seconds of a process and, one level down, of its children that run. */
static double cpu_of(long pid, int children)
{
	char path[64], line[1024], *p;
	unsigned long user = 0, system = 0;
	double sum;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
	f = fopen(path, "r");
	if (!f)
		return 0;
	/* Fields 14 and 15; the command in field 2 may hold anything. */
	if (fgets(line, sizeof(line), f) && (p = strrchr(line, ')')))
		sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system);
	fclose(f);
	sum = (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
	snprintf(path, sizeof(path), "/proc/%ld/task/%ld/children", pid, pid);
	f = children ? fopen(path, "r") : NULL;
	if (!f)
		return sum;
	for (long child; fscanf(f, "%ld", &child) == 1;)
		sum += cpu_of(child, 0);
	fclose(f);
	return sum;
}

static void launches(void)
{
	for (int i = 0; i < 1000; i++)
		NEED(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
}

static void waits(void)
{
	for (int i = 0; i < 100; i++) {
		NEED(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
		NEED(cuCtxSynchronize());
	}
}

static void to_device(void)
{
	NEED(cuMemcpyHtoD(device, host, PIECE));
}

static void to_host(void)
{
	NEED(cuMemcpyDtoH(host, device, PIECE));
}

/* Does it for a while; prints what a unit cost each process, of which a step has `units`. */
static void measure(const char *name, void (*step)(void), double units, double scale, const char *unit)
{
	double before[OTHERS], own, start, n = 0;

	step();
	NEED(cuCtxSynchronize());
	for (int i = 0; i < OTHERS; i++)
		before[i] = cpu_of(other[i].pid, 1);
	own = own_cpu();
	start = now();
	while (now() - start < SECONDS) {
		step();
		n += units;
	}
	NEED(cuCtxSynchronize());
	printf("cpu_%s_program_%s %.4g\n", name, unit, (own_cpu() - own) * scale / n);
	for (int i = 0; i < OTHERS; i++)
		if (other[i].pid)
			printf("cpu_%s_%s_%s %.4g\n", name, other[i].name, unit,
					(cpu_of(other[i].pid, 1) - before[i]) * scale / n);
	fflush(stdout);
}

/* KiB of the process's own share of memory. */
static long memory(void)
{
	char line[256];
	long n = 0;
	FILE *f = fopen("/proc/self/smaps_rollup", "r");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Pss: %ld", &n) == 1)
			break;
	if (f)
		fclose(f);
	return n;
}

/* KiB of the pages of libcuda.so.1 that are here. */
static long library(void)
{
	char line[4096];
	long sum = 0, n;
	int inside = 0;
	FILE *f = fopen("/proc/self/smaps", "r");

	while (f && fgets(line, sizeof(line), f)) {
		if (strspn(line, "0123456789abcdef") && line[strspn(line, "0123456789abcdef")] == '-')
			inside = strstr(line, "/libcuda.so") != NULL;
		else if (inside && sscanf(line, "Pss: %ld", &n) == 1)
			sum += n;
	}
	if (f)
		fclose(f);
	return sum;
}

int main(int argc, char **argv)
{
	int idle = argc > 1 && !strcmp(argv[1], "idle"), steps = argc > 1 && !strcmp(argv[1], "steps");
	long before = memory() - library();
	CUdevice dev;
	CUcontext ctx;
	CUmodule m;

	if (argc < 2 || (!idle && !steps && strcmp(argv[1], "cpu"))) {
		fprintf(stderr, "usage: cost cpu [daemon=PID] [server=PID] | cost idle | cost steps\n");
		return 2;
	}
	for (int i = 2; i < argc; i++)
		for (int k = 0; k < OTHERS; k++)
			if (!strncmp(argv[i], other[k].name, strlen(other[k].name)) &&
					argv[i][strlen(other[k].name)] == '=')
				other[k].pid = atol(strchr(argv[i], '=') + 1);
	NEED(cuInit(0));
	NEED(cuDeviceGet(&dev, 0));
	NEED(cuDevicePrimaryCtxRetain(&ctx, dev));
	NEED(cuCtxSetCurrent(ctx));
	NEED(cuModuleLoadData(&m, ptx));
	NEED(cuModuleGetFunction(&nothing, m, "nothing"));
	NEED(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	NEED(cuCtxSynchronize());
	if (idle) {
		printf("program_kib %ld\n", memory() - before);
		fflush(stdout);
		while (getchar() != EOF)
			;
		return 0;
	}
	if (steps) {
		for (int i = 0; i < STEPS; i++) {
			NEED(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
			NEED(cuCtxSynchronize());
		}
		return 0;
	}
	host = malloc(PIECE);
	if (!host)
		return 1;
	memset(host, 1, PIECE);
	NEED(cuMemAlloc(&device, PIECE));
	measure("launch", launches, 1000, 1e6, "us");
	measure("launch_wait", waits, 100, 1e6, "us");
	measure("to_device", to_device, PIECE / 1e9, 1, "s_per_gb");
	measure("to_host", to_host, PIECE / 1e9, 1, "s_per_gb");
	return 0;
}
