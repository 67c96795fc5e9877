/* SPDX-License-Identifier: Apache-2.0 */
/* NVML's session with the mount: one open of ctl, opened by the first nvmlInit and closed by the last
 * nvmlShutdown. A forked child has none: NVML natively has to be initialised again there too.
 *
 * Thread rule: session.h. */
#include "devshim/nvml/session.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "devshim/count.h"
#include "devshim/nvml/ahead.h"
#include "wire/limits.h"
#include "wire/log.h"
#include "wire/uncancelled.h"

#define MOUNT_DEFAULT "/mnt/scuda"

/* Tells a server that this is the shim, should its library path lead here. */
__attribute__((visibility("default"))) extern const char scudafs_shim_marker[];
const char scudafs_shim_marker[] = "scudafs";

struct session session = {
	.lock = PTHREAD_MUTEX_INITIALIZER, .idle = PTHREAD_COND_INITIALIZER, .fd = -1};

/* Unless the program has closed it, and its number may be another file's. */
static void close_ours(void)
{
	if (session.fd >= 0 && held_is(session.fd, &session.held))
		close(session.fd);
	session.fd = -1;
}

static void in_child(void)
{
	session.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	session.idle = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	close_ours();
	session.opens = session.calls = 0;
	ahead_in_child();
}

/* The calls by the number of their list; or, for a server of another build, one by one. */
static void put_hello(struct msg *m, bool listed)
{
	const char *user = getenv("USER");

	put_map(m, 7);
	put_text(m, "protocol"), put_u64(m, PROTOCOL_VERSION);
	put_text(m, "version"), put_text(m, VERSION);
	put_text(m, "pid"), put_u64(m, (uint64_t)getpid());
	put_text(m, "uid"), put_u64(m, getuid());
	put_text(m, "user"), put_text(m, user && strlen(user) < LIMIT_NAME ? user : "");
	put_text(m, "command"), put_text(m, program_invocation_short_name);
	if (!listed) {
		put_text(m, "list"), put_u64(m, NVML_CALL_LIST);
		return;
	}
	put_text(m, "calls"), put_array(m, NVML_CALL_COUNT);
	for (unsigned i = 0; i < NVML_CALL_COUNT; i++) {
		put_array(m, 2);
		put_text(m, nvml_call_names[i].name);
		put_u64(m, nvml_call_names[i].signature);
	}
}

/* Notes the calls that the server lacks; *again: it wants to see the list. 0, or -EPROTO. */
static int take_hello(struct msg *m, bool *again)
{
	char field[64];
	size_t n = get_map(m, 64);

	for (size_t i = 0; i < n && !m->bad; i++) {
		get_text(m, field, sizeof field);
		if (!strcmp(field, "unknown")) {
			for (size_t k = get_array(m, LIMIT_CALLS); k && !m->bad; k--) {
				uint64_t id = get_u64(m);
				if (id < NVML_CALL_COUNT)
					session.unknown[id / 64] |= (uint64_t)1 << id % 64;
			}
		} else if (!strcmp(field, "again")) {
			*again = get_bool(m);
		} else {
			get_skip(m);
		}
	}
	return get_end(m) ? 0 : -EPROTO;
}

/* One that lists the calls is larger than an ioctl takes: its bytes go ahead as a batch, the wait follows. */
static int send_hello(int fd, struct call *c, uint8_t *bytes, uint64_t number, bool *again)
{
	struct frame f = {.kind = FRAME_HELLO, .thread = 1, .seq = number};
	const uint8_t *answer;
	size_t n = sizeof f, there;
	struct msg m;
	bool listed = *again;
	ssize_t r = 0;

	msg_init(&m, bytes + sizeof f, LIMIT_HEAD);
	put_hello(&m, listed);
	f.head_len = (uint32_t)m.len;
	memcpy(bytes, &f, sizeof f);
	n += m.len;
	count_record(f.kind, f.flags, n);
	if (listed) {
		do
			r = pwrite(fd, bytes, n, CTL_POST(number));
		while (r < 0 && errno == EINTR);
		if (r < 0)
			return -errno;
	} else {
		memcpy(c->room + sizeof(struct ctl_wait), bytes, n);
	}
	*again = false;
	r = exchange_answer(fd, c, listed ? 0 : number, number, listed ? 0 : n, &answer, &there);
	if (!r)
		r = exchange_take(c, number, answer, there);
	if (!r)
		r = take_hello(&c->in, again);
	return r ? (int)r : *again && listed ? -EPROTO : 0;
}

/* The lock is held. Returns the number of hellos that it took, or -errno. */
static int hello(int fd)
{
	uint8_t *bytes = malloc(sizeof(struct frame) + LIMIT_HEAD);
	struct call *c = malloc(sizeof *c);
	bool again = false;
	int r = -ENOMEM, number = 0;

	if (bytes && c) {
		call_start(c, 0);
		do
			r = send_hello(fd, c, bytes, (uint64_t)++number, &again);
		while (!r && again);
		free(c->large);
	}
	free(bytes);
	free(c);
	return r ? r : number;
}

const char *mount_path(void)
{
	const char *mount = getenv("SCUDAFS_MOUNT");

	return mount && *mount ? mount : MOUNT_DEFAULT;
}

static int open_session(void)
{
	char path[PATH_MAX];
	int r;

	snprintf(path, sizeof path, "%s/" CTL_NAME, mount_path());
	int fd = held_open(path, &session.held);
	if (fd < 0)
		return log_errno(fd, "%s: %m", path);
	memset(session.unknown, 0, sizeof session.unknown);
	r = hello(fd);
	if (r < 0) {
		close(fd);
		return log_errno(r, "hello: %m");
	}
	session.fd = fd;
	session.seq = session.batch = (uint64_t)r;
	session.error = 0;
	session.number++;
	return 0;
}

unsigned session_number(void)
{
	pthread_mutex_lock(&session.lock);
	unsigned n = session.number;
	pthread_mutex_unlock(&session.lock);
	return n;
}

int session_open(void)
{
	uncancelled state = uncancelled_begin();
	int r = 0, saved = errno;

	pthread_mutex_lock(&session.lock);
	if (!session.hooked) {
		log_init("libnvidia-ml", -1);
		pthread_atfork(NULL, NULL, in_child);
		session.hooked = true;
	}
	if (!session.opens)
		r = open_session();
	if (!r)
		session.opens++;
	pthread_mutex_unlock(&session.lock);
	errno = saved;
	return r ? NVML_SESSION(-r) : 0;
}

int session_close(void)
{
	uncancelled state = uncancelled_begin();
	int saved = errno;

	pthread_mutex_lock(&session.lock);
	if (!session.opens) {
		pthread_mutex_unlock(&session.lock);
		return NVML_ERROR_UNINITIALIZED;
	}
	if (!--session.opens) {
		while (session.calls)
			pthread_cond_wait(&session.idle, &session.lock);
		close_ours();
		session.seq = 0;
		ahead_forget();
	}
	pthread_mutex_unlock(&session.lock);
	errno = saved;
	return 0;
}
