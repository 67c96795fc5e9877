/* SPDX-License-Identifier: Apache-2.0 */
/* A session's connection to its server: the byte pump behind one open `ctl` (wire/ctl.h). It knows frame
 * headers and no more. FUSE is not known here: a file operation comes as a `struct request` that is answered
 * when its time has come, perhaps at once.
 *
 * Thread rule: all functions may be called from any thread and never block on a socket. A request belongs
 * to the relay from the call on until its `answer` has been called, exactly once, without any lock held. */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>
#include "wire/ctl.h"
#include "scudafs/credential.h"

struct buffer;
struct relay;

#define REQUEST_PARTS 6

struct request {
	/* r: -errno, or bytes taken, or 0 with the n parts of v, which are valid during the call. Frees
	 * the request. */
	void (*answer)(struct request *q, int r, const struct iovec *v, int n);
	/* Has the caller been interrupted already? Called under the relay's lock. NULL: never. */
	bool (*interrupted)(struct request *q);
	const void *token;          /* what relay_interrupt is told */
	struct relay *relay;        /* the opener's: its session, to be closed when the answer is not 0 */
	/* The rest is the relay's. */
	struct request *next, *prev;
	int state, result;
	uint64_t batch, transfer, offset, deadline;
	size_t size;
	struct buffer *copy;        /* a batch whose turn has not come */
	struct ctl_wait wait;       /* seq 0: the request is no wait */
	struct ctl_channel channel;
	int parts;                  /* of the answer; `hold` keeps the bytes alive */
	struct iovec part[REQUEST_PARTS + 1];
	struct buffer *hold[REQUEST_PARTS];
};

/* What all sessions of the mount have moved; never reset. "out" is to the server, "lent" what it, or the
 * mount, has taken out of the other's memory instead. */
struct counters {
	atomic_ullong sessions, frames_out, frames_in, bytes_out, bytes_in, bytes_lent, waits, posts;
	atomic_ullong reconnects;
};
extern struct counters counters;

/* How many connections a session may have: a second one where it is worth it, none, or wherever it can be. */
enum connections { CONNECTIONS_AUTO, CONNECTIONS_ONE, CONNECTIONS_TWO };

struct relay_options {
	unsigned id;                /* from relay_new_id */
	const char *address;        /* all of these are copied */
	struct credential *credential;      /* NULL: clear */
	unsigned flags;             /* of the preamble */
	enum connections connections;
	uint64_t node;              /* of the opened file, and the number of its server */
	unsigned server;
	pid_t pid;                  /* the opener, any thread of it; 0 when not known */
	uid_t uid;
};

/* What `sessions/ID/` shows. */
struct relay_info {
	unsigned id;
	pid_t pid;
	uid_t uid;
	char command[32];
	uint64_t bytes_out, bytes_in, bytes_lent, waits;
};

unsigned relay_new_id(void);
/* Starts a session; `opened` is answered when the connection stands (0) or failed; its `relay` is set, or
 * NULL when there was no memory or thread for one. */
void relay_create(const struct relay_options *o, struct request *opened);
/* The last close: the connection ends at once. */
void relay_close(struct relay *r);

/* A batch of n bytes; answered with n. */
void relay_post(struct relay *r, uint64_t batch, const void *p, size_t n, struct request *q);
/* The same with bytes that nobody changes any more; the caller's reference stays its own. */
void relay_post_buffer(struct relay *r, uint64_t batch, struct buffer *b, struct request *q);
/* A batch (n = 0 and batch = 0: none) and the wait for the reply of `seq`; answered with struct ctl_wait
 * and at most `room` bytes. */
void relay_wait(struct relay *r, uint64_t batch, uint64_t seq, const void *p, size_t n, size_t room,
	struct request *q);
/* One frame outside the ordered stream. */
void relay_aside(struct relay *r, const void *p, size_t n, struct request *q);
/* The question for shared memory; answered with struct ctl_channel when the program can fetch it. */
void relay_channel(struct relay *r, struct request *q);
/* Answered when it has come true. */
void relay_until(struct relay *r, const struct ctl_until *u, struct request *q);
/* The socket for that: does it exist; may it be made now, and has been? */
bool relay_has_socket(unsigned id);
bool relay_make_socket(unsigned id);
/* n bytes of a transfer, of a kept reply; whole upcalls, at most n bytes. `transfer` and `seq` are as
 * short as CTL_DATA and CTL_REPLY make them. */
void relay_data(struct relay *r, uint64_t transfer, uint64_t offset, size_t n, struct request *q);
void relay_reply(struct relay *r, uint64_t seq, uint64_t offset, size_t n, struct request *q);
void relay_upcall(struct relay *r, size_t n, struct request *q);
/* Answers the parked request of that token with EINTR, if it is parked. `id` is the session's: the relay
 * may be gone. */
void relay_interrupt(unsigned id, const void *token);

unsigned relay_id(const struct relay *r);
/* The server of the session that has that node open; false when none has. */
bool relay_server(uint64_t node, unsigned *server);
/* Is that node open, and has its opener sent anything or asked for shared memory? */
bool relay_is_used(uint64_t node);
bool relay_info(unsigned id, struct relay_info *out);
/* Ids of live sessions greater than `after`, in rising order; returns how many, at most max. */
unsigned relay_list(unsigned after, unsigned *ids, unsigned max);
/* The end of the daemon: every session ends with ESHUTDOWN; waits for their threads, at most timeout_ms.
 * Returns false if some are left. */
bool relay_end_all(int timeout_ms);
