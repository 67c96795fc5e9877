/* SPDX-License-Identifier: Apache-2.0 */
/* How a session gets the memory that it shares with the mount: asked for by an ioctl, fetched as descriptors
 * from a socket in the mount, checked, mapped, and given back.
 *
 * Thread rule: one thread, while nothing else is under way. */
#include "devshim/ring_state.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>
#include "devshim/arena.h"
#include "devshim/node.h"
#include "wire/ctl.h"
#include "wire/fds.h"
#include "wire/log.h"

#define SPIN_US 100
#define AWAIT_US 10000              /* for an answer, as the driver's own waits look for the GPU */
#define AWAIT_SHARE 4               /* of so many processors one may be busy with that */
#define SPIN_MOST 100000
#define CPUS_LEAST 4                /* a thread that spins takes a processor from nobody */
#define MEET_S 2                    /* for the memory to come */

static void find_spin_times(void)
{
	const char *s = getenv("SCUDAFS_SPIN_US");
	cpu_set_t set;
	char *end;
	unsigned cpus = sched_getaffinity(0, sizeof set, &set) ? 1 : (unsigned)CPU_COUNT(&set);
	unsigned long us = s && *s ? strtoul(s, &end, 10) : 0;
	ring.awaiting_most = cpus / AWAIT_SHARE;
	ring.spin_ns = cpus >= CPUS_LEAST ? SPIN_US * 1000 : 0;
	ring.await_ns = cpus >= CPUS_LEAST ? AWAIT_US * 1000 : 0;
	if (s && *s && !*end && us <= SPIN_MOST)
		ring.spin_ns = ring.await_ns = us * 1000;
	else if (s && *s)
		log_warning("SCUDAFS_SPIN_US=%s is not 0 to %d", s, SPIN_MOST);
}

/* Not one of the standard streams, which the program may have closed. */
static int out_of_the_way(int fd)
{
	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	int high = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	close(fd);
	return high;
}

/* Connects to a socket whose path is `folder` and `up`, and the session's name; a long path is gone through
 * /proc. */
static int meet(int s, const char *folder, const char *up, unsigned session)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	char at[PATH_MAX];
	int dir = -1, n = snprintf(at, sizeof at, "%s%s", folder, up), e = 0;
	if (n < 0 || (size_t)n >= sizeof at)
		return -ENAMETOOLONG;
	n = snprintf(a.sun_path, sizeof a.sun_path, CTL_CHANNEL_NAME, at, session);
	if ((size_t)n >= sizeof a.sun_path) {
		dir = open(at, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (dir < 0)
			return -errno;
		char of_process[32];
		snprintf(of_process, sizeof of_process, "/proc/self/fd/%d", dir);
		snprintf(a.sun_path, sizeof a.sun_path, CTL_CHANNEL_NAME, of_process, session);
	}
	if (connect(s, (struct sockaddr *)&a, sizeof a))
		e = -errno;
	if (dir >= 0)
		close(dir);
	return e;
}

/* The descriptors of the memory, of the arena, and of a socket that wakes the mount. */
static int receive(int s, int fds[3])
{
	struct timeval wait = {.tv_sec = MEET_S};
	char version;
	if (setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait))
		return -errno;
	return fds_receive(s, &version, 1, fds, 3, 0);
}

static int map(int fd)
{
	const int needed = F_SEAL_SHRINK | F_SEAL_GROW;
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);
	if (fstat(fd, &st) || st.st_size != RING_ALL || seals < 0 || (seals & needed) != needed)
		return -EPROTO;
	ring.memory = mmap(NULL, RING_ALL, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ring.memory == MAP_FAILED)
		return -errno;
	madvise(ring.memory, RING_ALL, MADV_DONTFORK);
	ring.control = (struct ring_control *)ring.memory;
	ring.head = ring.tail = 0;
	find_spin_times();
	atomic_store(&ring.small, UINT64_MAX);
	atomic_store(&ring.large, (1u << RING_LARGE) - 1);
	return 0;
}

static int attach(const char *path)
{
	char folder[PATH_MAX];
	struct ctl_channel c = {.version = RING_VERSION};
	const char *end = strrchr(path, '/');
	int e = node_ioctl(CTL_CHANNEL, &c);
	if (e)
		return e;
	snprintf(folder, sizeof folder, "%.*s", end ? (int)(end - path) : 1, end ? path : ".");
	int s = out_of_the_way(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
	if (s < 0)
		return -errno;
	e = meet(s, folder, "", c.session);
	/* A server's own node is two folders further down. */
	if (e == -ENOENT)
		e = meet(s, folder, "/../..", c.session);
	int fds[3];
	if (!e)
		e = receive(s, fds);
	close(s);
	if (e)
		return e;
	e = map(fds[0]);
	close(fds[0]);
	ring.socket = out_of_the_way(fds[2]);
	int arena = out_of_the_way(fds[1]);
	if (!e && (ring.socket < 0 || arena < 0 || !held_look(ring.socket, &ring.held))) {
		munmap(ring.memory, RING_ALL);
		e = -EMFILE;
	}
	if (!e && !arena_open(arena, ring.memory))
		log_info("large copies to the device go through the mount's file");
	else if (e)
		close(arena), close(ring.socket);
	return e;
}

bool ring_open(const char *path)
{
	const char *wanted = getenv("SCUDAFS_CHANNEL");
	sigset_t all, before;
	if (wanted && !strcmp(wanted, "fuse"))
		return false;
	if (wanted && *wanted && strcmp(wanted, "shared"))
		log_warning("SCUDAFS_CHANNEL=%s is neither shared nor fuse", wanted);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int e = attach(path);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (e)
		log_info("no memory is shared with the mount: %s", strerror(-e));
	else
		log_debug("memory is shared with the mount");
	atomic_store(&ring.open, !e);
	return !e;
}

void ring_close(void)
{
	if (!atomic_exchange(&ring.open, false))
		return;
	arena_close();
	munmap(ring.memory, RING_ALL);
	if (held_is(ring.socket, &ring.held))
		close(ring.socket);
	ring.socket = -1;
}

void ring_forget(void)
{
	/* The memory is not the child's (MADV_DONTFORK). */
	arena_forget();
	if (atomic_exchange(&ring.open, false) && held_is(ring.socket, &ring.held))
		syscall(SYS_close, ring.socket);
}
