/* SPDX-License-Identifier: Apache-2.0 */
/* What the file operations share: ops.c (the tree, and the table of all), ops_content.c (what can be read of
 * a file that is open) and ops_session.c (the session node).
 *
 * Thread rule: ops.h. */
#pragma once
#include "scudafs/ops.h"

extern struct ops_options ops_options;
/* May this caller open sessions and files for shared handles here? */
bool ops_allowed(const struct fuse_ctx *ctx);

/* ops_content.c. A value, a listing or a file for a shared handle, as it was when the file was opened. */
struct content;
void content_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void content_open_handle(fuse_req_t req, unsigned server, const struct fuse_file_info *fi);
void content_reply(fuse_req_t req, struct content *c, size_t size, off_t off);
void content_free(struct content *c);
void content_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void content_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);

/* ops_session.c. The operations on an open file; all but session_open refuse, or give what another file has,
 * when the node is no session's. */
void session_open(fuse_req_t req, fuse_ino_t ino, unsigned server, const struct fuse_file_info *fi);
void session_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
void session_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
	struct fuse_file_info *fi);
void session_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned int cmd, void *arg, struct fuse_file_info *fi,
	unsigned flags, const void *in, size_t in_size, size_t out_size);
