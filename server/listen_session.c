/* SPDX-License-Identifier: Apache-2.0 */
/* The sessions, as the listener sees them: a process for each, from the preamble of its connection to
 * the line in the log that says how it ended.
 *
 * Thread rule: the listener's one thread. */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/join.h"
#include "server/listen_state.h"
#include "server/options.h"
#include "server/report.h"
#include "server/session.h"
#include "server/share.h"
#include "wire/keys.h"
#include "wire/log.h"
#include "wire/transport.h"

static void session_line(struct session_child *c, int status)
{
	struct report *r = c->report;
	double seconds = (transport_now_ms() - c->start) / 1000.0;
	char reason[sizeof r->reason], died[64] = "";

	r->identity[sizeof r->identity - 1] = 0;
	r->program[sizeof r->program - 1] = 0;
	memcpy(reason, r->reason, sizeof reason);
	reason[sizeof reason - 1] = 0;
	if (WIFSIGNALED(status) && !c->dropped)
		snprintf(died, sizeof died, "the process died of signal %d", WTERMSIG(status));
	else if (!c->dropped && !atomic_load(&r->ended))
		snprintf(died, sizeof died, "the process exited with status %d", WEXITSTATUS(status));
	log_info("session %llu of %s from %s, program %s: %s; %llu records, %llu bytes in, %llu out, %.1f s",
			(unsigned long long)c->id, *r->identity ? r->identity : "nobody", c->peer,
			*r->program ? r->program : "unknown", *died ? died : reason,
			(unsigned long long)atomic_load(&r->records),
					(unsigned long long)atomic_load(&r->bytes_in),
			(unsigned long long)atomic_load(&r->bytes_out), seconds);
}

void session_ended(struct session_child *c, int status)
{
	bool known = !c->dropped && (!c->key || atomic_load(&c->report->authenticated));

	if (known || pending_may_log())
		session_line(c, status);
	share_session_ended(c->id);
	if (c->share >= 0)
		close(c->share);
	munmap(c->report, sizeof *c->report);
	listener.sessions -= !c->dropped;
	*c = (struct session_child){0};
	monitor_order(MONITOR_SESSIONS, listener.sessions, -1);
}

void share_event(struct session_child *c)
{
	char name[sizeof c->report->identity], identity[sizeof name + 4];

	/* The page is the session's to write. */
	memcpy(name, c->report->identity, sizeof name);
	name[sizeof name - 1] = 0;
	/* A key may have the name of those who have none. */
	snprintf(identity, sizeof identity, "%s%s", c->key ? "key " : "", name);
	if (atomic_load(&c->report->authenticated) && share_serve(c->share, c->id, identity))
		return;
	close(c->share);
	c->share = -1;
}

/* Nobody knows yet who that is: it has a key to show and has not, or, where none is asked for, it has said
 * nothing at all. */
static bool is_silent(const struct session_child *c)
{
	if (!c->pid || c->dropped)
		return false;
	return c->key ? !atomic_load(&c->report->authenticated) : !atomic_load(&c->report->bytes_in);
}

/* Makes room for one more from there: of too many that have a key to show, or of all that are silent when all
 * places are taken, one gives way. But among those from one place a young one stays, whose first words may
 * be on their way: a crowd of honest programs gets refusals then and loses nobody. False: there is none, or
 * those that were dropped before have not ended. */
static bool make_room(const struct origin *from)
{
	struct claim claim[SESSIONS_MOST];
	struct session_child *of[SESSIONS_MOST], *c;
	int n = 0, keys = 0;

	for (int i = 0; i < SESSIONS_MOST; i++) {
		c = &listener.session[i];
		if (!is_silent(c))
			continue;
		keys += c->key;
		claim[n] = (struct claim){c->from, c->id};
		of[n++] = c;
	}
	if (keys < LIMIT_PENDING && listener.sessions < LIMIT_SESSIONS)
		return true;
	if (!n)
		return false;
	c = of[origin_gives_way(claim, n)];
	if (!memcmp(&c->from, from, sizeof *from) && transport_now_ms() - c->start < TIME_YOUNG)
		return false;
	snprintf(c->report->reason, sizeof c->report->reason,
			"dropped: others came before it said who it is");
	kill(c->pid, SIGKILL);
	c->dropped = true;
	listener.sessions--;
	return true;
}

static void session_start(struct pending *p)
{
	struct session_child *c = NULL;
	struct report *report;
	int pair[2] = {-1, -1};

	for (int i = 0; i < SESSIONS_MOST && !c; i++)
		if (!listener.session[i].pid)
			c = &listener.session[i];
	if (!c || !make_room(&p->from)) {
		pending_refuse(p, CUDA_ERROR_MPS_MAX_CLIENTS_REACHED,
				"the server has as many sessions as it allows");
		return;
	}
	report = mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (report == MAP_FAILED) {
		pending_refuse(p, CUDA_ERROR_OUT_OF_MEMORY, "the server is out of memory");
		return;
	}
	*c = (struct session_child){.id = ++listener.last_id,
		.report = report,
		.share = -1,
		.key = p->preamble.flags & PREAMBLE_TLS,
		.start = transport_now_ms(),
		.from = p->from};
	memcpy(c->peer, p->peer, sizeof c->peer);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		log_warning("socketpair: %m: session %llu shares nothing", (unsigned long long)c->id);
	c->pid = fork();
	if (c->pid < 0) {
		log_error("fork: %m");
		if (pair[0] >= 0) {
			close(pair[0]);
			close(pair[1]);
		}
		munmap(report, sizeof *report);
		*c = (struct session_child){0};
		pending_refuse(p, CUDA_ERROR_OUT_OF_MEMORY, "the server cannot start a session");
		return;
	}
	if (!c->pid) {
		struct session_start start = {
			.id = c->id,
			.fd = p->fd,
			.share = pair[1],
			.report = report,
			.driver = listener.snapshot.choice,
			.cache = listener.options->cache,
			.preamble = p->preamble.flags,
			.fence = listener.options->fence,
			.may_change = listener.options->may_change,
			.snapshot = listener.snapshot.blob,
			.snapshot_len = listener.snapshot.blob_len,
		};

		if (p->preamble.flags & PREAMBLE_TLS) {
			start.keys = listener.keys;
			listener.keys = NULL;
		}
		keys_free(listener.keys);
		child_begin(p->fd, pair[1], "scuda-session");
		session_run(&start);
	}
	c->share = pair[0];
	if (pair[1] >= 0)
		close(pair[1]);
	/* Later children have no business with this page. */
	madvise(report, sizeof *report, MADV_DONTFORK);
	listener.sessions++;
	pending_close(p);
	monitor_order(MONITOR_SESSIONS, listener.sessions, -1);
}

void connection_ready(struct pending_table *t, struct pending *p)
{
	bool tls = p->preamble.flags & PREAMBLE_TLS;

	(void)t;
	if (tls && !listener.keys)
		pending_refuse(p, CUDA_ERROR_MPS_CONNECTION_FAILED,
				"the server has no keys, and was sent one");
	else if (!tls && listener.keys && !p->local && !listener.options->insecure)
		pending_refuse(p, CUDA_ERROR_MPS_CONNECTION_FAILED, "the server wants a key");
	else if (listener.drain_end)
		pending_refuse(p, CUDA_ERROR_MPS_SERVER_NOT_READY, "the server is stopping");
	else if (!listener.snapshot_there ||
			(p->preamble.flags & PREAMBLE_MONITOR && listener.monitor_fd < 0))
		pending_refuse(p, CUDA_ERROR_MPS_SERVER_NOT_READY, "the server's driver is not ready");
	else if (p->preamble.flags & PREAMBLE_SECOND) {
		if (join_arrived(p->preamble.routing, p->fd))
			pending_refuse(p, CUDA_ERROR_MPS_CONNECTION_FAILED,
					"no session expects this connection");
		else
			pending_close(p);
	} else if (p->preamble.flags & PREAMBLE_MONITOR) {
		monitor_order(tls ? MONITOR_CONNECTION_TLS : MONITOR_CONNECTION, 0, p->fd);
		pending_close(p);
	} else {
		session_start(p);
	}
}
