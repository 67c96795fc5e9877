/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a file for the driver. Opened when the first piece has come, so that a call that the driver refuses
 * leaves no file. Thread rule: as file.h. */
#include "devshim/file.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "wire/limits.h"
#include "wire/log.h"
#include "wire/uncancelled.h"

CUresult file_write(struct file *f, const char *p, size_t n)
{
	uncancelled state = uncancelled_begin();
	int saved = errno, fd = f->fd_plus_1 - 1;
	CUresult r = CUDA_SUCCESS;

	if (fd < 0) {
		fd = open(f->path, O_WRONLY | O_CREAT | O_CLOEXEC | (f->append ? O_APPEND : O_TRUNC), 0666);
		f->fd_plus_1 = fd + 1;
	}
	if (fd < 0)
		r = CUDA_ERROR_OPERATING_SYSTEM;
	while (!r && n) {
		ssize_t done = write(fd, p, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0) {
			r = CUDA_ERROR_OPERATING_SYSTEM;
			break;
		}
		p += done;
		n -= (size_t)done;
	}
	if (r)
		log_warning("%s cannot be written: %s", f->path, strerror(errno));
	errno = saved;
	return r;
}

CUresult file_next(struct file *f, struct call *c)
{
	CUresult r;

	if (!f->piece && !(f->piece = malloc(LIMIT_REPLY)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	c->bulk_out = f->piece;
	c->bulk_out_len = LIMIT_REPLY;
	r = call_wait(c);
	if (!r)
		f->size = get_u64(&c->in);
	size_t n = c->bulk_out_len;

	r = call_end(c, r);
	if (r)
		return r;
	f->written += n;
	/* What has become shorter meanwhile ends here. */
	if (!n)
		f->size = f->written;
	return file_write(f, f->piece, n);
}

CUresult file_close(struct file *f, CUresult r)
{
	uncancelled state = uncancelled_begin();
	int saved = errno;

	free(f->piece);
	if (f->fd_plus_1 && close(f->fd_plus_1 - 1) && !r)
		r = CUDA_ERROR_OPERATING_SYSTEM;
	errno = saved;
	return r;
}
