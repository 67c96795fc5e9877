/* SPDX-License-Identifier: Apache-2.0 */
/* The session's second connection, which carries every second stripe of large bulks in both directions: one
 * connection is as fast as the processor that sends into it. The mount asks for it; the listener is told to
 * expect it, by a token that it makes and that opens one connection once; the mount gets the token over the
 * first connection, so whoever comes with it speaks for the same program. On a unix socket it must be the
 * same user besides. Clear connections only: a session keeps no key, and TLS costs more processors than there
 * are to win. Whatever fails here, the session goes on with one connection.
 *
 * Thread rule: second_said by the holder of the baton; a thread of its own waits for the connection,
 * publishes it once, and ends. From then on the holder of the baton reads it (input.c), and who sends copies
 * to the host has it written (stripes.c). */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/serve.h"
#include "server/state.h"
#include "wire/fds.h"
#include "wire/log.h"
#include "wire/transport.h"

/* Tells the mount the token; an empty one: there will be no second connection. */
static void answer(struct session *s, struct share_token token)
{
	struct frame f = {.kind = FRAME_SECOND, .seq = token.word[0], .ctx = token.word[1]};
	struct iovec v = {&f, sizeof f};

	send_frame(s, &v, 1);
}

/* Waits for the connection that the listener passes through `from`. A descriptor or -errno. */
static int await(int from)
{
	int fd, r = transport_wait(from, POLLIN, 2 * TIME_CONNECT);
	char byte;

	r = r ? r : fds_receive(from, &byte, 1, &fd, 1, MSG_DONTWAIT);
	return r ? r : fd;
}

/* Its first frame is a PING; the PONG says that stripes may come, or, where that was asked for, that memory
 * may be lent. NULL, or what is wrong; takes fd over. */
static const char *greet(struct session *s, int fd)
{
	struct stream *second;
	struct frame f;
	struct iovec v = {&f, sizeof f};
	const char *identity, *why;

	if (stream_accept(fd, NULL, TIME_PREAMBLE, &second, &identity, &why))
		return why;
	if (strcmp(identity, s->report->identity))
		why = "it comes from another user";
	else if (stream_read_all(second, &f, sizeof f, TIME_PREAMBLE) || frame_check(&f, true, NULL) ||
		f.kind != FRAME_PING)
		why = "it begins with no PING";
	else if (!s->lent.asked && !input_open(s, SECOND, second))
		why = "out of memory";
	else
		why = NULL;
	if (why) {
		stream_close(second);
		return why;
	}
	/* From here on the holder of the baton may read it. Should this not arrive, the mount does not use
	 * it. */
	f.kind = FRAME_PONG;
	(void)stream_write_all(second, &v, 1, TIME_PREAMBLE);
	if (s->lent.asked && (why = lent_meet(s, second)))
		stream_close(second);
	return why;
}

static void *fetch(void *arg)
{
	struct session *s = arg;
	struct share_token token = {{0}};
	int pair[2] = {-1, -1}, r;
	const char *why;

	r = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) ? -errno :
		share_expect_second(pair[1], &token);
	if (pair[1] >= 0)
		close(pair[1]);
	answer(s, r ? (struct share_token){{0}} : token);
	r = r ? r : await(pair[0]);
	why = r < 0 ? strerror(-r) : greet(s, r);
	if (pair[0] >= 0)
		close(pair[0]);
	if (why)
		log_info("session %llu has no second connection: %s", (unsigned long long)s->start->id, why);
	return NULL;
}

static void asked(struct session *s, bool lends)
{
	pthread_t thread;

	if (atomic_flag_test_and_set(&s->second_asked))
		session_end(s, CUDA_ERROR_MPS_CLIENT_TERMINATED, "bad frame: SECOND a second time");
	s->lent.asked = lends;
	if (!stream_is_clear(s->stream) || s->start->preamble & PREAMBLE_PACK_ALWAYS ||
		pthread_create(&thread, NULL, fetch, s))
		answer(s, (struct share_token){{0}});
	else
		pthread_detach(thread);
}

void second_said(struct session *s, uint64_t word)
{
	if (word == SECOND_WANTED || word == SECOND_LENDS)
		asked(s, word == SECOND_LENDS);
	else if ((word != SECOND_SERVES && word != SECOND_ENDS) || !s->source[SECOND].stream)
		session_end(s, CUDA_ERROR_MPS_CLIENT_TERMINATED,
			"bad frame: SECOND says %llu of no connection", (unsigned long long)word);
	else
		atomic_store(&s->stripes, word == SECOND_SERVES);
}
