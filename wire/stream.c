/* SPDX-License-Identifier: Apache-2.0 */
/* A connection's bytes, clear or under TLS. OpenSSL never touches the socket: a BIO of our own hands it ciphertext from `in` and takes it to `out`, so that one read or
 * write moves up to 256 KiB instead of a TLS record of 16 KiB. Connecting is in wire/connect.c.
 *
 * Thread rule: `in` and everything of the reading side belong to the reader, `owed` and sending to the writer. `lock` guards the TLS state and out_len, because
 * OpenSSL allows one thread in an SSL at a time and reading may write (alerts, key updates); it is not held during system calls. */
#include "wire/stream.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "wire/frame.h"
#include "wire/keys.h"
#include "wire/transport.h"

#define BUFFER (256u << 10)
#define RECORD 16384u
/* Room in `out` behind a full batch: record headers and tags, and what reading makes OpenSSL say. */
#define SLACK (32u << 10)
#define IOV_MOST 16

/* Identities carry the role, so that a handshake cannot be reflected to a peer that uses the same key in the other role. */
#define IDENTITY_PREFIX "scuda-client:"

struct stream {
	int fd;
	bool blocking;              /* the socket; only reading that shall wait makes use of it */
	int receive_ms;             /* SO_RCVTIMEO as last set */
	SSL_CTX *context;
	SSL *ssl;                   /* NULL: clear */
	pthread_mutex_t lock;
	size_t in_pos, in_len, out_pos, out_len;
	size_t owed;                /* plaintext bytes in `out` that stream_writev has not told the caller */
	const struct key *key;      /* during the handshake only */
	const struct keys *keys;
	char identity[sizeof IDENTITY_PREFIX + LIMIT_NAME];
	char security[64];
	uint8_t *in, *out, *plain;  /* BUFFER, BUFFER + SLACK, RECORD bytes; only under TLS */
};

int64_t transport_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- the BIO ---- */

static int bio_read(BIO *b, char *p, int n)
{
	struct stream *s = BIO_get_data(b);
	size_t left = s->in_len - s->in_pos;

	BIO_clear_retry_flags(b);
	if (!left) {
		BIO_set_retry_read(b);
		return -1;
	}
	if ((size_t)n > left)
		n = left;
	memcpy(p, s->in + s->in_pos, n);
	s->in_pos += n;
	return n;
}

static int bio_write(BIO *b, const char *p, int n)
{
	struct stream *s = BIO_get_data(b);
	size_t room = BUFFER + SLACK - s->out_len;

	BIO_clear_retry_flags(b);
	if ((size_t)n > room) {
		BIO_set_retry_write(b);
		return -1;
	}
	memcpy(s->out + s->out_len, p, n);
	s->out_len += n;
	return n;
}

static long bio_ctrl(BIO *b, int cmd, long n, void *p)
{
	(void)b;
	(void)n;
	(void)p;
	return cmd == BIO_CTRL_FLUSH;
}

static BIO_METHOD *bio_method;
static pthread_once_t bio_once = PTHREAD_ONCE_INIT;

static void bio_init(void)
{
	bio_method = BIO_meth_new(BIO_TYPE_SOURCE_SINK | BIO_get_new_index(), "scudafs stream");
	if (!bio_method)
		return;
	BIO_meth_set_read(bio_method, bio_read);
	BIO_meth_set_write(bio_method, bio_write);
	BIO_meth_set_ctrl(bio_method, bio_ctrl);
}

/* ---- pre-shared keys ---- */

static SSL_SESSION *psk_session(SSL *ssl, const struct key *key)
{
	static const unsigned char aes_128_gcm_sha256[] = {0x13, 0x01};
	const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, aes_128_gcm_sha256);
	SSL_SESSION *session = SSL_SESSION_new();

	if (session && cipher && SSL_SESSION_set1_master_key(session, key->secret, sizeof key->secret) &&
	    SSL_SESSION_set_cipher(session, cipher) && SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION))
		return session;
	SSL_SESSION_free(session);
	return NULL;
}

static int psk_use(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *n, SSL_SESSION **session)
{
	struct stream *s = SSL_get_app_data(ssl);

	*session = NULL;
	if (md && EVP_MD_get_type(md) != NID_sha256)
		return 1;
	*session = psk_session(ssl, s->key);
	*id = (const unsigned char *)s->identity;
	*n = strlen(s->identity);
	return *session != NULL;
}

static int psk_find(SSL *ssl, const unsigned char *id, size_t n, SSL_SESSION **session)
{
	struct stream *s = SSL_get_app_data(ssl);
	size_t prefix = sizeof IDENTITY_PREFIX - 1;
	const struct key *key;
	char name[LIMIT_NAME + 1];

	*session = NULL;
	if (n <= prefix || n - prefix > LIMIT_NAME || memcmp(id, IDENTITY_PREFIX, prefix))
		return 1;
	memcpy(name, id + prefix, n - prefix);
	name[n - prefix] = 0;
	key = keys_find(s->keys, name);
	if (!key)
		return 1;
	/* Believed once the handshake has succeeded. */
	strcpy(s->identity, key->name);
	*session = psk_session(ssl, key);
	return *session != NULL;
}

static int tls_setup(struct stream *s, bool server)
{
	BIO *bio;

	pthread_once(&bio_once, bio_init);
	s->in = malloc(BUFFER);
	s->out = malloc(BUFFER + SLACK);
	s->plain = malloc(RECORD);
	s->context = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
	if (!bio_method || !s->in || !s->out || !s->plain || !s->context)
		return -ENOMEM;
	SSL_CTX_set_options(s->context, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
	SSL_CTX_set_session_cache_mode(s->context, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_num_tickets(s->context, 0);
	if (!SSL_CTX_set_min_proto_version(s->context, TLS1_3_VERSION) ||
	    !SSL_CTX_set_max_proto_version(s->context, TLS1_3_VERSION) ||
	    !SSL_CTX_set_ciphersuites(s->context, "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256") ||
	    !SSL_CTX_set1_groups_list(s->context, "X25519:P-256"))
		return -ENOTSUP;
	if (server)
		SSL_CTX_set_psk_find_session_callback(s->context, psk_find);
	else
		SSL_CTX_set_psk_use_session_callback(s->context, psk_use);
	s->ssl = SSL_new(s->context);
	bio = BIO_new(bio_method);
	if (!s->ssl || !bio) {
		BIO_free(bio);
		return -ENOMEM;
	}
	BIO_set_data(bio, s);
	BIO_set_init(bio, 1);
	SSL_set_bio(s->ssl, bio, bio);
	SSL_set_app_data(s->ssl, s);
	if (server)
		SSL_set_accept_state(s->ssl);
	else
		SSL_set_connect_state(s->ssl);
	return 0;
}

/* ---- sending and receiving ---- */

static int wait_for(int fd, short events, int timeout_ms)
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
static int out_flush(struct stream *s)
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
static ssize_t receive(struct stream *s, void *p, size_t n, bool block, int timeout_ms)
{
	if (block && !s->blocking) {
		int r = wait_for(s->fd, POLLIN, timeout_ms);

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
		ERR_clear_error();
		r = SSL_read(s->ssl, p + got, n - got > RECORD ? (int)RECORD : (int)(n - got));
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
		in = receive(s, s->in, BUFFER, block, timeout_ms);
		if (in <= 0)
			return in;
		pthread_mutex_lock(&s->lock);
		s->in_pos = 0;
		s->in_len = in;
		pthread_mutex_unlock(&s->lock);
	}
	return got;
}

ssize_t stream_read(struct stream *s, void *p, size_t n)
{
	return s->ssl ? tls_read(s, p, n, false, 0) : receive(s, p, n, false, 0);
}

ssize_t stream_read_wait(struct stream *s, void *p, size_t n, int timeout_ms)
{
	return s->ssl ? tls_read(s, p, n, true, timeout_ms) : receive(s, p, n, true, timeout_ms);
}

int stream_pending(const struct stream *s)
{
	return s->ssl && (SSL_pending(s->ssl) > 0 || s->in_pos < s->in_len);
}

int stream_read_all(struct stream *s, void *p, size_t n, int timeout_ms)
{
	size_t got = 0;

	while (got < n) {
		ssize_t r = stream_read(s, (uint8_t *)p + got, n - got);

		if (r == -EAGAIN) {
			int w = wait_for(s->fd, POLLIN, timeout_ms);

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

	for (int i = 0; i < n && have < RECORD; i++) {
		size_t part = v[i].iov_len;

		if (skip >= part) {
			skip -= part;
			continue;
		}
		part -= skip;
		if (!have && (part >= RECORD || i == n - 1)) {
			*len = part < RECORD ? part : RECORD;
			return (const uint8_t *)v[i].iov_base + skip;
		}
		if (part > RECORD - have)
			part = RECORD - have;
		memcpy(s->plain + have, (const uint8_t *)v[i].iov_base + skip, part);
		have += part;
		skip = 0;
	}
	*len = have;
	return s->plain;
}

/* Encrypts up to BUFFER bytes of v from `skip` into the empty `out`. Returns their number or -errno. */
static ssize_t tls_batch(struct stream *s, const struct iovec *v, int n, size_t skip, size_t total)
{
	size_t done = 0;
	ssize_t r = 0;

	pthread_mutex_lock(&s->lock);
	while (skip + done < total && s->out_len + RECORD + SLACK / 2 <= BUFFER + SLACK) {
		size_t len;
		const void *p = iov_chunk(s, v, n, skip + done, &len);

		ERR_clear_error();
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
	int r = out_flush(s);

	if (r)
		return r;
	done = s->owed < total ? s->owed : total;
	s->owed -= done;
	while (done < total) {
		batch = tls_batch(s, v, n, done, total);
		if (batch < 0)
			return batch;
		r = out_flush(s);
		if (r) {
			s->owed = batch;
			break;
		}
		done += batch;
	}
	return done ? (ssize_t)done : r;
}

ssize_t stream_writev(struct stream *s, const struct iovec *v, int n)
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

int stream_write_all(struct stream *s, const struct iovec *v, int n, int timeout_ms)
{
	struct iovec rest[IOV_MOST], *at = rest;

	if (n > IOV_MOST)
		return -EINVAL;
	memcpy(rest, v, n * sizeof *v);
	while (n) {
		ssize_t r;

		if (!at->iov_len) {
			at++;
			n--;
			continue;
		}
		r = stream_writev(s, at, n);
		if (r == -EAGAIN) {
			int w = wait_for(s->fd, POLLOUT, timeout_ms);

			if (w)
				return w;
			continue;
		}
		if (r < 0)
			return r;
		while (n && (size_t)r >= at->iov_len) {
			r -= at->iov_len;
			at++;
			n--;
		}
		if (n) {
			at->iov_base = (uint8_t *)at->iov_base + r;
			at->iov_len -= r;
		}
	}
	return 0;
}

/* ---- beginning and end ---- */

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

/* One turn of the handshake: what OpenSSL has to say is sent, what it wants is received. */
static int handshake_step(struct stream *s, int64_t deadline)
{
	int done, error, r;
	ssize_t in;

	ERR_clear_error();
	done = SSL_do_handshake(s->ssl);
	error = done == 1 ? SSL_ERROR_NONE : SSL_get_error(s->ssl, done);
	while ((r = out_flush(s)) == -EAGAIN) {
		r = wait_for(s->fd, POLLOUT, deadline - transport_now_ms());
		if (r)
			return r;
	}
	if (error != SSL_ERROR_NONE && error != SSL_ERROR_WANT_READ)
		return -EACCES;
	if (r || error == SSL_ERROR_NONE)
		return r;
	do {
		r = wait_for(s->fd, POLLIN, deadline - transport_now_ms());
		if (r)
			return r;
		in = receive(s, s->in, BUFFER, false, 0);
	} while (in == -EAGAIN);
	if (in <= 0)
		return in ? in : -ECONNRESET;
	s->in_pos = 0;
	s->in_len = in;
	return s->key && transport_is_bye(s->in, in) ? -EPROTO : 0;
}

int stream_handshake(struct stream *s, const struct key *key, const struct keys *keys, int64_t deadline)
{
	int r;

	if (key)
		snprintf(s->identity, sizeof s->identity, IDENTITY_PREFIX "%s", key->name);
	s->key = key;
	s->keys = keys;
	r = tls_setup(s, keys != NULL);
	while (!r && !SSL_is_init_finished(s->ssl))
		r = handshake_step(s, deadline);
	s->key = NULL;
	s->keys = NULL;
	if (!r)
		snprintf(s->security, sizeof s->security, "%s %s psk", SSL_get_version(s->ssl), SSL_get_cipher_name(s->ssl));
	return r;
}

size_t stream_unread(const struct stream *s, const void **p)
{
	*p = s->in ? s->in + s->in_pos : NULL;
	return s->in_len - s->in_pos;
}

int stream_accept(int fd, const struct keys *keys, int timeout_ms, struct stream **out, const char **identity, const char **why)
{
	const char *reason = "out of memory";
	struct stream *s = stream_new(fd);
	struct ucred peer;
	socklen_t n = sizeof peer;
	int r = s ? 0 : -ENOMEM;

	if (s && keys) {
		r = stream_handshake(s, NULL, keys, transport_now_ms() + timeout_ms);
		if (r == -EACCES)
			reason = "TLS handshake failed: unknown name, wrong key, or no TLS 1.3 peer";
		else if (r == -ETIMEDOUT)
			reason = "TLS handshake not finished in time";
		else if (r)
			reason = "connection ended during the TLS handshake";
	} else if (s) {
		if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) && peer.pid > 0)
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

int stream_fd(const struct stream *s)
{
	return s->fd;
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
		out_flush(s);
	}
	SSL_free(s->ssl);
	SSL_CTX_free(s->context);
	free(s->in);
	free(s->out);
	free(s->plain);
	pthread_mutex_destroy(&s->lock);
	close(s->fd);
	free(s);
}
