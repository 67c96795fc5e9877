/* SPDX-License-Identifier: Apache-2.0 */
/* A session's life, from the open of `ctl` to the last close: whose it is, its references, its failure. What
 * it does meanwhile is its thread's (session_thread.c).
 *
 * Thread rule: see relay_state.h. */
#include "scudafs/relay_state.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "scudafs/text.h"

struct counters counters;

void relay_fail(struct relay *r, int error, struct answers *a)
{
	if (r->error)
		return;
	/* The program takes ENOMEM for the end of one call, and would go on to call a session that is
	 * over. */
	error = error == ENOMEM && r->up ? ENOBUFS : error;
	r->error = error;
	second_wake(r);
	if (r->channel)
		channel_fail(r->channel, error);
	while (r->parked) {
		struct request *q = r->parked;
		relay_unpark(r, q);
		answers_add(a, q, -error);
	}
	relay_wake(r);
}

int relay_memory(const struct relay *r)
{
	if (!r->channel || !channel_is_broken(r->channel))
		return 0;
	log_warning("session %u: a page of the memory that %s[%d] shares is missing", r->id, r->command,
		(int)r->pid);
	return ENOBUFS;
}

void relay_wake(struct relay *r)
{
	uint64_t one = 1;
	if (write(r->wake_fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
		log_warning("session %u: wake: %m", r->id);
}

void relay_ref(struct relay *r)
{
	atomic_fetch_add(&r->refs, 1);
}

void relay_unref(struct relay *r)
{
	if (!r || atomic_fetch_sub(&r->refs, 1) != 1)
		return;
	stream_close(r->stream);
	outbound_finish(r);
	inbound_finish(r);
	channel_free(r->channel);
	close(r->wake_fd);
	if (r->pid_fd >= 0)
		close(r->pid_fd);
	pthread_mutex_destroy(&r->lock);
	pthread_cond_destroy(&r->idle);
	free(r);
}

/* ---- whose it is ---- */

/* The opener may be any thread of its process; a pidfd is of the process. */
static pid_t process_of(pid_t tid)
{
	char path[64], line[128];
	int pid = 0;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	FILE *f = fopen(path, "re");
	while (f && !pid && fgets(line, sizeof(line), f))
		sscanf(line, "Tgid: %d", &pid);
	if (f)
		fclose(f);
	return pid ? pid : tid;
}

static void identify(struct relay *r, const struct relay_options *o)
{
	char path[64];
	snprintf(r->command, sizeof(r->command), "unknown");
	r->uid = o->uid;
	r->pid_fd = -1;
	if (o->pid <= 0)
		return;
	r->pid = process_of(o->pid);
	r->pid_fd = (int)syscall(SYS_pidfd_open, r->pid, 0);
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)r->pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return;
	if (fgets(r->command, sizeof(r->command), f))
		text_clean(r->command);
	fclose(f);
}

/* ---- open and close ---- */

void relay_create(const struct relay_options *o, struct request *q)
{
	struct answers a;
	answers_init(&a);
	struct relay *r = calloc(1, sizeof(*r) + RECEIVE_BYTES);
	q->relay = NULL;
	if (!r || (r->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0) {
		free(r);
		q->answer(q, r ? -errno : -ENOMEM, NULL, 0);
		return;
	}
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->idle, NULL);
	atomic_init(&r->refs, 3);   /* the opener, the thread, this function */
	snprintf(r->address, sizeof(r->address), "%s", o->address);
	r->credential = o->credential;
	r->flags = o->flags;
	r->second.wish = o->connections;
	r->receive = (uint8_t *)(r + 1);
	identify(r, o);

	r->id = o->id;
	r->node = o->node;
	r->server = o->server;
	sessions_add(r);
	atomic_fetch_add(&counters.sessions, 1);

	pthread_mutex_lock(&r->lock);
	q->relay = r;
	relay_park(r, q, PARK_OPEN, &a);
	pthread_mutex_unlock(&r->lock);
	int e = session_thread_start(r);
	if (e) {
		log_warning("session %u: no thread: %s", r->id, strerror(e));
		sessions_thread_ended();
		pthread_mutex_lock(&r->lock);
		relay_fail(r, e, &a);
		pthread_mutex_unlock(&r->lock);
		relay_unref(r);
	}
	answers_send(&a);
	relay_unref(r);
}

void relay_close(struct relay *r)
{
	struct answers a;
	if (!r)
		return;
	answers_init(&a);
	sessions_remove(r);
	pthread_mutex_lock(&r->lock);
	r->closing = true;
	relay_fail(r, ECONNABORTED, &a);
	relay_wake(r);
	pthread_mutex_unlock(&r->lock);
	answers_send(&a);
	relay_unref(r);
}

void relay_channel(struct relay *r, struct request *q)
{
	struct answers a;
	answers_init(&a);
	q->wait = (struct ctl_wait){0};
	pthread_mutex_lock(&r->lock);
	if (r->error || r->asked || r->channel) {
		answers_add(&a, q, r->error ? -r->error : -EBUSY);
	} else {
		r->asked = true;
		relay_park(r, q, PARK_CHANNEL, &a);
		relay_wake(r);
	}
	pthread_mutex_unlock(&r->lock);
	answers_send(&a);
}
