/* SPDX-License-Identifier: Apache-2.0 */
/* A server without a GPU for tests of the daemon: speaks clear frames and does what a record's call number
 * says (peer.h). Prints its port on standard output. Usage: fake [PORT]. One thread per connection. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "tests/relay/peer.h"
#include "wire/frame.h"
#include "wire/limits.h"
#include "wire/msg.h"

struct session {
	int fd;
	unsigned long long bytes, sum;
	uint8_t head[LIMIT_HEAD];
	uint8_t bulk[1 << 20];
};

static int full_read(int fd, void *p, size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t r = read(fd, (char *)p + at, n - at);
		if (r <= 0)
			return -1;
		at += (size_t)r;
	}
	return 0;
}

static int full_write(int fd, const void *p, size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t r = write(fd, (const char *)p + at, n - at);
		if (r <= 0)
			return -1;
		at += (size_t)r;
	}
	return 0;
}

static int send_frame(int fd, struct frame f, const void *head, const void *bulk)
{
	if (f.head_len + f.bulk_len <= 16384) {
		uint8_t b[sizeof(f) + 16384];
		memcpy(b, &f, sizeof(f));
		if (f.head_len)
			memcpy(b + sizeof(f), head, f.head_len);
		if (f.bulk_len)
			memcpy(b + sizeof(f) + f.head_len, bulk, f.bulk_len);
		return full_write(fd, b, sizeof(f) + f.head_len + f.bulk_len);
	}
	return full_write(fd, &f, sizeof(f)) || full_write(fd, head, f.head_len) ||
	       full_write(fd, bulk, f.bulk_len);
}

static void put_device(struct msg *m, int i)
{
	uint8_t uuid[16] = {0xaa, 0xbb, [15] = (uint8_t)i};
	put_map(m, 7);
	put_text(m, "name"), put_text(m, i ? "Fake \x1b[1m GPU" : "Fake GPU");
	put_text(m, "uuid"), put_bytes(m, uuid, 16);
	put_text(m, "total"), put_u64(m, 1ull << 33);
	put_text(m, "free"), put_u64(m, (1ull << 33) - 4096);
	put_text(m, "pci_bus_id"), put_text(m, "0000:00:06.0");
	put_text(m, "future"), put_array(m, 1), put_u64(m, 1);
	put_text(m, "attributes"), put_array(m, 80);
	for (int a = 0; a < 80; a++)
		if (a == 16 || a == 75 || a == 76)
			put_i64(m, a == 16 ? 132 : a == 75 ? 9 : 0);
		else
			put_nil(m);
}

static int send_snapshot(int fd, uint64_t seq)
{
	uint8_t head[LIMIT_SNAPSHOT];
	struct msg m;
	msg_init(&m, head, sizeof(head));
	put_map(&m, 6);
	put_text(&m, "driver_version"), put_i64(&m, 13000);
	put_text(&m, "nvidia_version"), put_text(&m, "580.159.04");
	put_text(&m, "driver"), put_text(&m, "fake");
	put_text(&m, "host"), put_text(&m, "fakehost");
	put_text(&m, "sessions"), put_u64(&m, 0);
	put_text(&m, "devices"), put_array(&m, 2);
	put_device(&m, 0);
	put_device(&m, 1);
	return send_frame(fd, (struct frame){.kind = FRAME_SNAPSHOT, .seq = seq, .head_len = (uint32_t)m.len},
		head, NULL);
}

static int send_data(struct session *s, const uint64_t *a)
{
	uint64_t transfer = a[0], bytes = a[1], piece = a[2];
	for (uint64_t at = 0; at < bytes;) {
		uint64_t n = bytes - at < piece ? bytes - at : piece;
		for (uint64_t i = 0; i < n && bytes <= 64 << 20; i++)
			s->bulk[i] = peer_byte(transfer, at + i);
		if (send_frame(s->fd,
			    (struct frame){.kind = FRAME_DATA, .ctx = transfer, .seq = at, .bulk_len = n},
			    NULL, s->bulk))
			return -1;
		at += n;
	}
	return 0;
}

static int upcalls(struct session *s, uint64_t count)
{
	for (uint64_t i = 1; i <= count; i++)
		if (send_frame(s->fd, (struct frame){.kind = FRAME_UPCALL, .seq = i, .head_len = 9},
			    "\xcf\0\0\0\0\0\0\0\1", NULL))
			return -1;
	for (uint64_t done = 0; done < count;) {
		struct frame f;
		if (full_read(s->fd, &f, sizeof(f)))
			return -1;
		if (f.kind == FRAME_UPCALL_DONE)
			done++;
		else if (f.kind == FRAME_PING)
			send_frame(s->fd, (struct frame){.kind = FRAME_PONG, .seq = f.seq}, NULL, NULL);
		else
			return -1;
	}
	return 0;
}

/* Works for so long, and answers the heartbeat meanwhile. */
static int slow(int fd, int ms)
{
	for (struct pollfd p = {.fd = fd, .events = POLLIN}; ms > 0; ms -= 10) {
		struct frame f;
		if (!poll(&p, 1, 10))
			continue;
		if (full_read(fd, &f, sizeof(f)) || f.kind != FRAME_PING ||
			send_frame(fd, (struct frame){.kind = FRAME_PONG, .seq = f.seq}, NULL, NULL))
			return -1;
	}
	return 0;
}

static int answer(struct session *s, const struct frame *f)
{
	uint64_t a[8] = {0};
	struct frame r = {.kind = FRAME_REPLY, .seq = f->seq};
	memcpy(a, s->head, f->head_len < sizeof(a) ? f->head_len : sizeof(a));
	switch (f->kind == FRAME_HELLO ? PEER_ECHO : (int)f->call) {
	case PEER_ECHO: r.head_len = f->head_len; return send_frame(s->fd, r, s->head, NULL);
	case PEER_DATA: return send_data(s, a) || send_frame(s->fd, r, NULL, NULL);
	case PEER_LATE_DATA: return send_frame(s->fd, r, NULL, NULL) || send_data(s, a);
	case PEER_COUNT: r.bulk_len = 16; return send_frame(s->fd, r, NULL, &s->bytes);
	case PEER_BULK:
		for (uint64_t i = 0; i < a[0] && i < sizeof(s->bulk); i++)
			s->bulk[i] = peer_byte(f->seq, i);
		r.bulk_len = a[0];
		return send_frame(s->fd, r, NULL, s->bulk);
	case PEER_UPCALL: return upcalls(s, a[0]) || send_frame(s->fd, r, NULL, NULL);
	case PEER_SLOW: return slow(s->fd, (int)a[0]) || send_frame(s->fd, r, NULL, NULL);
	case PEER_BYE:
		send_frame(s->fd, (struct frame){.kind = FRAME_BYE, .head_len = 10},
			"\x92\xcd\x03\x2a\xa5"
			"ended",
			NULL);
		return -1;
	case PEER_BAD:
		send_frame(
			s->fd, (struct frame){.kind = FRAME_REPLY, .head_len = LIMIT_HEAD + 1}, NULL, NULL);
		return 0;
	case PEER_UNASKED: r.seq += 1000; return send_frame(s->fd, r, NULL, NULL);
	}
	return -1;
}

static void *serve(void *arg)
{
	struct session *s = arg;
	struct preamble p;
	struct frame f;
	int e = full_read(s->fd, &p, sizeof(p));
	while (!e && !full_read(s->fd, &f, sizeof(f)) && f.head_len <= LIMIT_HEAD &&
		!full_read(s->fd, s->head, f.head_len)) {
		for (uint64_t left = f.bulk_len; left && !e;) {
			size_t n = left < sizeof(s->bulk) ? left : sizeof(s->bulk);
			e = full_read(s->fd, s->bulk, n);
			for (size_t i = 0; i < n && f.call == PEER_COUNT; i++)
				s->sum += s->bulk[i] * (s->bytes + i + 1);
			s->bytes += n;
			left -= n;
		}
		if (f.kind == FRAME_PING)
			e = send_frame(s->fd, (struct frame){.kind = FRAME_PONG, .seq = f.seq}, NULL, NULL);
		else if (f.kind == FRAME_GET_SNAPSHOT)
			e = send_snapshot(s->fd, f.seq);
		else if (f.kind == FRAME_WAIT || f.kind == FRAME_HELLO)
			e = answer(s, &f);
		if (e)
			break;
	}
	close(s->fd);
	free(s);
	return NULL;
}

int main(int argc, char **argv)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons((uint16_t)(argc > 1 ? atoi(argv[1]) : 0))};
	socklen_t n = sizeof(a);
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	signal(SIGPIPE, SIG_IGN);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 64) ||
		getsockname(fd, (struct sockaddr *)&a, &n)) {
		perror("fake");
		return 1;
	}
	printf("%d\n", ntohs(a.sin_port));
	fflush(stdout);
	for (;;) {
		struct session *s = calloc(1, sizeof(*s));
		pthread_t t;
		s->fd = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		if (s->fd < 0)
			return 1;
		setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		if (pthread_create(&t, NULL, serve, s) == 0)
			pthread_detach(t);
	}
}
