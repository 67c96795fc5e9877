/* SPDX-License-Identifier: Apache-2.0 */
/* What can be read of a file or folder of the tree, as it was when it was opened: a value, a listing, or the
 * token of a file for a shared handle, which its server keeps until the last close.
 *
 * Thread rule: called by the loop's threads, several at a time; a content belongs to its open file. */
#include "scudafs/ops_parts.h"
#include <errno.h>
#include <linux/fuse.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "scudafs/monitor.h"
#include "scudafs/tree.h"
#include "wire/ctl.h"

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

void content_free(struct content *c)
{
	content_handover();
	if (c->kept)
		monitor_drop(c->monitor, c->kept);
	free(c->text);
	free(c);
}

void content_reply(fuse_req_t req, struct content *c, size_t size, off_t off)
{
	content_handover();
	size_t left = off < 0 || (size_t)off >= c->len ? 0 : c->len - (size_t)off;
	const char *p = left ? c->text + off : NULL;
	content_handover();
	fuse_reply_buf(req, p, size < left ? size : left);
}

void content_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
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

/* ---- files for shared handles ---- */

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

void content_open_handle(fuse_req_t req, unsigned server, const struct fuse_file_info *fi)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(req);
	if (!ops_allowed(ctx)) {
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

/* ---- listings ---- */

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

void content_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
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

/* Behind the entry that begins at byte `at` of the listing. */
static size_t entry_end(const struct content *c, size_t at)
{
	struct fuse_dirent d;
	memcpy(&d, c->text + at, FUSE_NAME_OFFSET);
	return at + FUSE_DIRENT_SIZE(&d);
}

/* An offset is where the next entry begins in the listing; only whole entries are given. Anybody may seek in
 * a folder, to any number: what is given begins with the first entry that begins there or behind. */
void content_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	struct content *c = (struct content *)(uintptr_t)fi->fh;
	size_t at = 0, end, next;
	(void)ino;
	content_handover();
	while (at < c->len && at < (size_t)off)
		at = entry_end(c, at);
	for (end = at; end < c->len && (next = entry_end(c, end)) - at <= size; end = next)
		;
	const char *p = at < end ? c->text + at : NULL;
	content_handover();
	fuse_reply_buf(req, p, end - at);
}
