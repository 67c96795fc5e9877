/* SPDX-License-Identifier: Apache-2.0 */
/* Stripes to the mount: of the bytes of a large copy to the host every second stripe goes by the session's
 * second connection, written by a thread of its own while the caller writes the others to the first one. The
 * order of stripes in the one is that of their headers in the other, so one copy at a time goes by both;
 * another thread's meanwhile goes by the first alone.
 *
 * Thread rule: any thread gives; who was told true awaits. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

#include "server/state.h"
#include "wire/log.h"
#include "wire/look.h"
#include "wire/transport.h"

#define LEAST (512u << 10)      /* bytes of a frame that is worth it */
#define LOOK_NS 100000          /* the next piece, and the other thread's end, come as soon as that */
#define LOOKS 10                /* between two at the clock */
#define CPUS_LEAST 4            /* a thread that looks takes a processor from nobody */
#define STACK (256u << 10)
#define PARTS (LIMIT_REPLY / (2 * STRIPE) + 1)

static struct {
	pthread_mutex_t turn;       /* whoever gives, until it has awaited */
	bool started;               /* under turn, as is the rest */
	uint64_t look_ns;
	sem_t given, sent;
	struct session *session;
	const uint8_t *p;
	uint64_t n;
} out = {.turn = PTHREAD_MUTEX_INITIALIZER};

static void await(sem_t *what)
{
	struct look l = look_begin(out.look_ns);

	while (sem_trywait(what)) {
		for (int i = 0; i < LOOKS; i++)
			look_relax();
		if (look_on(&l))
			continue;
		while (sem_wait(what) && errno == EINTR)
			;
		return;
	}
}

static void *stripes_main(void *arg)
{
	pthread_setname_np(pthread_self(), "stripes");
	for (;; sem_post(&out.sent)) {
		struct iovec v[PARTS];

		await(&out.given);
		send_bytes(out.session, out.session->source[SECOND].stream, v,
			stripes_pick(v, 1, (uint8_t *)out.p, out.n));
	}
	return arg;
}

/* Under turn. */
static bool start(struct session *s)
{
	cpu_set_t set;
	pthread_attr_t attr;
	pthread_t thread;

	if (out.started)
		return true;
	out.session = s;
	out.look_ns = !sched_getaffinity(0, sizeof set, &set) && CPU_COUNT(&set) >= CPUS_LEAST ? LOOK_NS : 0;
	sem_init(&out.given, 0, 0);
	sem_init(&out.sent, 0, 0);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	out.started = !pthread_create(&thread, &attr, stripes_main, NULL);
	pthread_attr_destroy(&attr);
	return out.started;
}

/* The mount has not closed it, nor has anybody on the way. */
static bool is_there(struct session *s)
{
	struct pollfd p = {.fd = stream_fd(s->source[SECOND].stream), .events = POLLRDHUP};

	return !poll(&p, 1, 0);
}

int stripes_pick(struct iovec *v, unsigned from, uint8_t *p, uint64_t n)
{
	int parts = 0;

	for (uint64_t at = from * STRIPE; at < n; at += 2 * STRIPE)
		v[parts++] = (struct iovec){p + at, n - at < STRIPE ? n - at : STRIPE};
	return parts;
}

bool stripes_give(struct session *s, const void *p, uint64_t n)
{
	if (n < LEAST || !atomic_load(&s->stripes) || pthread_mutex_trylock(&out.turn))
		return false;
	if (!start(s) || !is_there(s)) {
		log_info("session %llu: no stripes to the mount any more", (unsigned long long)s->start->id);
		atomic_store(&s->stripes, false);
		pthread_mutex_unlock(&out.turn);
		return false;
	}
	out.p = p;
	out.n = n;
	sem_post(&out.given);
	return true;
}

void stripes_await(void)
{
	await(&out.sent);
	pthread_mutex_unlock(&out.turn);
}
