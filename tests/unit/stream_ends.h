/* SPDX-License-Identifier: Apache-2.0 */
/* Both ends of a connection, for tests: a listening socket, keys, and a server that serves or lies, in a
 * thread. Thread rule: the server's side is that thread's until it is joined, the rest main's. */
#pragma once
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit/unit.h"
#include "wire/cuda_types.h"
#include "wire/frame.h"
#include "wire/keys.h"
#include "wire/msg.h"
#include "wire/stream.h"
#include "wire/transport.h"

static int listener;
static char address[64];
static char key_path[] = "/tmp/check_stream.XXXXXX";
static struct keys *keys;
static struct key alice, mallory, stranger;

static void setup(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof a;
	char line[256];
	const char *why;
	int fd = mkstemp(key_path);

	ck_assert_int_eq(key_generate("alice", &alice), 0);
	ck_assert_int_eq(key_generate("alice", &mallory), 0);
	ck_assert_int_eq(key_generate("stranger", &stranger), 0);
	ck_assert_int_eq(write(fd, line, key_format(&alice, line, sizeof line)), (ssize_t)strlen(line));
	close(fd);
	ck_assert_int_eq(keys_load(key_path, &keys, &why), 0);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&a, sizeof a), 0);
	ck_assert_int_eq(listen(listener, 8), 0);
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&a, &n), 0);
	snprintf(address, sizeof address, "127.0.0.1:%d", ntohs(a.sin_port));
}

static void teardown(void)
{
	close(listener);
	keys_free(keys);
	unlink(key_path);
	strcpy(key_path + strlen(key_path) - 6, "XXXXXX");
}

/* ---- the server's side ---- */

enum behaviour { SERVE, BYE_FULL, BYE_KEY, GARBAGE, SILENT, CLOSE, PREAMBLE_THEN_SILENT, CLEAR_PONG };

struct server {
	enum behaviour behaviour;
	bool use_keys;
	unsigned flags;             /* of the client */
	struct preamble preamble;
	struct stream *stream;
	char identity[LIMIT_NAME + 1];
	int result;
	pthread_t thread;
};

static void say(int fd, const void *p, size_t n)
{
	ck_assert_int_eq(send(fd, p, n, MSG_NOSIGNAL), (ssize_t)n);
}

static void say_bye(int fd, int code)
{
	uint8_t bytes[128];
	struct frame f = {.kind = FRAME_BYE};
	struct msg m;

	msg_init(&m, bytes + sizeof f, sizeof bytes - sizeof f);
	put_array(&m, 2);
	put_i64(&m, code);
	put_text(&m, "no");
	f.head_len = m.len;
	memcpy(bytes, &f, sizeof f);
	say(fd, bytes, sizeof f + m.len);
}

static void answer_ping(struct server *s)
{
	struct frame f;
	struct iovec v = {&f, sizeof f};

	s->result = stream_read_all(s->stream, &f, sizeof f, 3000);
	if (s->result)
		return;
	ck_assert_int_eq(f.kind, FRAME_PING);
	f.kind = FRAME_PONG;
	s->result = stream_write_all(s->stream, &v, 1, 3000);
}

static void *server_main(void *arg)
{
	struct server *s = arg;
	const char *identity = "", *why = "";
	struct frame pong = {.kind = FRAME_PONG};
	char junk[200];
	int fd = accept(listener, NULL, NULL);

	ck_assert_int_ge(fd, 0);
	if (s->behaviour != SILENT)
		ck_assert_int_eq(recv(fd, &s->preamble, sizeof s->preamble, MSG_WAITALL), sizeof s->preamble);
	switch (s->behaviour) {
	case SERVE:
		s->result = stream_accept(fd, s->use_keys ? keys : NULL, 3000, &s->stream, &identity, &why);
		if (s->result)
			return NULL;
		snprintf(s->identity, sizeof s->identity, "%s", identity);
		if (s->preamble.flags & (PREAMBLE_PACK | PREAMBLE_PACK_ALWAYS))
			ck_assert_int_eq(stream_pack(s->stream, s->preamble.flags & PREAMBLE_PACK_ALWAYS), 0);
		answer_ping(s);
		return NULL;
	case BYE_FULL:
		say_bye(fd, CUDA_ERROR_MPS_MAX_CLIENTS_REACHED);
		break;
	case BYE_KEY:
		say_bye(fd, CUDA_ERROR_MPS_CONNECTION_FAILED);
		break;
	case GARBAGE:
		memset(junk, 'x', sizeof junk);
		say(fd, junk, sizeof junk);
		break;
	case CLEAR_PONG:
		say(fd, &pong, sizeof pong);
		break;
	default:
		break;
	}
	if (s->behaviour != CLOSE) {
		shutdown(fd, SHUT_WR);
		while (recv(fd, junk, sizeof junk, 0) > 0)
			;
		if (s->behaviour == SILENT || s->behaviour == PREAMBLE_THEN_SILENT)
			usleep(700000);
	}
	close(fd);
	return NULL;
}

static int meet(struct server *s, const struct key *key, struct stream **client, const char **why)
{
	int r;

	ck_assert_int_eq(pthread_create(&s->thread, NULL, server_main, s), 0);
	r = stream_connect(address, key, s->flags, 3000, client, why);
	return r;
}

static inline void part(struct server *s, struct stream *client)
{
	pthread_join(s->thread, NULL);
	stream_close(client);
	stream_close(s->stream);
}
