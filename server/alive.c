/* SPDX-License-Identifier: Apache-2.0 */
/* Does the mount still live? It sends a PING every TIME_HEARTBEAT, whatever its program does, so silence is
 * death. There is one place where no PING fits: the middle of a record, of which the program, stopped by a
 * debugger say, has not given the rest. There we speak, and the mount's host acknowledges what we say.
 *
 * Thread rule: any thread; whoever waits for the connection, in either direction, asks every TIME_LISTEN or
 * so. */
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "server/state.h"
#include "wire/transport.h"

#define BACKLOG (64 << 10)      /* bytes unread from which it is us who do not listen, where nobody does */

/* The mount cannot say anything: does its host take what we say? A peer on this host is there as long as its
 * socket is. While a frame of ours is held up, it is up to the kernel, which probes, and ends the connection
 * when nobody answers. */
static bool acknowledges(struct session *s)
{
	int fd = stream_fd(s->stream), domain = 0, unsent = 0;
	socklen_t n = sizeof domain;

	if (!input_left(s))
		return false;
	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n))
		return false;
	if (domain == AF_UNIX || atomic_load(&s->held_up))
		return true;
	/* That nothing is unsent says something only where something was said since we asked last. */
	return !ioctl(fd, SIOCOUTQ, &unsent) && !unsent && atomic_exchange(&s->spoke, false);
}

void alive_check(struct session *s, bool busy)
{
	int64_t now = transport_now_ms();
	int unread = 0;
	uint64_t seen;
	bool lives, listens = atomic_load_explicit(&s->receiving, memory_order_relaxed);

	if (ioctl(stream_fd(s->stream), SIOCINQ, &unread))
		unread = 0;
	seen = atomic_load_explicit(&s->report->bytes_in, memory_order_relaxed) + unread;
	pthread_mutex_lock(&s->alive_lock);
	/* Who waits for bytes of the second connection leaves those of the first unread. */
	if (seen != s->seen || busy || (unread >= BACKLOG && !listens) || acknowledges(s)) {
		s->seen = seen;
		s->heard = now;
	}
	lives = now - s->heard < TIME_SILENCE;
	pthread_mutex_unlock(&s->alive_lock);
	if (!lives)
		session_lost(s, "nothing came for %d s", TIME_SILENCE / 1000);
}
