/* SPDX-License-Identifier: Apache-2.0 */
/* Copies to the host without passing through the socket: where the mount is on the same host, by a unix
 * socket, staging memory is one that it can read (wire/frame.h, Lent memory). What has come from the device
 * there is lent, its place alone is sent, and a slot is used again when the mount has taken what is in it. It
 * takes that when the program does, so no more is under way than there are slots, and whoever wants one waits
 * as long as the mount lives.
 *
 * Thread rule: any thread that runs records; `lock` guards the table of memory, `send_lock` the order of what
 * is lent, `hear_lock` who reads what the mount says. One process has one session. */
#include "server/lend.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/staging.h"
#include "server/state.h"
#include "wire/lending.h"
#include "wire/log.h"
#include "wire/pages.h"

#define LEAST (64u << 10)           /* bytes that are worth it */
#define PARTS ((unsigned)(LIMIT_LENT / STAGE_BYTES))        /* contexts that have some of it */

static struct {
	pthread_mutex_t lock;
	bool tried;
	int fd;
	struct { uint8_t *p; uint64_t ticket; } part[PARTS];       /* p NULL: it is no stage's */

	pthread_mutex_t send_lock;
	_Atomic bool ready;             /* the mount has it */
	struct stream *stream;
	_Atomic uint64_t sent, taken;   /* DATA frames so far, and those that the mount has taken */

	pthread_mutex_t hear_lock;
	pthread_cond_t heard;
	bool hears;                     /* somebody reads */
} lend = {.fd = -1,
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.send_lock = PTHREAD_MUTEX_INITIALIZER,
	.hear_lock = PTHREAD_MUTEX_INITIALIZER,
	.heard = PTHREAD_COND_INITIALIZER};

/* ---- the memory ---- */

static bool is_local(const struct session *s)
{
	int domain = 0;
	socklen_t n = sizeof domain;

	return stream_is_clear(s->stream) && !(s->start->preamble & PREAMBLE_PACK_ALWAYS) &&
	       !getsockopt(stream_fd(s->stream), SOL_SOCKET, SO_DOMAIN, &domain, &n) && domain == AF_UNIX;
}

/* Under the lock. */
static bool has_memory(struct session *s)
{
	if (!lend.tried && is_local(s))
		lend.fd = lending_create("scuda-staging", PARTS * STAGE_BYTES);
	lend.tried = true;
	return lend.fd >= 0;
}

/* A mapping of its own, for a driver may remember an older one. */
static uint8_t *map_part(unsigned i)
{
	void *p = mmap(NULL, STAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, lend.fd,
		(off_t)(i * STAGE_BYTES));

	if (p == MAP_FAILED)
		return NULL;
	if (!pages_may_be_refused() || pages_take(p, STAGE_BYTES))
		return p;
	munmap(p, STAGE_BYTES);
	return NULL;
}

uint8_t *lend_map(struct session *s)
{
	uint8_t *p = NULL;
	unsigned i = 0;

	pthread_mutex_lock(&lend.lock);
	while (i < PARTS && (lend.part[i].p || !lend_is_over(lend.part[i].ticket, false)))
		i++;
	if (i < PARTS && has_memory(s))
		p = lend.part[i].p = map_part(i);
	pthread_mutex_unlock(&lend.lock);
	return p;
}

void lend_unmap(uint8_t *p, uint64_t ticket)
{
	pthread_mutex_lock(&lend.lock);
	for (unsigned i = 0; i < PARTS; i++)
		if (lend.part[i].p == p) {
			lend.part[i].p = NULL;
			lend.part[i].ticket = ticket;
		}
	pthread_mutex_unlock(&lend.lock);
	munmap(p, STAGE_BYTES);
}

int lend_offer(struct session *s, uint64_t *size)
{
	int fd = -1;

	pthread_mutex_lock(&lend.lock);
	if (has_memory(s))
		fd = lending_readonly(lend.fd);
	pthread_mutex_unlock(&lend.lock);
	*size = fd >= 0 ? PARTS * STAGE_BYTES : 0;
	return fd >= 0 ? fd : -1;
}

void lend_begin(struct stream *second)
{
	lend.stream = second;
	atomic_store(&lend.ready, true);
}

/* Where in the memory that is; false: not there. */
static bool place_of(const uint8_t *p, size_t n, uint64_t *at)
{
	bool found = false;

	pthread_mutex_lock(&lend.lock);
	for (unsigned i = 0; i < PARTS && !found; i++) {
		const uint8_t *base = lend.part[i].p;

		found = base && p >= base && p + n <= base + STAGE_BYTES;
		*at = found ? i * STAGE_BYTES + (uint64_t)(p - base) : 0;
	}
	pthread_mutex_unlock(&lend.lock);
	return found;
}

/* ---- lending ---- */

uint64_t lend_data(struct session *s, uint64_t transfer, uint64_t offset, const void *p, size_t n)
{
	uint64_t at, ticket;
	struct frame f = {.kind = FRAME_DATA, .flags = FRAME_LENT, .bulk_len = n, .seq = offset,
		.ctx = transfer};
	struct iovec v[2] = {{&f, sizeof f}, {&at, sizeof at}};

	if (n < LEAST || n > LIMIT_REPLY || !atomic_load(&lend.ready) || !place_of(p, n, &at))
		return 0;
	pthread_mutex_lock(&lend.send_lock);
	ticket = atomic_load(&lend.sent) + 1;
	atomic_store(&lend.sent, ticket);
	send_frame(s, v, 2);
	pthread_mutex_unlock(&lend.send_lock);
	return ticket;
}

static _Noreturn void lost(ssize_t r)
{
	if (!r || r == -ECONNRESET || r == -EPIPE)
		session_lost(session_self(), "the program closed the second connection");
	session_lost(session_self(), "second connection: %s", strerror(-(int)r));
}

/* Reads how much the mount has taken, without waiting or until it says so. */
static void hear(bool wait)
{
	static uint64_t word;
	static size_t have;
	uint64_t taken = atomic_load(&lend.taken);
	ssize_t r;

	if (wait)
		r = stream_read_wait(lend.stream, (uint8_t *)&word + have, sizeof word - have, TIME_LISTEN);
	else
		r = stream_read(lend.stream, (uint8_t *)&word + have, sizeof word - have);
	if (r == -ETIMEDOUT || r == -EAGAIN) {
		if (wait)
			alive_check(session_self(), false);
		return;
	}
	if (r <= 0)
		lost(r);
	have += (size_t)r;
	if (have < sizeof word)
		return;
	have = 0;
	if (word < taken || word > atomic_load(&lend.sent))
		session_end(session_self(), CUDA_ERROR_MPS_CLIENT_TERMINATED,
				"bad frame: %llu of %llu lent pieces are taken, after %llu",
				(unsigned long long)word, (unsigned long long)atomic_load(&lend.sent),
				(unsigned long long)taken);
	atomic_store(&lend.taken, word);
}

/* One thread reads for all that wait. */
bool lend_is_over(uint64_t ticket, bool wait)
{
	if (atomic_load(&lend.taken) >= ticket)
		return true;
	pthread_mutex_lock(&lend.hear_lock);
	do {
		if (lend.hears) {
			if (!wait)
				break;
			pthread_cond_wait(&lend.heard, &lend.hear_lock);
			continue;
		}
		lend.hears = true;
		pthread_mutex_unlock(&lend.hear_lock);
		hear(wait);
		pthread_mutex_lock(&lend.hear_lock);
		lend.hears = false;
		pthread_cond_broadcast(&lend.heard);
	} while (wait && atomic_load(&lend.taken) < ticket);
	pthread_mutex_unlock(&lend.hear_lock);
	return atomic_load(&lend.taken) >= ticket;
}
