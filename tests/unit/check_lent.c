/* SPDX-License-Identifier: Apache-2.0 */
/* The server's end of lent memory: what it takes for memory, what it takes out of it, when it says so, and
 * what becomes of a mount that lies. Thread rule: one thread, which is the session's, the reader's and the
 * mount's; a session that ends is a child. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/state.h"
#include "tests/unit/unit.h"
#include "wire/lending.h"

static struct session *s;
static struct session_start start;
static int peer, second_peer, memory;
static uint8_t *arena;

#define PATTERN(i) ((uint8_t)((i) * 2654435761u >> 24))
#define FILLED (64 * LENT_PIECE)

static struct stream *stream_over(int *other)
{
	const char *identity, *why;
	struct stream *stream;
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	ck_assert_int_eq(stream_accept(pair[0], NULL, 1000, &stream, &identity, &why), 0);
	*other = pair[1];
	return stream;
}

static void setup(void)
{
	s = session_self();
	s->start = &start;
	start.report = s->report =
		mmap(NULL, sizeof *start.report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	s->greeted = true;
	s->calls = 10;
	s->stream = stream_over(&peer);
	ck_assert(input_open(s, FIRST, s->stream));
	memory = lending_create("arena", LIMIT_ARENA);
	ck_assert_int_ge(memory, 0);
	arena = mmap(NULL, FILLED, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	ck_assert_ptr_ne(arena, MAP_FAILED);
	for (uint64_t i = 0; i < FILLED; i++)
		arena[i] = PATTERN(i);
}

/* The mount comes with a descriptor, -1: none, of so many bytes. True when it is taken. */
static bool meet(int fd, uint64_t size)
{
	struct lending ours = {.size = size}, theirs;
	struct stream *second = stream_over(&second_peer);
	uint64_t word = 1;
	int none;

	ck_assert_int_eq(lending_send(second_peer, &ours, fd), 0);
	/* What it thinks of the server's memory (check_lend.c). */
	ck_assert_int_eq(send(second_peer, &word, sizeof word, 0), sizeof word);
	ck_assert_ptr_null(lent_meet(s, second));
	ck_assert_int_eq(lending_receive(second_peer, &theirs, &none, 1000), 0);
	ck_assert(!theirs.taken == !theirs.size);
	/* Stripes may come where nothing is lent. */
	ck_assert(!theirs.taken == (s->source[SECOND].stream != NULL));
	ck_assert(!theirs.taken == (s->lent.memory == NULL));
	return theirs.taken;
}

static void say(const void *p, size_t n)
{
	ck_assert_int_eq(send(peer, p, n, 0), (ssize_t)n);
}

static uint64_t seq;

/* A record whose pieces lie at places of which the first is `from` and each next one 3 pieces and a byte on,
 * modulo what is filled. */
static uint64_t place(uint64_t from, uint64_t i)
{
	return (from + i * (3 * LENT_PIECE + 1)) % (FILLED - LENT_PIECE);
}

static void say_record(uint64_t bulk, uint64_t from)
{
	struct frame f = {.kind = FRAME_POST, .thread = 1, .seq = ++seq, .head_len = 4, .bulk_len = bulk,
		.flags = FRAME_LENT};

	say(&f, sizeof f);
	say("head", 4);
	for (uint64_t i = 0; i < frame_places(&f); i++) {
		uint64_t at = place(from, i);

		say(&at, sizeof at);
	}
}

static uint8_t piece[3 * LENT_PIECE];

static void take_head(struct frame *f)
{
	ck_assert(input_record(s, f, true));
	ck_assert_uint_eq(input_left(s), 4 + frame_places(f) * 8);
	input_take(s, piece, 4);
	ck_assert_mem_eq(piece, "head", 4);
}

/* Bytes [from, to) of the bulk, in parts of at most `most`. */
static void take(const struct frame *f, uint64_t first, uint64_t from, uint64_t to, size_t most)
{
	for (uint64_t at = from, n; at < to; at += n) {
		n = to - at < most ? to - at : most;
		input_bulk(s, f, at, piece, n);
		for (uint64_t i = 0; i < n; i++)
			if (piece[i] != PATTERN(place(first, (at + i) / LENT_PIECE) + (at + i) % LENT_PIECE))
				ck_abort_msg("byte %llu", (unsigned long long)(at + i));
	}
}

/* How many pieces the mount has been told of by now. */
static uint64_t told(void)
{
	static uint64_t last;
	uint64_t count;

	while (recv(second_peer, &count, sizeof count, MSG_DONTWAIT) == sizeof count) {
		ck_assert_uint_gt(count, last);
		last = count;
	}
	return last;
}

/* All of a record, in parts that fit and such that fit nothing, beside looks ahead; what stands behind it. */
START_TEST(taken)
{
	static const uint64_t bulks[] = {1, LENT_PIECE - 1, LENT_PIECE, LENT_PIECE + 1, 4 * LENT_PIECE,
		11 * LENT_PIECE - 7};
	static const size_t most[] = {LENT_PIECE, 3 * LENT_PIECE, 70001};
	uint64_t bulk = bulks[_i / 3], pieces = (bulk + LENT_PIECE - 1) / LENT_PIECE;
	struct frame f, ping = {.kind = FRAME_PING, .seq = 99};

	ck_assert(meet(memory, LIMIT_ARENA));
	say_record(bulk, 5);
	take_head(&f);
	take(&f, 5, 0, bulk, most[_i % 3]);
	ck_assert_uint_eq(told(), pieces);
	ck_assert_uint_eq(input_left(s), 0);
	say_record(bulk, 77);
	say(&ping, sizeof ping);
	take_head(&f);
	/* It is found behind the places, of which none was taken. */
	input_scan(s);
	ck_assert_int_eq(recv(peer, &ping, sizeof ping, MSG_DONTWAIT), sizeof ping);
	ck_assert_uint_eq(ping.seq, 99);
	take(&f, 77, 0, bulk, most[_i % 3]);
	ck_assert_uint_eq(told(), 2 * pieces);
	ck_assert_uint_eq(input_left(s), 0);
}
END_TEST

/* What waits is copied ahead of its turn, so that the program goes on: in the order in which it comes,
 * whatever has been taken of the record under way, and no more of it than would be taken in by the socket. */
START_TEST(ahead)
{
	struct frame f;
	uint64_t at = _i * 100000u, begun = (at + LENT_PIECE - 1) / LENT_PIECE;

	ck_assert(meet(memory, LIMIT_ARENA));
	say_record(5 * LENT_PIECE + 3, 1);
	say_record(2 * LENT_PIECE, 2);
	take_head(&f);
	take(&f, 1, 0, at, 60000);
	/* A piece of which a part was taken is no longer needed either. */
	ck_assert_uint_eq(told(), begun);
	input_scan(s);
	ck_assert_uint_eq(told(), 8);
	input_scan(s);
	say_record(40 * LENT_PIECE, 3);
	input_scan(s);
	ck_assert_uint_eq(told(), begun + LIMIT_QUEUE / LENT_PIECE);
	/* The program has others there now. */
	for (uint64_t i = 0; i < FILLED; i++)
		arena[i] = 0xee;
	take(&f, 1, at, f.bulk_len, 123457);
	take_head(&f);
	take(&f, 2, 0, f.bulk_len, 3 * LENT_PIECE);
	take_head(&f);
	take(&f, 3, 0, (begun + 24) * LENT_PIECE, LENT_PIECE);
	for (uint64_t i = 0; i < FILLED; i++)
		arena[i] = PATTERN(i);
	take(&f, 3, (begun + 24) * LENT_PIECE, f.bulk_len, LENT_PIECE);
	ck_assert_uint_eq(told(), 48);
	ck_assert_uint_eq(input_left(s), 0);
}
END_TEST

/* Of a bulk that nobody wants, from any byte on. */
START_TEST(skipped)
{
	struct frame f;
	uint64_t at = _i * 100000u;

	ck_assert(meet(memory, LIMIT_ARENA));
	say_record(9 * LENT_PIECE + 1, 1);
	say_record(LENT_PIECE, 2);
	take_head(&f);
	take(&f, 1, 0, at, 60000);
	if (_i % 2)
		input_scan(s);
	input_skip(s, &f, at, f.bulk_len - at);
	ck_assert_uint_eq(told(), _i % 2 ? 11 : 10);
	take_head(&f);
	take(&f, 2, 0, LENT_PIECE, LENT_PIECE);
	ck_assert_uint_eq(told(), 11);
}
END_TEST

/* The session ends with these words. */
static void ends(void (*act)(void), const char *reason)
{
	int status;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (!pid) {
		act();
		_exit(7);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status) && !WEXITSTATUS(status), "status %#x", status);
	ck_assert_str_eq(s->report->reason, reason);
}

static uint64_t outside;

static void takes_outside(void)
{
	struct frame f = {.kind = FRAME_POST, .thread = 1, .seq = ++seq, .bulk_len = LENT_PIECE + 10,
		.flags = FRAME_LENT};
	uint64_t inside = 0;

	say(&f, sizeof f);
	say(&inside, sizeof inside);
	say(&outside, sizeof outside);
	/* A look ahead leaves it alone, and what is behind it. */
	say_record(10, 0);
	ck_assert(input_record(s, &f, true));
	input_scan(s);
	ck_assert_uint_eq(told(), 1);
	input_bulk(s, &f, 0, piece, f.bulk_len);
}

static void takes_of_none(void)
{
	struct frame f;

	say_record(10, 0);
	input_record(s, &f, true);
}

static void takes_missing(void)
{
	struct frame f;

	say_record(10, 0);
	take_head(&f);
	input_bulk(s, &f, 0, piece, 10);
}

START_TEST(lies)
{
	static const uint64_t places[] = {LIMIT_ARENA, LIMIT_ARENA - 9, UINT64_MAX, UINT64_MAX - 9,
		1ull << 63};

	ends(takes_of_none, "bad frame: bytes of no memory that is lent");
	ck_assert(meet(memory, LIMIT_ARENA));
	for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
		outside = places[i];
		ends(takes_outside, "bad frame: bytes outside of what is lent");
	}
}
END_TEST

/* The last bytes of all are inside. */
START_TEST(last)
{
	struct frame f = {.kind = FRAME_POST, .thread = 1, .seq = ++seq, .bulk_len = 10, .flags = FRAME_LENT};
	uint64_t at = LIMIT_ARENA - 10;

	ck_assert_int_eq(pwrite(memory, "last bytes", 10, (off_t)at), 10);
	ck_assert(meet(memory, LIMIT_ARENA));
	say(&f, sizeof f);
	say(&at, sizeof at);
	ck_assert(input_record(s, &f, true));
	input_bulk(s, &f, 0, piece, 10);
	ck_assert_mem_eq(piece, "last bytes", 10);
}
END_TEST

/* A page that is not there: as where the kernel has no memory for it. */
START_TEST(missing)
{
	int empty = memfd_create("empty", MFD_CLOEXEC);
	void *p = mmap(NULL, LENT_PIECE, PROT_READ, MAP_SHARED, empty, 0);

	ck_assert_ptr_ne(p, MAP_FAILED);
	ck_assert(meet(memory, LIMIT_ARENA));
	atomic_store(&s->lent.memory, p);
	ends(takes_missing, "a page of the memory that the mount lends is missing");
}
END_TEST

/* None of these is taken; the session goes on. */
START_TEST(refused)
{
	int fd = -1;
	uint64_t size = LIMIT_ARENA;
	char path[] = "/tmp/scudafs-lent.XXXXXX";

	switch (_i) {
	case 0: /* no descriptor */
		break;
	case 1: /* not sealed */
		fd = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		ck_assert_int_eq(ftruncate(fd, LIMIT_ARENA), 0);
		break;
	case 2: /* it may shrink */
		fd = memfd_create("shrinks", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		ck_assert_int_eq(ftruncate(fd, LIMIT_ARENA), 0);
		ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW), 0);
		break;
	case 3: /* too small, whatever is said of it */
		fd = lending_create("small", LENT_PIECE);
		break;
	case 4:
		fd = lending_create("small", LENT_PIECE);
		size = LENT_PIECE;
		break;
	case 5: /* a file */
		fd = mkstemp(path);
		ck_assert_int_eq(unlink(path), 0);
		ck_assert_int_eq(ftruncate(fd, LIMIT_ARENA), 0);
		break;
	case 6: /* said to be of another size */
		fd = memory;
		size = LIMIT_ARENA - LENT_PIECE;
		break;
	case 7: /* huge pages, where there are any to be had */
		fd = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
		if (fd >= 0 && !ftruncate(fd, LIMIT_ARENA))
			fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
		break;
	}
	ck_assert(!meet(fd, size));
	ends(takes_of_none, "bad frame: bytes of no memory that is lent");
}
END_TEST

/* By what is given away nobody can write, nor get a descriptor by which one could. */
START_TEST(readonly)
{
	int fd = lending_readonly(memory);
	uint8_t byte = 1;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, &byte, 1, 0), -1);
	ck_assert_ptr_eq(mmap(NULL, LENT_PIECE, PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
	ck_assert_int_eq(ftruncate(memory, LENT_PIECE), -1);
	ck_assert_int_eq(ftruncate(memory, 2 * LIMIT_ARENA), -1);
	ck_assert(meet(fd, LIMIT_ARENA));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("lent");
	TCase *t = tcase_create("lent");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_loop_test(t, taken, 0, 18);
	tcase_add_loop_test(t, ahead, 0, 9);
	tcase_add_loop_test(t, skipped, 0, 9);
	tcase_add_test(t, lies);
	tcase_add_test(t, last);
	tcase_add_test(t, missing);
	tcase_add_loop_test(t, refused, 0, 8);
	tcase_add_test(t, readonly);
	suite_add_tcase(suite, t);
	return unit_run(suite);
}
