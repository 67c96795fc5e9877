/* SPDX-License-Identifier: Apache-2.0 */
/* The session node is used with raw system calls: libc's pwrite and pread are cancellation points, which the
 * application's API calls must not be.
 *
 * Thread rule: `fd` changes in node_open, node_close and node_forget only. */
#include "devshim/node.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "devshim/count.h"
#include "devshim/held.h"
#include "wire/ctl.h"
#include "wire/hops.h"
#include "wire/limits.h"

#define PAGE 4096u
#define TOUCHES 16              /* a program may close its pages again meanwhile, but not for ever */

static _Atomic int node_fd = -1;
static struct held held;

static bool node_is_ours(void) { return held_is(node_fd, &held); }

int node_open(const char *path)
{
	int fd = held_open(path, &held);
	if (fd < 0)
		return fd;
	node_fd = fd;
	return 0;
}

int node_stat(struct stat *st)
{
	return fstat(node_fd, st) ? errno : 0;
}

void node_close(void)
{
	if (node_is_ours())
		close(node_fd);
	node_fd = -1;
}

void node_forget(void)
{
	bool ours = node_is_ours();
	int fd = atomic_exchange(&node_fd, -1);
	if (ours)
		syscall(SYS_close, fd);
}

bool node_is_open(void) { return node_fd >= 0; }

bool node_is_narrow(void)
{
	struct rlimit l;
	return !getrlimit(RLIMIT_FSIZE, &l) && l.rlim_cur < (rlim_t)CTL_SIZE * 2;
}

/* Written by an ioctl. */
static long write_narrow(const struct iovec *v, int n, size_t len, int64_t at)
{
	struct ctl_write w = {.at = at, .len = (uint32_t)len};
	uint8_t *arg = calloc(1, CTL_WRITE_ALL), *to = arg;
	long r;
	if (!arg) /* see node_writev */
		return -ENOBUFS;
	memcpy(to, &w, sizeof w);
	to += sizeof w;
	for (int i = 0; i < n; to += v[i++].iov_len)
		memcpy(to, v[i].iov_base, v[i].iov_len);
	do
		r = node_ioctl(CTL_WRITE, arg);
	while (r == -EAGAIN);
	free(arg);
	return r ? r : (long)len;
}

/* Another thread may set a limit of file sizes in the very moment, too late for a batch that was cut as large
 * as it is: the session is over then, and not the program by SIGXFSZ. */
static void quiet_begin(sigset_t *before)
{
	sigset_t one;
	sigemptyset(&one);
	sigaddset(&one, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &one, before);
}

static void quiet_end(const sigset_t *before, int error)
{
	const struct timespec none = {0};
	sigset_t one;
	if (sigismember(before, SIGXFSZ))
		return;
	sigemptyset(&one);
	sigaddset(&one, SIGXFSZ);
	if (error == EFBIG)
		sigtimedwait(&one, NULL, &none);
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* A page of the program's may not be read, or written. The kernel would write what is ahead of it, half a
 * batch, or say EFAULT; who touches it gets the signal that a driver in this process would get: the program's
 * handler opens the page (a collector's barrier), or the program ends by it, as natively. */
static void touch(const struct iovec *v, int n, bool write)
{
	for (int i = 0; i < n; i++) {
		uint8_t *p = v[i].iov_base;
		for (size_t at = 0; at < v[i].iov_len; at += PAGE - ((uintptr_t)(p + at) & (PAGE - 1)))
			if (write)
				__atomic_fetch_or(p + at, 0, __ATOMIC_RELAXED);
			else
				(void)*(volatile uint8_t *)(p + at);
	}
}

/* Where there is no memory for a batch the session is over (ENOBUFS): nothing that has a number behind it can
 * be sent without it, and would wait for ever.
 *
 * A write that the daemon has parked for long comes back with EAGAIN or EINTR: its queue is full because the
 * GPU is behind. The same batch number goes again, for as long as the daemon finds the server alive. */
long node_writev(const struct iovec *v, int n, int64_t at)
{
	size_t len = 0;
	long r;
	for (int i = 0; i < n; i++)
		len += v[i].iov_len;
	if (len <= NODE_NARROW && node_is_narrow())
		return write_narrow(v, n, len, at);
	/* Somewhere far behind the end of another file. */
	if (!node_is_ours())
		return -EBADF;
	touch(v, n, false);
	sigset_t before;
	quiet_begin(&before);
	do
		r = syscall(SYS_pwritev, node_fd, v, n, at, 0);
	while (r < 0 && (errno == EINTR || errno == EAGAIN));
	int e = r < 0 ? errno : 0;
	quiet_end(&before, e);
	return e == ENOMEM ? -ENOBUFS : e ? -e : r;
}

long node_read(void *p, size_t n, int64_t at)
{
	const struct iovec v = {p, n};
	int e, tries = TOUCHES;
	long r;
	do {
		r = syscall(SYS_pread64, node_fd, p, n, at);
		e = r < 0 ? errno : 0;
		if (e == EFAULT)
			touch(&v, 1, true);
	} while (e == EINTR || (e == EFAULT && --tries));
	return e ? -e : r;
}

int node_ioctl(unsigned long request, void *arg)
{
	long r;
	do
		r = syscall(SYS_ioctl, node_fd, request, arg);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

/* The kernel sends a write in requests of at most 256 pages, and a batch must be one request. */
size_t node_piece(const uint8_t *p, size_t left, const void *front, size_t before)
{
	size_t pages = before ? (((uintptr_t)front & (PAGE - 1)) + before + PAGE - 1) / PAGE : 0;
	size_t most = LIMIT_BATCH - pages * PAGE - ((uintptr_t)p & (PAGE - 1));
	return left < most ? left : most;
}

static unsigned long wait_class(size_t n, size_t *size)
{
	static const struct { size_t n; unsigned long request; } classes[] = {
		{256, CTL_WAIT_256}, {1024, CTL_WAIT_1K}, {4096, CTL_WAIT_4K}, {16383, CTL_WAIT_16K}};
	unsigned i = 0;
	while (i < 3 && n > classes[i].n)
		i++;
	*size = classes[i].n;
	return classes[i].request;
}

int node_reply(uint64_t seq, size_t n, uint8_t **large)
{
	if (n > sizeof(struct frame) + LIMIT_HEAD + LIMIT_REPLY)
		return -EPROTO;
	uint8_t *p = malloc(n);
	if (!p)
		return -ENOMEM;
	*large = p;
	for (size_t at = 0; at < n;) {
		size_t part = n - at < LIMIT_BATCH ? n - at : LIMIT_BATCH;
		long r = node_read(p + at, part, CTL_REPLY(seq) + (int64_t)at);
		if (r == -EAGAIN)
			continue;
		if (r <= 0)
			return r ? (int)r : -EPROTO;
		at += (size_t)r;
	}
	return 0;
}

int answer_check(uint64_t seq, const uint8_t *bytes, size_t n, struct answer *a)
{
	const char *why;
	if (n < sizeof a->frame)
		return -EPROTO;
	memcpy(&a->frame, bytes, sizeof a->frame);
	if (frame_check(&a->frame, false, &why) || a->frame.kind != FRAME_REPLY || a->frame.seq != seq)
		return -EPROTO;
	if (a->frame.bulk_len > LIMIT_REPLY || n != sizeof a->frame + a->frame.head_len + a->frame.bulk_len)
		return -EPROTO;
	count_received(n);
	hop(HOP_BACK, seq);
	a->head = bytes + sizeof a->frame;
	a->bulk = a->head + a->frame.head_len;
	return 0;
}

int node_wait(uint8_t *buf, uint64_t batch, size_t len, uint64_t seq, size_t expected, bool once,
	uint8_t **large, struct answer *a)
{
	struct ctl_wait w = {.batch = batch, .seq = seq, .len = (uint32_t)len};
	for (;;) {
		/* An answer that cannot fit is fetched apart: no use in a large ioctl, which is copied
		 * whole. */
		bool fits = expected <= NODE_ROOM - 1 - sizeof w;
		size_t need = len > expected || !fits ? len : expected, size;
		unsigned long request = wait_class(sizeof w + need, &size);
		memcpy(buf, &w, sizeof w);
		int r = node_ioctl(request, buf);
		if (r)
			return len && r == -ENOMEM ? -ENOBUFS : r; /* as node_writev */
		struct ctl_wait out;
		memcpy(&out, buf, sizeof out);
		if (out.flags & CTL_AGAIN) {
			w = (struct ctl_wait){.seq = seq};
			len = 0;
			if (once)
				return -EAGAIN;
			continue;
		}
		const uint8_t *bytes = buf + sizeof w;
		if (out.flags & CTL_LARGE) {
			int e = node_reply(seq, out.len, large);
			if (e)
				return e;
			bytes = *large;
		} else if (out.len > size - sizeof w) {
			return -EPROTO;
		}
		return answer_check(seq, bytes, out.len, a);
	}
}

int node_sleep(uint64_t seq)
{
	union { struct ctl_wait w; uint8_t bytes[256]; } arg = {.w = {.seq = seq}};
	int e = node_ioctl(CTL_WAIT_256, &arg);
	if (e)
		return e;
	return arg.w.flags & CTL_SHARED ? 0 : arg.w.flags & CTL_AGAIN ? -EAGAIN : -EPROTO;
}
