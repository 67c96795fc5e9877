/* SPDX-License-Identifier: Apache-2.0 */
/* What every program in this folder shares: how it fails, passes and skips, its repeatable random numbers,
 * and running a piece in a child process. Each program checks itself: exit 0 and a last line `PASS name`,
 * exit 77 and `SKIP name: why` where the device lacks what is tested, else non-zero after a line that
 * tells what differs. Nothing that a program prints depends on time or placement, but for lines that begin
 * with "~ ". Works from C (driver API) and nvcc (runtime). fork_run forks before the parent has touched
 * CUDA, or not at all: a child after cuInit has no CUDA. */
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_SKIPPED = 77 };

__attribute__((format(printf, 1, 2), noreturn, unused)) static void fail(const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	va_start(ap, fmt);
	fprintf(stderr, "FAIL %s: ", program_invocation_short_name);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	exit(1);
}

__attribute__((format(printf, 1, 2), noreturn, unused)) static void skip(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	printf("SKIP %s: ", program_invocation_short_name);
	vprintf(fmt, ap);
	putchar('\n');
	va_end(ap);
	exit(EXIT_SKIPPED);
}

/* The value of main. */
__attribute__((unused)) static int pass(void)
{
	printf("PASS %s\n", program_invocation_short_name);
	return fflush(stdout) != 0;
}

__attribute__((unused)) static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

__attribute__((unused)) static void sleep_ms(int ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000L};

	nanosleep(&t, NULL);
}

/* xorshift32: the same numbers everywhere. */
__attribute__((unused)) static uint32_t noise(uint32_t *state)
{
	uint32_t x = *state ? *state : 2463534242u;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return *state = x;
}

__attribute__((unused)) static void noise_fill(void *p, size_t n, uint32_t seed)
{
	unsigned char *b = (unsigned char *)p;
	size_t i = 0;
	uint32_t x;

	for (; i + 4 <= n; i += 4) {
		x = noise(&seed);
		memcpy(b + i, &x, 4);
	}
	for (; i < n; i++)
		b[i] = (unsigned char)noise(&seed);
}

/* A float in [0, 1). */
__attribute__((unused)) static float noise_float(uint32_t *state)
{
	return (float)(noise(state) >> 8) / 16777216.0f;
}

/* Fails with the first place where two byte ranges differ. */
__attribute__((unused)) static void same_bytes(const char *what, const void *got, const void *want, size_t n)
{
	const unsigned char *g = (const unsigned char *)got, *w = (const unsigned char *)want;

	if (!memcmp(g, w, n))
		return;
	for (size_t i = 0; i < n; i++)
		if (g[i] != w[i])
			fail("%s: byte %zu of %zu is %#x, expected %#x", what, i, n, g[i], w[i]);
}

__attribute__((unused)) static void close_to(const char *what, size_t i, double got, double want,
		double tolerance)
{
	double d = fabs(got - want), scale = fabs(want) > 1 ? fabs(want) : 1;

	if (!(d <= tolerance * scale))
		fail("%s[%zu] is %.17g, expected %.17g", what, i, got, want);
}

/* Runs f in a child that gets at most `limit` seconds; its wait status. */
__attribute__((unused)) static int fork_run(int (*f)(void *), void *arg, unsigned limit)
{
	int status = 0;
	pid_t p;

	fflush(NULL);
	p = fork();
	if (p < 0)
		fail("fork: %s", strerror(errno));
	if (!p) {
		alarm(limit);
		exit(f(arg));
	}
	while (waitpid(p, &status, 0) < 0)
		if (errno != EINTR)
			fail("waitpid: %s", strerror(errno));
	return status;
}

/* Fails unless f, run in a child, exits 0. */
__attribute__((unused)) static void fork_check(const char *what, int (*f)(void *), void *arg, unsigned limit)
{
	int status = fork_run(f, arg, limit);

	if (WIFSIGNALED(status))
		fail("%s: %s", what, WTERMSIG(status) == SIGALRM ? "time limit"
				: strsignal(WTERMSIG(status)));
	if (WEXITSTATUS(status))
		fail("%s: exit status %d", what, WEXITSTATUS(status));
}

#ifdef __CUDACC__
#define CK(x) ck((x), #x, __FILE__, __LINE__)
#define EXPECT(x, want) expect((x), (want), #x, __FILE__, __LINE__)
__attribute__((unused)) static void ck(cudaError_t e, const char *what, const char *file, int line)
{
	if (e != cudaSuccess)
		fail("%s:%d: %s -> %s", file, line, what, cudaGetErrorName(e));
}
__attribute__((unused)) static void expect(cudaError_t e, cudaError_t want, const char *what,
		const char *file, int line)
{
	if (e != want)
		fail("%s:%d: %s -> %s, expected %s", file, line, what, cudaGetErrorName(e),
				cudaGetErrorName(want));
}
#endif

#ifdef CUDA_VERSION
#define DRV(x) drv((x), CUDA_SUCCESS, #x, __FILE__, __LINE__)
#define DRV_EXPECT(x, want) drv((x), (want), #x, __FILE__, __LINE__)
__attribute__((unused)) static const char *drv_name(CUresult r)
{
	const char *s = NULL;

	return cuGetErrorName(r, &s) == CUDA_SUCCESS && s ? s : "(no name)";
}
__attribute__((unused)) static void drv(CUresult r, CUresult want, const char *what, const char *file,
		int line)
{
	if (r != want)
		fail("%s:%d: %s -> %s, expected %s", file, line, what, drv_name(r), drv_name(want));
}
#endif
