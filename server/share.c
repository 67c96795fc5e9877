/* SPDX-License-Identifier: Apache-2.0 */
/* The table of shared handles (share.h) and its packets.
 *
 * Thread rule: the listener's one thread; share_send and share_receive have no state. */
#include "server/share.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/join.h"
#include "wire/fds.h"
#include "wire/limits.h"
#include "wire/log.h"
#include "wire/transport.h"

struct shared {
	struct share_token token;
	unsigned kind;              /* 0: kept for a descriptor that has not come */
	uint64_t session;           /* who put it; 0: over */
	uint64_t serial;            /* rises with each */
	uint32_t connection;        /* of a descriptor: who keeps it */
	int fd;                     /* -1: bytes, or not there yet */
	uint8_t bytes[SHARE_BYTES];
	char identity[LIMIT_NAME + 32];
};

static struct shared *table[LIMIT_SHARED];
static unsigned count;
static uint64_t last_serial;

/* ---- packets ---- */

int share_send(int socket, const struct share_message *m, int fd)
{
	return fds_send(socket, m, sizeof *m, &fd, fd >= 0, MSG_DONTWAIT);
}

int share_receive(int socket, struct share_message *m, int *fd, int flags)
{
	unsigned came;
	int r;

	do
		r = fds_receive_most(socket, m, sizeof *m, fd, 1, &came, flags);
	while (r == -EINTR);
	if (r || !came)
		*fd = -1;
	return r;
}

/* ---- the table ---- */

static void remove_at(unsigned i)
{
	if (table[i]->fd >= 0)
		close(table[i]->fd);
	free(table[i]);
	table[i] = table[--count];
	table[count] = NULL;
}

static struct shared *find(const struct share_token *t)
{
	for (unsigned i = 0; i < count; i++)
		if (!memcmp(&table[i]->token, t, sizeof *t))
			return table[i];
	return NULL;
}

/* The oldest bytes of that session (0: of those that are over). */
static bool evict(uint64_t session)
{
	unsigned oldest = count;

	for (unsigned i = 0; i < count; i++)
		if (!share_is_file(table[i]->kind) && table[i]->kind && table[i]->session == session &&
				(oldest == count || table[i]->serial < table[oldest]->serial))
			oldest = i;
	if (oldest == count)
		return false;
	remove_at(oldest);
	return true;
}

static struct shared *add(const struct share_token *t)
{
	struct shared *s;

	if (count == LIMIT_SHARED && !evict(0))
		return NULL;
	s = calloc(1, sizeof *s);
	if (!s)
		return NULL;
	s->token = *t;
	s->fd = -1;
	s->serial = ++last_serial;
	table[count++] = s;
	return s;
}

/* ---- sessions ---- */

/* The same handle put again has the same token. */
static int put_bytes(struct share_message *m, uint64_t session, const char *identity)
{
	struct shared *s = NULL;
	unsigned have = 0;

	for (unsigned i = 0; i < count; i++) {
		if (share_is_file(table[i]->kind) || table[i]->session != session || !table[i]->kind)
			continue;
		have++;
		if (table[i]->kind == m->kind && !memcmp(table[i]->bytes, m->bytes, sizeof m->bytes))
			s = table[i];
	}
	if (s) {
		m->token = s->token;
		return 0;
	}
	if (have >= LIMIT_SHARED_EACH)
		evict(session);
	if (getrandom(&m->token, sizeof m->token, GRND_NONBLOCK) != sizeof m->token)
		return -EIO;
	s = add(&m->token);
	if (!s)
		return -ENOSPC;
	s->kind = m->kind;
	s->session = session;
	memcpy(s->bytes, m->bytes, sizeof s->bytes);
	strncpy(s->identity, identity, sizeof s->identity - 1);
	return 0;
}

static int put_file(const struct share_message *m, int *fd, uint64_t session, const char *identity)
{
	struct shared *s = find(&m->token);

	if (*fd < 0)
		return -EMFILE;
	if (!s || s->kind || !s->connection)
		return -ENOENT;
	s->kind = m->kind;
	s->session = session;
	s->fd = *fd;
	*fd = -1;
	strncpy(s->identity, identity, sizeof s->identity - 1);
	return 0;
}

static int get(struct share_message *m, const char *identity, int *fd)
{
	const struct shared *s = find(&m->token);

	if (!s || s->kind != m->kind || strcmp(s->identity, identity))
		return -ENOENT;
	memcpy(m->bytes, s->bytes, sizeof m->bytes);
	*fd = s->fd;
	return 0;
}

static int expect_second(struct share_message *m, int *fd, uint64_t session)
{
	int own = *fd;

	if (m->op != SHARE_PUT || own < 0)
		return -EINVAL;
	*fd = -1;
	return join_expect(session, own, &m->token);
}

bool share_serve(int socket, uint64_t session, const char *identity)
{
	struct share_message m;
	int fd, kept = -1, r = share_receive(socket, &m, &fd, MSG_DONTWAIT);

	if (r == -EAGAIN)
		return true;
	if (r)
		return false;
	if (m.kind < SHARE_MEMORY || m.kind >= SHARE_KINDS || (m.op != SHARE_PUT && m.op != SHARE_GET))
		r = -EINVAL;
	else if (m.kind == SHARE_SECOND)
		r = expect_second(&m, &fd, session);
	else if (m.op == SHARE_GET)
		r = get(&m, identity, &kept);
	else if (share_is_file(m.kind))
		r = put_file(&m, &fd, session, identity);
	else
		r = put_bytes(&m, session, identity);
	if (fd >= 0)
		close(fd);
	m.result = r;
	return share_send(socket, &m, kept) == 0;
}

void share_session_ended(uint64_t session)
{
	join_forget(session);
	for (unsigned i = 0; i < count; i++)
		if (table[i]->session == session)
			table[i]->session = 0;
}

/* ---- the mounts, as the monitor tells of them ---- */

static unsigned kept_by(uint32_t connection)
{
	unsigned n = 0;

	for (unsigned i = 0; i < count; i++)
		n += table[i]->connection == connection;
	return n;
}

/* Tokens are the mount's to choose, and it may drop what it never had: what counts is what is here. */
static void keep(const struct share_message *m)
{
	static int64_t told = -1000;
	struct shared *s = NULL;

	if (m->connection && !find(&m->token) && kept_by(m->connection) < LIMIT_SHARED_EACH)
		s = add(&m->token);
	if (s) {
		s->connection = m->connection;
	} else if (transport_now_ms() - told >= 1000) {
		told = transport_now_ms();
		log_warning("a file for a shared handle is not kept: its token is there, or there are %u of "
			"its mount or %u in all", LIMIT_SHARED_EACH, LIMIT_SHARED);
	}
}

void share_monitor(const struct share_message *m)
{
	struct shared *s = find(&m->token);

	switch (m->op) {
	case SHARE_KEEP: keep(m); break;
	case SHARE_DROP:
		for (unsigned i = 0; i < count; i++)
			if (table[i] == s && s->connection == m->connection) {
				remove_at(i);
				break;
			}
		break;
	case SHARE_END:
		for (unsigned i = count; i-- > 0;)
			if (table[i]->connection == m->connection)
				remove_at(i);
		break;
	default: break;
	}
}

void share_monitor_ended(void)
{
	for (unsigned i = count; i-- > 0;)
		if (table[i]->connection)
			remove_at(i);
}
