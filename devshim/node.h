/* SPDX-License-Identifier: Apache-2.0 */
/* System calls on the session node (wire/ctl.h), and what the kernel's requests can hold.
 *
 * Thread rule: any thread, between node_open and node_close. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include "devshim/channel.h"
#include "wire/ctl.h"

#define NODE_ROOM 16384         /* a wait's buffer: struct ctl_wait, then records or the answer */

/* 0 or -errno. */
int node_open(const char *path);
void node_close(void);
/* In a forked child: takes no lock. */
void node_forget(void);
bool node_is_open(void);
/* What fstat says of it: 0 or an errno. */
int node_stat(struct stat *st);

/* True when the program may write no file as large as the node pretends to be (RLIMIT_FSIZE): the kernel
 * would end it with SIGXFSZ. Then a write has NODE_NARROW bytes at most. */
#define NODE_NARROW (CTL_WRITE_ALL - sizeof(struct ctl_write))
bool node_is_narrow(void);
/* Bytes, or -errno. Interrupts are repeated; a write also while the daemon says that it has no room. */
long node_writev(const struct iovec *v, int n, int64_t at);
long node_read(void *p, size_t n, int64_t at);
/* Sends the `len` bytes behind the struct ctl_wait in `buf` as `batch` (0: none) and parks until the answer
 * to `seq` is there; `once`: at most TIME_PARK, then -EAGAIN. `expected`: bytes of the whole answer. `buf`
 * has NODE_ROOM bytes; an answer that does not fit is put into *large, which the caller frees. Returns 0 and
 * *a, which points there, or -errno. */
int node_wait(uint8_t *buf, uint64_t batch, size_t len, uint64_t seq, size_t expected, bool once,
	uint8_t **large, struct answer *a);
/* The same for an answer that comes into shared memory: parks until it is there, or returns -EAGAIN after
 * TIME_PARK. */
int node_sleep(uint64_t seq);
/* Fetches the n bytes of a kept answer into memory that the caller frees. 0 or -errno. */
int node_reply(uint64_t seq, size_t n, uint8_t **bytes);
/* 0 or -errno. */
int node_ioctl(unsigned long request, void *arg);
/* How many of `left` bytes at p one request takes behind the `before` bytes at `front`. */
size_t node_piece(const uint8_t *p, size_t left, const void *front, size_t before);
/* Checks the n bytes of the REPLY to `seq` and notes its parts. 0 or -EPROTO. */
int answer_check(uint64_t seq, const uint8_t *bytes, size_t n, struct answer *a);
