/* SPDX-License-Identifier: Apache-2.0 */
/* The first 24 bytes of a connection, read without ever blocking the listener: a peer that sends nothing
 * costs one of LIMIT_PENDING places for TIME_PREAMBLE, or until others need it: a client says its preamble
 * at once, so those that hold all places keep nobody else out. A refusal is said in clear
 * (FRAME_BYE); closing a socket with unread bytes would reset the connection and take the BYE with it, so a
 * refused one lingers until the peer closes.
 *
 * Thread rule: the listener's only thread. */
#include "server/pending.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/address.h"
#include "wire/log.h"
#include "wire/msg.h"
#include "wire/transport.h"

#define TIME_LINGER 1000
#define LOG_MOST 20             /* lines about refused connections in a second */

bool pending_may_log(void)
{
	static int64_t second;
	static unsigned lines;
	int64_t now = transport_now_ms() / 1000;

	if (now != second) {
		if (lines > LOG_MOST)
			log_warning("%u more connections were refused or dropped", lines - LOG_MOST);
		second = now;
		lines = 0;
	}
	return ++lines <= LOG_MOST;
}

void pending_init(struct pending_table *t)
{
	for (int i = 0; i < LIMIT_PENDING; i++)
		t->place[i].fd = -1;
}

void pending_close(struct pending *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
}

void pending_add(struct pending_table *t, int fd, bool local)
{
	struct claim claim[LIMIT_PENDING];
	struct pending *p = NULL;

	for (int i = 0; i < LIMIT_PENDING && !p; i++) {
		claim[i] = (struct claim){t->place[i].from, (uint64_t)t->place[i].deadline};
		if (t->place[i].fd < 0)
			p = &t->place[i];
	}
	if (!p)
		p = &t->place[origin_gives_way(claim, LIMIT_PENDING)];
	if (p->fd >= 0 && !p->refused && pending_may_log())
		log_warning("connection from %s dropped: more came before its preamble", p->peer);
	pending_close(p);
	*p = (struct pending){.fd = fd,
		.local = local,
		.deadline = transport_now_ms() + TIME_PREAMBLE,
		.from = origin_of(fd)};
	address_peer(fd, p->peer, sizeof p->peer);
}

int pending_poll(struct pending_table *t, struct pollfd *out, int *index, int *timeout_ms)
{
	int64_t now = transport_now_ms();
	int n = 0;

	for (int i = 0; i < LIMIT_PENDING; i++) {
		struct pending *p = &t->place[i];
		int64_t left = p->deadline - now;

		if (p->fd < 0)
			continue;
		if (left < 0)
			left = 0;
		if (*timeout_ms < 0 || left < *timeout_ms)
			*timeout_ms = left;
		out[n] = (struct pollfd){.fd = p->fd, .events = POLLIN};
		index[n++] = i;
	}
	return n;
}

void pending_expire(struct pending_table *t)
{
	int64_t now = transport_now_ms();

	for (int i = 0; i < LIMIT_PENDING; i++) {
		struct pending *p = &t->place[i];

		if (p->fd < 0 || p->deadline > now)
			continue;
		if (!p->refused && pending_may_log())
			log_warning("connection from %s dropped: no preamble in time", p->peer);
		pending_close(p);
	}
}

void pending_refuse(struct pending *p, CUresult code, const char *text)
{
	uint8_t bytes[512];
	struct frame f = {.kind = FRAME_BYE};
	struct msg m;

	msg_init(&m, bytes + sizeof f, sizeof bytes - sizeof f);
	put_array(&m, 2);
	put_i64(&m, code);
	put_text(&m, text);
	f.head_len = m.len;
	memcpy(bytes, &f, sizeof f);
	if (pending_may_log())
		log_warning("connection from %s refused: %s", p->peer, text);
	/* A fresh socket has room for this; if not, the peer sees the end of the connection without a
	 * word. */
	if (m.bad || send(p->fd, bytes, sizeof f + m.len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
		pending_close(p);
		return;
	}
	shutdown(p->fd, SHUT_WR);
	p->refused = true;
	p->deadline = transport_now_ms() + TIME_LINGER;
}

/* What is wrong with a complete preamble, or NULL. */
static const char *preamble_problem(const struct preamble *p)
{
	static const uint8_t none[sizeof p->routing];

	if (memcmp(p->magic, PREAMBLE_MAGIC, sizeof p->magic))
		return "this is not the scudafs protocol";
	if (p->version != PROTOCOL_VERSION)
		return "another version of the protocol";
	if (p->flags & ~(PREAMBLE_TLS | PREAMBLE_MONITOR | PREAMBLE_PACK | PREAMBLE_PACK_ALWAYS |
		PREAMBLE_SECOND) || p->zero)
		return "unknown flags in the preamble";
	/* A second connection is clear, and nothing else. */
	bool second = p->flags & PREAMBLE_SECOND;

	if (second ? p->flags != PREAMBLE_SECOND : memcmp(p->routing, none, sizeof none) != 0)
		return "this way of joining a session is not offered";
	return NULL;
}

void pending_event(struct pending_table *t, int place)
{
	struct pending *p = &t->place[place];
	const char *problem;
	uint8_t waste[4096];
	ssize_t n;

	if (p->fd < 0)
		return;
	if (p->refused)
		n = recv(p->fd, waste, sizeof waste, MSG_DONTWAIT);
	else
		n = recv(p->fd, (uint8_t *)&p->preamble + p->got, sizeof p->preamble - p->got, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		if (!p->refused && pending_may_log())
			log_info("connection from %s ended before its preamble", p->peer);
		pending_close(p);
		return;
	}
	if (p->refused)
		return;
	p->got += n;
	if (p->got < sizeof p->preamble)
		return;
	problem = preamble_problem(&p->preamble);
	if (!problem)
		t->ready(t, p);
	else if (memcmp(p->preamble.magic, PREAMBLE_MAGIC, sizeof p->preamble.magic)) {
		/* Whoever this is would not understand a BYE. */
		if (pending_may_log())
			log_warning("connection from %s dropped: %s", p->peer, problem);
		pending_close(p);
	} else {
		pending_refuse(p, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, problem);
	}
}
