/* SPDX-License-Identifier: Apache-2.0 */
/* The FUSE loop. Parallel direct writes are an open flag that libfuse 3.14 has no field for: without it the
 * kernel sends the writes of a file one by one. The flag is put into the reply on its way to the kernel, by
 * the hook that libfuse has for other transports; it reads and writes the same device.
 *
 * Thread rule: the mark `parallel` belongs to the thread that replies. */
#include "scudafs/loop.h"
#include <errno.h>
#include <linux/fuse.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define THREADS_LEAST 6u
#define THREADS_MOST 16u

static _Thread_local bool parallel;

static ssize_t device_writev(int fd, struct iovec *v, int n, void *data)
{
	(void)data;
	if (parallel && n == 2 && v[1].iov_len == sizeof(struct fuse_open_out)) {
		struct fuse_open_out out;
		memcpy(&out, v[1].iov_base, sizeof(out));
		out.open_flags |= FOPEN_PARALLEL_DIRECT_WRITES;
		memcpy(v[1].iov_base, &out, sizeof(out));
	}
	/* Not libc's: what the reply is made of may be freed by another thread as soon as the kernel has
	 * it, and a sanitizer's writev would look at it once more. */
	return syscall(SYS_writev, fd, v, n);
}

static ssize_t device_read(int fd, void *buf, size_t n, void *data)
{
	(void)data;
	return read(fd, buf, n);
}

int loop_prepare(struct fuse_session *se)
{
	static const struct fuse_custom_io io = {.writev = device_writev, .read = device_read};
	return fuse_session_custom_io(se, &io, fuse_session_fd(se));
}

int loop_reply_parallel(fuse_req_t req, const struct fuse_file_info *fi)
{
	parallel = true;
	int e = fuse_reply_open(req, fi);
	parallel = false;
	return e;
}

int loop_run(struct fuse_session *se)
{
	struct fuse_loop_config *c = fuse_loop_cfg_create();
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned threads = cpus < 1 ? THREADS_LEAST : 2 * (unsigned)cpus;
	if (!c)
		return -ENOMEM;
	threads = threads < THREADS_LEAST ? THREADS_LEAST : threads > THREADS_MOST ? THREADS_MOST : threads;
	fuse_loop_cfg_set_clone_fd(c, 1);
	fuse_loop_cfg_set_max_threads(c, threads);
	fuse_loop_cfg_set_idle_threads(c, threads);
	int r = fuse_session_loop_mt(se, c);
	fuse_loop_cfg_destroy(c);
	return r;
}
