/* SPDX-License-Identifier: Apache-2.0 */
/* Files that the driver would write where the program runs: the server sends their text in pieces.
 *
 * Thread rule: a struct file belongs to its call. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "devshim/call.h"

struct file {
	const char *path;
	bool append;                /* behind what is in the file already */
	uint64_t written, size;     /* bytes; size: of the whole text, once the first piece has come */
	void *piece;
	int fd_plus_1;
};

/* Waits for the answer to a call whose record says which piece it asks for, and writes the piece. The
 * answer is [size of the whole], its bulk the piece. */
CUresult file_next(struct file *f, struct call *c);
/* Writes n bytes that come next. */
CUresult file_write(struct file *f, const char *p, size_t n);
/* Ends it, after the last piece or an error: returns r, or the code of what went wrong with the file. */
CUresult file_close(struct file *f, CUresult r);
