/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors that we hold in somebody else's process: a program may close those that it does not know
 * (closefrom, a daemon's beginning) and open others in their place, which are none of ours to write to or to
 * close. It is looked at ahead of every use that would do something to another file; what only fails there
 * (an ioctl of ours, a read) needs no look. A program that does it in the very moment between look and use
 * can do so to any library.
 *
 * Thread rule: none; held_note before others use it. Changes errno. */
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

struct held {
	uint32_t major, minor;
	uint64_t number;        /* 0: any of that device */
	bool unknown;           /* nobody may look (a sandbox refuses statx): it is taken for what it was */
};

/* What the descriptor is, as far as the kernel knows it: no file system is asked. */
static inline bool held_look(int fd, struct held *h)
{
	struct statx s;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &s)) {
		*h = (struct held){.unknown = errno != EBADF};
		return h->unknown;
	}
	*h = (struct held){s.stx_dev_major, s.stx_dev_minor, s.stx_ino, false};
	return true;
}

static inline bool held_is(int fd, const struct held *h)
{
	struct held now;

	if (!held_look(fd, &now))
		return false;
	return now.unknown || h->unknown ||
	       (now.major == h->major && now.minor == h->minor && (!h->number || now.number == h->number));
}

/* Opens the mount's ctl. One that is interrupted starts again with a new connection: under a profiler's timer
 * it would never come to an end. It is over within TIME_CONNECT. A descriptor or -errno. */
static inline int held_open(const char *path, struct held *h)
{
	sigset_t all, before;
	int fd, low, e;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	do
		fd = open(path, O_RDWR | O_CLOEXEC);
	while (fd < 0 && errno == EINTR);
	e = -errno;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (fd >= 0 && fd <= STDERR_FILENO) {
		/* The program has closed a standard stream: what it prints must not end here. */
		low = fd;
		fd = fcntl(low, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
		e = -errno;
		close(low);
	}
	if (fd < 0)
		return e;
	if (!held_look(fd, h)) {
		e = -errno;
		close(fd);
		return e;
	}
	h->number = 0;  /* ctl gets another number with its first batch */
	return fd;
}
