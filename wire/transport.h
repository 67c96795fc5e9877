/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of a connection share (wire/stream.c, stream_bytes.c, tls.c, pack.c, connect.c, dial.c,
 * socket.c); the clock is for everybody, the rest for nobody else. */
#pragma once
#include <openssl/types.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>
#include "wire/limits.h"

#define STREAM_BUFFER (256u << 10)
#define STREAM_RECORD 16384u
/* Room in `out` behind a full batch: record headers and tags, and what reading makes OpenSSL say. */
#define STREAM_SLACK (32u << 10)

/* Identities carry the role, so that a handshake cannot be reflected to a peer that uses the same key in the
 * other role. */
#define STREAM_IDENTITY "scuda-client:"

struct key;
struct keys;

#define STREAM_PIECES 16 /* of one write */

struct pack;

struct stream {
	int fd;
	bool blocking;              /* the socket; only reading that shall wait makes use of it */
	int receive_ms;             /* SO_RCVTIMEO as last set */
	SSL_CTX *context;
	SSL *ssl;                   /* NULL: clear */
	struct pack *pack;          /* NULL: frames as they are */
	pthread_mutex_t lock;
	size_t in_pos, in_len, out_pos, out_len;
	size_t owed;                /* plaintext bytes in `out` that stream_writev has not told the caller */
	const struct key *key;      /* during the handshake only */
	const struct keys *keys;
	char identity[sizeof STREAM_IDENTITY + LIMIT_NAME];
	char security[64];
	/* STREAM_BUFFER, STREAM_BUFFER + STREAM_SLACK, STREAM_RECORD bytes; only under TLS. */
	uint8_t *in, *out, *plain;
};

/* Milliseconds of the monotonic clock. */
int64_t transport_now_ms(void);
/* A clear stream over fd. */
struct stream *stream_new(int fd);
/* The handshake: a client gives its key, a server its keys. -EACCES when it failed, -EPROTO when the
 * server said BYE in clear (stream_unread has it). */
int stream_handshake(struct stream *s, const struct key *key, const struct keys *keys, int64_t deadline);
/* Bytes received and not looked at. */
size_t stream_unread(const struct stream *s, const void **p);
/* Waits for poll events. 0, -ETIMEDOUT or another -errno. */
int transport_wait(int fd, short events, int timeout_ms);
/* One recv; block: at most timeout_ms. Bytes, 0 at the end, -EAGAIN or -ETIMEDOUT, or another -errno. */
ssize_t transport_receive(struct stream *s, void *p, size_t n, bool block, int timeout_ms);
/* What the connection carries, clear or under TLS, below pack.c: the results of stream_read and
 * stream_writev. */
ssize_t transport_read(struct stream *s, void *p, size_t n, bool block, int timeout_ms);
ssize_t transport_writev(struct stream *s, const struct iovec *v, int n);

/* wire/pack.c. `first`: the first frame in each direction goes as it is. The rest as of the stream. */
struct pack *pack_create(bool always, bool first);
void pack_free(struct pack *p);
ssize_t pack_read(struct stream *s, void *p, size_t n, bool block, int timeout_ms);
ssize_t pack_writev(struct stream *s, const struct iovec *v, int n);
bool pack_pending(const struct pack *p);

/* Sends the ciphertext in `out`. 0 when it is empty, -EAGAIN, or another -errno. */
int transport_flush(struct stream *s);
/* True when p starts like a FRAME_BYE rather than a TLS record. */
bool transport_is_bye(const void *p, size_t n);
/* What every connection wants of its socket: no delay, an end to silent death. */
int transport_options(int fd, bool nonblocking);
/* On the same host the link is memory: nothing is faster for being compressed. */
bool transport_is_near(int fd);
/* A connected socket, non-blocking, for an address in the user's words. 0, or -errno and perhaps *why. */
int transport_dial(const char *address, int64_t deadline, int *fd, const char **why);
