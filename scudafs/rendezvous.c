/* SPDX-License-Identifier: Apache-2.0 */
/* To bind a socket is to use our own mount, and a thread that waits for its own process cannot be killed
 * while that process is the one to answer. So one thread does it, with a table of descriptors of its own in
 * which the FUSE device is not: when the daemon is killed the other threads' table goes, the kernel ends the
 * connection, and the thread gets an error. It has a working folder of its own, too, since a socket's name
 * must be short.
 *
 * Thread rule: `lock` is held during an exchange with the thread; `broken` when it is no more. */
#include "scudafs/rendezvous.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
#include "scudafs/clock.h"
#include "wire/ctl.h"
#include "wire/deadline.h"
#include "wire/fds.h"
#include "wire/log.h"

#define ANSWER_MS 2000
#define HERE 0                  /* our end of the socket pair, in the thread's own table */
#define THREAD_STACK (64u << 10)

static struct {
	pthread_mutex_t lock;
	const char *mountpoint;
	bool started, broken;
	int ask;                        /* our end of the socket pair */
	_Atomic pid_t thread;
} place = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct answer { unsigned id; int error; };

void rendezvous_init(const char *mountpoint) { place.mountpoint = mountpoint; }

bool rendezvous_is(pid_t thread) { return thread && thread == atomic_load(&place.thread); }

/* A listening socket in the mount: 0 or an errno; *fd < 0 without one. */
static int make(unsigned id, int *fd)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int e = 0;
	*fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	snprintf(a.sun_path, sizeof(a.sun_path), CTL_CHANNEL_NAME, ".", id);
	if (*fd < 0)
		return errno;
	if (chdir(place.mountpoint) || bind(*fd, (struct sockaddr *)&a, sizeof(a)) || listen(*fd, 1))
		e = errno;
	/* A working folder in the mount would keep it busy. */
	return chdir("/") ? errno : e;
}

static void *rendezvous_main(void *arg)
{
	int here = (int)(intptr_t)arg;
	unsigned id;
	/* All descriptors but ours go, in our table only. */
	if (unshare(CLONE_FILES | CLONE_FS) || dup2(here, HERE) < 0 || close_range(HERE + 1, ~0u, 0)) {
		log_warning("the thread that makes sockets: %m");
		shutdown(here, SHUT_RDWR);      /* who waits for it learns that it is no more */
		return NULL;
	}
	atomic_store(&place.thread, (pid_t)syscall(SYS_gettid));
	while (recv(HERE, &id, sizeof(id), 0) == sizeof(id)) {
		struct answer a = {.id = id};
		int fd;
		a.error = make(id, &fd);
		/* One descriptor always, whatever it is when there is an error. */
		int e = fds_send(HERE, &a, sizeof(a), (int[]){fd < 0 ? HERE : fd}, 1, 0);
		if (fd >= 0)
			close(fd);
		if (e)
			break;
	}
	return NULL;
}

/* Under the lock. */
static bool start(void)
{
	pthread_attr_t attr;
	pthread_t thread;
	int pair[2];
	if (place.started || place.broken)
		return place.started;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
		log_warning("socketpair: %m");
		return false;
	}
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, THREAD_STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	place.started = !pthread_create(&thread, &attr, rendezvous_main, (void *)(intptr_t)pair[1]);
	pthread_attr_destroy(&attr);
	if (!place.started) {
		close(pair[0]);
		close(pair[1]);
	}
	place.ask = pair[0];
	return place.started;
}

/* Its answer, which must come in time; late ones to others are dropped. */
static int take(unsigned id)
{
	struct answer a;
	struct pollfd p = {.fd = place.ask, .events = POLLIN};
	uint64_t end = clock_ms() + ANSWER_MS;
	for (;;) {
		uint64_t now = clock_ms();
		int fd, n = poll(&p, 1, now < end ? (int)(end - now) : 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -ETIMEDOUT;
		int e = fds_receive(place.ask, &a, sizeof(a), &fd, 1, 0);
		if (e)
			return -EPIPE;
		if (a.id == id && !a.error)
			return fd;
		close(fd);
		if (a.id == id)
			return -a.error;
	}
}

int rendezvous_listen(unsigned id)
{
	int r = -ENOTSUP;
	if (!place.mountpoint)
		return r;
	/* Not longer for many sessions than for one: their servers hear nothing from us meanwhile. */
	if (deadline_lock(&place.lock, ANSWER_MS))
		return -ETIMEDOUT;
	if (start() && !place.broken) {
		/* Hundreds of questions without an answer leave no room for one more. */
		bool asked = send(place.ask, &id, sizeof(id), MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(id);
		r = asked ? take(id) : -EPIPE;
		place.broken = r == -EPIPE;
		if (place.broken)
			log_warning("no sockets in the mount: %s", strerror(-r));
	}
	pthread_mutex_unlock(&place.lock);
	return r;
}
