/* SPDX-License-Identifier: Apache-2.0 */
/* Large copies: how fast, and which threads of which processes are busy meanwhile. Driver API only, so that
 * the same runs natively. Processes are given as NAME=PID; the children of the first level of a process count
 * as its own.
 *
 *     bulk [MIB [SECONDS [WAY...]]] [daemon=PID] [server=PID]      256 MiB, 1 s; htod dtoh and the same with
 *                                                                  -pinned
 *
 * Prints for each way a line `way GB/s`, and lines `way process thread user system`, seconds a GB (10^9
 * bytes), of the threads that took more than 0.005. One thread. */
#include <cuda.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NEED(call) need((call), #call, __LINE__)
enum { PROCESSES = 3, THREADS = 512, LEAST_MS = 5 };

struct thread {
	long id;
	char process[16], name[32];
	double user, system;
};

static struct { const char *name; long pid; } process[PROCESSES] = {{"program", 0}, {"daemon", 0},
		{"server", 0}};

static void need(CUresult r, const char *what, int line)
{
	const char *s = NULL;

	if (r == CUDA_SUCCESS)
		return;
	cuGetErrorName(r, &s);
	fprintf(stderr, "bulk: line %d: %s -> %s\n", line, what, s ? s : "?");
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int thread_of(const char *dir, const char *entry, struct thread *t)
{
	char path[512], line[1024], *p, *q;
	unsigned long user, system;
	FILE *f;

	snprintf(path, sizeof path, "%s/%s/stat", dir, entry);
	f = fopen(path, "r");
	if (!f)
		return 0;
	/* `id (name) state ...`, times in fields 14 and 15; the name may hold anything. */
	p = fgets(line, sizeof line, f);
	fclose(f);
	if (!p || !(p = strchr(line, '(')) || !(q = strrchr(line, ')')))
		return 0;
	*q = 0;
	if (sscanf(q + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
		return 0;
	t->id = atol(entry);
	snprintf(t->name, sizeof t->name, "%s", p + 1);
	t->user = (double)user / (double)sysconf(_SC_CLK_TCK);
	t->system = (double)system / (double)sysconf(_SC_CLK_TCK);
	return 1;
}

static int threads_of(const char *name, long pid, int children, struct thread *t, int n)
{
	char dir[128];
	struct dirent *e;
	DIR *d;

	snprintf(dir, sizeof dir, "/proc/%ld/task", pid);
	d = opendir(dir);
	while (d && (e = readdir(d)) && n < THREADS)
		if (*e->d_name != '.' && thread_of(dir, e->d_name, &t[n]))
			snprintf(t[n++].process, sizeof t->process, "%s", name);
	if (d)
		closedir(d);
	snprintf(dir, sizeof dir, "/proc/%ld/task/%ld/children", pid, pid);
	FILE *f = children ? fopen(dir, "r") : NULL;

	for (long child; f && fscanf(f, "%ld", &child) == 1;)
		n = threads_of(name, child, 0, t, n);
	if (f)
		fclose(f);
	return n;
}

static int all_threads(struct thread *t)
{
	int n = 0;

	for (int i = 0; i < PROCESSES; i++)
		if (process[i].pid)
			n = threads_of(process[i].name, process[i].pid, i != 0, t, n);
	return n;
}

static void tell(const char *way, const struct thread *before, int n, double gb)
{
	static struct thread after[THREADS];
	int m = all_threads(after);

	for (int i = 0; i < m; i++) {
		struct thread was = {0};

		for (int k = 0; k < n; k++)
			if (before[k].id == after[i].id)
				was = before[k];
		double user = (after[i].user - was.user) / gb, system = (after[i].system - was.system) / gb;

		if (user + system > LEAST_MS / 1e3)
			printf("%s %s %s %.3f %.3f\n", way, after[i].process, after[i].name, user, system);
	}
	fflush(stdout);
}

static void measure(const char *way, char *host, CUdeviceptr device, size_t n, double seconds)
{
	static struct thread before[THREADS];
	int to_device = !strncmp(way, "htod", 4), threads = 0;
	double start = 0, bytes = 0;

	/* Twice: for the first time everywhere memory is fresh. */
	for (int warm = 1; warm >= 0; warm--) {
		threads = all_threads(before);
		start = now();
		bytes = 0;
		do {
			NEED(to_device ? cuMemcpyHtoD(device, host, n) : cuMemcpyDtoH(host, device, n));
			bytes += (double)n;
		} while (now() - start < (warm ? seconds / 4 : seconds));
		NEED(cuCtxSynchronize());
	}
	printf("%s %.3f\n", way, bytes / (now() - start) / 1e9);
	tell(way, before, threads, bytes / 1e9);
}

int main(int argc, char **argv)
{
	static const char *ways[] = {"htod", "dtoh", "htod-pinned", "dtoh-pinned"};
	const char *only[8];
	int numbers = 0, nways = 0;
	size_t n = 256;
	double seconds = 1;
	CUdevice dev;
	CUcontext ctx;
	CUdeviceptr device;
	void *pinned;
	char *host;

	process[0].pid = getpid();
	for (int i = 1; i < argc; i++) {
		char *equals = strchr(argv[i], '=');

		if (equals)
			for (int k = 1; k < PROCESSES; k++)
				if (!strncmp(argv[i], process[k].name, (size_t)(equals - argv[i])))
					process[k].pid = atol(equals + 1);
		bool number = !equals && *argv[i] >= '0' && *argv[i] <= '9';

		if (number && !numbers++)
			n = (size_t)atol(argv[i]);
		else if (number)
			seconds = atof(argv[i]);
		else if (!equals && nways < 8)
			only[nways++] = argv[i];
	}
	n <<= 20;
	NEED(cuInit(0));
	NEED(cuDeviceGet(&dev, 0));
	NEED(cuDevicePrimaryCtxRetain(&ctx, dev));
	NEED(cuCtxSetCurrent(ctx));
	NEED(cuMemAlloc(&device, n));
	NEED(cuMemAllocHost(&pinned, n));
	host = malloc(n);
	if (!host)
		return 1;
	memset(host, 1, n);
	memset(pinned, 1, n);
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		int wanted = !nways;

		for (int k = 0; k < nways; k++)
			wanted |= !strcmp(only[k], ways[i]);
		if (wanted)
			measure(ways[i], strstr(ways[i], "pinned") ? pinned : host, device, n, seconds);
	}
	return 0;
}
