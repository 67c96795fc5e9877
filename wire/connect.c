/* SPDX-License-Identifier: Apache-2.0 */
/* The client's side of a connection's beginning: address, socket, preamble, handshake, and the first PING,
 * whose answer tells that the server has taken us. A server that refuses says FRAME_BYE in clear, with or
 * without TLS.
 *
 * Thread rule: any thread that may block. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "wire/cuda_types.h"
#include "wire/frame.h"
#include "wire/limits.h"
#include "wire/msg.h"
#include "wire/stream.h"
#include "wire/transport.h"

#define DEFAULT_PORT "9710"
#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS 44 /* since Linux 6.15 */
#endif
#define HERE_BUFFER (512 << 10)

/* Do both ends have the same address? */
static bool is_here(int fd)
{
	struct sockaddr_storage own = {0}, peer = {0};
	socklen_t n = sizeof own, m = sizeof peer;

	if (getsockname(fd, (struct sockaddr *)&own, &n) || getpeername(fd, (struct sockaddr *)&peer, &m) ||
		own.ss_family != peer.ss_family)
		return false;
	if (own.ss_family == AF_INET)
		return ((struct sockaddr_in *)&own)->sin_addr.s_addr ==
			((struct sockaddr_in *)&peer)->sin_addr.s_addr;
	return own.ss_family == AF_INET6 && !memcmp(&((struct sockaddr_in6 *)&own)->sin6_addr,
		&((struct sockaddr_in6 *)&peer)->sin6_addr, sizeof(struct in6_addr));
}

/* On its own host a connection needs no more than keeps both ends at work; what the kernel would make of it,
 * megabytes, does not stay in the caches (docs/performance.md). */
static int here_buffers(int fd)
{
	int bytes = HERE_BUFFER;

	return setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes) ||
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes) ? -errno : 0;
}

/* TCP doubles the time between its attempts: behind an outage of 3 s, which is none to us, the next one may
 * come after TIME_DEAD. A kernel that knows neither option goes on as ever. */
static void retry_soon(int fd)
{
	int one = 1, most_ms = 1000;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_RTO_MAX_MS, &most_ms, sizeof most_ms);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, &one, sizeof one);
}

int transport_options(int fd, bool nonblocking)
{
	int one = 1, flags = fcntl(fd, F_GETFL), domain = 0;
	socklen_t n = sizeof domain;

	if (flags < 0 || fcntl(fd, F_SETFL, nonblocking ? flags | O_NONBLOCK : flags & ~O_NONBLOCK))
		return -errno;
	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n))
		return -errno;
	if (domain == AF_UNIX)
		return 0;
	/* No TCP_USER_TIMEOUT: it also ends a connection whose live peer takes nothing for a while because
	 * its GPU is behind. The heartbeat tells the two apart. */
	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one))
		return -errno;
	retry_soon(fd);
	return is_here(fd) ? here_buffers(fd) : 0;
}

bool transport_is_bye(const void *p, size_t n)
{
	const uint8_t *b = p;

	/* The second and third byte of a TLS record are its version, 3 and 1 or 3; a BYE's head is shorter
	 * than 64 KiB. */
	return n >= 5 && !b[2] && !b[3] && b[4] == FRAME_BYE;
}

static int connect_socket(int fd, const struct sockaddr *a, socklen_t n, int64_t deadline)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	int error = 0, r;
	socklen_t len = sizeof error;

	if (!connect(fd, a, n))
		return 0;
	/* A unix socket whose backlog is full says EAGAIN. */
	if (errno != EINPROGRESS && errno != EINTR)
		return errno == EAGAIN ? -ECONNREFUSED : -errno;
	do {
		int64_t left = deadline - transport_now_ms();

		r = poll(&p, 1, left > 0 ? left : 0);
	} while (r < 0 && errno == EINTR);
	if (r <= 0)
		return r ? -errno : -ETIMEDOUT;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len))
		return -errno;
	return -error;
}

/* Whether nobody but root, we and the owner of what stands in the folder can have put it there: on the whole
 * way from the root on, since who may write a folder may also make, or take away, the one below. A sticky
 * folder keeps what is root's or ours. */
static bool only_theirs(const char *folder, uid_t owner)
{
	char path[PATH_MAX];
	uid_t below = owner;
	struct stat st;

	if (!realpath(folder, path))
		return false;
	for (;;) {
		char *slash = strrchr(path, '/');
		bool kept = !below || below == geteuid();

		if (stat(path, &st) || (st.st_uid && st.st_uid != geteuid() && st.st_uid != owner) ||
			(st.st_mode & 022 && !(st.st_mode & S_ISVTX && kept)))
			return false;
		if (!path[1])
			return true;
		below = st.st_uid;
		slash[slash == path] = 0;
	}
}

/* Whom do we talk to? Root, ourselves, or the owner of a socket in a folder where nobody else can put one:
 * anyone may listen in /tmp. */
static int check_listener(int fd, const char *path, const char **why)
{
	const char *slash = strrchr(path, '/');
	char folder[sizeof ((struct sockaddr_un *)0)->sun_path];
	struct stat there;
	struct ucred peer;
	socklen_t n = sizeof peer;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n))
		return -errno;
	if (!peer.uid || peer.uid == geteuid())
		return 0;
	snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
	if (!stat(path, &there) && there.st_uid == peer.uid && only_theirs(folder, peer.uid))
		return 0;
	*why = "the socket is another user's, in a folder where others can put one: it may be anyone's";
	return -EACCES;
}

static int open_unix(const char *path, int64_t deadline, int *fd, const char **why)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int r;

	if (!*path || strlen(path) >= sizeof a.sun_path) {
		*why = "the socket's path is empty or too long";
		return -EINVAL;
	}
	strcpy(a.sun_path, path);
	*fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (*fd < 0)
		return -errno;
	r = connect_socket(*fd, (struct sockaddr *)&a, sizeof a, deadline);
	if (!r)
		r = check_listener(*fd, path, why);
	else if (r == -EACCES)
		*why = "this user may not connect: the mode of the socket, and of its folders, says who may "
		       "(scuda-server --socket-mode, --socket-group)";
	if (r)
		close(*fd);
	return r;
}

/* Splits "host", "host:port", "[v6]", "[v6]:port" and a bare v6 address. */
static bool split(const char *address, char *host, size_t cap, const char **port)
{
	const char *end, *colon = strrchr(address, ':');

	*port = DEFAULT_PORT;
	if (*address == '[') {
		end = strchr(++address, ']');
		if (!end || (end[1] && end[1] != ':'))
			return false;
		if (end[1])
			*port = end + 2;
	} else if (colon && strchr(address, ':') == colon) {
		end = colon;
		*port = colon + 1;
	} else {
		end = address + strlen(address);
	}
	if (end == address || (size_t)(end - address) >= cap || !**port || strlen(*port) > 5 ||
	    (*port)[strspn(*port, "0123456789")])
		return false;
	memcpy(host, address, end - address);
	host[end - address] = 0;
	return true;
}

static bool is_v6(const char *text)
{
	struct addrinfo hints = {.ai_family = AF_INET6, .ai_flags = AI_NUMERICHOST}, *list = NULL;
	bool is = !getaddrinfo(text, NULL, &hints, &list);

	if (is)
		freeaddrinfo(list);
	return is;
}

struct lookup {
	struct gaicb request;
	struct addrinfo hints;
	char host[256], port[8];
};

/* A name's addresses within the deadline. Numbers need no helper thread of the resolver. */
static int look_up(const char *host, const char *port, int64_t deadline, struct addrinfo **out)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
	const struct gaicb *list[1];
	struct gaicb *request[1];
	struct lookup *l;
	int r = getaddrinfo(host, port, &hints, out);

	if (!r)
		return 0;
	l = calloc(1, sizeof *l);
	if (!l)
		return -ENOMEM;
	snprintf(l->host, sizeof l->host, "%s", host);
	snprintf(l->port, sizeof l->port, "%s", port);
	l->hints = (struct addrinfo){.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | AI_ADDRCONFIG};
	l->request = (struct gaicb){.ar_name = l->host, .ar_service = l->port, .ar_request = &l->hints};
	list[0] = request[0] = &l->request;
	r = getaddrinfo_a(GAI_NOWAIT, request, 1, NULL);
	while (!r && gai_error(&l->request) == EAI_INPROGRESS) {
		int64_t left = deadline - transport_now_ms();
		struct timespec t = {left / 1000, left % 1000 * 1000000};

		if (left <= 0)
			break;
		gai_suspend(list, 1, &t);
	}
	if (!r && gai_error(&l->request) == EAI_INPROGRESS && gai_cancel(&l->request) != EAI_CANCELED)
		return -ETIMEDOUT;      /* the resolver still uses l: it is lost, once per dead name server */
	r = r ? r : gai_error(&l->request);
	if (!r)
		*out = l->request.ar_result;
	free(l);
	return !r ? 0 : r == EAI_CANCELED ? -ETIMEDOUT : -EHOSTUNREACH;
}

static int open_tcp(const char *address, int64_t deadline, int *fd, const char **why)
{
	struct addrinfo *list = NULL;
	const char *port;
	char host[256];
	int r, left = 0;

	if (*address != '[' && strchr(address, ':') != strrchr(address, ':') && !is_v6(address)) {
		*why = "a v6 address with a port needs brackets: [v6]:port";
		return -EINVAL;
	}
	if (!split(address, host, sizeof host, &port)) {
		*why = "the address is not host, host:port, [v6]:port or unix:/path";
		return -EINVAL;
	}
	if (strtoul(port, NULL, 10) - 1 >= UINT16_MAX) {
		*why = "a port is a number from 1 to 65535";
		return -EINVAL;
	}
	r = look_up(host, port, deadline, &list);
	if (r) {
		*why = r == -ETIMEDOUT ? "the name server does not answer" :
			"the host's name is unknown: check it, or give the address";
		return r;
	}
	for (struct addrinfo *a = list; a; a = a->ai_next)
		left++;
	r = -EHOSTUNREACH;
	for (struct addrinfo *a = list; a; a = a->ai_next, left--) {
		int64_t now = transport_now_ms();

		*fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol);
		if (*fd < 0) {
			r = -errno;
			continue;
		}
		/* Each address gets its share of the time, so that one that drops packets does not hide
		 * the next. */
		r = connect_socket(*fd, a->ai_addr, a->ai_addrlen, now + (deadline - now) / left);
		if (!r)
			break;
		close(*fd);
	}
	freeaddrinfo(list);
	return r;
}

/* What a server's BYE means to the one who connects, with a key or without. */
static int bye_meaning(const void *head, size_t n, bool keyed, const char **why)
{
	struct msg m;
	CUresult code;

	msg_init(&m, (void *)head, n);
	get_array(&m, 2);
	code = get_i64(&m);
	if (code == CUDA_ERROR_MPS_MAX_CLIENTS_REACHED) {
		*why = "the server has as many sessions as it allows";
		return -EUSERS;
	}
	if (code == CUDA_ERROR_MPS_CONNECTION_FAILED) {
		*why = keyed ? "the server takes no keys there: leave key= out, or start it with --keys" :
			"the server wants a key: mount with -o key=FILE (scudafs keygen)";
		return -EACCES;
	}
	if (code == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH) {
		*why = "the server speaks another version of the protocol: scudafs --version tells it, and "
			"must tell the same on both sides";
		return -EPROTO;
	}
	*why = "the server is not ready";
	return -ECONNREFUSED;
}

static int read_bye(struct stream *s, const struct frame *f, int64_t deadline, const char **why)
{
	uint8_t head[512];
	size_t n = f->head_len < sizeof head ? f->head_len : sizeof head;
	int r = stream_read_all(s, head, n, deadline - transport_now_ms());

	return r ? r : bye_meaning(head, n, false, why);
}

/* The BYE that came in place of a handshake: its beginning is with the TLS code. */
static int clear_bye(const struct stream *s, const char **why)
{
	const struct frame *f;
	const void *p;
	struct frame copy;
	size_t n = stream_unread(s, &p);

	*why = "this is no scuda-server, or one that does not use keys";
	if (n < sizeof *f)
		return -EACCES;
	memcpy(&copy, p, sizeof copy);
	if (frame_check(&copy, false, NULL) || copy.head_len > n - sizeof copy)
		return -EACCES;
	return bye_meaning((const uint8_t *)p + sizeof copy, copy.head_len, true, why);
}

/* Asks whether the server has taken the connection. */
static int first_ping(struct stream *s, int64_t deadline, const char **why)
{
	struct frame f = {.kind = FRAME_PING};
	struct iovec v = {&f, sizeof f};
	int left = deadline - transport_now_ms();
	int r;

	/* A server that refuses may have closed already; what it said is still there to read. */
	(void)stream_write_all(s, &v, 1, left > 0 ? left : 0);
	left = deadline - transport_now_ms();
	r = stream_read_all(s, &f, sizeof f, left > 0 ? left : 0);
	if (r) {
		*why = r == -ETIMEDOUT ?
			"the server does not answer: is it a scuda-server, and not overloaded?" :
			"the server closed the connection: its log says why";
		return r;
	}
	*why = "this is no scuda-server, or one of another protocol: check the port";
	if (frame_check(&f, false, NULL))
		return -EPROTO;
	if (f.kind == FRAME_BYE)
		return read_bye(s, &f, deadline, why);
	return f.kind == FRAME_PONG ? 0 : -EPROTO;
}

/* On the same host the link is memory: nothing is faster for being compressed. */
static bool is_near(int fd)
{
	struct sockaddr_storage a;
	socklen_t n = sizeof a;

	if (getpeername(fd, (struct sockaddr *)&a, &n))
		return true;
	if (a.ss_family == AF_INET)
		return ntohl(((struct sockaddr_in *)&a)->sin_addr.s_addr) >> 24 == 127;
	if (a.ss_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&((struct sockaddr_in6 *)&a)->sin6_addr);
	return true;
}

static int begin(struct stream *s, const struct key *key, unsigned flags, const struct share_token *second,
	int64_t deadline, const char **why)
{
	struct preamble p = {.magic = PREAMBLE_MAGIC, .version = PROTOCOL_VERSION};
	struct iovec v = {&p, sizeof p};
	int r = transport_options(stream_fd(s), true);

	if (flags & PREAMBLE_PACK && is_near(stream_fd(s)))
		flags &= ~(unsigned)PREAMBLE_PACK;
	p.flags = (uint8_t)(flags | (key ? PREAMBLE_TLS : 0) | (second ? PREAMBLE_SECOND : 0));
	if (second)
		memcpy(p.routing, second, sizeof p.routing);
	r = r ? r : stream_write_all(s, &v, 1, deadline - transport_now_ms());
	if (!r && key) {
		*why = "the TLS handshake failed";
		r = stream_handshake(s, key, NULL, deadline);
		if (r == -EPROTO)
			return clear_bye(s, why);
		if (r == -EACCES)
			*why = "the server refuses the key: its --keys file must have the same line";
	}
	r = r ? r : first_ping(s, deadline, why);
	if (!r && flags & (PREAMBLE_PACK | PREAMBLE_PACK_ALWAYS)) {
		s->pack = pack_create(flags & PREAMBLE_PACK_ALWAYS, false);
		r = s->pack ? 0 : -ENOMEM;
	}
	return r;
}

/* What no step has a better word for, with the way out. */
static const char *failure_meaning(int r)
{
	switch (-r) {
	case ECONNREFUSED:
		return "connection refused: start scuda-server there, or give the port that it listens on";
	case ETIMEDOUT:
		return "no answer: is the host up, and does its firewall let the port through?";
	case EHOSTUNREACH:
	case ENETUNREACH:
		return "the host cannot be reached: check the address and the network";
	case ENOENT:
		return "there is no such socket: start scuda-server there";
	case EACCES:
		return "permission denied";
	case ECONNRESET:
	case EPIPE:
		return "the server closed the connection: its log says why";
	default:
		return "cannot connect";
	}
}

static int connect_as(const char *address, const struct key *key, unsigned flags,
	const struct share_token *second, int timeout_ms, struct stream **out, const char **why)
{
	int64_t deadline = transport_now_ms() + timeout_ms;
	const char *reason = NULL;
	struct stream *s = NULL;
	int fd = -1, r;

	if (!strncmp(address, "unix:", 5))
		r = open_unix(address + 5, deadline, &fd, &reason);
	else
		r = open_tcp(address, deadline, &fd, &reason);
	if (!r) {
		s = stream_new(fd);
		if (!s)
			close(fd);
		r = s ? begin(s, key, flags, second, deadline, &reason) : -ENOMEM;
	}
	if (why)
		*why = r && !reason ? failure_meaning(r) : reason;
	if (r) {
		stream_close(s);
		return r;
	}
	*out = s;
	return 0;
}

int stream_connect(const char *address, const struct key *key, unsigned flags, int timeout_ms,
		struct stream **out, const char **why)
{
	return connect_as(address, key, flags, NULL, timeout_ms, out, why);
}

int stream_connect_second(const char *address, const struct share_token *token, int timeout_ms,
		struct stream **out, const char **why)
{
	return connect_as(address, NULL, 0, token, timeout_ms, out, why);
}
