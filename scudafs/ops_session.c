/* SPDX-License-Identifier: Apache-2.0 */
/* File operations on the session node (wire/ctl.h): each becomes a `struct operation` that the session's
 * relay answers when the time has come. An interrupt names its session by number, because the relay may have
 * ended in the meantime.
 *
 * Thread rule: called by the loop's threads, several at a time; operations are answered by any thread. */
#include "scudafs/ops_parts.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "scudafs/buffer.h"
#include "scudafs/loop.h"
#include "scudafs/relay.h"
#include "scudafs/tree.h"
#include "wire/ctl.h"
#include "wire/log.h"
#include "wire/ring.h"

/* A session's operation on its way through a relay. */
struct operation {
	struct request request;
	fuse_req_t req;
	struct fuse_file_info file; /* of an open */
};

static bool was_interrupted(struct request *q)
{
	return fuse_req_interrupted(((struct operation *)q)->req);
}

static void on_interrupt(fuse_req_t req, void *session)
{
	relay_interrupt((unsigned)(uintptr_t)session, req);
}

static struct operation *operation_create(fuse_req_t req, unsigned session,
	void (*answer)(struct request *, int, const struct iovec *, int))
{
	struct operation *o = calloc(1, sizeof(*o));
	if (!o) {
		fuse_reply_err(req, ENOMEM);
		return NULL;
	}
	o->req = req;
	o->request.answer = answer;
	o->request.interrupted = was_interrupted;
	o->request.token = req;
	fuse_req_interrupt_func(req, on_interrupt, (void *)(uintptr_t)session);
	return o;
}

static void answer_opened(struct request *q, int r, const struct iovec *v, int n)
{
	struct operation *o = (struct operation *)q;
	(void)v, (void)n;
	o->file.fh = (uintptr_t)q->relay;
	if (r) {
		fuse_reply_err(o->req, -r);
		relay_close(q->relay);
	} else if (loop_reply_parallel(o->req, &o->file)) {
		relay_close(q->relay);      /* the opener is gone */
	}
	free(o);
}

static void answer_write(struct request *q, int r, const struct iovec *v, int n)
{
	struct operation *o = (struct operation *)q;
	(void)v, (void)n;
	if (r < 0)
		fuse_reply_err(o->req, -r);
	else
		fuse_reply_write(o->req, (size_t)r);
	free(o);
}

/* A write that came by an ioctl. */
static void answer_written(struct request *q, int r, const struct iovec *v, int n)
{
	struct operation *o = (struct operation *)q;
	(void)v, (void)n;
	if (r < 0)
		fuse_reply_err(o->req, -r);
	else
		fuse_reply_ioctl(o->req, 0, NULL, 0);
	free(o);
}

static void answer_read(struct request *q, int r, const struct iovec *v, int n)
{
	struct operation *o = (struct operation *)q;
	if (r < 0)
		fuse_reply_err(o->req, -r);
	else
		fuse_reply_iov(o->req, v, n);
	free(o);
}

static void answer_wait(struct request *q, int r, const struct iovec *v, int n)
{
	struct operation *o = (struct operation *)q;
	if (r < 0)
		fuse_reply_err(o->req, -r);
	else
		fuse_reply_ioctl_iov(o->req, 0, v, n);
	free(o);
}

void session_open(fuse_req_t req, fuse_ino_t ino, unsigned server, const struct fuse_file_info *fi)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(req);
	if (!ops_allowed(ctx)) {
		fuse_reply_err(req, EACCES);
		return;
	}
	struct relay_options r = {.id = relay_new_id(),
		.address = tree_server_address(server),
		.credential = ops_options.credential,
		.flags = ops_options.flags,
		.connections = ops_options.connections,
		.node = ino,
		.server = server,
		.pid = ctx->pid,
		.uid = ctx->uid};
	struct operation *o = operation_create(req, r.id, answer_opened);
	if (!o)
		return;
	o->file = *fi;
	o->file.direct_io = 1;
	o->file.noflush = 1;
	relay_create(&r, &o->request);
}

void session_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	struct relay *r = (struct relay *)(uintptr_t)fi->fh;
	unsigned server;
	if (!tree_is_session(ino, &server)) {
		content_reply(req, (struct content *)(uintptr_t)fi->fh, size, off);
		return;
	}
	if (off < CTL_DATA(0, 0)) {     /* for cat, grep and tar the file is empty */
		fuse_reply_buf(req, NULL, 0);
		return;
	}
	struct operation *o = operation_create(req, relay_id(r), answer_read);
	if (!o)
		return;
	uint64_t at = (uint64_t)off;
	if (off < CTL_REPLY(0)) {
		at -= (uint64_t)CTL_DATA(0, 0);
		relay_data(r, at >> 40, at & (((uint64_t)1 << 40) - 1), size, &o->request);
	} else if (off < CTL_UPCALL) {
		at -= (uint64_t)CTL_REPLY(0);
		relay_reply(r, at >> 28, at & (((uint64_t)1 << 28) - 1), size, &o->request);
	} else if (off == CTL_UPCALL) {
		relay_upcall(r, size, &o->request);
	} else {
		answer_read(&o->request, -EINVAL, NULL, 0);
	}
}

/* Bytes for the session that its program writes at `off`, `b` holds them too or is NULL. */
static void write_at(struct relay *r, off_t off, const char *p, size_t n, struct buffer *b,
	struct operation *o)
{
	uint64_t at = (uint64_t)(off - CTL_POST(0));
	if (off == CTL_ASIDE) {
		relay_aside(r, p, n, &o->request);
	} else if (at % LIMIT_BATCH) {
		log_warning("session %u: a batch covers more pages than one request of the kernel's has",
			relay_id(r));
		o->request.answer(&o->request, -EPROTO, NULL, 0);
	} else if (b) {
		relay_post_buffer(r, at / LIMIT_BATCH, b, &o->request);
	} else {
		relay_post(r, at / LIMIT_BATCH, p, n, &o->request);
	}
}

static bool is_written(off_t off)
{
	return (off >= CTL_POST(0) && off < CTL_DATA(0, 0)) || off == CTL_ASIDE;
}

void session_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
	struct fuse_file_info *fi)
{
	struct relay *r = (struct relay *)(uintptr_t)fi->fh;
	unsigned server;
	if (!tree_is_session(ino, &server) || !size || !is_written(off)) {
		fuse_reply_err(req, EINVAL);
		return;
	}
	struct operation *o = operation_create(req, relay_id(r), answer_write);
	if (!o)
		return;
	struct buffer *b = off == CTL_ASIDE ? NULL : loop_take_payload(size);
	write_at(r, off, buf, size, b, o);
	buffer_unref(b);
}

static void write_by_ioctl(fuse_req_t req, struct relay *r, const void *in, size_t in_size)
{
	struct ctl_write w = {.len = 0};
	if (in_size >= sizeof(w))
		memcpy(&w, in, sizeof(w));
	if (!w.len || w.zero || w.len > in_size - sizeof(w) || !is_written(w.at)) {
		fuse_reply_err(req, EINVAL);
		return;
	}
	struct operation *o = operation_create(req, relay_id(r), answer_written);
	if (o)
		write_at(r, w.at, (const char *)in + sizeof(w), w.len, NULL, o);
}

void session_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned int cmd, void *arg, struct fuse_file_info *fi,
	unsigned flags, const void *in, size_t in_size, size_t out_size)
{
	struct relay *r = (struct relay *)(uintptr_t)fi->fh;
	struct ctl_wait w;
	unsigned server;
	(void)arg;
	if (cmd == CTL_CHANNEL && tree_is_session(ino, &server) && in_size >= sizeof(struct ctl_channel)) {
		struct ctl_channel asked;
		memcpy(&asked, in, sizeof(asked));
		struct operation *o = operation_create(req, relay_id(r), answer_wait);
		if (o && asked.version == RING_VERSION)
			relay_channel(r, &o->request);
		else if (o)
			answer_wait(&o->request, -ENOTSUP, NULL, 0);
		return;
	}
	if (cmd == CTL_UNTIL && tree_is_session(ino, &server) && in_size >= sizeof(struct ctl_until)) {
		struct ctl_until until;
		memcpy(&until, in, sizeof(until));
		struct operation *o = operation_create(req, relay_id(r), answer_wait);
		if (o)
			relay_until(r, &until, &o->request);
		return;
	}
	if (cmd == CTL_WRITE && tree_is_session(ino, &server)) {
		write_by_ioctl(req, r, in, in_size);
		return;
	}
	bool known = cmd == CTL_WAIT_256 || cmd == CTL_WAIT_1K || cmd == CTL_WAIT_4K || cmd == CTL_WAIT_16K;
	if (!known || (flags & FUSE_IOCTL_DIR) || !tree_is_session(ino, &server)) {
		fuse_reply_err(req, ENOTTY);
		return;
	}
	if (in_size < _IOC_SIZE(cmd) || out_size < _IOC_SIZE(cmd)) {
		fuse_reply_err(req, EINVAL);
		return;
	}
	memcpy(&w, in, sizeof(w));
	if (w.len > in_size - sizeof(w) || !w.seq || !w.batch != !w.len) {
		fuse_reply_err(req, EINVAL);
		return;
	}
	struct operation *o = operation_create(req, relay_id(r), answer_wait);
	const char *bytes = (const char *)in + sizeof(w);
	if (o)
		relay_wait(r, w.batch, w.seq, bytes, w.len, out_size - sizeof(w), &o->request);
}
