/* SPDX-License-Identifier: Apache-2.0 */
/* A record is put into the ring without a system call, but for waking a mount that sleeps. An answer is
 * looked for in its slot for a while, where there are processors enough; then the thread sleeps in an ioctl
 * on the session node, so that signals, the end of the mount and SIGKILL are what they are without a ring.
 *
 * Thread rule: `head` and `tail` are guarded by the channel's lock. The rest does not change while it is
 * open, but for the words of free slots. */
#include "devshim/ring.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
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
#include "devshim/held.h"
#include "devshim/node.h"
#include "devshim/spin.h"
#include "wire/ctl.h"
#include "wire/fds.h"
#include "wire/log.h"
#include "wire/ring.h"

#define SPIN_US 100
#define AWAIT_US 10000              /* for an answer, as the driver's own waits look for the GPU */
#define AWAIT_SHARE 4               /* of so many processors one may be busy with that */
#define SPIN_MOST 100000
#define CPUS_LEAST 4                /* a thread that spins takes a processor from nobody */
#define LOOKS 8                     /* between two looks at the clock */
#define ALIVE_EVERY 64              /* batches after which the mount's life is looked at */
#define SINK_STEP (256u << 10)      /* bytes taken from a sink before the mount may use their place */
#define MEET_S 2                    /* for the memory to come */

static struct {
	_Atomic bool open;
	uint8_t *memory;
	struct ring_control *control;
	int socket;
	struct held held;           /* what that is */
	uint64_t head, tail;        /* ours; the mount's as it was looked at last */
	uint64_t spin_ns, await_ns;
	unsigned awaiting_most;
	_Atomic unsigned awaiting;  /* threads that look for an answer for await_ns */
	_Atomic bool sleeps;        /* the program wants its waits asleep */
	_Atomic uint64_t small, large;  /* a bit for each free slot */
} ring = {.socket = -1};

bool ring_is_open(void) { return atomic_load_explicit(&ring.open, memory_order_relaxed); }

bool ring_looks(void) { return ring.spin_ns; }

void ring_wait_asleep(void) { atomic_store_explicit(&ring.sleeps, true, memory_order_relaxed); }

/* ---- getting the memory ---- */

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

/* ---- slots ---- */

static int take(_Atomic uint64_t *word)
{
	uint64_t w = atomic_load_explicit(word, memory_order_relaxed);
	while (w)
		if (atomic_compare_exchange_weak(word, &w, w & (w - 1)))
			return __builtin_ctzll(w);
	return -1;
}

int ring_take_area(void)
{
	int i = ring_is_open() ? take(&ring.large) : -1;
	return i < 0 ? -1 : RING_SMALL + i;
}

int ring_take_slot(size_t n)
{
	if (!ring_is_open() || n > ring_slot_room(RING_SMALL))
		return -1;
	return n <= ring_slot_room(0) ? take(&ring.small) : ring_take_area();
}

void ring_give(int slot)
{
	if (slot >= RING_SMALL)
		atomic_fetch_or(&ring.large, 1ull << (slot - RING_SMALL));
	else if (slot >= 0)
		atomic_fetch_or(&ring.small, 1ull << slot);
}

/* ---- to the mount ---- */

bool ring_put(uint64_t batch, const struct ring_wait *w, const void *p, size_t n, const void *bulk,
	size_t bulk_len)
{
	size_t len = n + bulk_len, need = ring_bytes(len);
	uint64_t at = ring.head;
	if (bulk_len > RING_RECORD || len > RING_RECORD)
		return false;
	if (at + need - ring.tail > RING_BYTES) {
		ring.tail = atomic_load_explicit(&ring.control->tail, memory_order_acquire);
		if (at + need - ring.tail > RING_BYTES)
			return false;
	}
	struct ring_segment s = {.len = (uint32_t)len, .batch = batch};
	if (w) {
		s.slot = (uint8_t)(w->slot + 1);
		s.area = w->n ? RING_SINK : (uint8_t)(w->area + 1);
		s.seq = w->seq;
		s.transfer = w->transfer;
		if (w->area >= 0)
			atomic_store_explicit(&ring_slot_at(ring.memory, (unsigned)w->area)->got, 0,
				memory_order_relaxed);
		if (w->n) {
			struct ring_slot *slot = ring_slot_at(ring.memory, (unsigned)w->slot);
			slot->at = w->at;
			slot->n = w->n;
			slot->room = w->room;
			atomic_store_explicit(&slot->taken, 0, memory_order_relaxed);
			atomic_store_explicit(&slot->got, 0, memory_order_relaxed);
		}
	}
	ring_copy_in(ring.memory, at, &s, sizeof s);
	ring_copy_in(ring.memory, at + sizeof s, p, n);
	if (bulk_len)
		ring_copy_in(ring.memory, at + sizeof s + n, bulk, bulk_len);
	ring.head = at + need;
	atomic_store_explicit(&ring.control->head, ring.head, memory_order_release);
	return true;
}

/* A mount that was killed while it was awake wakes nobody and fails nothing. */
static bool is_gone(void)
{
	char c;
	return syscall(SYS_recvfrom, ring.socket, &c, 1, MSG_PEEK | MSG_DONTWAIT, NULL, NULL) == 0 ||
	       !held_is(ring.socket, &ring.held);
}

/* Wakes the mount if it sleeps. Returns 1 when it does not. */
static int wake(void)
{
	uint32_t one = 1;
	/* Ordered behind what the mount has to see; it does it the other way round. */
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load_explicit(&ring.control->asleep, memory_order_relaxed) ||
			!atomic_compare_exchange_strong(&ring.control->asleep, &one, 0))
		return 1;
	if (!held_is(ring.socket, &ring.held))
		return -ENOTCONN;
	long r = syscall(SYS_sendto, ring.socket, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0);
	return r < 0 && errno != EAGAIN && errno != EINTR ? -ENOTCONN : 0;
}

int ring_wake(uint64_t batch)
{
	int e = atomic_load_explicit(&ring.control->error, memory_order_relaxed);
	if (e)
		return -e;
	e = wake();
	return e == 1 ? batch % ALIVE_EVERY == 0 && is_gone() ? -ENOTCONN : 0 : e;
}

bool ring_look(const _Atomic uint64_t *v, uint64_t least)
{
	uint64_t end = 0;
	for (unsigned i = 1;; i++) {
		if (atomic_load_explicit(v, memory_order_acquire) >= least)
			return true;
		if (!ring.spin_ns)
			return false;
		if (i % LOOKS == 0 || !end) {
			uint64_t now = spin_now_ns();
			end = end ? end : now + ring.spin_ns;
			if (now >= end)
				return false;
		}
		spin_relax();
	}
}

/* ---- answers ---- */

static bool is_done(const struct ring_wait *w)
{
	struct ring_slot *s = ring_slot_at(ring.memory, (unsigned)w->slot);
	return atomic_load_explicit(&s->done, memory_order_acquire) == w->seq;
}

/* The same from a sink. */
static bool take_sink(const struct ring_wait *w, struct ring_sink *sink)
{
	struct ring_slot *s = ring_slot_at(ring.memory, (unsigned)w->slot);
	uint64_t got = atomic_load_explicit(&s->got, memory_order_acquire);
	bool more = got > sink->got;
	got = got > sink->n ? sink->n : got;
	if (!w->room)
		sink->got = got;
	while (sink->got < got) {
		uint64_t place = sink->got % w->room, n = got - sink->got, end = w->room - place;
		n = n < end ? n : end;
		n = n < SINK_STEP ? n : SINK_STEP;
		sink->place(sink->arg, sink->got, sink->around + place, n);
		sink->got += n;
		atomic_store_explicit(&s->taken, sink->got, memory_order_release);
		wake();
	}
	return more;
}

/* Sleeps until the answer is there, or as much of the data as is worth to be woken for. */
static int sleep_for(const struct ring_wait *w, const struct ring_sink *sink)
{
	if (!w->room)
		return node_sleep(w->seq);
	uint64_t left = sink->n - sink->got, half = w->room / 2;
	struct ctl_until u = {.seq = w->seq, .count = sink->got + (left < half ? left : half)};
	return node_ioctl(CTL_UNTIL, &u);
}

/* Takes what is there of a transfer; true when it was anything. */
static bool take_data(const struct ring_wait *w, struct ring_sink *sink)
{
	if (!sink)
		return false;
	if (w->n)
		return take_sink(w, sink);
	struct ring_slot *area = ring_slot_at(ring.memory, (unsigned)w->area);
	uint64_t got = atomic_load_explicit(&area->got, memory_order_acquire);
	got = got > sink->n ? sink->n : got;
	if (got <= sink->got)
		return false;
	sink->place(sink->arg, sink->got, area->bytes + sink->got, got - sink->got);
	sink->got = got;
	return true;
}

/* The answer's header and head into buf, or all of it into memory of its own; its bulk may stay. */
static int copy_answer(const struct ring_wait *w, uint8_t *buf, uint8_t **large, bool *held, struct answer *a)
{
	const struct ring_slot *s = ring_slot_at(ring.memory, (unsigned)w->slot);
	size_t n = s->len, front = sizeof(struct frame);
	struct frame f;
	*held = false;
	if (s->flags & RING_ELSEWHERE) {
		int e = node_reply(w->seq, n, large);
		return e ? e : answer_check(w->seq, *large, n, a);
	}
	if (n < front || n > ring_slot_room((unsigned)w->slot))
		return -EPROTO;
	memcpy(&f, s->bytes, sizeof f);
	if (n <= NODE_ROOM) {
		memcpy(buf, s->bytes, n);
		return answer_check(w->seq, buf, n, a);
	}
	if (f.head_len > NODE_ROOM - front) {
		*large = malloc(n);
		if (!*large)
			return -ENOMEM;
		memcpy(*large, s->bytes, n);
		return answer_check(w->seq, *large, n, a);
	}
	int e = answer_check(w->seq, s->bytes, n, a);
	if (e)
		return e;
	memcpy(buf, s->bytes, front + f.head_len);
	a->head = buf + front;
	*held = true;
	return 0;
}

/* How long this thread looks for its answer; `counts` when it is one of the few that look long. */
static uint64_t look_time(bool *counts)
{
	*counts = false;
	if (!ring.await_ns || atomic_load_explicit(&ring.sleeps, memory_order_relaxed))
		return ring.spin_ns;
	if (atomic_fetch_add_explicit(&ring.awaiting, 1, memory_order_relaxed) >= ring.awaiting_most) {
		atomic_fetch_sub_explicit(&ring.awaiting, 1, memory_order_relaxed);
		return ring.spin_ns;
	}
	*counts = true;
	return ring.await_ns;
}

static void look_ends(bool *counts)
{
	if (*counts)
		atomic_fetch_sub_explicit(&ring.awaiting, 1, memory_order_relaxed);
	*counts = false;
}

int ring_await(const struct ring_wait *w, struct ring_sink *sink, uint8_t *buf, uint8_t **large, bool *held,
	struct answer *a)
{
	bool counts;
	uint64_t looks = look_time(&counts), end = looks ? spin_now_ns() + looks : 0;
	int e = 0;
	*held = false;
	for (unsigned i = 1;; i++) {
		/* All data is there before the answer is. */
		bool done = is_done(w), more = take_data(w, sink);
		if (done)
			break;
		if (more && end)
			end = spin_now_ns() + looks;
		if (!end || (i % LOOKS == 0 && spin_now_ns() >= end)) {
			look_ends(&counts);
			looks = ring.spin_ns;
			e = sleep_for(w, sink);
			if (e && e != -EAGAIN)
				break;
			e = 0;
		} else {
			spin_relax();
		}
	}
	look_ends(&counts);
	if (e)
		return e;
	e = copy_answer(w, buf, large, held, a);
	ring_give(w->area);
	if (!*held)
		ring_give(w->slot);
	return e;
}
