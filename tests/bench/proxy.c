/* SPDX-License-Identifier: Apache-2.0 */
/* A network that is longer and narrower than this machine's: a TCP relay that delivers every byte --delay-us
 * after it came, at no more than --rate bytes a second in each direction, all connections together, as one
 * link has them. What is under way is bounded (--buffer, for each direction of a connection): beyond it
 * nothing is read, so that the sender waits. Prints the port that it listens on (127.0.0.1), then serves
 * until it is interrupted. An end of data and a reset are passed on in their turn.
 *
 *     proxy [--delay-us N] [--rate BYTES_PER_SECOND] [--buffer BYTES] [--port PORT] [--socket-buffer BYTES]
 *     [--busy] HOST:PORT
 *
 * One thread: an epoll loop, and a timer for the earliest delivery. With --busy it never sleeps: a wire does
 * not wake up either, and a thread that has slept long is late by a tenth of a millisecond. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { PIECE = 256 << 10, VECTORS = 16, SPARE = 64, EVENTS = 64 };
#define UNWATCHED UINT32_MAX

/* Bytes that were read together, and when they are due. len 0: the end of the data. */
struct piece { struct piece *next; uint64_t due; size_t at, len, cap; char bytes[]; };

struct pair;
/* One direction of a connection. */
struct flow {
	struct piece *first, **last;
	size_t bytes;
	bool ended;             /* nothing more comes */
	bool done;              /* the end was passed on */
	bool full;              /* of the socket that it goes to: EPOLLOUT is awaited */
	uint64_t *link;         /* when the link of this direction is free again */
};
struct side { struct pair *pair; int fd; unsigned which; uint32_t events; };
struct pair {
	struct pair *next, **at;
	struct side side[2];    /* the client's, the server's */
	struct flow flow[2];    /* from side i to the other */
	bool dead;
};

static uint64_t delay_ns, rate, buffer = 64 << 20;
static int socket_buffer;
static int loop, timer;
static bool busy;
static struct pair *pairs;
static struct piece *spare;
static unsigned spares;
static uint64_t links[2];
static uint64_t armed;          /* what the timer is set to; 0: not */

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct piece *piece_get(size_t cap)
{
	struct piece *p = cap == PIECE ? spare : NULL;

	if (p) {
		spare = p->next;
		spares--;
	} else if (!(p = malloc(sizeof(*p) + cap))) {
		die("memory");
	}
	p->next = NULL;
	p->at = p->len = 0;
	p->cap = cap;
	return p;
}

static void piece_put(struct piece *p)
{
	if (p->cap != PIECE || spares >= SPARE) {
		free(p);
		return;
	}
	p->next = spare;
	spare = p;
	spares++;
}

/* What is to be watched of side i: reading while there is room, writing while its socket is full; nothing
 * when both directions have ended there. */
static void watch(struct pair *p, unsigned i)
{
	struct side *s = &p->side[i];

	if (p->flow[i].ended && p->flow[!i].done) {
		if (s->events != UNWATCHED)
			epoll_ctl(loop, EPOLL_CTL_DEL, s->fd, NULL);
		s->events = UNWATCHED;
		return;
	}

	uint32_t want = (!p->flow[i].ended && p->flow[i].bytes < buffer ? EPOLLIN : 0) |
			(p->flow[!i].full ? EPOLLOUT : 0);
	struct epoll_event e = {.events = want, .data.ptr = s};

	if (want != s->events && epoll_ctl(loop, EPOLL_CTL_MOD, s->fd, &e))
		die("epoll");
	s->events = want;
}

static void append(struct flow *f, struct piece *p, uint64_t due)
{
	p->due = due;
	*f->last = p;
	f->last = &p->next;
	f->bytes += p->len;
}

/* Reads what side i has, as long as there is room for it. */
static void take(struct pair *p, unsigned i)
{
	struct flow *f = &p->flow[i];

	while (!f->ended && f->bytes < buffer) {
		struct piece *q = piece_get(PIECE);
		ssize_t n = recv(p->side[i].fd, q->bytes, PIECE, 0);
		if (n < 0) {
			piece_put(q);
			if (errno != EAGAIN && errno != EINTR)
				p->dead = true;
			return;
		}
		uint64_t now = now_ns(), *link = f->link;
		if (*link < now)
			*link = now;
		if (rate)
			*link += (uint64_t)n * 1000000000u / rate;
		if (n < PIECE / 4) {
			/* A small piece takes no more memory than it needs. */
			struct piece *small = piece_get((size_t)n);
			memcpy(small->bytes, q->bytes, (size_t)n);
			piece_put(q);
			q = small;
		}
		q->len = (size_t)n;
		f->ended = n == 0;
		append(f, q, *link + delay_ns);
		if (n < PIECE)
			return;
	}
}

/* Delivers what is due of the flow from side i. */
static void deliver(struct pair *p, unsigned i, uint64_t now)
{
	struct flow *f = &p->flow[i];
	int to = p->side[!i].fd;

	f->full = false;
	while (f->first && f->first->due <= now && !p->dead) {
		struct iovec v[VECTORS];
		int count = 0;
		for (struct piece *q = f->first; q && q->len && q->due <= now && count < VECTORS; q = q->next)
			v[count++] = (struct iovec){q->bytes + q->at, q->len - q->at};
		if (!count) {
			shutdown(to, SHUT_WR);
			piece_put(f->first);
			f->first = NULL;
			f->last = &f->first;
			f->done = true;
			return;
		}
		struct msghdr m = {.msg_iov = v, .msg_iovlen = (size_t)count};
		ssize_t n = sendmsg(to, &m, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			f->full = errno == EAGAIN;
			p->dead = !f->full;
			return;
		}
		f->bytes -= (size_t)n;
		while (n > 0) {
			struct piece *q = f->first;
			size_t part = (size_t)n < q->len - q->at ? (size_t)n : q->len - q->at;
			q->at += part;
			n -= (ssize_t)part;
			if (q->at < q->len)
				break;
			f->first = q->next;
			if (!f->first)
				f->last = &f->first;
			piece_put(q);
		}
	}
}

static void pair_end(struct pair *p)
{
	struct linger reset = {.l_onoff = 1};

	for (unsigned i = 0; i < 2; i++) {
		/* What was not delivered is lost: that is a reset, not an end. */
		if (p->dead)
			setsockopt(p->side[i].fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		close(p->side[i].fd);
		for (struct piece *q = p->flow[i].first; q;) {
			struct piece *next = q->next;
			piece_put(q);
			q = next;
		}
	}
	*p->at = p->next;
	if (p->next)
		p->next->at = p->at;
	free(p);
}

static void options(int fd)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (socket_buffer) {
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &socket_buffer, sizeof(socket_buffer));
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &socket_buffer, sizeof(socket_buffer));
	}
}

/* Connecting happens at once: the server is on this machine or near it. */
static void pair_begin(int client, const struct addrinfo *to)
{
	int server = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	options(client);
	if (server >= 0)
		options(server);
	if (server < 0 || connect(server, to->ai_addr, to->ai_addrlen)) {
		perror("connect");
		close(client);
		if (server >= 0)
			close(server);
		return;
	}
	struct pair *p = calloc(1, sizeof(*p));
	if (!p)
		die("memory");
	p->side[0].fd = client;
	p->side[1].fd = server;
	for (unsigned i = 0; i < 2; i++) {
		struct side *s = &p->side[i];
		struct epoll_event e = {.events = EPOLLIN, .data.ptr = s};
		s->pair = p;
		s->which = i;
		s->events = EPOLLIN;
		p->flow[i].last = &p->flow[i].first;
		p->flow[i].link = &links[i];
		if (fcntl(s->fd, F_SETFL, O_NONBLOCK) || epoll_ctl(loop, EPOLL_CTL_ADD, s->fd, &e))
			die("epoll");
	}
	p->next = pairs;
	p->at = &pairs;
	if (pairs)
		pairs->at = &p->next;
	pairs = p;
}

/* Delivers what is due everywhere, ends what has ended, and sets the timer to the next delivery. */
static void turn(void)
{
	uint64_t now = now_ns(), next = 0;

	for (struct pair *p = pairs, *after; p; p = after) {
		after = p->next;
		for (unsigned i = 0; i < 2; i++)
			if (!p->flow[i].full)
				deliver(p, i, now);
		if (p->dead || (p->flow[0].done && p->flow[1].done)) {
			pair_end(p);
			continue;
		}
		for (unsigned i = 0; i < 2; i++) {
			watch(p, i);
			const struct flow *f = &p->flow[i];
			if (f->first && !f->full && (!next || f->first->due < next))
				next = f->first->due;
		}
	}
	if (next == armed || busy)
		return;
	struct itimerspec t = {.it_value = {(time_t)(next / 1000000000u), (long)(next % 1000000000u)}};
	if (timerfd_settime(timer, TFD_TIMER_ABSTIME, &t, NULL))
		die("timer");
	armed = next;
}

static int listener(uint16_t port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port),
			.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;

	if (fd < 0)
		die("socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&a, n) || listen(fd, 64) ||
			getsockname(fd, (struct sockaddr *)&a, &n))
		die("listen");
	printf("%u\n", ntohs(a.sin_port));
	fflush(stdout);
	return fd;
}

static struct addrinfo *resolve(char *address)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
	char *port = strrchr(address, ':');

	if (!port) {
		fprintf(stderr, "proxy: %s is not HOST:PORT\n", address);
		exit(2);
	}
	*port++ = '\0';
	int r = getaddrinfo(address, port, &hints, &list);
	if (r) {
		fprintf(stderr, "proxy: %s: %s\n", address, gai_strerror(r));
		exit(1);
	}
	return list;
}

static uint64_t number(const char *s)
{
	char *end;
	double v = strtod(s, &end);

	if (end == s || *end || v < 0 || v > 1e15) {
		fprintf(stderr, "proxy: %s is not a number\n", s);
		exit(2);
	}
	return (uint64_t)v;
}

int main(int argc, char **argv)
{
	static const struct option long_options[] = {
		{"delay-us", required_argument, NULL, 'd'},
		{"rate", required_argument, NULL, 'r'},
		{"buffer", required_argument, NULL, 'b'},
		{"port", required_argument, NULL, 'p'},
		{"socket-buffer", required_argument, NULL, 's'},
		{"busy", no_argument, NULL, 'y'},
		{0},
	};
	uint64_t port = 0;

	for (int c; (c = getopt_long(argc, argv, "", long_options, NULL)) != -1;) {
		if (c == '?')
			return 2;
		uint64_t n = optarg ? number(optarg) : 0;
		switch (c) {
		case 'y': busy = true; break;
		case 'd': delay_ns = n * 1000; break;
		case 'r': rate = n; break;
		case 'b': buffer = n; break;
		case 'p': port = n; break;
		case 's': socket_buffer = (int)n; break;
		}
	}
	if (optind != argc - 1 || port > 65535 || !buffer) {
		fprintf(stderr, "usage: proxy [--delay-us N] [--rate BYTES_PER_SECOND] [--buffer BYTES] "
				"[--port PORT] [--socket-buffer BYTES] [--busy] HOST:PORT\n");
		return 2;
	}
	struct addrinfo *to = resolve(argv[optind]);
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_TIMERSLACK, 1);
	loop = epoll_create1(EPOLL_CLOEXEC);
	timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	int in = listener((uint16_t)port);
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = &in},
			t = {.events = EPOLLIN, .data.ptr = &timer};
	if (loop < 0 || timer < 0 || epoll_ctl(loop, EPOLL_CTL_ADD, in, &e) ||
			epoll_ctl(loop, EPOLL_CTL_ADD, timer, &t))
		die("epoll");
	for (;;) {
		struct epoll_event events[EVENTS];
		int n = epoll_wait(loop, events, EVENTS, busy ? 0 : -1);
		if (n < 0 && errno != EINTR)
			die("epoll");
		for (int i = 0; i < n; i++) {
			if (events[i].data.ptr == &timer) {
				uint64_t times;
				if (read(timer, &times, sizeof(times)) > 0)
					armed = 0;
			} else if (events[i].data.ptr == &in) {
				int fd = accept4(in, NULL, NULL, SOCK_CLOEXEC);
				if (fd >= 0)
					pair_begin(fd, to);
			} else {
				/* A pair ends in turn() only, so its sides are all there. */
				struct side *s = events[i].data.ptr;
				if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
					take(s->pair, s->which);
				if (events[i].events & EPOLLERR)
					s->pair->dead = true;
				if (events[i].events & EPOLLOUT)
					s->pair->flow[!s->which].full = false;
			}
		}
		turn();
	}
}
