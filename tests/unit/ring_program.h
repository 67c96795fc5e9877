/* SPDX-License-Identifier: Apache-2.0 */
/* The program's end of shared memory, for tests: the shim's channel as it is, without FUSE, whose system
 * calls are requests of a relay in the same process. Both ends use one mapping, so that the thread sanitizer
 * sees what they share. Thread rule: the shim's own; its state is each test program's. */
#pragma once
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include "scudafs/relay.h"
#include "wire/ring.h"

/* The program's mapping is the mount's: the only one that there is. Of the channel it maps all, of the arena
 * parts. */
static void *one_mmap(void *at, size_t n, int prot, int flags, int fd, off_t off)
{
	unsigned long from = 0;
	char line[512];
	if (!(flags & MAP_SHARED))
		return mmap(at, n, prot, flags, fd, off);
	FILE *f = fopen("/proc/self/maps", "re");
	while (f && !from && fgets(line, sizeof(line), f))
		if (strstr(line, n == RING_ALL ? "memfd:scudafs-channel" : "memfd:scudafs-arena"))
			sscanf(line, "%lx", &from);
	fclose(f);
	return from ? (uint8_t *)from + off : MAP_FAILED;
}
static int one_munmap(void *p, size_t n)
{
	(void)p, (void)n;
	return 0;
}
/* The mount goes on in a child, and one mapping is for both. */
static int one_madvise(void *p, size_t n, int what)
{
	return what == MADV_DONTFORK ? 0 : madvise(p, n, what);
}

static long fake_syscall(long number, ...);
#define syscall fake_syscall
#include "devshim/node.c"
#include "devshim/channel.c"
#include "devshim/channel_batch.c"
#include "devshim/channel_shared.c"
#include "devshim/channel_answer.c"
#include "devshim/flusher.c"
#include "devshim/pace.c"
#undef syscall
#include "devshim/lanes.c"
#define mmap one_mmap
#define munmap one_munmap
#define madvise one_madvise
#include "devshim/ring.c"
#include "devshim/ring_open.c"
#include "devshim/ring_await.c"
#include "devshim/arena.c"
#include "devshim/arena_pinned.c"
#undef mmap
#undef munmap
#undef madvise

bool count_on;
void count_record_on(unsigned kind, unsigned flags, uint64_t bytes) { (void)kind, (void)flags, (void)bytes; }
void count_received_on(uint64_t bytes) { (void)bytes; }
_Atomic int process_code;
_Thread_local struct thread *thread_cached;
struct thread *thread_create(void) { return NULL; }
CUresult process_die(int error, const char *what)
{
	(void)what, (void)error;
	return CUDA_ERROR_MPS_RPC_FAILURE;
}
int process_thread(void *(*run)(void *), void *arg, size_t stack, const char *name)
{
	pthread_t t;
	(void)stack, (void)name;
	int e = pthread_create(&t, NULL, run, arg);
	if (!e)
		pthread_detach(t);
	return -e;
}

/* ---- in place of the kernel and ops_session.c: a system call is a request of the relay */

static struct relay *relay;

struct op {
	struct request q;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool done;
	int r;
	size_t n, room;
	uint8_t *to;
};

static void answered(struct request *q, int r, const struct iovec *v, int n)
{
	struct op *o = (struct op *)q;
	pthread_mutex_lock(&o->lock);
	o->r = r;
	for (int i = 0; i < n; i++) {
		ck_assert_uint_le(o->n + v[i].iov_len, o->room);
		memcpy(o->to + o->n, v[i].iov_base, v[i].iov_len);
		o->n += v[i].iov_len;
	}
	o->done = true;
	pthread_cond_signal(&o->cond);
	pthread_mutex_unlock(&o->lock);
}

static void op_init(struct op *o, void *to, size_t room)
{
	*o = (struct op){.q.answer = answered, .q.token = o, .to = to, .room = room};
	pthread_mutex_init(&o->lock, NULL);
	pthread_cond_init(&o->cond, NULL);
}

static long op_end(struct op *o)
{
	pthread_mutex_lock(&o->lock);
	while (!o->done)
		pthread_cond_wait(&o->cond, &o->lock);
	pthread_mutex_unlock(&o->lock);
	if (o->r < 0) {
		errno = -o->r;
		return -1;
	}
	return o->r ? o->r : (long)o->n;
}

static long call_ioctl(unsigned long request, uint8_t *arg)
{
	struct ctl_wait w;
	struct op o;
	op_init(&o, arg, _IOC_SIZE(request));
	if (request == CTL_CHANNEL) {
		relay_channel(relay, &o.q);
	} else if (request == CTL_UNTIL) {
		struct ctl_until until;
		memcpy(&until, arg, sizeof until);
		relay_until(relay, &until, &o.q);
	} else {
		memcpy(&w, arg, sizeof w);
		uint8_t *bytes = malloc(w.len + 1u);
		memcpy(bytes, arg + sizeof w, w.len);
		relay_wait(relay, w.batch, w.seq, bytes, w.len, _IOC_SIZE(request) - sizeof w, &o.q);
		free(bytes);
	}
	return op_end(&o) < 0 ? -1 : 0;
}

static long call_write(const struct iovec *v, int n, int64_t at)
{
	uint8_t *all = malloc(LIMIT_BATCH), *to = all;
	struct op o;
	for (int i = 0; i < n; to += v[i++].iov_len)
		memcpy(to, v[i].iov_base, v[i].iov_len);
	op_init(&o, NULL, 0);
	relay_post(relay, (uint64_t)(at - CTL_REGION(1)) / LIMIT_BATCH, all, (size_t)(to - all), &o.q);
	long r = op_end(&o);
	free(all);
	return r;
}

static long call_read(uint8_t *p, size_t n, int64_t at)
{
	struct op o;
	op_init(&o, p, n);
	if (at >= CTL_REPLY(0)) {
		uint64_t a = (uint64_t)(at - CTL_REPLY(0));
		relay_reply(relay, a >> 28, a & 0xfffffff, n, &o.q);
	} else {
		uint64_t a = (uint64_t)(at - CTL_DATA(0, 0));
		relay_data(relay, a >> 40, a & 0xffffffffff, n, &o.q);
	}
	return op_end(&o);
}

static long fake_syscall(long number, ...)
{
	va_list ap;
	va_start(ap, number);
	long a = va_arg(ap, long), b = va_arg(ap, long), c = va_arg(ap, long), d = va_arg(ap, long),
		e = va_arg(ap, long), f = va_arg(ap, long);
	va_end(ap);
	switch (number) {
	case SYS_ioctl: return call_ioctl((unsigned long)b, (uint8_t *)c);
	case SYS_pwritev: return call_write((const struct iovec *)b, (int)c, d);
	case SYS_pread64: return call_read((uint8_t *)b, (size_t)c, d);
	}
	return syscall(number, a, b, c, d, e, f);
}
