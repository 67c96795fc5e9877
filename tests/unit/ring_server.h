/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory with a relay behind it, for tests: a server of ours that counts and sums what comes, a folder
 * in place of the mount, and a channel opened there. Thread rule: the server is one thread, which counts; the
 * rest is the program's. */
#pragma once
#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include "scudafs/rendezvous.h"
#include "tests/unit/ring_program.h"
#include "wire/lending.h"

/* ---- the server: a record's head says what it wants: its own thread and count there, bytes in the answer,
 * bytes of a transfer */

struct wish { uint32_t thread, count; uint64_t answer, data, transfer; };
#define THREADS 6
static uint64_t chunk;                  /* of data, but for stripes */

static int listener, peer, second_peer = -1;
enum offer { OFFER_NONE, OFFER_WRONG, OFFER_ONE, OFFER_CUT };
static enum offer offer;                /* what who asks for a second connection gets */
static bool local;                      /* by a unix socket: there memory is lent */
/* What a server does that memory is lent to: it is fine; it takes no descriptor; says that it has taken more
 * than there was, less than before, nothing at all; goes away in the middle. */
enum borrower { TAKES, REFUSES, SAYS_MORE, SAYS_LESS, SAYS_NOTHING, LEAVES };
static enum borrower borrower;
static const uint8_t *lent;             /* what it has */
static uint64_t lent_taken;
/* And one that lends: nothing; memory of which it uses what has been taken again at once; bytes outside of
 * it; memory that is not sealed, of another size than it says, of more than a mount takes; none, but says
 * so. */
enum lender { LENDS_NOT, LENDS, LENDS_OUTSIDE, LENDS_BEHIND, LENDS_UNSEALED, LENDS_SMALL, LENDS_LARGE,
	LENDS_NONE };
static enum lender lender;
#define SLOTS 4u
#define SLOTS_BYTES (SLOTS * (uint64_t)LIMIT_REPLY)
static uint8_t *slots;
static uint64_t slots_sent, slots_taken;
static _Atomic uint64_t took_slots;     /* what the mount said to them: 2: nothing yet */
static _Atomic unsigned lent_records;
static _Atomic unsigned striped;        /* records whose bulk came by both */
static _Atomic enum second_word word;   /* the daemon's last one */
static _Atomic bool stripes;            /* data goes by both; and the second one ends in the middle of it */
static _Atomic bool cut_data;
typedef void data_put(const struct wish *w, uint64_t at, uint64_t n);
static data_put *_Atomic data_instead;     /* what a liar sends */
static uint64_t data_more;              /* and how much more than it was asked for */
static const struct share_token token = {{0x0123456789abcdef, 0xfedcba9876543210}};
static pthread_t server;
static char address[64], folder[64];
static _Atomic uint64_t records, markers, bulk_sum, wrong;
static uint8_t pattern[6 << 20];
static uint8_t *pinned;                 /* the same, where the mount sees it, at `pinned_at` */
static uint64_t pinned_at;
static unsigned pinned_forks;

/* Bytes in another order have another sum. A sanitizer that is asked about each of them takes minutes. */
__attribute__((noinline, no_sanitize("thread")))
static uint64_t sum_of_own(const uint8_t *p, size_t n, size_t from)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += p[i] * (uint64_t)((from + i) % 65521 + 1);
	return sum;
}

/* The same of bytes that others may write: the copy is what a sanitizer looks at. */
static uint64_t sum_of(const uint8_t *p, size_t n, size_t from)
{
	uint64_t sum = 0;
	uint8_t own[4096];
	for (size_t at = 0, k; at < n; at += k) {
		k = n - at < sizeof own ? n - at : sizeof own;
		memcpy(own, p + at, k);
		sum += sum_of_own(own, k, from + at);
	}
	return sum;
}

static bool get_from(int fd, void *p, size_t n)
{
	ssize_t r = 1;
	for (size_t at = 0; at < n && r > 0; at += (size_t)r)
		r = recv(fd, (char *)p + at, n - at, 0);
	return r > 0;
}
static bool get(void *p, size_t n) { return get_from(peer, p, n); }

static void put_by(int fd, struct frame *f, const void *body, size_t n)
{
	struct iovec v[2] = {{f, f ? sizeof *f : 0}, {(void *)body, n}};
	struct msghdr m = {.msg_iov = v, .msg_iovlen = 2};
	size_t left = v[0].iov_len + n;
	while (left) {
		ssize_t r = sendmsg(fd, &m, MSG_NOSIGNAL);
		if (r <= 0)
			return;
		left -= (size_t)r;
		for (int i = 0; i < 2 && r; i++) {
			size_t part = (size_t)r < v[i].iov_len ? (size_t)r : v[i].iov_len;
			v[i].iov_base = (uint8_t *)v[i].iov_base + part;
			v[i].iov_len -= part;
			r -= (ssize_t)part;
		}
	}
}
static void put(struct frame f, const void *body, size_t n) { put_by(peer, &f, body, n); }

/* n bytes of a transfer, from `at` on, of which every second stripe goes by the second connection. */
static void put_striped(const struct wish *w, uint64_t at, uint64_t n)
{
	struct frame f = {.kind = FRAME_DATA, .flags = FRAME_STRIPED, .ctx = w->transfer, .seq = at,
		.bulk_len = n};
	for (uint64_t i = 0; i < n; i += STRIPE) {
		size_t part = n - i < STRIPE ? n - i : STRIPE;
		if (i / STRIPE % 2 == 0)
			put_by(peer, i ? NULL : &f, pattern + at + i, part);
		else if (cut_data && at)
			shutdown(second_peer, SHUT_RDWR);
		else
			put_by(second_peer, NULL, pattern + at + i, part);
	}
}

/* Says how much of what is lent it has. */
static void say_taken(uint64_t taken)
{
	(void)!send(second_peer, &taken, sizeof taken, MSG_NOSIGNAL);
}

/* A piece of a lent bulk: its place comes in place of it. */
static bool take_lent(uint8_t *to, size_t n)
{
	uint64_t at;
	if (!get(&at, sizeof at) || at > LIMIT_ARENA - n)
		return false;
	memcpy(to, lent + at, n);
	lent_taken++;
	if (borrower == LEAVES && lent_taken == 30)
		shutdown(second_peer, SHUT_RDWR);
	if (borrower == SAYS_MORE && lent_taken == 30)
		say_taken(lent_taken + 1000000);
	else if (borrower == SAYS_LESS && lent_taken == 30)
		say_taken(1);
	else if (borrower != SAYS_NOTHING)
		say_taken(lent_taken);
	return true;
}

/* n bytes of a transfer, from `at` on, in a slot that is lent. */
static void put_lent(const struct wish *w, uint64_t at, uint64_t n)
{
	uint64_t slot = slots_sent % SLOTS * LIMIT_REPLY;
	while (slots_sent - slots_taken == SLOTS)
		if (!get_from(second_peer, &slots_taken, sizeof slots_taken))
			return;
	memset(slots + slot, 0xee, LIMIT_REPLY);
	memcpy(slots + slot, pattern + at, n);
	slots_sent++;
	if (lender == LENDS_OUTSIDE)
		slot = SLOTS_BYTES - n + 1;
	else if (lender == LENDS_BEHIND)
		slot = UINT64_MAX - 4096;
	put((struct frame){.kind = FRAME_DATA, .flags = FRAME_LENT, .ctx = w->transfer, .seq = at,
		.bulk_len = n}, &slot, sizeof slot);
}

static bool serve_record(const struct frame *f, uint32_t *count)
{
	static uint8_t bulk[STRIPE];
	struct wish w;
	uint64_t sum = 0;
	if (f->flags & FRAME_PACE) {
		wrong += f->seq != ++records;
		markers++;
		put((struct frame){.kind = FRAME_REPLY, .seq = f->seq}, NULL, 0);
		return true;
	}
	if (f->head_len != sizeof w || f->bulk_len > sizeof pattern || !get(&w, sizeof w))
		return false;
	for (size_t at = 0, n; at < f->bulk_len; at += n) {
		n = f->bulk_len - at < sizeof bulk ? f->bulk_len - at : sizeof bulk;
		if (offer == OFFER_CUT && striped == 2 && at == 3 * STRIPE)
			shutdown(second_peer, SHUT_RDWR);
		bool second = f->flags & FRAME_STRIPED && at / STRIPE % 2;
		if (frame_is_lent(f) ? !take_lent(bulk, n) : !get_from(second ? second_peer : peer, bulk, n))
			return false;
		sum += sum_of(bulk, n, at);
	}
	striped += f->flags & FRAME_STRIPED ? 1 : 0;
	lent_records += frame_is_lent(f);
	bulk_sum += sum;
	wrong += f->seq != ++records || w.thread != f->thread || w.thread > THREADS ||
			w.count != ++count[w.thread];
	if (f->kind != FRAME_WAIT)
		return true;
	for (uint64_t at = 0, most = stripes ? LIMIT_REPLY : chunk; at < w.data; at += most) {
		uint64_t n = w.data - at < most ? w.data - at : most;
		data_put *instead = data_instead;
		if (instead)
			instead(&w, at, n + (at + n == w.data ? data_more : 0));
		else if (slots && lender != LENDS_NOT)
			put_lent(&w, at, n);
		else if (stripes)
			put_striped(&w, at, n);
		else
			put((struct frame){.kind = FRAME_DATA, .ctx = w.transfer, .seq = at, .bulk_len = n},
				pattern + at, n);
	}
	put((struct frame){.kind = FRAME_REPLY, .seq = f->seq, .head_len = 1, .bulk_len = w.answer},
		pattern, 1 + w.answer);
	return true;
}

/* Memory comes by the second connection. */
static void meet_lender(void)
{
	struct lending theirs, ours = {.taken = borrower != REFUSES};
	const char *why = NULL;
	int fd;
	ck_assert_int_eq(lending_receive(second_peer, &theirs, &fd, 1000), 0);
	ck_assert_uint_eq(theirs.size, LIMIT_ARENA);
	ck_assert_int_ge(fd, 0);
	lent = lending_map(fd, theirs.size, &why);
	ck_assert_msg(lent != NULL, "%s", why);
	ck_assert_ptr_eq(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
	close(fd);
	fd = lender == LENDS_NOT || lender == LENDS_NONE ? -1 : lending_create("slots", SLOTS_BYTES);
	if (lender == LENDS_UNSEALED) {
		close(fd);
		fd = memfd_create("slots", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		ck_assert_int_eq(ftruncate(fd, SLOTS_BYTES), 0);
	}
	ours.size = lender == LENDS_NOT ? 0 : lender == LENDS_SMALL ? SLOTS_BYTES + 4096 : SLOTS_BYTES;
	if (lender == LENDS_LARGE) {
		close(fd);
		ours.size = LIMIT_LENT + 4096;
		fd = lending_create("slots", ours.size);
	}
	ck_assert_int_eq(lending_send(second_peer, &ours, fd), 0);
	if (lender == LENDS_NOT)
		return;
	if (fd >= 0)
		slots = mmap(NULL, SLOTS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	uint64_t said = 2;
	ck_assert(get_from(second_peer, &said, sizeof said));
	took_slots = said;
}

/* The daemon asks for a second connection. */
static void meet_second(const struct frame *asked)
{
	struct frame f;
	struct preamble p;
	put((struct frame){.kind = FRAME_SECOND, .seq = offer ? token.word[0] : 0,
		.ctx = offer ? token.word[1] : 0}, NULL, 0);
	if (!offer)
		return;
	second_peer = accept(listener, NULL, NULL);
	ck_assert(get_from(second_peer, &p, sizeof p) && get_from(second_peer, &f, sizeof f));
	ck_assert_uint_eq(p.flags, PREAMBLE_SECOND);
	ck_assert_mem_eq(p.routing, &token, sizeof token);
	ck_assert_uint_eq(f.kind, FRAME_PING);
	f = (struct frame){.kind = offer == OFFER_WRONG ? FRAME_BYE : FRAME_PONG};
	ck_assert_int_eq(send(second_peer, &f, sizeof f, MSG_NOSIGNAL), sizeof f);
	ck_assert_uint_eq(asked->seq, local ? SECOND_LENDS : SECOND_WANTED);
	if (local && offer != OFFER_WRONG)
		meet_lender();
}

static void *server_main(void *unused)
{
	uint32_t count[THREADS + 1] = {0};
	struct preamble p;
	struct frame f;
	(void)unused;
	peer = accept(listener, NULL, NULL);
	if (!get(&p, sizeof p))
		return NULL;
	while (get(&f, sizeof f)) {
		if (f.kind == FRAME_PING)
			put((struct frame){.kind = FRAME_PONG, .seq = f.seq}, NULL, 0);
		else if (f.kind == FRAME_SECOND && ((word = f.seq) == SECOND_WANTED || word == SECOND_LENDS))
			meet_second(&f);
		else if (f.kind == FRAME_SECOND)
			continue;
		else if (!serve_record(&f, count))
			break;
	}
	shutdown(peer, SHUT_RDWR);
	return NULL;
}

/* Where the daemon finds the server. */
static void listen_at(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_un u = {.sun_family = AF_UNIX};
	socklen_t n = sizeof a;
	listener = socket(local ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (local) {
		snprintf(u.sun_path, sizeof u.sun_path, "%s/server", folder);
		ck_assert(!bind(listener, (struct sockaddr *)&u, sizeof u) && !listen(listener, 1));
		ck_assert_int_lt(snprintf(address, sizeof address, "unix:%s", u.sun_path),
			(int)sizeof address);
		return;
	}
	ck_assert(!bind(listener, (struct sockaddr *)&a, sizeof a) && !listen(listener, 1) &&
		!getsockname(listener, (struct sockaddr *)&a, &n));
	snprintf(address, sizeof address, "127.0.0.1:%d", ntohs(a.sin_port));
}

static void setup(void)
{
	char path[128];
	struct op o;
	for (size_t i = 0; i < sizeof pattern; i++)
		pattern[i] = (uint8_t)(i * 31 >> 3);
	records = markers = bulk_sum = wrong = striped = 0;
	word = SECOND_WANTED;
	stripes = cut_data = false;
	data_instead = NULL;
	data_more = 0;
	chunk = 200000;
	offer = OFFER_NONE;
	lent = NULL;
	lent_taken = lent_records = 0;
	slots = NULL;
	slots_sent = slots_taken = 0;
	took_slots = 2;
	/* In place of the mount: a folder in which the sockets are made. */
	snprintf(folder, sizeof folder, "/tmp/scudafs-ring.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	listen_at();
	ck_assert_int_eq(pthread_create(&server, NULL, server_main, NULL), 0);
	snprintf(path, sizeof path, "%s/sessions", folder);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	rendezvous_init(folder);
	struct relay_options options = {.id = relay_new_id(), .address = address, .pid = getpid(),
		.uid = getuid(), .connections = local ? CONNECTIONS_AUTO : CONNECTIONS_TWO};
	op_init(&o, NULL, 0);
	relay_create(&options, &o.q);
	ck_assert_int_eq(op_end(&o), 0);
	relay = o.q.relay;
	snprintf(path, sizeof path, "%s/ctl", folder);
	int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert_int_eq(channel_open(path), 0);
	ck_assert(ring_is_open());
	pinned = arena_alloc(sizeof pattern, &pinned_at, &pinned_forks);
	ck_assert_ptr_nonnull(pinned);
	memcpy(pinned, pattern, sizeof pattern);
}

static void teardown(void)
{
	char command[128];
	arena_free(pinned, sizeof pattern, pinned_at, pinned_forks);
	channel_close();
	relay_close(relay);
	pthread_join(server, NULL);
	close(peer);
	close(listener);
	if (second_peer >= 0)
		close(second_peer);
	if (lent)
		munmap((void *)lent, LIMIT_ARENA);
	if (slots)
		munmap(slots, SLOTS_BYTES);
	second_peer = -1;
	ck_assert(relay_end_all(3000));
	snprintf(command, sizeof command, "rm -r %s", folder);
	ck_assert_int_eq(system(command), 0);
}

/* ---- records that say what they want */

static inline void fill(struct record *r, uint8_t *bytes, enum frame_kind kind, const struct wish *w)
{
	memcpy(bytes + sizeof(struct frame), w, sizeof *w);
	*r = (struct record){.bytes = bytes, .head_len = sizeof *w, .kind = (uint8_t)kind,
		.thread = w->thread};
}

/* Waits for all that was posted; this is record `count` of thread 1. `flags`: the record's own. */
static inline int settle_with(uint32_t count, unsigned flags)
{
	uint8_t bytes[sizeof(struct frame) + sizeof(struct wish)];
	struct wish w = {.thread = 1, .count = count};
	struct record r;
	struct answer a;
	fill(&r, bytes, FRAME_WAIT, &w);
	r.flags = (uint8_t)flags;
	return channel_wait(&r, 0, &a);
}
static inline int settle(uint32_t count) { return settle_with(count, 0); }

static inline void fetched(void *to, uint64_t offset, const void *p, size_t n)
{
	memcpy((uint8_t *)to + offset, p, n);
}

/* A copy of n bytes to the host: to where the mount puts them itself, by areas of slots, or by the file. */
enum way { STRAIGHT, AREAS, FILE_READS, WAYS };
static inline int fetch(enum way way, uint32_t count, size_t n)
{
	static uint8_t own[sizeof pattern];
	uint8_t bytes[sizeof(struct frame) + sizeof(struct wish)];
	struct wish w = {.thread = 1, .count = count, .data = n, .transfer = count};
	uint8_t *to = way == STRAIGHT ? pinned : own;
	uint64_t got = 0;
	struct record r;
	struct answer a;
	int e;
	memset(to, 0, n);
	fill(&r, bytes, FRAME_WAIT, &w);
	e = way == FILE_READS ? -ENOTSUP : channel_wait_data(&r, w.transfer, n,
			way == STRAIGHT ? pinned_at : 0, fetched, to, &got, &a);
	if (e == -ENOTSUP || e == -EAGAIN) {
		e = e == -ENOTSUP ? channel_send(&r) : 0;
		for (long k; got < n && !e; got += k > 0 ? (uint64_t)k : 0) {
			k = channel_read_data(w.transfer, got, to + got,
				n - got < LIMIT_REPLY ? n - got : LIMIT_REPLY);
			e = k < 0 && k != -EAGAIN ? (int)k : 0;
		}
		e = e ? e : channel_await(r.seq, 0, &a);
	}
	wrong += !e && (got != n || memcmp(to, pattern, n));
	return e;
}
