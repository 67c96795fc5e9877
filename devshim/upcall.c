/* SPDX-License-Identifier: Apache-2.0 */
/* The upcall thread, the table of host functions, and the order of printed text: a program must find what its
 * kernels printed on standard output when the call returns that waited for them, so an answer tells how many
 * pieces of text were sent ahead of it.
 *
 * Thread rule: `lock` guards everything here; host functions run and text is written without it. */
#include "devshim/upcall.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "devshim/logs.h"
#include "devshim/process.h"
#include "devshim/transfer.h"
#include "wire/deadline.h"
#include "wire/frame.h"
#include "wire/limits.h"
#include "wire/log.h"
#include "wire/msg.h"
#include "wire/uncancelled.h"

#define BUFFER (LIMIT_UPCALL + LIMIT_REPLY + sizeof(struct frame))
#define BUCKETS 4096
#define DRAIN_MS 2000           /* the text is in the daemon already */

struct function {
	struct function *next;
	uint64_t id;
	void (*run)(void *);
	void *arg;
	bool once, foreign;
	uint64_t hash;              /* of one that is kept; 0: it is not */
	struct function *next_kept;
};

/* A function whose turn has come. */
struct turn {
	struct turn *next;
	struct function fn;
	uint64_t seq;               /* of the upcall */
	uint64_t value[UPCALL_VALUES];
};

/* Those that one thread runs, in their order. Functions of the application and our own have a thread each,
 * and neither is the one that reads upcalls: an upcall may bring bytes for which the answer waits that a
 * function of ours waits for, and one of the application may block. */
struct turns { struct turn *first, **end; pthread_cond_t came; };

static struct {
	pthread_mutex_t lock;
	pthread_cond_t printed_more;
	bool started;
	struct turns foreign, own;
	bool over;                  /* the session: nothing is run any more */
	_Atomic uint16_t printed;   /* OUTPUT frames written, as in REPLY's `call` */
	uint64_t last;
	struct function *bucket[BUCKETS], *kept[BUCKETS];
} upcall = {.lock = PTHREAD_MUTEX_INITIALIZER, .printed_more = PTHREAD_COND_INITIALIZER,
	.foreign = {.end = &upcall.foreign.first, .came = PTHREAD_COND_INITIALIZER},
	.own = {.end = &upcall.own.first, .came = PTHREAD_COND_INITIALIZER}};
static _Thread_local bool inside __attribute__((tls_model("initial-exec")));
/* of the turn under way; its thread's */
static _Thread_local uint64_t values[UPCALL_VALUES] __attribute__((tls_model("initial-exec")));

static void print(int fd, const uint8_t *p, size_t n)
{
	while (n) {
		long r = syscall(SYS_write, fd, p, n);
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return;     /* the program has closed it */
		p += r;
		n -= (size_t)r;
	}
}

static bool take(uint64_t id, struct function *out)
{
	bool found = false;
	pthread_mutex_lock(&upcall.lock);
	for (struct function **f = &upcall.bucket[id % BUCKETS]; *f && !found; ) {
		if ((*f)->id != id) {
			f = &(*f)->next;
			continue;
		}
		found = true;
		*out = **f;
		if (out->once) {
			struct function *gone = *f;
			*f = gone->next;
			free(gone);
		}
	}
	pthread_mutex_unlock(&upcall.lock);
	return found;
}

static bool queue_turn(const struct function *fn, uint64_t seq, const uint64_t *value)
{
	struct turn *t = malloc(sizeof *t);
	if (!t)
		return false;
	*t = (struct turn){.fn = *fn, .seq = seq};
	memcpy(t->value, value, sizeof t->value);
	pthread_mutex_lock(&upcall.lock);
	struct turns *q = fn->foreign ? &upcall.foreign : &upcall.own;
	*q->end = t;
	q->end = &t->next;
	pthread_cond_signal(&q->came);
	pthread_mutex_unlock(&upcall.lock);
	return true;
}

#ifdef __SANITIZE_THREAD__
void __tsan_acquire(void *);
void __tsan_release(void *);
static char ran;
static void upcall_told(void) { __tsan_release(&ran); }
void upcall_heard(void) { __tsan_acquire(&ran); }
#else
static void upcall_told(void) { }
#endif

static void *turns(void *arg)
{
	struct turns *q = arg;
	inside = true;
	for (;;) {
		pthread_mutex_lock(&upcall.lock);
		while (!q->first && !upcall.over)
			pthread_cond_wait(&q->came, &upcall.lock);
		struct turn *t = q->first;
		if (t && !(q->first = t->next))
			q->end = &q->first;
		bool over = upcall.over;
		pthread_mutex_unlock(&upcall.lock);
		if (!over && t) {
			memcpy(values, t->value, sizeof values);
			t->fn.run(t->fn.arg);
			upcall_told();
			int e = channel_upcall_done(t->seq);
			if (e)
				process_die(e, "a host function");
		}
		free(t);
		if (over && !t)
			return NULL;
	}
}

static int run(const struct frame *f, const uint8_t *head, const uint8_t *bulk)
{
	struct msg m;
	msg_init(&m, (void *)head, f->head_len);
	uint64_t id = get_u64(&m), value[UPCALL_VALUES] = {0};
	for (unsigned i = 0; i < UPCALL_VALUES && m.len < m.cap; i++)
		value[i] = get_u64(&m);
	if (!get_end(&m))
		return -EPROTO;
	int64_t used = transfer_deliver(f, bulk, LIMIT_UPCALL - sizeof *f - UPCALL_HEAD, 0);
	if (used < 0)
		return (int)used;
	transfer_settle((uint32_t)f->ctx);
	struct function fn = {.id = 0};
	if (take(id, &fn))
		return queue_turn(&fn, f->seq, value) ? 0 : -ENOMEM;
	log_warning("the server asks for a host function that is gone: %llu", (unsigned long long)id);
	return channel_upcall_done(f->seq);
}

static int frames(const uint8_t *p, size_t n)
{
	while (n) {
		struct frame f;
		const char *why;
		if (n < sizeof f)
			return -EPROTO;
		memcpy(&f, p, sizeof f);
		if (frame_check(&f, false, &why) || f.bulk_len > n || n - f.bulk_len < sizeof f + f.head_len)
			return -EPROTO;
		const uint8_t *head = p + sizeof f, *bulk = head + f.head_len;
		if (f.kind == FRAME_OUTPUT) {
			if (f.flags & FRAME_LOG)
				logs_take(bulk, f.bulk_len);
			else
				print(f.flags & FRAME_STDERR ? STDERR_FILENO : STDOUT_FILENO, bulk,
						f.bulk_len);
			pthread_mutex_lock(&upcall.lock);
			upcall.printed++;
			pthread_cond_broadcast(&upcall.printed_more);
			pthread_mutex_unlock(&upcall.lock);
		} else if (f.kind == FRAME_UPCALL) {
			int e = run(&f, head, bulk);
			if (e)
				return e;
		} else {
			return -EPROTO;
		}
		p += sizeof f + f.head_len + f.bulk_len;
		n -= sizeof f + f.head_len + f.bulk_len;
	}
	return 0;
}

static void *upcalls(void *buffer)
{
	int e = 0;
	inside = true;
	while (!e) {
		long n = channel_read_upcalls(buffer, BUFFER);
		if (n == -EAGAIN)
			continue;
		e = n <= 0 ? (n ? (int)n : -EPROTO) : frames(buffer, (size_t)n);
	}
	process_die(e, "upcalls");
	pthread_mutex_lock(&upcall.lock);
	upcall.over = true;
	pthread_cond_broadcast(&upcall.printed_more);
	pthread_cond_broadcast(&upcall.foreign.came);
	pthread_cond_broadcast(&upcall.own.came);
	pthread_mutex_unlock(&upcall.lock);
	free(buffer);
	return NULL;
}

/* Under the lock. Threads that are there stay when another cannot be had: the next try starts the rest. */
static bool start(void)
{
	static unsigned running;
	static void *buffer;

	if (upcall.started)
		return true;
	if (!buffer && !(buffer = malloc(BUFFER)))
		return false;
	for (; running < 3; running++) {
		int e = running == 0 ? process_thread(turns, &upcall.foreign, 0, "scuda-host") :
			running == 1 ? process_thread(turns, &upcall.own, 0, "scuda-copy") :
				process_thread(upcalls, buffer, 0, "scuda-upcall");

		if (e)
			return false;
	}
	return upcall.started = true;
}

/* Under the lock. */
static uint64_t note(struct function *f)
{
	if (!start())
		return 0;
	f->id = ++upcall.last;
	f->next = upcall.bucket[f->id % BUCKETS];
	upcall.bucket[f->id % BUCKETS] = f;
	return f->id;
}

uint64_t upcall_new(void (*fn)(void *arg), void *arg, bool once, bool foreign)
{
	int saved = errno;
	struct function *f = malloc(sizeof *f);
	uint64_t id = 0;
	if (f) {
		*f = (struct function){.run = fn, .arg = arg, .once = once, .foreign = foreign};
		pthread_mutex_lock(&upcall.lock);
		id = note(f);
		pthread_mutex_unlock(&upcall.lock);
		if (!id)
			free(f);
	}
	errno = saved;
	return id;
}

uint64_t upcall_keep(void (*fn)(void *arg), void *arg, bool foreign, uint64_t hash,
	bool (*same)(const void *a, const void *b))
{
	int saved = errno;
	struct function *made = arg ? malloc(sizeof *made) : NULL, *f = NULL;
	uint64_t id = 0;
	hash |= 1;
	if (made) {
		*made = (struct function){.run = fn, .arg = arg, .foreign = foreign, .hash = hash};
		pthread_mutex_lock(&upcall.lock);
		struct function **kept = &upcall.kept[hash / 2 % BUCKETS];
		f = *kept;
		while (f && !(f->hash == hash && f->run == fn && same(f->arg, arg)))
			f = f->next_kept;
		id = f ? f->id : note(made);
		if (!f && id) {
			made->next_kept = *kept;
			*kept = f = made;
		}
		pthread_mutex_unlock(&upcall.lock);
	}
	if (!made || f != made) {
		free(made);
		free(arg);
	}
	errno = saved;
	return id;
}

bool upcall_find(uint64_t id, void (**run)(void *), void **arg)
{
	bool found = false;
	int saved = errno;
	pthread_mutex_lock(&upcall.lock);
	for (struct function *f = upcall.bucket[id % BUCKETS]; f && !found; f = f->next) {
		if (f->id != id)
			continue;
		found = true;
		*run = f->run;
		*arg = f->arg;
	}
	pthread_mutex_unlock(&upcall.lock);
	errno = saved;
	return found;
}

void upcall_drop(uint64_t id)
{
	int saved = errno;
	pthread_mutex_lock(&upcall.lock);
	for (struct function **f = &upcall.bucket[id % BUCKETS]; *f; f = &(*f)->next) {
		if ((*f)->id == id) {
			struct function *gone = *f;
			*f = gone->next;
			free(gone);
			break;
		}
	}
	pthread_mutex_unlock(&upcall.lock);
	errno = saved;
}

uint64_t upcall_value(unsigned i) { return i < UPCALL_VALUES ? values[i] : 0; }

bool upcall_inside(void) { return inside; }

void upcall_drain_output(uint16_t sent)
{
	bool all = atomic_load_explicit(&upcall.printed, memory_order_acquire) == sent;
	if (__builtin_expect(all, 1) || inside)
		return;
	uncancelled state = uncancelled_begin();
	int saved = errno;
	struct timespec end = deadline_in(DRAIN_MS);
	pthread_mutex_lock(&upcall.lock);
	/* Another thread's answer may be newer than ours. */
	while (start() && (int16_t)(sent - upcall.printed) > 0 && process_check() == CUDA_SUCCESS)
		if (pthread_cond_clockwait(&upcall.printed_more, &upcall.lock, CLOCK_MONOTONIC, &end))
			break;
	pthread_mutex_unlock(&upcall.lock);
	errno = saved;
}
