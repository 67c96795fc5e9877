/* SPDX-License-Identifier: Apache-2.0 */
/* The FUSE loop: libfuse's threads, with our own way of reading and writing the device. libfuse has the hook
 * for other transports; here it does two things on the same device.
 *
 * Writing: parallel direct writes are an open flag that libfuse 3.14 has no field for, and without it the
 * kernel sends the writes of a file one by one. The flag is put into the reply on its way.
 *
 * Reading: where processors allow it, one thread, the leader, waits for requests and looks for the next one
 * for a while before it sleeps; so a program that calls again at once pays no wake-up. It handles small
 * requests itself, which takes microseconds, and makes another thread the leader before a long one. While
 * much is moved there are a few leaders, because to read a write is to copy it.
 *
 * What a write brings is read into a buffer that can go on to the server as it is.
 *
 * Thread rule: `leader.lock` guards `led`; the thread-local marks belong to their threads. */
#include "scudafs/loop.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include "scudafs/buffer.h"
#include "scudafs/clock.h"
#include "scudafs/spin.h"
#include "wire/look.h"

#define THREADS_LEAST 6u
#define THREADS_MOST 16u
#define SMALL (64u << 10)           /* a request that moves less is handled by the leader */
#define BULK (128u << 10)           /* a write of so much keeps its buffer; a read of so much is large, too */
#define BULK_US 2000                /* so long after one, more are expected */
#define LEADERS_MOST 3              /* then */
#define WRITE_HEAD (sizeof(struct fuse_in_header) + sizeof(struct fuse_write_in))
#define STREAK 4                    /* so many requests that were there already: one thread is not enough */
#define PAUSES 20                   /* between two looks at the device */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t free;
	unsigned led;               /* threads that read the device, or will after a small request */
	_Atomic uint64_t bulk;      /* us: until then several may */
} leader = {.lock = PTHREAD_MUTEX_INITIALIZER, .free = PTHREAD_COND_INITIALIZER};

static _Thread_local bool parallel; /* the open reply that this thread makes gets the flag */
static _Thread_local bool leading;
static _Thread_local unsigned streak;
static _Thread_local int quick_fd = -1; /* the device descriptor that is non-blocking now */

/* The thread's buffer for what a write brings. */
static pthread_key_t payload_key;
static _Thread_local struct buffer *payload;
static _Thread_local bool has_payload; /* of the request at hand */

static void payload_end(void *b)
{
	buffer_unref(b);
}

static void payload_set(struct buffer *b)
{
	payload = b;
	pthread_setspecific(payload_key, b);
}

struct buffer *loop_take_payload(size_t n)
{
	struct buffer *b = payload;
	if (!has_payload || b->len - b->off != n)
		return NULL;
	has_payload = false;
	payload_set(NULL);
	return b;
}

/* Reads a request, which libfuse wants in `buf`, all but what a large write brings. */
static ssize_t request_read(int fd, uint8_t *buf, size_t n)
{
	has_payload = false;
	if (!payload && n > WRITE_HEAD)
		payload_set(buffer_create(BUFFER_LARGE));
	struct buffer *b = payload;
	if (!b || n - WRITE_HEAD > b->cap - sizeof(struct frame))
		return read(fd, buf, n);
	uint8_t *rest = b->data + sizeof(struct frame);     /* there a page begins */
	struct iovec v[2] = {{buf, WRITE_HEAD}, {rest, n - WRITE_HEAD}};
	ssize_t r = readv(fd, v, 2);
	if (r <= (ssize_t)WRITE_HEAD)
		return r;
	const struct fuse_in_header *h = (const void *)buf;
	size_t left = (size_t)r - WRITE_HEAD;
	has_payload = h->opcode == FUSE_WRITE && left >= BULK;
	if (has_payload)
		b->off = sizeof(struct frame), b->len = b->off + left;
	else
		memcpy(buf + WRITE_HEAD, rest, left);
	return r;
}

static ssize_t device_writev(int fd, struct iovec *v, int n, void *data)
{
	(void)data;
	if (parallel && n == 2 && v[1].iov_len == sizeof(struct fuse_open_out)) {
		struct fuse_open_out out;
		memcpy(&out, v[1].iov_base, sizeof(out));
		out.open_flags |= FOPEN_PARALLEL_DIRECT_WRITES;
		memcpy(v[1].iov_base, &out, sizeof(out));
	}
	/* Not libc's: what the reply is made of may be freed by another thread as soon as the kernel has
	 * it, and a sanitizer's writev would look at it once more. */
	return syscall(SYS_writev, fd, v, n);
}

static void unlock(void *lock)
{
	pthread_mutex_unlock(lock);
}

/* Under the lock. */
static bool may_lead(void)
{
	unsigned most = clock_us() >= leader.bulk ? 1 : spin_cpus() < 2 * LEADERS_MOST ? 2 : LEADERS_MOST;
	return leader.led < most;
}

static void lead(void)
{
	pthread_mutex_lock(&leader.lock);
	pthread_cleanup_push(unlock, &leader.lock);     /* libfuse ends its threads by cancelling them */
	if (!may_lead() && payload) {
		buffer_unref(payload);
		payload_set(NULL);
	}
	while (!may_lead())
		pthread_cond_wait(&leader.free, &leader.lock);
	leader.led++;
	pthread_cleanup_pop(1);
	leading = true;
}

static void hand_on(void)
{
	leading = false;
	streak = 0;
	pthread_mutex_lock(&leader.lock);
	if (!--leader.led)
		pthread_cond_signal(&leader.free);
	pthread_mutex_unlock(&leader.lock);
}

/* Nothing has come for a while: of several leaders one is enough. */
static bool leave_to_others(void)
{
	pthread_mutex_lock(&leader.lock);
	bool leave = leader.led > 1;
	leader.led -= leave;
	pthread_mutex_unlock(&leader.lock);
	leading = !leave;
	return leave;
}

/* Is the request handled in microseconds, whatever it is about? */
static bool is_short(const void *buf, size_t n)
{
	const struct fuse_in_header *h = buf;
	const struct fuse_read_in *r = (const void *)(h + 1);
	switch (h->opcode) {
	case FUSE_IOCTL:
	case FUSE_INTERRUPT:
	case FUSE_FORGET:
	case FUSE_RELEASE: return true;
	case FUSE_WRITE: return n < SMALL;
	case FUSE_READ: return n >= sizeof(*h) + sizeof(*r) && r->size < SMALL && r->offset;
	default: return false;
	}
}

static bool is_bulk(const void *buf, size_t n)
{
	const struct fuse_in_header *h = buf;
	const struct fuse_read_in *r = (const void *)(h + 1);
	return h->opcode == FUSE_WRITE ? n >= BULK : h->opcode == FUSE_READ && r->size >= BULK;
}

/* -EAGAIN in errno: nothing has come, and other threads are looking. */
static ssize_t quick_read(int fd, void *buf, size_t n)
{
	struct look l = look_begin(spin_us() * 1000ull);
	ssize_t r;
	if (quick_fd != fd && !fcntl(fd, F_SETFL, O_NONBLOCK))
		quick_fd = fd;
	streak++;
	while ((r = request_read(fd, buf, n)) < 0 && errno == EAGAIN && look_on(&l)) {
		streak = 0;
		for (int i = 0; i < PAUSES; i++)
			look_relax();
	}
	if (r >= 0 || errno != EAGAIN || leave_to_others() || fcntl(fd, F_SETFL, 0))
		return r;
	quick_fd = -1;
	return request_read(fd, buf, n);
}

static ssize_t device_read(int fd, void *buf, size_t n, void *data)
{
	ssize_t r;
	(void)data;
	if (!spin_us())
		return request_read(fd, buf, n);
	do {
		if (!leading)
			lead();
		r = quick_read(fd, buf, n);
	} while (r < 0 && errno == EAGAIN && !leading);
	bool whole = r >= (ssize_t)sizeof(struct fuse_in_header);
	if (whole && is_bulk(buf, (size_t)r))
		leader.bulk = clock_us() + BULK_US;
	if (!whole || streak >= STREAK || !is_short(buf, (size_t)r)) {
		int e = errno;
		hand_on();
		errno = e;
	}
	return r;
}

int loop_prepare(struct fuse_session *se)
{
	static const struct fuse_custom_io io = {.writev = device_writev, .read = device_read};
	int e = pthread_key_create(&payload_key, payload_end);
	return e ? -e : fuse_session_custom_io(se, &io, fuse_session_fd(se));
}

int loop_reply_parallel(fuse_req_t req, const struct fuse_file_info *fi)
{
	parallel = true;
	int e = fuse_reply_open(req, fi);
	parallel = false;
	return e;
}

int loop_run(struct fuse_session *se)
{
	struct fuse_loop_config *c = fuse_loop_cfg_create();
	unsigned threads = 2 * spin_cpus();
	if (!c)
		return -ENOMEM;
	threads = threads < THREADS_LEAST ? THREADS_LEAST : threads > THREADS_MOST ? THREADS_MOST : threads;
	fuse_loop_cfg_set_clone_fd(c, 1);
	fuse_loop_cfg_set_max_threads(c, threads);
	fuse_loop_cfg_set_idle_threads(c, threads);
	int r = fuse_session_loop_mt(se, c);
	fuse_loop_cfg_destroy(c);
	return r;
}
