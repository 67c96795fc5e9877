/* SPDX-License-Identifier: Apache-2.0 */
/* The session node /mnt/scuda/ctl, as the shim and the daemon see it. One open file description is one
 * session; its last close (RELEASE) ends it. Only ioctl, pread and pwrite are used. The file has direct_io
 * and parallel direct writes. It is empty, and reads as that, until its first batch or CTL_CHANNEL: then it
 * has CTL_SIZE, which the program's kernel must have learnt by an fstat (a write behind the end keeps all
 * others out), and a number of its own.
 *
 * open(O_RDWR|O_CLOEXEC) returns when the server has accepted and authenticated the connection, else fails
 * within TIME_CONNECT with ECONNREFUSED, EHOSTUNREACH, ETIMEDOUT (no server), EACCES (key refused), EUSERS
 * (session limit).
 *
 * The program's records (wire/frame.h) are one byte stream, cut into batches numbered 1, 2, 3, ...; batch
 * boundaries need not be record boundaries. The daemon forwards batches in the order of their numbers,
 * whatever thread or order they come by. A batch is either
 *   - pwrite(fd, bytes, n <= LIMIT_BATCH, CTL_POST(batch)): returns n when the daemon has taken the bytes (it
 *     may park while its queue is full, at most TIME_PARK: then EINTR), or
 *   - an ioctl CTL_WAIT_* whose bytes end with a FRAME_WAIT or FRAME_HELLO record of number `seq`: the same,
 *     and parks until the REPLY of `seq` is there.
 * A batch number that was taken already is not forwarded again: after EINTR the shim repeats the call with
 * the same number.
 *
 * struct ctl_wait is the ioctl's argument in both directions. In: batch, seq, len, bytes; batch 0: nothing to
 * send, only wait for the reply of `seq`. Out: len = bytes of the REPLY frame (header, head, bulk) in
 * `bytes`, or
 *   - flags CTL_AGAIN: not answered within TIME_PARK, repeat with batch 0;
 *   - flags CTL_SHARED: the reply is in the slot of shared memory that was named for it (wire/ring.h);
 *   - flags CTL_LARGE: the reply has len bytes, more than fit: fetch them with pread(fd, p, len,
 *     CTL_REPLY(seq)), in pieces from the front.
 * A reply is kept until it has been given once completely (a repeated wait after EINTR finds it).
 *
 * pread(fd, p, n, CTL_DATA(transfer, offset)): bytes of a transfer to the host (FRAME_DATA). Parks until n
 * bytes are there; transfers are read from the front, several threads may read different offsets. Answers
 * -EAGAIN after TIME_PARK (repeat). Bytes are dropped once read.
 *
 * pread(fd, p, n >= LIMIT_UPCALL + sizeof(struct frame), CTL_UPCALL): parks until an UPCALL or OUTPUT frame
 * is there and returns whole frames, in order; 0 bytes never; -EAGAIN after TIME_PARK.
 *
 * pwrite(fd, frame, 40, CTL_ASIDE): a FRAME_UPCALL_DONE record, forwarded at once, outside the batches.
 *
 * ioctl CTL_CHANNEL: asks for memory that program and mount share (wire/ring.h). Returns 0 when the mount
 * listens at `sessions/ID.channel`, ID being `session`: a socket, to which the process that opened the
 * session connects within a few seconds to be sent, with one byte, the descriptors of the memory, of the
 * arena and of a socket that wakes the mount. Any error: this session has none, and everything else works as
 * it does without.
 *
 * ioctl CTL_UNTIL: returns 0 when so many stretches of the arena have been sent, or, with a `seq`, when so
 * many bytes of the data of that wait have come to its slot's sink, or its answer has; EAGAIN after
 * TIME_PARK.
 *
 * ioctl CTL_WRITE: one of the pwrites above, of a few bytes. A limit of file sizes does not concern it.
 *
 * Errors of all of them: ECONNRESET the connection was lost, ETIMEDOUT the peer fell silent, ESHUTDOWN the
 * server ended the session (its BYE text is in the log), EPROTO bad bytes from either side, EINTR
 * interrupted, ENOTCONN/ECONNABORTED the daemon is gone. All but EINTR and EAGAIN are final for the session.
 *
 * handle.NODE, beside ctl, with NODE the inode number in hex of the ctl that the program has open: each open
 * is a file that stands for a handle which the program exports (CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR). It
 * can be passed to another process of the mount, which imports what it reads in it: a struct ctl_handle. The
 * server keeps what was exported under the token until the last close. Its open fails with ENOENT (no such
 * session), ENOSPC (LIMIT_SHARED_EACH) or as ctl's. */
#pragma once
#include <stdint.h>
#include <sys/ioctl.h>
#include "wire/frame.h"
#include "wire/limits.h"

#define CTL_NAME "ctl"
#define CTL_HANDLE "handle."
#define CTL_SIZE ((int64_t)1 << 62)          /* st_size */
#define CTL_REGION(n) ((int64_t)(n) << 59)
#define CTL_POST(batch) (CTL_REGION(1) + (int64_t)((batch) & (((uint64_t)1 << 38) - 1)) * LIMIT_BATCH)
#define CTL_DATA(transfer, offset) \
	(CTL_REGION(2) + (int64_t)((transfer) & 0x3ffff) * ((int64_t)1 << 40) + (int64_t)(offset))
#define CTL_REPLY(seq) (CTL_REGION(4) + (int64_t)((seq) & 0x3fffffff) * ((int64_t)1 << 28))
#define CTL_UPCALL CTL_REGION(6)
#define CTL_ASIDE CTL_REGION(7)

enum ctl_flags { CTL_AGAIN = 1, CTL_LARGE = 2, CTL_SHARED = 4 };
struct ctl_wait {
	uint64_t batch, seq;
	uint32_t len, flags;
};
_Static_assert(sizeof(struct ctl_wait) == 24, "ctl_wait");
/* The size classes of the ioctl; _IOC_SIZE has 14 bits. */
#define CTL_WAIT_256   _IOC(_IOC_READ | _IOC_WRITE, 'S', 1, 256)
#define CTL_WAIT_1K    _IOC(_IOC_READ | _IOC_WRITE, 'S', 2, 1024)
#define CTL_WAIT_4K    _IOC(_IOC_READ | _IOC_WRITE, 'S', 3, 4096)
#define CTL_WAIT_16K   _IOC(_IOC_READ | _IOC_WRITE, 'S', 4, 16383)

/* What a file for a handle reads. */
struct ctl_handle {
	char magic[8];
	struct share_token token;
	uint8_t zero[40];
};
#define CTL_HANDLE_MAGIC "SCUDAHND"

struct ctl_channel {
	uint32_t version;           /* in: RING_VERSION */
	uint32_t session;           /* out */
};
#define CTL_CHANNEL    _IOC(_IOC_READ | _IOC_WRITE, 'S', 5, sizeof(struct ctl_channel))
struct ctl_until { uint64_t seq, count; };
#define CTL_UNTIL      _IOC(_IOC_WRITE, 'S', 6, sizeof(struct ctl_until))
/* A pwrite by ioctl, for a program that may write no file as large as the offset (RLIMIT_FSIZE). */
struct ctl_write {
	int64_t at;                 /* CTL_POST or CTL_ASIDE */
	uint32_t len, zero;         /* bytes that follow */
};
_Static_assert(sizeof(struct ctl_write) == 16, "ctl_write");
#define CTL_WRITE_ALL 16383u
#define CTL_WRITE      _IOC(_IOC_WRITE, 'S', 7, CTL_WRITE_ALL)
#define CTL_CHANNEL_NAME "%s/sessions/%u.channel"       /* of the mount's folder, and the session */
