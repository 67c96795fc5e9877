/* SPDX-License-Identifier: Apache-2.0 */
/* One connection, clear or TLS 1.3 with a pre-shared key (OpenSSL; cipher list
 * TLS_AES_128_GCM_SHA256 and TLS_CHACHA20_POLY1305_SHA256, psk_dhe_ke only, no tickets, no 0-RTT). Shared by
 * the daemon (client side) and the server's session (server side). The socket is non-blocking.
 *
 * Thread rule: one thread reads and one writes at a time, the two may be different threads; inside, the
 * TLS state has its own lock. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct stream;
struct key;     /* wire/keys.h */

/* Connects to "host", "host:port", "[v6]:port" or "unix:/path" (default port 9710), sends the preamble
 * with `flags` (PREAMBLE_TLS is added when key is not NULL), makes the TLS handshake and waits for the
 * answer to a PING, which comes when the server has taken the connection, all within timeout_ms. Blocks:
 * not for a FUSE thread. Returns 0 or -errno: -EACCES when the server refuses the key or wants one,
 * -EUSERS at its session limit, -EPROTO when it is no scuda-server. *why (may be NULL): a constant text
 * for the user. */
int stream_connect(const char *address, const struct key *key, unsigned flags, int timeout_ms,
		struct stream **out, const char **why);

/* The same for the second connection of a session, which is in clear: the server has said `token` for it. */
struct share_token;
int stream_connect_second(const char *address, const struct share_token *token, int timeout_ms,
		struct stream **out, const char **why);
/* No TLS. */
bool stream_is_clear(const struct stream *s);

/* Server side: takes over `fd`, whose preamble was read. `keys`: NULL for a clear connection. On success
 * *identity is the key's name (owned by the stream). */
struct keys;
int stream_accept(int fd, const struct keys *keys, int timeout_ms, struct stream **out,
		const char **identity, const char **why);

/* From the second frame of each direction on it is blocks that travel (wire/pack.c); `always`: compressed
 * whatever the link is like. For the server, before the first frame; a client says so by its preamble's
 * flags. 0 or -ENOMEM. */
int stream_pack(struct stream *s, bool always);
int stream_fd(const struct stream *s);
/* Reads what is there, up to n bytes. Returns bytes > 0, 0 at the end of the connection, -EAGAIN, or
 * another -errno. */
ssize_t stream_read(struct stream *s, void *p, size_t n);
/* True when stream_read would return bytes although the socket shows none (TLS has them). */
int stream_pending(const struct stream *s);
/* Writes what the socket takes. Returns bytes > 0, -EAGAIN, or another -errno (-EPIPE, -ECONNRESET, ...).
 * Never raises SIGPIPE. After -EAGAIN or a short count the next call must go on with the very bytes that
 * this one had not taken: under TLS some of them may be on their way already. */
ssize_t stream_writev(struct stream *s, const struct iovec *v, int n);
/* The same until all is written or `timeout_ms` passes without progress (-ETIMEDOUT). For threads that may
 * block. */
int stream_write_all(struct stream *s, const struct iovec *v, int n, int timeout_ms);
/* The same, and moves *v and *n on, and the first piece's own begin: behind -ETIMEDOUT it may be called again
 * with what is left. */
int stream_write_rest(struct stream *s, struct iovec **v, int *n, int timeout_ms);
/* Reads exactly n bytes; -ETIMEDOUT when nothing comes for timeout_ms; -ECONNRESET at a premature end; 0
 * when done. */
int stream_read_all(struct stream *s, void *p, size_t n, int timeout_ms);
/* Waits until at least one byte is there, reads up to n. For threads that may block; on the server's side
 * one system call. */
ssize_t stream_read_wait(struct stream *s, void *p, size_t n, int timeout_ms);
/* "none" or "TLSv1.3 TLS_AES_128_GCM_SHA256 psk". */
const char *stream_security(const struct stream *s);
void stream_close(struct stream *s);    /* NULL is fine */
