/* SPDX-License-Identifier: Apache-2.0 */
/* What the ways from a program's memory to a stream socket can do on this machine: which of them the mount
 * should take is decided by these figures, not by taste. 256 MiB go over the loopback to a process that
 * receives them into four pieces of a MiB in turn, as a server does. Prints `name GB/s, s/GB of the sender,
 * s/GB of the receiver`, the best of three.
 *
 *     hot       one MiB again and again: what a benchmark of the network measures
 *     cold      send() straight from the memory
 *     copied    one thread copies into eight slots of a MiB, another one sends from there (copied-nt: with
 *               stores that leave the caches alone)
 *     file      sendfile() from a memfd that is the memory: the kernel copies nothing on this side
 *     slots     a copy into eight slots of a memfd, sendfile from there; a slot is free when the receiver
 *               says so
 *     two       two connections, each by a thread of its own, half of the memory each
 *     ...-u     the same through a unix socket; other letters: other sizes of the socket's buffers at both
 *               ends, and of the pieces (the table below) */
#include <emmintrin.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MIB = 1 << 20, ALL = 256 * MIB, SLOTS = 8, RECEIVED = 4, RUNS = 3, TWO = 2 };

static char *memory, *slots;
static int memory_fd, slots_fd;
static sem_t full, empty;
static int plain, fd_of_acks = -1;
static size_t piece = MIB;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double cpu(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
			(double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static char *shared(int *fd, size_t n)
{
	*fd = memfd_create("ways", MFD_CLOEXEC);
	if (*fd < 0 || ftruncate(*fd, (off_t)n))
		die("memfd");
	char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	if (p == MAP_FAILED)
		die("mmap");
	memset(p, 1, n);
	return p;
}

static void send_all(int fd, const char *p, size_t n)
{
	while (n) {
		ssize_t r = send(fd, p, n, MSG_NOSIGNAL);

		if (r <= 0)
			die("send");
		p += r;
		n -= (size_t)r;
	}
}

static void send_file(int fd, int from, size_t at, size_t n)
{
	off_t off = (off_t)at;

	while (n) {
		ssize_t r = sendfile(fd, from, &off, n);

		if (r <= 0)
			die("sendfile");
		n -= (size_t)r;
	}
}

/* Receives n bytes; says so after each MiB, when asked. The last byte that it sends is its own seconds. */
static void receive(int fd, size_t n, int acks)
{
	static char *to;
	double before = cpu();

	to = mmap(NULL, RECEIVED * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
			-1, 0);
	for (size_t got = 0; got < n;) {
		size_t left = piece - got % piece;
		ssize_t r = recv(fd, to + got % (RECEIVED * MIB), left, 0);

		if (r <= 0)
			die("recv");
		got += (size_t)r;
		if (acks && got % piece == 0)
			send_all(fd, "", 1);
	}
	double used = cpu() - before;

	send_all(fd, (char *)&used, sizeof used);
	munmap(to, RECEIVED * MIB);
}

static void take_all(int fd, void *p, size_t n)
{
	for (char *at = p; n;) {
		ssize_t r = recv(fd, at, n, 0);

		if (r <= 0)
			die("recv");
		at += r;
		n -= (size_t)r;
	}
}

static void copy_nt(char *to, const char *from, size_t n)
{
	for (size_t i = 0; i < n; i += 16)
		_mm_stream_si128((__m128i *)(void *)(to + i),
				_mm_loadu_si128((const __m128i *)(const void *)(from + i)));
	_mm_sfence();
}

static void *copier(void *arg)
{
	(void)arg;
	for (size_t i = 0; i < ALL / piece; i++) {
		char *to = slots + i % SLOTS * piece;

		while (sem_wait(&empty))
			;
		if (plain)
			memcpy(to, memory + i * piece, piece);
		else
			copy_nt(to, memory + i * piece, piece);
		sem_post(&full);
	}
	return NULL;
}

static void *acknowledged(void *arg)
{
	char byte;

	(void)arg;
	for (size_t i = 0; i < ALL / piece; i++) {
		take_all(fd_of_acks, &byte, 1);
		sem_post(&empty);
	}
	return NULL;
}

static void copied(int fd, int by_file)
{
	pthread_t t, acks;

	sem_init(&full, 0, 0);
	sem_init(&empty, 0, SLOTS);
	fd_of_acks = fd;
	if (pthread_create(&t, NULL, copier, NULL) ||
			(by_file && pthread_create(&acks, NULL, acknowledged, NULL)))
		die("thread");
	for (size_t i = 0; i < ALL / piece; i++) {
		while (sem_wait(&full))
			;
		if (by_file) {
			send_file(fd, slots_fd, i % SLOTS * piece, piece);
		} else {
			send_all(fd, slots + i % SLOTS * piece, piece);
			sem_post(&empty);
		}
	}
	pthread_join(t, NULL);
	if (by_file)
		pthread_join(acks, NULL);
}

struct half {
	int fd;
	const char *p;
	double receiver;
};

static void *send_half(void *arg)
{
	struct half *h = arg;

	send_all(h->fd, h->p, ALL / TWO);
	take_all(h->fd, &h->receiver, sizeof h->receiver);
	return NULL;
}

static void connection(int unix_socket, int buffer, int v[2])
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof a;
	int one = 1, l;

	if (unix_socket) {
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, v))
			die("socketpair");
		return;
	}
	l = socket(AF_INET, SOCK_STREAM, 0);
	v[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (l < 0 || v[0] < 0 || bind(l, (struct sockaddr *)&a, n) || listen(l, 1) ||
		getsockname(l, (struct sockaddr *)&a, &n) || connect(v[0], (struct sockaddr *)&a, n))
		die("loopback");
	v[1] = accept(l, NULL, NULL);
	close(l);
	for (int i = 0; i < 2 && buffer; i++)
		if (setsockopt(v[i], SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer) ||
			setsockopt(v[i], SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer))
			die("buffers");
	for (int i = 0; i < 2; i++)
		if (setsockopt(v[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one))
			die("TCP_NODELAY");
}

static const struct { char kind; int buffer, piece; } kinds[] = {{' ', 0, MIB}, {'a', 0, MIB / 4},
		{'b', MIB / 2, MIB},
	{'c', MIB / 2, MIB / 4}, {'d', MIB / 4, MIB / 4}, {'e', MIB, MIB / 4}, {'f', MIB / 2, MIB / 8},
		{'g', 2 * MIB, MIB / 4},
	{'u', 0, MIB}};

static void run(const char *way, char kind, int buffer)
{
	int two = !strcmp(way, "two"), by_slots = !strcmp(way, "slots"), connections = two ? TWO : 1,
			v[TWO][2];
	double best = 0, sender = 0, receiver = 0;

	plain = strcmp(way, "copied-nt");
	for (int k = 0; k < RUNS; k++) {
		double used = 0;
		pid_t child[TWO];

		for (int i = 0; i < connections; i++) {
			connection(kind == 'u', buffer, v[i]);
			child[i] = fork();
			if (child[i] < 0)
				die("fork");
			if (!child[i]) {
				receive(v[i][1], (size_t)ALL / (size_t)connections, by_slots);
				_exit(0);
			}
			close(v[i][1]);
		}
		int fd = v[0][0];
		double c = cpu(), t = now();

		if (two) {
			struct half h[TWO];
			pthread_t thread[TWO];

			for (int i = 0; i < TWO; i++) {
				h[i] = (struct half){v[i][0], memory + (size_t)i * (ALL / TWO), 0};
				if (pthread_create(&thread[i], NULL, send_half, &h[i]))
					die("thread");
			}
			for (int i = 0; i < TWO; i++) {
				pthread_join(thread[i], NULL);
				used += h[i].receiver;
			}
		} else {
			if (!strcmp(way, "hot"))
				for (int i = 0; i < ALL / MIB; i++)
					send_all(fd, memory, MIB);
			else if (!strcmp(way, "cold"))
				send_all(fd, memory, ALL);
			else if (!strcmp(way, "file"))
				send_file(fd, memory_fd, 0, ALL);
			else
				copied(fd, by_slots);
			take_all(fd, &used, sizeof used);
		}
		t = now() - t;
		if (ALL / t / 1e9 > best) {
			best = ALL / t / 1e9;
			sender = (cpu() - c) / (ALL / 1e9);
			receiver = used / (ALL / 1e9);
		}
		for (int i = 0; i < connections; i++) {
			close(v[i][0]);
			waitpid(child[i], NULL, 0);
		}
	}
	printf("%-10s%c%c %6.2f GB/s, sender %.3f, receiver %.3f s/GB\n", way, kind == ' ' ? ' ' : '-', kind,
			best,
		sender, receiver);
	fflush(stdout);
}

int main(void)
{
	static const char *ways[] = {"hot", "cold", "copied", "copied-nt", "file", "slots", "two"};

	memory = shared(&memory_fd, ALL);
	slots = shared(&slots_fd, SLOTS * MIB);
	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
		piece = (size_t)kinds[k].piece;
		for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
			run(ways[i], kinds[k].kind, kinds[k].buffer);
	}
	return 0;
}
