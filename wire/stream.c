/* SPDX-License-Identifier: Apache-2.0 */
/* A connection, clear or under TLS, from its beginning to its end. OpenSSL never touches the socket: a BIO of
 * our own (wire/tls.c) hands it ciphertext from `in` and takes it to `out`, so that one read or write moves
 * up to 256 KiB instead of a TLS record of 16 KiB. Its bytes are in wire/stream_bytes.c, connecting is in
 * wire/connect.c.
 *
 * Thread rule: `in` and everything of the reading side belong to the reader, `owed` and sending to the
 * writer. `lock` guards the TLS state and out_len, because OpenSSL allows one thread in an SSL at a time and
 * reading may write (alerts, key updates); it is not held during system calls. */
#include "wire/stream.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "wire/keys.h"
#include "wire/transport.h"

int64_t transport_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

struct stream *stream_new(int fd)
{
	struct stream *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	pthread_mutex_init(&s->lock, NULL);
	s->fd = fd;
	strcpy(s->security, "none");
	return s;
}

size_t stream_unread(const struct stream *s, const void **p)
{
	*p = s->in ? s->in + s->in_pos : NULL;
	return s->in_len - s->in_pos;
}

int stream_accept(int fd, const struct keys *keys, int timeout_ms, struct stream **out,
		const char **identity, const char **why)
{
	const char *reason = "out of memory";
	struct stream *s = stream_new(fd);
	struct ucred peer;
	socklen_t n = sizeof peer, m = sizeof(int);
	int r = s ? 0 : -ENOMEM, domain = 0;

	if (s && keys) {
		r = stream_handshake(s, NULL, keys, transport_now_ms() + timeout_ms);
		if (r == -EACCES)
			reason = "TLS handshake failed: unknown name, wrong key, or no TLS 1.3 peer";
		else if (r == -ETIMEDOUT)
			reason = "TLS handshake not finished in time";
		else if (r)
			reason = "connection ended during the TLS handshake";
	} else if (s) {
		/* The pid may be none of this namespace, the user is always told. */
		if (!getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &m) && domain == AF_UNIX &&
			!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n))
			snprintf(s->identity, sizeof s->identity, "uid:%u", peer.uid);
		else
			strcpy(s->identity, "anonymous");
	}
	if (!r)
		r = transport_options(fd, false);
	if (s)
		s->blocking = true;
	if (why)
		*why = reason;
	if (r) {
		if (s)
			stream_close(s);
		else
			close(fd);
		return r;
	}
	*identity = s->identity;
	*out = s;
	return 0;
}

int stream_pack(struct stream *s, bool always)
{
	s->pack = pack_create(always, true);
	return s->pack ? 0 : -ENOMEM;
}

int stream_fd(const struct stream *s)
{
	return s->fd;
}

bool stream_is_clear(const struct stream *s)
{
	return !s->ssl;
}

const char *stream_security(const struct stream *s)
{
	return s->security;
}

void stream_close(struct stream *s)
{
	if (!s)
		return;
	if (s->ssl && SSL_is_init_finished(s->ssl)) {
		pthread_mutex_lock(&s->lock);
		ERR_clear_error();
		SSL_shutdown(s->ssl);
		pthread_mutex_unlock(&s->lock);
		transport_flush(s);
	}
	SSL_free(s->ssl);
	SSL_CTX_free(s->context);
	pack_free(s->pack);
	free(s->in);
	free(s->out);
	free(s->plain);
	pthread_mutex_destroy(&s->lock);
	close(s->fd);
	free(s);
}
