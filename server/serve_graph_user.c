/* SPDX-License-Identifier: Apache-2.0 */
/* User objects, whose destructors the program runs, and what the driver writes into files, which are the
 * program's.
 *
 * Thread rule: the serve functions as exec.h; the destructor runs on any thread of the driver's. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "server/serve.h"
#include "server/state.h"
#include "wire/limits.h"
#include "wire/log.h"
#include "cuda.calls.h"

struct user {
	uint64_t upcall, id;
};

/* Nobody waits for the program's destructor, as nobody waits for a destructor natively. */
static void user_destroyed(void *arg)
{
	struct user *u = arg;
	struct session *s = session_self();

	session_upcall(s, u->upcall, false);
	handle_drop(s->handles, u->id);
	free(u);
}

/* [upcall, references, flags] -> [object] */
CUresult serve_cuUserObjectCreate(struct exec *x)
{
	uint64_t upcall = get_u64(&x->in);
	unsigned count = (unsigned)get_u64(&x->in), flags = (unsigned)get_u64(&x->in);
	CUuserObject object = NULL;

	if (!get_end(&x->in))
		return SERVE_BAD;
	struct user *u = malloc(sizeof *u);

	if (!u)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*u = (struct user){.upcall = upcall};
	CUresult r = drv.cuUserObjectCreate(&object, u, user_destroyed, count, flags);

	if (r) {
		free(u);
		return r;
	}
	u->id = exec_id_of(x, HANDLE_CUuserObject, object);
	put_u64(&x->out, u->id);
	return r;
}

/* ---- files */

int file_make(char *path, size_t cap)
{
	int fd = memfd_create("scuda", MFD_CLOEXEC);

	if (fd < 0) {
		log_warning("a file for the driver cannot be made: %s", strerror(errno));
		return fd;
	}
	snprintf(path, cap, "/proc/self/fd/%d", fd);
	return fd;
}

CUresult file_put(struct exec *x, int fd, uint64_t offset, CUresult r)
{
	struct stat st;
	uint64_t size;

	if (!r && fstat(fd, &st))
		r = CUDA_ERROR_OPERATING_SYSTEM;
	if (!r) {
		size = (uint64_t)st.st_size;
		x->bulk_len = offset < size ? size - offset : 0;
		if (x->bulk_len > LIMIT_REPLY)
			x->bulk_len = LIMIT_REPLY;
		x->bulk = exec_alloc(x, x->bulk_len + 1);
		if (!x->bulk || pread(fd, x->bulk, x->bulk_len, (off_t)offset) != (ssize_t)x->bulk_len)
			r = CUDA_ERROR_OPERATING_SYSTEM;
		put_u64(&x->out, size);
	}
	close(fd);
	if (r)
		x->bulk_len = x->out.len = 0;
	return r;
}

/* [graph, flags, offset] -> [size], bulk: the text from there on. Drawn anew for each piece: that of a
 * graph of a few thousand nodes is one. */
CUresult serve_cuGraphDebugDotPrint(struct exec *x)
{
	CUgraph g = exec_handle(x, HANDLE_CUgraph);
	unsigned flags = (unsigned)get_u64(&x->in);
	uint64_t offset = get_u64(&x->in);
	char path[32];

	if (!get_end(&x->in))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	int fd = file_make(path, sizeof path);

	if (fd < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	return file_put(x, fd, offset, drv.cuGraphDebugDotPrint(g, path, flags));
}
