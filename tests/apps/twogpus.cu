/* SPDX-License-Identifier: Apache-2.0 */
/* Two devices of one machine: which is which under CUDA_VISIBLE_DEVICES, work on both at once from one thread
 * and from two, copies between them in every way, peer access and its errors, memory of the second device
 * shared with another program, and two programs with a device each. */
#include "app.h"

#define WORDS (1 << 18)
/* An error that is expected, and not the last one any more. */
#define REFUSED(call, code) (EXPECT(call, code), (void)cudaGetLastError())

__global__ void fill(unsigned *p, unsigned n, unsigned v)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] = v + i;
}

/* Takes a while. */
__global__ void churn(unsigned *p, unsigned n, unsigned rounds)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	for (unsigned k = 0; i < n && k < rounds; k++)
		p[i] = p[i] * 1664525u + 1013904223u;
}

static unsigned churned(unsigned v, unsigned rounds)
{
	for (unsigned k = 0; k < rounds; k++)
		v = v * 1664525u + 1013904223u;
	return v;
}

static unsigned *host;

static void expect_words(const char *what, const unsigned *p, unsigned v, unsigned rounds)
{
	CK(cudaMemcpy(host, p, WORDS * 4, cudaMemcpyDefault));
	for (unsigned i = 0; i < WORDS; i += 997)
		if (host[i] != churned(v + i, rounds))
			fail("%s: word %u is %u, expected %u", what, i, host[i], churned(v + i, rounds));
}

static unsigned *on(int device)
{
	unsigned *p;

	CK(cudaSetDevice(device));
	CK(cudaMalloc((void **)&p, WORDS * 4));
	return p;
}

static void launch(unsigned *p, unsigned v, unsigned rounds, cudaStream_t s)
{
	fill<<<WORDS / 256, 256, 0, s>>>(p, WORDS, v);
	churn<<<WORDS / 256, 256, 0, s>>>(p, WORDS, rounds);
	CK(cudaGetLastError());
}

static void identity(void)
{
	cudaDeviceProp a, b;
	cudaPointerAttributes at;
	unsigned *p = on(1), *q = on(0);
	int d = -1, n = 0;
	cudaEvent_t e;
	cudaStream_t s;

	CK(cudaGetDeviceProperties(&a, 0));
	CK(cudaGetDeviceProperties(&b, 1));
	if (!memcmp(&a.uuid, &b.uuid, sizeof(a.uuid)))
		fail("both devices have one UUID");
	if (a.pciBusID == b.pciBusID && a.pciDeviceID == b.pciDeviceID && a.pciDomainID == b.pciDomainID)
		fail("both devices lie in one slot");
	CK(cudaPointerGetAttributes(&at, p));
	if (at.device != 1 || at.type != cudaMemoryTypeDevice)
		fail("memory of device 1 is of device %d, type %d", at.device, (int)at.type);
	CK(cudaPointerGetAttributes(&at, q));
	if (at.device != 0)
		fail("memory of device 0 is of device %d", at.device);
	CK(cudaGetDevice(&d));
	if (d != 0)
		fail("the current device is %d", d);
	CK(cudaGetDeviceCount(&n));
	REFUSED(cudaSetDevice(n), cudaErrorInvalidDevice);
	/* what belongs to one device is not for another's */
	CK(cudaSetDevice(1));
	CK(cudaStreamCreate(&s));
	CK(cudaSetDevice(0));
	CK(cudaEventCreate(&e));
	REFUSED(cudaEventRecord(e, s), cudaErrorInvalidResourceHandle);
	CK(cudaEventRecord(e, 0));
	CK(cudaStreamWaitEvent(s, e, 0));       /* this may be */
	CK(cudaStreamSynchronize(s));
	CK(cudaEventDestroy(e));
	CK(cudaStreamDestroy(s));
	CK(cudaFree(p));
	CK(cudaFree(q));
	printf("two devices\n");
}

static void both_at_once(void)
{
	unsigned *p[2];
	cudaStream_t s[2];

	for (int d = 0; d < 2; d++) {
		p[d] = on(d);
		CK(cudaStreamCreateWithFlags(&s[d], cudaStreamNonBlocking));
	}
	for (int round = 0; round < 5; round++)
		for (int d = 0; d < 2; d++) {
			CK(cudaSetDevice(d));
			launch(p[d], round * 10 + d, 20, s[d]);
		}
	for (int d = 0; d < 2; d++) {
		CK(cudaSetDevice(d));
		CK(cudaStreamSynchronize(s[d]));
		expect_words("both at once", p[d], 40 + d, 20);
		CK(cudaStreamDestroy(s[d]));
		CK(cudaFree(p[d]));
	}
	printf("work on both\n");
}

static void *thread(void *arg)
{
	int d = *(int *)arg;
	unsigned *p = on(d), v;

	for (int round = 0; round < 20; round++) {
		launch(p, round, 3, 0);
		CK(cudaMemcpy(&v, p + 5, 4, cudaMemcpyDeviceToHost));
		if (v != churned(round + 5, 3))
			fail("thread of device %d: %u, expected %u", d, v, churned(round + 5, 3));
	}
	CK(cudaFree(p));
	return NULL;
}

static void two_threads(void)
{
	int d[2] = {0, 1};
	pthread_t t[2];

	for (int i = 0; i < 2; i++)
		if (pthread_create(&t[i], NULL, thread, &d[i]))
			fail("pthread_create");
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	printf("two threads\n");
}

static void copies(void)
{
	unsigned *p = on(0), *q = on(1);
	cudaStream_t s;
	cudaEvent_t e;

	/* A copy between devices waits for what both have queued. */
	CK(cudaSetDevice(1));
	launch(q, 7, 200, 0);
	CK(cudaSetDevice(0));
	CK(cudaMemcpyPeer(p, 0, q, 1, WORDS * 4));
	launch(p, 9, 0, 0);
	CK(cudaMemcpyPeer(q, 1, p, 0, WORDS * 4));
	CK(cudaSetDevice(1));
	expect_words("peer copy back", q, 9, 0);
	launch(q, 11, 50, 0);
	CK(cudaMemcpyPeer(p, 0, q, 1, WORDS * 4));
	CK(cudaSetDevice(0));
	expect_words("peer copy", p, 11, 50);
	/* in a stream, ordered by an event of the other device */
	CK(cudaSetDevice(1));
	CK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
	launch(q, 13, 100, 0);
	CK(cudaEventRecord(e, 0));
	CK(cudaSetDevice(0));
	CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	CK(cudaStreamWaitEvent(s, e, 0));
	CK(cudaMemcpyPeerAsync(p, 0, q, 1, WORDS * 4, s));
	CK(cudaStreamSynchronize(s));
	expect_words("peer copy in a stream", p, 13, 100);
	/* by address alone */
	launch(p, 15, 1, s);
	CK(cudaMemcpyAsync(q, p, WORDS * 4, cudaMemcpyDefault, s));
	CK(cudaStreamSynchronize(s));
	expect_words("by address alone", q, 15, 1);
	CK(cudaMemset(p, 0, WORDS * 4));
	CK(cudaDeviceSynchronize());
	CK(cudaMemcpy2D(p, 1024, q, 1024, 1024, WORDS / 256, cudaMemcpyDeviceToDevice));
	expect_words("rows", p, 15, 1);
	CK(cudaStreamDestroy(s));
	CK(cudaEventDestroy(e));
	CK(cudaFree(p));
	CK(cudaFree(q));
	printf("copies between devices\n");
}

static void access(void)
{
	int there = -1, back = -1, self = -1;
	unsigned *q;

	CK(cudaDeviceCanAccessPeer(&there, 0, 1));
	CK(cudaDeviceCanAccessPeer(&back, 1, 0));
	CK(cudaDeviceCanAccessPeer(&self, 0, 0));
	if (self)
		fail("a device is its own peer");
	if (there != back)
		fail("access one way only");
	CK(cudaSetDevice(0));
	REFUSED(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
	REFUSED(cudaDeviceEnablePeerAccess(99, 0), cudaErrorInvalidDevice);
	if (!there) {
		REFUSED(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessUnsupported);
		printf("~ no access to each other\n");
		return;
	}
	REFUSED(cudaDeviceEnablePeerAccess(1, 1), cudaErrorInvalidValue);
	CK(cudaDeviceEnablePeerAccess(1, 0));
	REFUSED(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
	q = on(1);
	CK(cudaSetDevice(0));
	launch(q, 21, 10, 0);           /* device 0 works on memory of device 1 */
	CK(cudaDeviceSynchronize());
	expect_words("a kernel on the other's memory", q, 21, 10);
	CK(cudaDeviceDisablePeerAccess(1));
	REFUSED(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
	CK(cudaFree(q));
	printf("~ access to each other\n");
}

/* ---- other programs */

static pid_t start(const char *visible, const char *word, int in, int out)
{
	char a[16], b[16];
	pid_t p;

	fflush(NULL);
	p = fork();
	if (p < 0)
		fail("fork: %s", strerror(errno));
	if (p)
		return p;
	if (visible)
		setenv("CUDA_VISIBLE_DEVICES", visible, 1);
	snprintf(a, sizeof(a), "%d", in);
	snprintf(b, sizeof(b), "%d", out);
	execl("/proc/self/exe", program_invocation_short_name, word, a, b, (char *)NULL);
	_exit(127);
}

static void ended(const char *what, pid_t p)
{
	int status;

	while (waitpid(p, &status, 0) < 0)
		if (errno != EINTR)
			fail("waitpid: %s", strerror(errno));
	if (status)
		fail("%s ended with %#x", what, status);
}

/* Prints the UUIDs of what it sees to `out`, in order. */
static int list(int out)
{
	cudaDeviceProp p;
	int n = 0;

	if (cudaGetDeviceCount(&n) != cudaSuccess)
		n = 0;
	for (int i = 0; i < n; i++) {
		CK(cudaGetDeviceProperties(&p, i));
		if (write(out, &p.uuid, sizeof(p.uuid)) != sizeof(p.uuid))
			fail("write");
	}
	return 0;
}

static void visible(const char *what, const cudaUUID_t *want, int n)
{
	char got[64 * sizeof(*want)];
	int pipes[2];
	ssize_t r, have = 0;
	pid_t p;

	if (pipe(pipes))
		fail("pipe");
	p = start(what, "list", -1, pipes[1]);
	close(pipes[1]);
	while ((r = read(pipes[0], got + have, sizeof(got) - have)) > 0)
		have += r;
	close(pipes[0]);
	ended(what, p);
	if (have != (ssize_t)(n * sizeof(*want)) || memcmp(got, want, have))
		fail("CUDA_VISIBLE_DEVICES=%s shows %zd devices, or others", what, have / sizeof(*want));
}

/* One device to itself: some work, and who it is. */
static int alone(void)
{
	int n = 0, one = 0;

	CK(cudaGetDeviceCount(&n));
	if (n != 1)
		fail("%d devices are visible", n);
	for (int i = 0; i < 5; i++)
		thread(&one);
	return 0;
}

/* Memory of the second device, by the handle that comes through `in`. */
static int import(int in)
{
	cudaIpcMemHandle_t h;
	cudaPointerAttributes at;
	unsigned *p;

	if (read(in, &h, sizeof(h)) != sizeof(h))
		fail("read");
	CK(cudaSetDevice(1));
	CK(cudaIpcOpenMemHandle((void **)&p, h, cudaIpcMemLazyEnablePeerAccess));
	CK(cudaPointerGetAttributes(&at, p));
	if (at.device != 1)
		fail("imported memory is of device %d", at.device);
	expect_words("imported", p, 31, 0);
	launch(p, 33, 4, 0);
	CK(cudaDeviceSynchronize());
	CK(cudaIpcCloseMemHandle(p));
	return 0;
}

static void programs(const cudaDeviceProp *d)
{
	cudaUUID_t order[2] = {d[1].uuid, d[0].uuid};
	const unsigned char *u = (const unsigned char *)&d[1].uuid;
	cudaIpcMemHandle_t h;
	char text[64];
	int pipes[2];
	unsigned *p;
	pid_t a, b;

	visible("1,0", order, 2);
	visible("1", order, 1);
	visible("0", order + 1, 1);
	visible("1,7,0", order, 1);     /* what is behind a wrong one is not seen */
	snprintf(text, sizeof(text),
		"GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1], u[2],
		u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
	visible(text, order, 1);
	visible("", order, 0);
	printf("CUDA_VISIBLE_DEVICES\n");
	a = start("0", "alone", -1, -1);
	b = start("1", "alone", -1, -1);
	ended("the program on device 0", a);
	ended("the program on device 1", b);
	printf("two programs with a device each\n");
	p = on(1);
	launch(p, 31, 0, 0);
	CK(cudaDeviceSynchronize());
	CK(cudaIpcGetMemHandle(&h, p));
	if (pipe(pipes))
		fail("pipe");
	a = start(NULL, "import", pipes[0], -1);
	if (write(pipes[1], &h, sizeof(h)) != sizeof(h))
		fail("write");
	ended("the importing program", a);
	expect_words("shared", p, 33, 4);
	CK(cudaFree(p));
	printf("memory of the second device in another program\n");
}

int main(int argc, char **argv)
{
	cudaDeviceProp d[2];
	int n = 0;

	host = (unsigned *)malloc(WORDS * 4);
	if (argc == 4 && !strcmp(argv[1], "list"))
		return list(atoi(argv[3]));
	if (argc == 4 && !strcmp(argv[1], "alone"))
		return alone();
	if (argc == 4 && !strcmp(argv[1], "import"))
		return import(atoi(argv[2]));
	CK(cudaGetDeviceCount(&n));
	if (n < 2)
		skip("one device");
	for (int i = 0; i < 2; i++)
		CK(cudaGetDeviceProperties(&d[i], i));
	identity();
	both_at_once();
	two_threads();
	copies();
	access();
	programs(d);
	return pass();
}
