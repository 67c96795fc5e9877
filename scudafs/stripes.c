/* SPDX-License-Identifier: Apache-2.0 */
/* Stripes from the server: of a large copy to the host every second stripe comes by the second connection
 * (second.c, FRAME_STRIPED). One thread puts 5 GB/s into memory that no processor's cache holds, which is
 * less than two connections carry: so those of the second are received by a thread of its own, straight to
 * where the program awaits them, while the session's thread receives the others. Where there is no such
 * place, or no thread, the session's thread receives both in turn. One frame at a time comes so.
 *
 * Thread rule: all by the session's thread, but for the thread's own. */
#include "scudafs/relay_state.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include "scudafs/spin.h"

#define CPUS_LEAST 4                /* the program, two receivers, and a server may be at work at once */
#define LOOKS 10                    /* between two at the clock */
#define STACK (256u << 10)

/* The frame under way, of which the header is here: NULL when there is none. *at: the next byte of its bulk.
 * */
static const struct frame *under_way(const struct relay *r, uint64_t *at)
{
	const struct buffer *b = r->large;
	const struct direct *d = &r->direct;
	const struct frame *f = d->on ? &d->frame : b ? (const struct frame *)b->data : NULL;
	if (f)
		*at = d->on ? f->head_len + f->bulk_len - d->left : b->len - sizeof(*f);
	return f;
}

struct stream *inbound_stream(const struct relay *r)
{
	uint64_t at;
	const struct frame *f = under_way(r, &at);
	if (!f || !(f->flags & FRAME_STRIPED))
		return r->stream;
	return stripes_missing(r) || at / STRIPE % 2 ? r->second.stream : r->stream;
}

size_t stripes_room(const struct relay *r, size_t n)
{
	uint64_t at, left;
	const struct frame *f = under_way(r, &at);
	if (!f || !(f->flags & FRAME_STRIPED))
		return n;
	left = STRIPE - at % STRIPE;
	return n < left ? n : left;
}

/* ---- the thread ---- */

/* Until there is another frame. False: the session is over. */
static bool next_frame(struct stripes *t)
{
	struct look l = look_begin(1000ull * spin_us());
	while (sem_trywait(&t->given)) {
		for (int i = 0; i < LOOKS; i++)
			look_relax();
		if (look_on(&l))
			continue;
		while (sem_wait(&t->given) && errno == EINTR)
			;
		break;
	}
	return !atomic_load(&t->ends);
}

static void count(struct relay *r, size_t n)
{
	atomic_fetch_add_explicit(&r->bytes_in, n, memory_order_relaxed);
	atomic_fetch_add_explicit(&counters.bytes_in, n, memory_order_relaxed);
	pthread_mutex_lock(&r->lock);
	heartbeat_heard(r, n, true);
	pthread_mutex_unlock(&r->lock);
}

/* n bytes. 0 or an errno. */
static int receive(struct relay *r, uint8_t *to, size_t n)
{
	struct stream *s = r->second.stream;
	struct pollfd p = {.fd = stream_fd(s), .events = POLLIN};
	while (n) {
		ssize_t got = stream_read(s, to, n);
		if (got == -EAGAIN) {
			spin_poll(&p, 1);
			continue;
		}
		if (got <= 0)
			return got ? (int)-got : ECONNRESET;
		to += got;
		n -= (size_t)got;
		count(r, (size_t)got);
	}
	return 0;
}

static void *stripes_main(void *arg)
{
	struct relay *r = arg;
	struct stripes *t = &r->stripes;
	pthread_setname_np(pthread_self(), "stripes");
	while (next_frame(t)) {
		int e = 0;
		for (uint64_t at = STRIPE; at < t->n && !e; at += 2 * STRIPE)
			e = receive(r, t->to + at, t->n - at < STRIPE ? t->n - at : STRIPE);
		if (e && !atomic_load(&t->ends)) {
			log_warning("session %u: the second connection: %s", r->id, strerror(e));
			/* The server's last words may be in the first. */
			pthread_mutex_lock(&r->lock);
			r->broken = ECONNRESET;
			pthread_mutex_unlock(&r->lock);
		}
		atomic_store(&t->here, !e);
		if (atomic_load(&t->awaited) || e)
			relay_wake(r);
		if (e)
			break;
	}
	return NULL;
}

/* ---- by the session's thread ---- */

static bool start(struct relay *r)
{
	struct stripes *t = &r->stripes;
	pthread_attr_t attr;
	if (t->tried)
		return t->started;
	t->tried = true;
	if (r->second.wish != CONNECTIONS_TWO && spin_cpus() < CPUS_LEAST)
		return false;
	sem_init(&t->given, 0, 0);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	t->started = !pthread_create(&t->thread, &attr, stripes_main, r);
	pthread_attr_destroy(&attr);
	return t->started;
}

bool stripes_give(struct relay *r, uint8_t *to, uint64_t n)
{
	struct stripes *t = &r->stripes;
	if (n <= STRIPE || !start(r))
		return false;
	t->to = to;
	t->n = n;
	atomic_store(&t->here, false);
	sem_post(&t->given);
	return true;
}

bool stripes_missing(const struct relay *r)
{
	return r->direct.shared && !r->direct.left && !atomic_load(&r->stripes.here);
}

void stripes_await(struct relay *r, bool asleep) { atomic_store(&r->stripes.awaited, asleep); }

void stripes_finish(struct relay *r)
{
	struct stripes *t = &r->stripes;
	if (!t->started)
		return;
	atomic_store(&t->ends, true);
	shutdown(stream_fd(r->second.stream), SHUT_RDWR);
	sem_post(&t->given);
	pthread_join(t->thread, NULL);
	sem_destroy(&t->given);
}
