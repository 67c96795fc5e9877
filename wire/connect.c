/* SPDX-License-Identifier: Apache-2.0 */
/* The client's side of a connection's beginning, once its server is reached (wire/dial.c): preamble,
 * handshake, and the first PING, whose answer tells that the server has taken us. A server that refuses says
 * FRAME_BYE in clear, with or without TLS.
 *
 * Thread rule: any thread that may block. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "wire/cuda_types.h"
#include "wire/frame.h"
#include "wire/msg.h"
#include "wire/stream.h"
#include "wire/transport.h"

bool transport_is_bye(const void *p, size_t n)
{
	const uint8_t *b = p;

	/* The second and third byte of a TLS record are its version, 3 and 1 or 3; a BYE's head is shorter
	 * than 64 KiB. */
	return n >= 5 && !b[2] && !b[3] && b[4] == FRAME_BYE;
}

/* What a server's BYE means to the one who connects, with a key or without. */
static int bye_meaning(const void *head, size_t n, bool keyed, const char **why)
{
	struct msg m;
	CUresult code;

	msg_init(&m, (void *)head, n);
	get_array(&m, 2);
	code = get_i64(&m);
	if (code == CUDA_ERROR_MPS_MAX_CLIENTS_REACHED) {
		*why = "the server has as many sessions as it allows";
		return -EUSERS;
	}
	if (code == CUDA_ERROR_MPS_CONNECTION_FAILED) {
		*why = keyed ? "the server takes no keys there: leave key= out, or start it with --keys" :
			"the server wants a key: mount with -o key=FILE (scudafs keygen)";
		return -EACCES;
	}
	if (code == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH) {
		*why = "the server speaks another version of the protocol: scudafs --version tells it, and "
			"must tell the same on both sides";
		return -EPROTO;
	}
	*why = "the server is not ready";
	return -ECONNREFUSED;
}

static int read_bye(struct stream *s, const struct frame *f, int64_t deadline, const char **why)
{
	uint8_t head[512];
	size_t n = f->head_len < sizeof head ? f->head_len : sizeof head;
	int r = stream_read_all(s, head, n, deadline - transport_now_ms());

	return r ? r : bye_meaning(head, n, false, why);
}

/* The BYE that came in place of a handshake: its beginning is with the TLS code. */
static int clear_bye(const struct stream *s, const char **why)
{
	const struct frame *f;
	const void *p;
	struct frame copy;
	size_t n = stream_unread(s, &p);

	*why = "this is no scuda-server, or one that does not use keys";
	if (n < sizeof *f)
		return -EACCES;
	memcpy(&copy, p, sizeof copy);
	if (frame_check(&copy, false, NULL) || copy.head_len > n - sizeof copy)
		return -EACCES;
	return bye_meaning((const uint8_t *)p + sizeof copy, copy.head_len, true, why);
}

/* Asks whether the server has taken the connection. */
static int first_ping(struct stream *s, int64_t deadline, const char **why)
{
	struct frame f = {.kind = FRAME_PING};
	struct iovec v = {&f, sizeof f};
	int left = deadline - transport_now_ms();
	int r;

	/* A server that refuses may have closed already; what it said is still there to read. */
	(void)stream_write_all(s, &v, 1, left > 0 ? left : 0);
	left = deadline - transport_now_ms();
	r = stream_read_all(s, &f, sizeof f, left > 0 ? left : 0);
	if (r) {
		*why = r == -ETIMEDOUT ?
			"the server does not answer: is it a scuda-server, and not overloaded?" :
			"the server closed the connection: its log says why";
		return r;
	}
	*why = "this is no scuda-server, or one of another protocol: check the port";
	if (frame_check(&f, false, NULL))
		return -EPROTO;
	if (f.kind == FRAME_BYE)
		return read_bye(s, &f, deadline, why);
	return f.kind == FRAME_PONG ? 0 : -EPROTO;
}

static int begin(struct stream *s, const struct key *key, unsigned flags, const struct share_token *second,
	int64_t deadline, const char **why)
{
	struct preamble p = {.magic = PREAMBLE_MAGIC, .version = PROTOCOL_VERSION};
	struct iovec v = {&p, sizeof p};
	int r = transport_options(stream_fd(s), true);

	if (flags & PREAMBLE_PACK && transport_is_near(stream_fd(s)))
		flags &= ~(unsigned)PREAMBLE_PACK;
	p.flags = (uint8_t)(flags | (key ? PREAMBLE_TLS : 0) | (second ? PREAMBLE_SECOND : 0));
	if (second)
		memcpy(p.routing, second, sizeof p.routing);
	r = r ? r : stream_write_all(s, &v, 1, deadline - transport_now_ms());
	if (!r && key) {
		*why = "the TLS handshake failed";
		r = stream_handshake(s, key, NULL, deadline);
		if (r == -EPROTO)
			return clear_bye(s, why);
		if (r == -EACCES)
			*why = "the server refuses the key: its --keys file must have the same line";
	}
	r = r ? r : first_ping(s, deadline, why);
	if (!r && flags & (PREAMBLE_PACK | PREAMBLE_PACK_ALWAYS)) {
		s->pack = pack_create(flags & PREAMBLE_PACK_ALWAYS, false);
		r = s->pack ? 0 : -ENOMEM;
	}
	return r;
}

/* What no step has a better word for, with the way out. */
static const char *failure_meaning(int r)
{
	switch (-r) {
	case ECONNREFUSED:
		return "connection refused: start scuda-server there, or give the port that it listens on";
	case ETIMEDOUT:
		return "no answer: is the host up, and does its firewall let the port through?";
	case EHOSTUNREACH:
	case ENETUNREACH:
		return "the host cannot be reached: check the address and the network";
	case ENOENT:
		return "there is no such socket: start scuda-server there";
	case EACCES:
		return "permission denied";
	case ECONNRESET:
	case EPIPE:
		return "the server closed the connection: its log says why";
	default:
		return "cannot connect";
	}
}

static int connect_as(const char *address, const struct key *key, unsigned flags,
	const struct share_token *second, int timeout_ms, struct stream **out, const char **why)
{
	int64_t deadline = transport_now_ms() + timeout_ms;
	const char *reason = NULL;
	struct stream *s = NULL;
	int fd = -1, r = transport_dial(address, deadline, &fd, &reason);

	if (!r) {
		s = stream_new(fd);
		if (!s)
			close(fd);
		r = s ? begin(s, key, flags, second, deadline, &reason) : -ENOMEM;
	}
	if (second && r == -EACCES)
		reason = "the server expects none, or expects it no more";
	if (why)
		*why = r && !reason ? failure_meaning(r) : reason;
	if (r) {
		stream_close(s);
		return r;
	}
	*out = s;
	return 0;
}

int stream_connect(const char *address, const struct key *key, unsigned flags, int timeout_ms,
		struct stream **out, const char **why)
{
	return connect_as(address, key, flags, NULL, timeout_ms, out, why);
}

int stream_connect_second(const char *address, const struct share_token *token, int timeout_ms,
		struct stream **out, const char **why)
{
	return connect_as(address, NULL, 0, token, timeout_ms, out, why);
}
