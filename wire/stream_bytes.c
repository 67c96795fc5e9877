/* SPDX-License-Identifier: Apache-2.0 */
/* A connection's bytes, sent and received, in clear or under TLS; what compresses them is wire/pack.c.
 *
 * Thread rule: wire/stream.c. */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include "wire/stream.h"
#include "wire/transport.h"

/* ---- receiving ---- */

int transport_wait(int fd, short events, int timeout_ms)
{
	struct pollfd p = {.fd = fd, .events = events};
	int64_t end = transport_now_ms() + timeout_ms;

	for (;;) {
		int64_t left = end - transport_now_ms();
		int r = poll(&p, 1, left > 0 ? left : 0);

		if (r > 0)
			return 0;
		if (!r)
			return -ETIMEDOUT;
		if (errno != EINTR)
			return -errno;
	}
}

/* Sends what is in `out`. 0 when it is empty. */
int transport_flush(struct stream *s)
{
	for (;;) {
		size_t n;
		ssize_t r;

		pthread_mutex_lock(&s->lock);
		if (s->out_pos == s->out_len)
			s->out_pos = s->out_len = 0;
		n = s->out_len - s->out_pos;
		pthread_mutex_unlock(&s->lock);
		if (!n)
			return 0;
		r = send(s->fd, s->out + s->out_pos, n, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		s->out_pos += r;
	}
}

/* One recv; block: at most timeout_ms. */
ssize_t transport_receive(struct stream *s, void *p, size_t n, bool block, int timeout_ms)
{
	if (block && !s->blocking) {
		int r = transport_wait(s->fd, POLLIN, timeout_ms);

		if (r)
			return r;
	} else if (block && timeout_ms != s->receive_ms) {
		struct timeval t = {timeout_ms / 1000, timeout_ms % 1000 * 1000};

		if (setsockopt(s->fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t))
			return -errno;
		s->receive_ms = timeout_ms;
	}
	for (;;) {
		ssize_t r = recv(s->fd, p, n, block ? 0 : MSG_DONTWAIT);

		if (r >= 0)
			return r;
		if (errno == EINTR)
			continue;
		if (errno == EAGAIN || errno == EWOULDBLOCK)
			return block ? -ETIMEDOUT : -EAGAIN;
		return -errno;
	}
}

static ssize_t tls_read(struct stream *s, uint8_t *p, size_t n, bool block, int timeout_ms)
{
	size_t got = 0;

	while (got < n) {
		int r, error;
		ssize_t in;

		pthread_mutex_lock(&s->lock);
		if (!got)
			ERR_clear_error();
		r = SSL_read(s->ssl, p + got, n - got > STREAM_RECORD ? (int)STREAM_RECORD : (int)(n - got));
		error = r > 0 ? 0 : SSL_get_error(s->ssl, r);
		pthread_mutex_unlock(&s->lock);
		if (r > 0) {
			got += r;
			continue;
		}
		if (got)
			break;
		if (error == SSL_ERROR_ZERO_RETURN)
			return 0;
		if (error != SSL_ERROR_WANT_READ)
			return -EPROTO;
		in = transport_receive(s, s->in, STREAM_BUFFER, block, timeout_ms);
		if (in <= 0)
			return in;
		pthread_mutex_lock(&s->lock);
		s->in_pos = 0;
		s->in_len = in;
		pthread_mutex_unlock(&s->lock);
	}
	return got;
}

ssize_t transport_read(struct stream *s, void *p, size_t n, bool block, int timeout_ms)
{
	return s->ssl ? tls_read(s, p, n, block, timeout_ms) : transport_receive(s, p, n, block, timeout_ms);
}

ssize_t stream_read(struct stream *s, void *p, size_t n)
{
	return s->pack ? pack_read(s, p, n, false, 0) : transport_read(s, p, n, false, 0);
}

ssize_t stream_read_wait(struct stream *s, void *p, size_t n, int timeout_ms)
{
	return s->pack ? pack_read(s, p, n, true, timeout_ms) : transport_read(s, p, n, true, timeout_ms);
}

int stream_pending(const struct stream *s)
{
	return (s->ssl && (SSL_pending(s->ssl) > 0 || s->in_pos < s->in_len)) ||
	       (s->pack && pack_pending(s->pack));
}

int stream_read_all(struct stream *s, void *p, size_t n, int timeout_ms)
{
	size_t got = 0;

	while (got < n) {
		ssize_t r = stream_read(s, (uint8_t *)p + got, n - got);

		if (r == -EAGAIN) {
			int w = transport_wait(s->fd, POLLIN, timeout_ms);

			if (w)
				return w;
			continue;
		}
		if (!r)
			return -ECONNRESET;
		if (r < 0)
			return r;
		got += r;
	}
	return 0;
}

/* ---- sending ---- */

static size_t iov_total(const struct iovec *v, int n)
{
	size_t total = 0;

	for (int i = 0; i < n; i++)
		total += v[i].iov_len;
	return total;
}

/* A record's worth of plaintext at `skip` of v: in place where it is contiguous, else gathered. */
static const void *iov_chunk(struct stream *s, const struct iovec *v, int n, size_t skip, size_t *len)
{
	size_t have = 0;

	for (int i = 0; i < n && have < STREAM_RECORD; i++) {
		size_t part = v[i].iov_len;

		if (skip >= part) {
			skip -= part;
			continue;
		}
		part -= skip;
		if (!have && (part >= STREAM_RECORD || i == n - 1)) {
			*len = part < STREAM_RECORD ? part : STREAM_RECORD;
			return (const uint8_t *)v[i].iov_base + skip;
		}
		if (part > STREAM_RECORD - have)
			part = STREAM_RECORD - have;
		memcpy(s->plain + have, (const uint8_t *)v[i].iov_base + skip, part);
		have += part;
		skip = 0;
	}
	*len = have;
	return s->plain;
}

/* Encrypts up to STREAM_BUFFER bytes of v from `skip` into the empty `out`. Returns their number or
 * -errno. */
static ssize_t tls_batch(struct stream *s, const struct iovec *v, int n, size_t skip, size_t total)
{
	size_t done = 0;
	ssize_t r = 0;

	pthread_mutex_lock(&s->lock);
	ERR_clear_error();
	while (skip + done < total && s->out_len + STREAM_RECORD <= STREAM_BUFFER + STREAM_SLACK / 2) {
		size_t len;
		const void *p = iov_chunk(s, v, n, skip + done, &len);

		if (SSL_write(s->ssl, p, len) != (int)len) {
			r = -EPROTO;
			break;
		}
		done += len;
	}
	pthread_mutex_unlock(&s->lock);
	return r ? r : (ssize_t)done;
}

static ssize_t tls_writev(struct stream *s, const struct iovec *v, int n)
{
	size_t total = iov_total(v, n), done;
	ssize_t batch;
	int r = transport_flush(s);

	if (r)
		return r;
	done = s->owed < total ? s->owed : total;
	s->owed -= done;
	while (done < total) {
		batch = tls_batch(s, v, n, done, total);
		if (batch < 0)
			return batch;
		r = transport_flush(s);
		if (r) {
			s->owed = batch;
			break;
		}
		done += batch;
	}
	return done ? (ssize_t)done : r;
}

ssize_t transport_writev(struct stream *s, const struct iovec *v, int n)
{
	struct msghdr m = {.msg_iov = (struct iovec *)v, .msg_iovlen = n};

	if (s->ssl)
		return tls_writev(s, v, n);
	for (;;) {
		ssize_t r = sendmsg(s->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (r >= 0)
			return r;
		if (errno != EINTR)
			return errno == EWOULDBLOCK ? -EAGAIN : -errno;
	}
}

ssize_t stream_writev(struct stream *s, const struct iovec *v, int n)
{
	return s->pack ? pack_writev(s, v, n) : transport_writev(s, v, n);
}

int stream_write_rest(struct stream *s, struct iovec **v, int *n, int timeout_ms)
{
	while (*n) {
		struct iovec *at = *v;
		ssize_t r;

		if (!at->iov_len) {
			++*v;
			--*n;
			continue;
		}
		r = stream_writev(s, at, *n);
		if (r == -EAGAIN) {
			int w = transport_wait(s->fd, POLLOUT, timeout_ms);

			if (w)
				return w;
			continue;
		}
		if (r < 0)
			return r;
		for (; *n && (size_t)r >= at->iov_len; --*n)
			r -= at++->iov_len;
		*v = at;
		if (*n) {
			at->iov_base = (uint8_t *)at->iov_base + r;
			at->iov_len -= r;
		}
	}
	return 0;
}

int stream_write_all(struct stream *s, const struct iovec *v, int n, int timeout_ms)
{
	struct iovec rest[STREAM_PIECES], *at = rest;

	if (n > STREAM_PIECES)
		return -EINVAL;
	memcpy(rest, v, n * sizeof *v);
	return stream_write_rest(s, &at, &n, timeout_ms);
}
