/* SPDX-License-Identifier: Apache-2.0 */
/* The network of this run, to measure ours against: round trip of 64 bytes and bandwidth of one TCP
 * connection. Without arguments it talks to a child of its own over loopback; `tcp serve PORT` answers on
 * another machine until it is interrupted (port 0: any, which it prints) and `tcp HOST PORT` measures towards
 * it. Prints `rtt_us X` (median of as many as go into a second) and `bw_gbs Y`. One thread a process. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PING = 64, ROUNDS = 5000, WARM = 200, PIECE = 1 << 20, LAST = 'l' };
static const double seconds_of_bulk = 1.0, seconds_of_pings = 1.0;
static char buffer[PIECE];

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static int all(int fd, char *p, size_t n, int sending)
{
	while (n) {
		ssize_t r = sending ? send(fd, p, n, MSG_NOSIGNAL) : recv(fd, p, n, 0);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return 0;
		p += r;
		n -= (size_t)r;
	}
	return 1;
}

static void no_delay(int fd)
{
	int one = 1;

	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
		die("TCP_NODELAY");
}

/* Echoes the pings, swallows what follows the last of them, and says so when the other side has sent all. */
static void answer(int fd)
{
	ssize_t r;

	no_delay(fd);
	do
		if (!all(fd, buffer, PING, 0) || !all(fd, buffer, PING, 1))
			return;
	while (*buffer != LAST);
	while ((r = recv(fd, buffer, PIECE, 0)) > 0 || (r < 0 && errno == EINTR))
		;
	all(fd, buffer, 1, 1);
}

static int listener(struct sockaddr_in6 *a)
{
	socklen_t n = sizeof(*a);
	int fd = socket(AF_INET6, SOCK_STREAM, 0), one = 1, off = 0;

	if (fd < 0)
		die("socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (bind(fd, (struct sockaddr *)a, sizeof(*a)) || listen(fd, 1) || getsockname(fd,
			(struct sockaddr *)a, &n))
		die("listen");
	return fd;
}

static int connect_to(const char *host, const char *port)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
	int fd = -1, r = getaddrinfo(host, port, &hints, &list);

	if (r) {
		fprintf(stderr, "%s: %s\n", host, gai_strerror(r));
		exit(1);
	}
	for (struct addrinfo *a = list; a; a = a->ai_next) {
		fd = socket(a->ai_family, a->ai_socktype, a->ai_protocol);
		if (fd >= 0 && !connect(fd, a->ai_addr, a->ai_addrlen))
			break;
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	freeaddrinfo(list);
	if (fd < 0)
		die("connect");
	return fd;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void measure(int fd)
{
	static double t[WARM + ROUNDS];
	double start, total = 0;
	int n = 0;

	no_delay(fd);
	start = now();
	for (int i = -WARM; i < ROUNDS && *buffer != LAST; i++) {
		double s = now();

		*buffer = i == ROUNDS - 1 || s - start > seconds_of_pings ? LAST : 0;
		if (!all(fd, buffer, PING, 1) || !all(fd, buffer, PING, 0))
			die("ping");
		/* On a slow network the first ones have to do. */
		if (i >= 0 || s - start > seconds_of_pings / 2)
			t[n++] = now() - s;
	}
	qsort(t, (size_t)n, sizeof(*t), by_value);
	printf("rtt_us %.2f\n", t[n / 2] * 1e6);
	start = now();
	do {
		if (!all(fd, buffer, PIECE, 1))
			die("send");
		total += PIECE;
	} while (now() - start < seconds_of_bulk);
	shutdown(fd, SHUT_WR);
	if (!all(fd, buffer, 1, 0))
		die("the other side ended early");
	printf("bw_gbs %.3f\n", total / (now() - start) / 1e9);
}

int main(int argc, char **argv)
{
	struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int fd, c;
	char port[8];
	pid_t p;

	signal(SIGPIPE, SIG_IGN);
	if (argc == 3 && !strcmp(argv[1], "serve")) {
		a.sin6_addr = in6addr_any;
		a.sin6_port = htons((unsigned short)atoi(argv[2]));
		fd = listener(&a);
		printf("%u\n", ntohs(a.sin6_port));
		fflush(stdout);
		for (;;) {
			c = accept(fd, NULL, NULL);
			if (c < 0 && errno != EINTR)
				die("accept");
			if (c >= 0) {
				answer(c);
				close(c);
			}
		}
	}
	if (argc == 3) {
		measure(connect_to(argv[1], argv[2]));
		return 0;
	}
	if (argc != 1) {
		fprintf(stderr, "usage: tcp | tcp serve PORT | tcp HOST PORT\n");
		return 2;
	}
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(v4);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&v4, n) || listen(fd, 1) || getsockname(fd,
			(struct sockaddr *)&v4, &n))
		die("loopback");
	fflush(stdout);
	p = fork();
	if (p < 0)
		die("fork");
	if (!p) {
		c = accept(fd, NULL, NULL);
		if (c >= 0)
			answer(c);
		_exit(0);
	}
	snprintf(port, sizeof(port), "%u", ntohs(v4.sin_port));
	measure(connect_to("127.0.0.1", port));
	while (waitpid(p, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}
