/* SPDX-License-Identifier: Apache-2.0 */
/* Two programs share device memory and events: the first runs itself a second time (fork and exec), sends the
 * handles through a pipe, and both work on one buffer in turns, ordered by events alone. At last the second
 * is killed in the middle of its work, and the first goes on. */
#include "app.h"

#define WORDS (1 << 20)
#define ROUNDS 20

struct offer {
	cudaIpcMemHandle_t memory, small;
	cudaIpcEventHandle_t ours, theirs;
};

/* Takes a while, so that who does not wait for it reads old values. */
__global__ void step(unsigned *p, unsigned n, unsigned add)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	for (unsigned k = 0; i < n && k < 50; k++)
		p[i] = p[i] * 1664525u + add + i;
}

static unsigned expected(unsigned i, unsigned add, unsigned v)
{
	for (unsigned k = 0; k < 50; k++)
		v = v * 1664525u + add + i;
	return v;
}

static void launch(unsigned *p, unsigned add, cudaStream_t s)
{
	step<<<WORDS / 256, 256, 0, s>>>(p, WORDS, add);
	CK(cudaGetLastError());
}

static void put(int fd, const void *p, size_t n)
{
	if (write(fd, p, n) != (ssize_t)n)
		fail("write: %s", strerror(errno));
}

static void take(int fd, void *p, size_t n)
{
	for (size_t have = 0; have < n;) {
		ssize_t r = read(fd, (char *)p + have, n - have);

		if (r <= 0)
			fail("read: %s", r ? strerror(errno) : "the other program has ended");
		have += r;
	}
}

static int second(int in, int out)
{
	struct offer o;
	unsigned *p, *again, *small, v;
	cudaEvent_t ours, theirs;
	cudaStream_t s;
	char c = 0;

	take(in, &o, sizeof(o));
	CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	CK(cudaIpcOpenMemHandle((void **)&p, o.memory, cudaIpcMemLazyEnablePeerAccess));
	CK(cudaIpcOpenMemHandle((void **)&again, o.memory, cudaIpcMemLazyEnablePeerAccess));
	if (again != p)
		fail("opened twice: two addresses");
	CK(cudaIpcCloseMemHandle(again));
	CK(cudaIpcOpenMemHandle((void **)&small, o.small, cudaIpcMemLazyEnablePeerAccess));
	CK(cudaMemcpy(&v, small, sizeof(v), cudaMemcpyDefault));
	if (v != 4711)
		fail("the small buffer reads %u", v);
	CK(cudaIpcCloseMemHandle(small));
	CK(cudaIpcOpenEventHandle(&ours, o.ours));
	CK(cudaIpcOpenEventHandle(&theirs, o.theirs));
	for (unsigned i = 0; i < ROUNDS; i++) {
		take(in, &c, 1);        /* the first has recorded `ours` */
		CK(cudaStreamWaitEvent(s, ours, 0));
		launch(p, 2 * i + 1, s);
		CK(cudaEventRecord(theirs, s));
		put(out, &c, 1);
	}
	take(in, &c, 1);
	launch(p, 0, s);
	put(out, &c, 1);
	for (;;)                        /* to be killed */
		launch(p, 0, s);
}

/* The same process may not open its own. */
static void own(const struct offer *o)
{
	void *p;

	if (cudaIpcOpenMemHandle(&p, o->memory, cudaIpcMemLazyEnablePeerAccess) == cudaSuccess)
		fail("a process opened its own handle");
	cudaGetLastError();
}

int main(int argc, char **argv)
{
	int there[2], back[2], status;
	cudaEvent_t ours, theirs;
	unsigned *p, *small, *host, v = 4711;
	struct offer o;
	cudaStream_t s;
	char a[16], b[16], c = 0;
	pid_t child;

	if (argc == 3)
		return second(atoi(argv[1]), atoi(argv[2]));
	if (pipe(there) || pipe(back))
		fail("pipe: %s", strerror(errno));
	child = fork();
	if (child < 0)
		fail("fork: %s", strerror(errno));
	if (!child) {
		close(there[1]), close(back[0]);
		snprintf(a, sizeof(a), "%d", there[0]);
		snprintf(b, sizeof(b), "%d", back[1]);
		execl("/proc/self/exe", argv[0], a, b, (char *)NULL);
		_exit(127);
	}
	close(there[0]), close(back[1]);
	host = (unsigned *)malloc(WORDS * sizeof(*host));
	CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	CK(cudaMalloc((void **)&p, WORDS * sizeof(*p)));
	CK(cudaMalloc((void **)&small, 100));
	CK(cudaMemcpy(small, &v, sizeof(v), cudaMemcpyDefault));
	CK(cudaMemset(p, 0, WORDS * sizeof(*p)));
	CK(cudaEventCreateWithFlags(&ours, cudaEventDisableTiming | cudaEventInterprocess));
	CK(cudaEventCreateWithFlags(&theirs, cudaEventDisableTiming | cudaEventInterprocess));
	CK(cudaIpcGetMemHandle(&o.memory, p));
	CK(cudaIpcGetMemHandle(&o.small, small));
	CK(cudaIpcGetEventHandle(&o.ours, ours));
	CK(cudaIpcGetEventHandle(&o.theirs, theirs));
	own(&o);
	CK(cudaDeviceSynchronize());
	put(there[1], &o, sizeof(o));
	for (unsigned i = 0; i < ROUNDS; i++) {
		launch(p, 2 * i, s);
		CK(cudaEventRecord(ours, s));
		put(there[1], &c, 1);
		take(back[0], &c, 1);   /* the second has recorded `theirs` */
		CK(cudaStreamWaitEvent(s, theirs, 0));
	}
	CK(cudaMemcpyAsync(host, p, WORDS * sizeof(*p), cudaMemcpyDeviceToHost, s));
	CK(cudaStreamSynchronize(s));
	for (unsigned i = 0; i < WORDS; i += 4099) {
		unsigned w = 0;

		for (unsigned k = 0; k < 2 * ROUNDS; k++)
			w = expected(i, k, w);
		if (host[i] != w)
			fail("word %u is %u, expected %u", i, host[i], w);
	}
	printf("%d rounds of two programs on one buffer\n", ROUNDS);
	put(there[1], &c, 1);
	take(back[0], &c, 1);
	kill(child, SIGKILL);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		fail("the second program ended by itself: %#x", status);
	CK(cudaMemset(p, 7, WORDS * sizeof(*p)));
	CK(cudaMemcpy(host, p, 4, cudaMemcpyDeviceToHost));
	CK(cudaFree(p));
	CK(cudaFree(small));
	CK(cudaDeviceSynchronize());
	printf("the other is gone\n");
	return pass();
}
