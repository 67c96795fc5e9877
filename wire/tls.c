/* SPDX-License-Identifier: Apache-2.0 */
/* TLS 1.3 with a pre-shared key and nothing else: no certificates, no tickets, no early data, no key exchange
 * without forward secrecy. The BIO between OpenSSL and a stream's buffers, the PSK callbacks, the handshake.
 *
 * Thread rule: setup and handshake by the one thread that has the stream; the BIO under the stream's lock. */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/keys.h"
#include "wire/stream.h"
#include "wire/transport.h"

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
	size_t room = STREAM_BUFFER + STREAM_SLACK - s->out_len;

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
	    SSL_SESSION_set_cipher(session, cipher) && SSL_SESSION_set_protocol_version(session,
			TLS1_3_VERSION))
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
	size_t prefix = sizeof STREAM_IDENTITY - 1;
	const struct key *key;
	char name[LIMIT_NAME + 1];

	*session = NULL;
	if (n <= prefix || n - prefix > LIMIT_NAME || memcmp(id, STREAM_IDENTITY, prefix))
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

/* The client's order counts. AES-GCM is the fastest where the processor has instructions for it (5 GB/s of a
 * core beside 3.3 of ChaCha20-Poly1305), and by far the slowest where it has not. */
static const char *ciphers(void)
{
#ifdef __x86_64__
	if (!__builtin_cpu_supports("aes") || !__builtin_cpu_supports("pclmul"))
		return "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256";
#endif
	return "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256";
}

static int tls_setup(struct stream *s, bool server)
{
	BIO *bio;

	pthread_once(&bio_once, bio_init);
	s->in = malloc(STREAM_BUFFER);
	s->out = malloc(STREAM_BUFFER + STREAM_SLACK);
	s->plain = malloc(STREAM_RECORD);
	s->context = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
	if (!bio_method || !s->in || !s->out || !s->plain || !s->context)
		return -ENOMEM;
	SSL_CTX_set_options(s->context, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
	SSL_CTX_set_session_cache_mode(s->context, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_num_tickets(s->context, 0);
	if (!SSL_CTX_set_min_proto_version(s->context, TLS1_3_VERSION) ||
	    !SSL_CTX_set_max_proto_version(s->context, TLS1_3_VERSION) ||
	    !SSL_CTX_set_ciphersuites(s->context, ciphers()) ||
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

/* ---- the handshake ---- */

/* One turn of the handshake: what OpenSSL has to say is sent, what it wants is received. */
static int handshake_step(struct stream *s, int64_t deadline)
{
	int done, error, r;
	ssize_t in;

	ERR_clear_error();
	done = SSL_do_handshake(s->ssl);
	error = done == 1 ? SSL_ERROR_NONE : SSL_get_error(s->ssl, done);
	while ((r = transport_flush(s)) == -EAGAIN) {
		r = transport_wait(s->fd, POLLOUT, deadline - transport_now_ms());
		if (r)
			return r;
	}
	if (error != SSL_ERROR_NONE && error != SSL_ERROR_WANT_READ)
		return -EACCES;
	if (r || error == SSL_ERROR_NONE)
		return r;
	do {
		r = transport_wait(s->fd, POLLIN, deadline - transport_now_ms());
		if (r)
			return r;
		in = transport_receive(s, s->in, STREAM_BUFFER, false, 0);
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
		snprintf(s->identity, sizeof s->identity, STREAM_IDENTITY "%s", key->name);
	s->key = key;
	s->keys = keys;
	r = tls_setup(s, keys != NULL);
	while (!r && !SSL_is_init_finished(s->ssl))
		r = handshake_step(s, deadline);
	s->key = NULL;
	s->keys = NULL;
	if (!r)
		snprintf(s->security, sizeof s->security, "%s %s psk", SSL_get_version(s->ssl),
				SSL_get_cipher_name(s->ssl));
	return r;
}
