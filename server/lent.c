/* SPDX-License-Identifier: Apache-2.0 */
/* Bulks to the device out of memory that the mount lends (wire/frame.h): the arena that it shares with the
 * program, whose pages come and go as the program frees and allocates, so that no driver could lock them. The
 * session copies each piece to where the bulk goes and tells the mount, whereupon the program may use that
 * memory for something else.
 *
 * A bulk that came through the socket would be taken in, 8 MiB of it, while its turn has not come (input.c),
 * and something that is not a record, for which another thread waits, may stand behind it. So that many
 * pieces are copied ahead of their turn, too.
 *
 * Nothing that the program does to the memory meanwhile harms anybody but its own copy. A page that the
 * kernel has no memory for ends the session.
 *
 * Thread rule: the holder of the baton, but for lent_meet, which second.c's thread calls once, and
 * lent_ahead, the reader's; what they share is under input_lock. */
#include "server/lent.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/lend.h"
#include "server/state.h"
#include "wire/lending.h"
#include "wire/log.h"

#define TELL 2                      /* pieces after which the mount is told, in the middle of a bulk */
#define AHEAD (LIMIT_QUEUE / LENT_PIECE)

struct lent_piece {
	struct lent_piece *next;
	uint8_t bytes[LENT_PIECE];
};

/* ---- the memory ---- */

static struct sigaction before; /* ours */

static void on_bus(int sig, siginfo_t *info, void *context)
{
	const struct session *s = session_self();
	const uint8_t *memory = atomic_load(&s->lent.memory), *at = info->si_addr;

	/* It was one of our copies that touched it, which has no lock but input_lock. */
	if (memory && at >= memory && at < memory + s->lent.size)
		session_end(session_self(), CUDA_ERROR_OUT_OF_MEMORY,
				"a page of the memory that the mount lends is missing");
	if (before.sa_flags & SA_SIGINFO)
		before.sa_sigaction(sig, info, context);
	else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
		before.sa_handler(sig);
	else
		/* The same again, and the end. */
		signal(sig, SIG_DFL);
}

static bool take_memory(struct session *s, const struct lending *l, int fd, const char **why)
{
	struct sigaction act = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	const uint8_t *memory;

	*why = "no descriptor came";
	if (fd < 0)
		return false;
	*why = "it has another size";
	memory = l->size == LIMIT_ARENA ? lending_map(fd, l->size, why) : NULL;
	close(fd);
	if (!memory)
		return false;
	s->lent.size = l->size;
	s->lent.end = &s->lent.first;
	atomic_store(&s->lent.memory, memory);
	sigaction(SIGBUS, &act, &before);
	return true;
}

const char *lent_meet(struct session *s, struct stream *second)
{
	struct lending theirs, ours = {0};
	const char *why = NULL;
	uint64_t word;
	int fd, mine = -1, r = lending_receive(stream_fd(second), &theirs, &fd, TIME_PREAMBLE);

	if (r)
		return strerror(-r);
	s->lent.stream = second;
	ours.taken = take_memory(s, &theirs, fd, &why);
	if (ours.taken || !theirs.size)
		mine = lend_offer(s, &ours.size);
	/* From here on the holder of the baton may take what is lent, or stripes. Should the mount not hear
	 * of it, it does neither. */
	if (!ours.taken && !ours.size) {
		log_info("session %llu: no memory is lent: %s", (unsigned long long)s->start->id, why);
		if (!input_open(s, SECOND, second))
			return "out of memory";
	}
	(void)lending_send(stream_fd(second), &ours, mine);
	if (mine >= 0)
		close(mine);
	if (ours.size && !stream_read_all(second, &word, sizeof word, TIME_PREAMBLE) && word == 1)
		lend_begin(second);
	return NULL;
}

/* ---- taking ---- */

/* input_lock is held. The mount reads this at once, and no program can keep it from that. */
static void tell(struct session *s)
{
	struct lent *l = &s->lent;
	struct iovec v = {&l->taken, sizeof l->taken}, *at = &v;
	int n = 1, r;

	if (l->told == l->taken)
		return;
	l->told = l->taken;
	while ((r = stream_write_rest(l->stream, &at, &n, TIME_LISTEN)) == -ETIMEDOUT)
		alive_check(s, false);
	if (r == -EPIPE || r == -ECONNRESET)
		session_lost(s, "the program closed the second connection");
	if (r)
		session_lost(s, "second connection: %s", strerror(-r));
}

static bool is_inside(const struct session *s, uint64_t at, size_t n)
{
	return at <= s->lent.size && n <= s->lent.size - at;
}

/* The next piece, of n bytes; `to` NULL: nobody wants it. */
static void take_piece(struct session *s, uint8_t *to, size_t n)
{
	struct lent *l = &s->lent;
	struct lent_piece *kept;
	uint64_t at;

	pthread_mutex_lock(&s->input_lock);
	input_take_held(s, &at, sizeof at);
	l->left--;
	kept = l->first;
	if (kept) {
		l->first = kept->next;
		if (!l->first)
			l->end = &l->first;
		l->kept--;
	} else if (!is_inside(s, at, n)) {
		session_end(s, CUDA_ERROR_MPS_CLIENT_TERMINATED, "bad frame: bytes outside of what is lent");
	}
	if (to)
		memcpy(to, kept ? kept->bytes : l->memory + at, n);
	l->taken += !kept;
	if (l->taken - l->told >= TELL)
		tell(s);
	pthread_mutex_unlock(&s->input_lock);
	free(kept);
}

/* The same into memory of ours, when only a part of it is wanted for the time being: the mount need not wait
 * for who wants the rest. */
static void take_part(struct session *s, size_t n)
{
	struct lent *l = &s->lent;

	if (!l->part && !(l->part = malloc(LENT_PIECE)))
		session_end(s, CUDA_ERROR_OUT_OF_MEMORY, "out of memory");
	take_piece(s, l->part, n);
}

void lent_bulk(struct session *s, const struct frame *f, uint64_t at, void *p, size_t n)
{
	struct lent *l = &s->lent;
	uint8_t *to = p;

	for (size_t part; n; n -= part, at += part, to += to ? part : 0) {
		uint64_t in = at % LENT_PIECE, rest = f->bulk_len - (at - in);
		size_t whole = rest < LENT_PIECE ? rest : LENT_PIECE;

		part = n < whole - in ? n : whole - in;
		if (!to ? !in : part == whole)
			take_piece(s, to, whole);
		else if (!in && to)
			take_part(s, whole);
		if (to && part < whole)
			memcpy(to, l->part + in, part);
	}
	pthread_mutex_lock(&s->input_lock);
	tell(s);
	pthread_mutex_unlock(&s->input_lock);
}

/* ---- ahead of their turn ---- */

/* False when this one, or one ahead of it, is left for its turn. */
static bool keep(struct session *s, uint64_t at, size_t n)
{
	struct lent *l = &s->lent;
	struct lent_piece *p = l->kept < AHEAD && is_inside(s, at, n) ? malloc(sizeof *p) : NULL;

	if (!p)
		return false;
	p->next = NULL;
	memcpy(p->bytes, l->memory + at, n);
	*l->end = p;
	l->end = &p->next;
	l->kept++;
	l->taken++;
	return true;
}

bool lent_ahead(struct session *s, uint64_t bulk, uint64_t places, const uint8_t *from, const uint8_t *end,
	uint64_t *seen)
{
	struct lent *l = &s->lent;
	bool all = l->memory;
	uint64_t at;

	for (; places && all && from < end && end - from >= (ptrdiff_t)sizeof at; places--) {
		size_t n = places == 1 && bulk % LENT_PIECE ? bulk % LENT_PIECE : LENT_PIECE;

		memcpy(&at, from, sizeof at);
		from += sizeof at;
		all = (*seen)++ < l->kept || keep(s, at, n);
	}
	if (l->memory)
		tell(s);
	return all;
}
