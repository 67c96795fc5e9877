/* SPDX-License-Identifier: Apache-2.0 */
/* File operations. Everything but the session node is answered from the tree at once; an operation on a
 * session becomes a `struct operation` that its relay answers when the time has come. An interrupt names its
 * session by number, because the relay may have ended in the meantime.
 *
 * Thread rule: called by the loop's threads, several at a time; operations are answered by any thread. */
#include "scudafs/ops.h"
#include <errno.h>
#include <limits.h>
#include <linux/fuse.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "scudafs/buffer.h"
#include "scudafs/loop.h"
#include "scudafs/monitor.h"
#include "scudafs/relay.h"
#include "scudafs/rendezvous.h"
#include "scudafs/tree.h"
#include "wire/ctl.h"
#include "wire/log.h"
#include "wire/ring.h"

#define MAX_WRITE LIMIT_BATCH       /* libfuse 3.14 breaks on more, whatever the kernel allows */

static struct ops_options options;

void ops_init(const struct ops_options *o)
{
	options = *o;
}

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

/* ---- the tree ---- */

static void op_init(void *data, struct fuse_conn_info *c)
{
	(void)data;
	if (c->max_write > MAX_WRITE)
		c->max_write = MAX_WRITE;
	c->want &= ~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE |
		FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_READDIRPLUS);
	options.ready();
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	if (strlen(name) > NAME_MAX) {
		fuse_reply_err(req, ENAMETOOLONG);
		return;
	}
	struct fuse_entry_param e = {.ino = tree_lookup(parent, name)};
	if (!e.ino || tree_stat(e.ino, &e.attr)) {
		fuse_reply_err(req, ENOENT);
		return;
	}
	e.entry_timeout = tree_validity(e.ino);
	e.attr_timeout = e.entry_timeout;
	fuse_reply_entry(req, &e);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct stat st;
	(void)fi;
	int e = tree_stat(ino, &st);
	if (e)
		fuse_reply_err(req, -e);
	else
		fuse_reply_attr(req, &st, tree_validity(ino));
}

/* Opening the session node with O_TRUNC, as `echo > ctl` does, changes nothing; everything else that would
 * is refused. */
static void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int set, struct fuse_file_info *fi)
{
	unsigned server;
	if (tree_is_session(ino, &server) && set == FUSE_SET_ATTR_SIZE && attr->st_size == 0)
		op_getattr(req, ino, fi);
	else
		fuse_reply_err(req, EPERM);
}

/* Nothing can be made but the sockets that rendezvous.c makes. */
static void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t dev)
{
	struct fuse_entry_param e = {.ino = 0};
	unsigned session;
	(void)dev;
	if (S_ISSOCK(mode) && rendezvous_is(fuse_req_ctx(req)->pid) && tree_socket(parent, name, &session) &&
			relay_make_socket(session))
		e.ino = tree_lookup(parent, name);
	if (!e.ino || tree_stat(e.ino, &e.attr))
		fuse_reply_err(req, EPERM);
	else
		fuse_reply_entry(req, &e);
}

/* libfuse would answer ENOSYS, which sounds as if the kernel were too old. */
static void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	(void)parent, (void)name, (void)mode;
	fuse_reply_err(req, EPERM);
}

static void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	(void)parent, (void)name;
	fuse_reply_err(req, EPERM);
}

static void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
	(void)target, (void)parent, (void)name;
	fuse_reply_err(req, EPERM);
}

static void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t to,
	const char *new_name, unsigned flags)
{
	(void)parent, (void)name, (void)to, (void)new_name, (void)flags;
	fuse_reply_err(req, EPERM);
}

static void op_readlink(fuse_req_t req, fuse_ino_t ino)
{
	char *text;
	size_t n;
	int e = tree_read(ino, &text, &n);
	if (e) {
		fuse_reply_err(req, -e);
		return;
	}
	fuse_reply_readlink(req, text);
	free(text);
}

/* A value or a listing, as it was when the file was opened. */
struct content {
	char *text;
	size_t len;
	fuse_req_t req;
	bool bad;
	struct monitor *monitor;    /* a file for a shared handle: whose server keeps it, and the file of
	                             * both */
	struct kept *kept;
};

/* Orders the loop's threads between the requests on one file. The kernel does so, too, but no tool can see
 * that. */
static void content_handover(void)
{
	static atomic_uint handovers;
	atomic_fetch_add(&handovers, 1);
}

static void content_free(struct content *c)
{
	content_handover();
	if (c->kept)
		monitor_drop(c->monitor, c->kept);
	free(c->text);
	free(c);
}

static void content_reply(fuse_req_t req, struct content *c, size_t size, off_t off)
{
	content_handover();
	size_t left = off < 0 || (size_t)off >= c->len ? 0 : c->len - (size_t)off;
	const char *p = left ? c->text + off : NULL;
	content_handover();
	fuse_reply_buf(req, p, size < left ? size : left);
}

static void open_session(fuse_req_t req, fuse_ino_t ino, unsigned server, const struct fuse_file_info *fi)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(req);
	if (!options.allow_other && ctx->uid != options.owner && ctx->uid != 0) {
		fuse_reply_err(req, EACCES);
		return;
	}
	struct relay_options r = {.id = relay_new_id(),
		.address = tree_server_address(server),
		.credential = options.credential,
		.flags = options.flags,
		.connections = options.connections,
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

/* ---- files for shared handles */

struct opening {
	struct kept kept;           /* first: it is the keeper's from the answer on */
	struct content *content;
	struct fuse_file_info file;
};

static void answer_kept(struct kept *k, int error)
{
	struct opening *o = (struct opening *)k;
	struct content *c = o->content;
	fuse_req_t req = c->req;
	if (error) {
		free(o);
		content_free(c);
		fuse_reply_err(req, -error);
		return;
	}
	struct ctl_handle h = {.magic = CTL_HANDLE_MAGIC, .token = k->token};
	memcpy(c->text, &h, sizeof(h));
	c->kept = k;
	o->file.fh = (uintptr_t)c;
	o->file.direct_io = 1;
	o->file.noflush = 1;
	content_handover();
	if (fuse_reply_open(req, &o->file))
		content_free(c);
}

static void open_handle(fuse_req_t req, unsigned server, const struct fuse_file_info *fi)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(req);
	if (!options.allow_other && ctx->uid != options.owner && ctx->uid != 0) {
		fuse_reply_err(req, EACCES);
		return;
	}
	struct opening *o = calloc(1, sizeof(*o));
	struct content *c = calloc(1, sizeof(*c));
	char *text = calloc(1, sizeof(struct ctl_handle));
	if (!o || !c || !text) {
		free(o), free(c), free(text);
		fuse_reply_err(req, ENOMEM);
		return;
	}
	*c = (struct content){
		.text = text, .len = sizeof(struct ctl_handle), .req = req, .monitor = tree_monitor(server)};
	*o = (struct opening){.kept.done = answer_kept, .content = c, .file = *fi};
	monitor_keep(c->monitor, &o->kept);
}

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	unsigned server;
	if (tree_is_session(ino, &server)) {
		open_session(req, ino, server, fi);
		return;
	}
	if (tree_is_handle(ino, &server)) {
		open_handle(req, server, fi);
		return;
	}
	if ((fi->flags & O_ACCMODE) != O_RDONLY || fi->flags & O_TRUNC) {
		fuse_reply_err(req, EACCES);
		return;
	}
	struct content *c = calloc(1, sizeof(*c));
	int e = c ? tree_read(ino, &c->text, &c->len) : -ENOMEM;
	if (e) {
		free(c);
		fuse_reply_err(req, -e);
		return;
	}
	fi->fh = (uintptr_t)c;
	fi->direct_io = 1;
	fi->noflush = 1;
	content_handover();
	if (fuse_reply_open(req, fi))
		content_free(c);
}

static bool add_entry(void *arg, const char *name, uint64_t node)
{
	struct content *c = arg;
	struct stat st;
	if (tree_stat_type(node, &st))
		return true;
	size_t n = fuse_add_direntry(c->req, NULL, 0, name, NULL, 0);
	char *p = realloc(c->text, c->len + n);
	if (!p) {
		c->bad = true;
		return false;
	}
	c->text = p;
	fuse_add_direntry(c->req, p + c->len, n, name, &st, (off_t)(c->len + n));
	c->len += n;
	return true;
}

static void op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct content *c = calloc(1, sizeof(*c));
	int e = -ENOMEM;
	if (c) {
		c->req = req;
		add_entry(c, ".", ino);
		add_entry(c, "..", tree_parent(ino));
		e = tree_list(ino, add_entry, c);
		if (c->bad)
			e = -ENOMEM;
	}
	if (e) {
		if (c)
			content_free(c);
		fuse_reply_err(req, -e);
		return;
	}
	fi->fh = (uintptr_t)c;
	content_handover();
	if (fuse_reply_open(req, fi))
		content_free(c);
}

/* An offset is where the next entry begins in the listing; only whole entries are given. */
static void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	struct content *c = (struct content *)(uintptr_t)fi->fh;
	size_t at = (size_t)off, end = at;
	(void)ino;
	content_handover();
	while (end < c->len) {
		struct fuse_dirent d;
		memcpy(&d, c->text + end, FUSE_NAME_OFFSET);
		if (end + FUSE_DIRENT_SIZE(&d) - at > size)
			break;
		end += FUSE_DIRENT_SIZE(&d);
	}
	const char *p = at < end ? c->text + at : NULL;
	content_handover();
	fuse_reply_buf(req, p, at < end ? end - at : 0);
}

static void op_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	content_free((struct content *)(uintptr_t)fi->fh);
	fuse_reply_err(req, 0);
}

static void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	unsigned server;
	if (tree_is_session(ino, &server))
		relay_close((struct relay *)(uintptr_t)fi->fh);
	else
		content_free((struct content *)(uintptr_t)fi->fh);
	fuse_reply_err(req, 0);
}

static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct statvfs s = {.f_bsize = 4096, .f_frsize = 4096, .f_namemax = NAME_MAX};
	(void)ino;
	fuse_reply_statfs(req, &s);
}

/* ---- sessions ---- */

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
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

static void op_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
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

static void op_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned int cmd, void *arg, struct fuse_file_info *fi,
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

const struct fuse_lowlevel_ops ops = {
	.init = op_init,
	.lookup = op_lookup,
	.getattr = op_getattr,
	.setattr = op_setattr,
	.mknod = op_mknod,
	.mkdir = op_mkdir,
	.unlink = op_unlink,
	.rmdir = op_unlink,
	.symlink = op_symlink,
	.rename = op_rename,
	.readlink = op_readlink,
	.open = op_open,
	.read = op_read,
	.write = op_write,
	.release = op_release,
	.opendir = op_opendir,
	.readdir = op_readdir,
	.releasedir = op_releasedir,
	.statfs = op_statfs,
	.ioctl = op_ioctl,
};
