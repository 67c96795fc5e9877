/* SPDX-License-Identifier: Apache-2.0 */
/* File operations on the tree, which answers all of them at once, and the table of all operations.
 *
 * Thread rule: called by the loop's threads, several at a time. */
#include "scudafs/ops.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "scudafs/ops_parts.h"
#include "scudafs/relay.h"
#include "scudafs/rendezvous.h"
#include "scudafs/tree.h"
#include "wire/limits.h"

#define MAX_WRITE LIMIT_BATCH       /* libfuse 3.14 breaks on more, whatever the kernel allows */

struct ops_options ops_options;

void ops_init(const struct ops_options *o)
{
	ops_options = *o;
}

bool ops_allowed(const struct fuse_ctx *ctx)
{
	return ops_options.allow_other || ctx->uid == ops_options.owner || ctx->uid == 0;
}

static void op_init(void *data, struct fuse_conn_info *c)
{
	(void)data;
	if (c->max_write > MAX_WRITE)
		c->max_write = MAX_WRITE;
	c->want &= ~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE |
		FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_READDIRPLUS);
	ops_options.ready();
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

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	unsigned server;
	if (tree_is_session(ino, &server)) {
		session_open(req, ino, server, fi);
		return;
	}
	if (tree_is_handle(ino, &server)) {
		content_open_handle(req, server, fi);
		return;
	}
	content_open(req, ino, fi);
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
	.read = session_read,
	.write = session_write,
	.release = op_release,
	.opendir = content_opendir,
	.readdir = content_readdir,
	.releasedir = op_releasedir,
	.statfs = op_statfs,
	.ioctl = session_ioctl,
};
