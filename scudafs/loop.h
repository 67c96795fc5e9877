/* SPDX-License-Identifier: Apache-2.0 */
/* The FUSE loop: libfuse's threads, each with a descriptor of its own, and the one reply that libfuse 3.14
 * cannot make. */
#pragma once
#include "scudafs/ops.h"

struct buffer;

/* After fuse_session_mount. 0 or -errno. */
int loop_prepare(struct fuse_session *se);
/* Serves until the mount ends or a signal comes. Returns 0, the signal's number, or -errno. */
int loop_run(struct fuse_session *se);
/* fuse_reply_open for a file that is written by several threads at a time. */
int loop_reply_parallel(fuse_req_t req, const struct fuse_file_info *fi);
/* In the handler of a write of n bytes: the buffer that has them, in [off, len), or NULL when they are where
 * the handler was told. The buffer is the caller's then. */
struct buffer *loop_take_payload(size_t n);
