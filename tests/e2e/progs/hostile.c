/* SPDX-License-Identifier: Apache-2.0 */
/* hostile SEED SECONDS: a program that means ill. Again and again a child opens a session of its own, says a
 * hello that a mount and a server take (libcuda's, found in the memory that it shares with the mount), gets
 * that memory, and then does what libcuda never would: segments, slots, stretches and frames that are nearly
 * right, words anywhere in the memory while the mount reads it, reads and writes of ctl at any place,
 * descriptors that are closed. Says how many sessions there were. A child has three threads; what they do to
 * each other is part of it. */
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include "tests/e2e/progs/prog.h"
#include "wire/ctl.h"
#include "wire/ring.h"

#define STEPS 300               /* of a child's threads */
#define CHILD_S 20              /* a child that takes longer hangs */

static uint8_t hello[sizeof(struct frame) + LIMIT_HEAD];
static size_t hello_len;

static struct {
	int ctl, socket;
	uint8_t *memory;
	struct ring_control *control;
	uint64_t head, batch, seq, given;
	char path[PATH_MAX];
} me;

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* A number of any size, often at an edge. */
static uint64_t odd(uint64_t *state)
{
	static const uint64_t edges[] = {0, 1, 8, 63, 64, 67, 68, 4096, RING_RECORD, RING_BYTES, LIMIT_HEAD,
			LIMIT_BATCH,
		LIMIT_ARENA, UINT32_MAX, 1ull << 32, 1ull << 62, INT64_MAX, UINT64_MAX};
	uint64_t n = edges[next(state) % (sizeof edges / sizeof *edges)];

	return next(state) % 3 ? n + next(state) % 3 - 1 : next(state) >> next(state) % 64;
}

/* ---- the hello, once: libcuda's first segment begins with it */

static void learn_hello(void)
{
	unsigned long from = 0;
	struct frame f;
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "re");

	while (maps && !from && fgets(line, sizeof line, maps))
		if (strstr(line, "memfd:scudafs-channel"))
			sscanf(line, "%lx", &from);
	REQUIRE(from);
	fclose(maps);
	ring_copy_out((uint8_t *)from, sizeof(struct ring_segment), &f, sizeof f);
	REQUIRE(f.kind == FRAME_HELLO && f.head_len <= LIMIT_HEAD && !f.bulk_len);
	hello_len = sizeof f + f.head_len;
	ring_copy_out((uint8_t *)from, sizeof(struct ring_segment), hello, hello_len);
}

/* ---- a session */

static bool begin(const char *mount)
{
	struct ctl_channel c = {.version = RING_VERSION};
	union { struct cmsghdr align; char bytes[CMSG_SPACE(4 * sizeof(int))]; } control;
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct iovec v = {&(char){0}, 1};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &control,
			.msg_controllen = sizeof control};
	int s, fds[4], n = 0;

	snprintf(me.path, sizeof me.path, "%s/ctl", mount);
	me.ctl = open(me.path, O_RDWR | O_CLOEXEC);
	if (me.ctl < 0 || ioctl(me.ctl, CTL_CHANNEL, &c))
		return false;
	s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if ((size_t)snprintf(a.sun_path, sizeof a.sun_path, CTL_CHANNEL_NAME, mount,
			c.session) >= sizeof a.sun_path ||
		connect(s, (struct sockaddr *)&a, sizeof a) || recvmsg(s, &m, 0) != 1)
		return false;
	close(s);
	for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h && !n; h = CMSG_NXTHDR(&m, h)) {
		n = (int)((h->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fds, CMSG_DATA(h), (size_t)n * sizeof(int));
	}
	if (n != 3)
		return false;
	me.socket = fds[2];
	me.memory = mmap(NULL, RING_ALL, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
	REQUIRE(me.memory != MAP_FAILED);
	/* The memory is the mount's too: it does not get smaller. */
	REQUIRE(ftruncate(fds[0], 4096) < 0 && ftruncate(fds[1], 0) < 0);
	me.control = (struct ring_control *)me.memory;
	return true;
}

static void wake(void)
{
	(void)!send(me.socket, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* A segment as libcuda would write it, or nearly. */
static void append(const void *records, size_t n, struct ring_segment s)
{
	s.len = s.len ? s.len : (uint32_t)n;
	s.batch = s.batch ? s.batch : ++me.batch;
	ring_copy_in(me.memory, me.head, &s, sizeof s);
	ring_copy_in(me.memory, me.head + sizeof s, records, n);
	me.head += ring_bytes(n);
	atomic_store(&me.control->head, me.head);
	wake();
}

static size_t record(uint64_t *state, uint8_t *to)
{
	struct frame f = {.kind = next(state) % 8 ? FRAME_WAIT + next(state) % 2 - 1 : next(state) % 20,
		.call = (uint16_t)(next(state) % 720), .thread = 1 + next(state) % 3, .seq = ++me.seq,
		.head_len = next(state) % 4 ? 0 : next(state) % 60,
		.bulk_len = next(state) % 6 ? 0 : next(state) % 3000};

	if (next(state) % 16 == 0)
		f.seq += odd(state);
	if (next(state) % 24 == 0)
		f.bulk_len = odd(state);
	if (next(state) % 24 == 0)
		f.head_len = (uint32_t)odd(state);
	memcpy(to, &f, sizeof f);
	size_t n = (f.head_len < 100 ? f.head_len : 100) + (f.bulk_len < 3000 ? f.bulk_len : 3000);
	for (size_t i = 0; i < n; i++)
		to[sizeof f + i] = (uint8_t)next(state);
	return sizeof f + n;
}

static void step_ring(uint64_t *state)
{
	static uint8_t bytes[8192];
	struct ring_segment s = {0};
	size_t n = record(state, bytes);

	if (next(state) % 3 == 0) {
		s.slot = (uint8_t)(1 + next(state) % (RING_SLOTS + 1));
		s.seq = next(state) % 8 ? me.seq : odd(state);
		s.area = next(state) % 3 ? 0 : (uint8_t)(RING_SMALL + next(state) % 6);
		s.transfer = next(state) % 5;
		if (next(state) % 3 == 0 && s.slot <= RING_SLOTS) {
			struct ring_slot *slot = ring_slot_at(me.memory, s.slot - 1u);

			s.area = RING_SINK;
			slot->at = next(state) % 4 ? next(state) % LIMIT_ARENA : odd(state);
			slot->n = next(state) % 4 ? next(state) % 100000 : odd(state);
			slot->room = next(state) % 2 ? next(state) % 5000 : odd(state);
			atomic_store(&slot->taken, next(state) % 2 ? 0 : odd(state));
		}
	}
	if (next(state) % 40 == 0)
		s.len = (uint32_t)odd(state);
	if (next(state) % 40 == 0)
		s.batch = odd(state);
	if (next(state) % 60 == 0)
		s.zero = 1;
	append(bytes, n, s);
	if (next(state) % 100 == 0)
		atomic_store(&me.control->head, odd(state));
}

static void step_stretch(uint64_t *state)
{
	struct ring_bulk b = {.batch = me.batch + next(state) % 3,
			.at = next(state) % 4 ? next(state) % LIMIT_ARENA : odd(state),
		.len = next(state) % 4 ? 1 + next(state) % 5000 : odd(state)};

	memcpy(ring_bulk_at(me.memory, me.given), &b, sizeof b);
	atomic_store(&me.control->given, next(state) % 20 ? ++me.given : odd(state));
	me.batch += next(state) % 2;
	wake();
}

/* A large record as it should be, whose bulk may go by two connections (-o connections=2), or nearly so. */
static void step_large(uint64_t *state)
{
	struct frame f = {.kind = FRAME_POST + next(state) % 2, .call = (uint16_t)(next(state) % 720),
		.thread = 1, .seq = ++me.seq, .bulk_len = (4 << 20) + next(state) % (2 << 20),
		.flags = next(state) % 40 ? 0 : FRAME_STRIPED};
	uint64_t left = f.bulk_len;

	append(&f, sizeof f, (struct ring_segment){0});
	while (left) {
		uint64_t n = next(state) % 4 ? 256 << 10 : 1 + next(state) % (3 << 20);

		n = n < left || next(state) % 30 == 0 ? n : left;
		left -= n < left ? n : left;
		/* The mount has to be done with one stretch before its place serves again. */
		for (int i = 0; i < 2000 && me.given - atomic_load(&me.control->sent) >= RING_BULKS; i++)
			usleep(1000);
		*ring_bulk_at(me.memory, me.given) = (struct ring_bulk){.batch = ++me.batch,
			.at = next(state) % (16 << 20), .len = n};
		atomic_store(&me.control->given, ++me.given);
		wake();
		if (next(state) % 60 == 0)
			step_ring(state);
		if (next(state) % 60 == 0)
			step_stretch(state);
	}
}

static void step_ctl(uint64_t *state)
{
	static _Thread_local uint8_t room[70000];
	static const unsigned long requests[] = {CTL_WAIT_256, CTL_WAIT_1K, CTL_WAIT_4K, CTL_WAIT_16K,
			CTL_CHANNEL, CTL_UNTIL};
	static const int64_t places[] = {0, CTL_POST(1), CTL_DATA(1, 0), CTL_REPLY(1), CTL_UPCALL, CTL_ASIDE};
	struct ctl_wait w = {.batch = next(state) % 2 ? me.batch + 1 : odd(state),
		.seq = next(state) % 2 ? me.seq : odd(state), .len = (uint32_t)odd(state)};
	int64_t at = (int64_t)((uint64_t)places[next(state) % 6] +
			(next(state) % 3 ? next(state) % 5 * LIMIT_BATCH : odd(state)));
	size_t n = next(state) % 2 ? record(state, room) : next(state) % sizeof room;

	/* What would park for seconds is interrupted. */
	switch (next(state) % 4) {
	case 0:
		memcpy(room, &w, sizeof w);
		ioctl(me.ctl, requests[next(state) % 6], room);
		break;
	case 1: (void)!pread(me.ctl, room, n, at < 0 ? 0 : at); break;
	case 2: (void)!pwrite(me.ctl, room, n, at < 0 ? 0 : at); break;
	default: (void)!pwrite(me.ctl, room, n, CTL_POST(++me.batch));
	}
}

static void *by_ctl(void *seed)
{
	uint64_t state = (uintptr_t)seed;

	for (int i = 0; i < STEPS / 10; i++)
		step_ctl(&state);
	return NULL;
}

/* Anything, anywhere in what the mount reads, while it does. */
static void *scribble(void *seed)
{
	uint64_t state = (uintptr_t)seed, first = next(&state) % 200;

	for (int i = 0; i < STEPS; i++) {
		uint64_t at = next(&state) % 3 ? next(&state) % (RING_AT + 65536) : next(&state) % RING_ALL;

		usleep(50);
		if ((uint64_t)i > first)
			__atomic_store_n((uint64_t *)(me.memory + at / 8 * 8), odd(&state), __ATOMIC_RELAXED);
	}
	return NULL;
}

static void child(const char *mount, uint64_t state)
{
	pthread_t t[2];
	struct ring_segment s = {.slot = 1, .seq = 1};

	alarm(CHILD_S);
	if (!begin(mount))
		_exit(2);
	me.seq = 1;
	if (next(&state) % 8)
		append(hello, hello_len, s);
	int threads = (int)(next(&state) % 3);
	/* Some do little but copy: otherwise none would get so far. */
	bool large = next(&state) % 3 == 0;
	if (large)
		threads = 0;
	for (int i = 0; i < threads; i++)
		REQUIRE(!pthread_create(&t[i], NULL, i ? by_ctl : scribble,
				(void *)(uintptr_t)(next(&state) | 1)));
	for (int i = 0; i < (large ? STEPS / 10 : STEPS); i++) {
		if (large && next(&state) % 8)
			step_large(&state);
		else if (next(&state) % 6)
			step_ring(&state);
		else
			step_stretch(&state);
		if (next(&state) % 8 == 0)
			usleep(200);
		if (next(&state) % 400 == 0)
			close(me.socket);
	}
	for (int i = 0; i < threads && next(&state) % 2; i++)
		pthread_join(t[i], NULL);
	_exit(0);
}

int main(int argc, char **argv)
{
	const char *mount = getenv("SCUDAFS_MOUNT");
	uint64_t seed = argc > 2 ? strtoull(argv[1], NULL, 0) : 0;
	int64_t end = prog_ms() + 1000 * (argc > 2 ? atoi(argv[2]) : 0);
	unsigned sessions = 0, refused = 0, late = 0;
	int status;

	REQUIRE(mount && argc > 2);
	CHECK(cuInit(0));
	learn_hello();
	while (prog_ms() < end) {
		uint64_t state = (++seed << 20) * 2654435761u | 1;
		pid_t pid = fork();

		if (!pid)
			child(mount, state);
		REQUIRE(waitpid(pid, &status, 0) == pid);
		/* Its own clock ends it where its requests wait for what never comes: that they can be ended
		 * is enough. */
		if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
			late++;
			continue;
		}
		if (WIFSIGNALED(status)) {
			fprintf(stderr, "seed %llu: the child died of signal %d\n", (unsigned long long)seed,
					WTERMSIG(status));
			return 1;
		}
		sessions += !WEXITSTATUS(status);
		refused += WEXITSTATUS(status) == 2;
	}
	/* The session of this very process is as it was. */
	CHECK(cuDeviceGetCount(&status));
	prog_up();
	printf("sessions %u refused %u late %u, last seed %llu\n", sessions, refused, late,
			(unsigned long long)seed);
	return refused > sessions / 10 || late > 1 + sessions / 10;
}
