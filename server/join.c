/* SPDX-License-Identifier: Apache-2.0 */
/* The table of expected connections (join.h).
 *
 * Thread rule: the listener's one thread. */
#include "server/join.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire/fds.h"
#include "wire/limits.h"

static struct expected {
	uint64_t session;           /* 0: a free place */
	struct share_token token;
	int fd;
} table[LIMIT_SESSIONS];

static void end(struct expected *e)
{
	close(e->fd);
	*e = (struct expected){0};
}

void join_forget(uint64_t session)
{
	for (unsigned i = 0; i < LIMIT_SESSIONS; i++)
		if (table[i].session == session && session)
			end(&table[i]);
}

int join_expect(uint64_t session, int fd, struct share_token *token)
{
	struct expected *e = table;

	join_forget(session);
	while (e < table + LIMIT_SESSIONS && e->session)
		e++;
	if (e == table + LIMIT_SESSIONS || getrandom(token, sizeof *token, GRND_NONBLOCK) != sizeof *token) {
		close(fd);
		return e == table + LIMIT_SESSIONS ? -EUSERS : -EIO;
	}
	*e = (struct expected){.session = session, .token = *token, .fd = fd};
	return 0;
}

int join_arrived(const uint8_t routing[16], int fd)
{
	for (struct expected *e = table; e < table + LIMIT_SESSIONS; e++)
		if (e->session && !memcmp(&e->token, routing, sizeof e->token)) {
			int r = fds_send(e->fd, "", 1, &fd, 1, MSG_DONTWAIT);

			end(e);
			return r;
		}
	return -ENOENT;
}
