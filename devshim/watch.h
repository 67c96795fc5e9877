/* SPDX-License-Identifier: Apache-2.0 */
/* Which bytes of memory that the GPU uses in place (mirror.h) the program may have written since that was
 * asked last. Where the kernel notes written pages (Linux 6.7 and later: userfaultfd's asynchronous write
 * protection, PAGEMAP_SCAN; no signal, no fault that the program could see) only those; else all of them.
 *
 * A device that writes into pages which it pinned before (a read with O_DIRECT under way) is seen by nobody:
 * of pinned memory, pages that were written in the last second count as written again each time. What pins
 * for longer (io_uring's fixed buffers, RDMA) asks for SCUDAFS_WATCH=off.
 *
 * Thread rule: the caller serialises what concerns one watch. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct watch {
	uint64_t base;
	size_t size;
	size_t pages;           /* watched, from base on; 0: none, all bytes always count */
	bool pinned;
	bool all;               /* all bytes count next time */
	int64_t turned;         /* ms, when `before` took over from `now` */
	uint64_t *now, *before; /* a bit a page */
	size_t at;              /* of the walk under way */
};

/* Begins to watch `size` bytes of private memory of the program from base on, until they are unmapped; all
 * count as written at first. Without the kernel's or memory's help that stays so. */
void watch_open(struct watch *w, uint64_t base, size_t size, bool pinned);
/* The same without any watching, for memory that others may write. */
void watch_none(struct watch *w, uint64_t base, size_t size);
void watch_close(struct watch *w);

/* A walk over the bytes that may have been written since the last walk: watch_begin, then watch_next while it
 * is true; [*from, *to) are offsets, multiples of 4096 but at the range's end. What is written meanwhile
 * counts for the next walk. */
void watch_begin(struct watch *w);
bool watch_next(struct watch *w, size_t *from, size_t *to);
/* What the walk told could not be dealt with: next time all bytes count. */
void watch_again(struct watch *w);
