/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a relay, shared by the files of a session: relay.c (its life), session_thread.c, heartbeat.c,
 * sessions.c (the table), parked.c (requests that wait), outbound*.c, second.c and lend.c (batches to the
 * server), receive.c (frames from it), direct.c and stripes.c (where their bytes go, and by which connection
 * they come) and inbound*.c (what they bring).
 *
 * Thread rule: `lock` guards everything that is not said to be the thread's own. It is dropped during every
 * system call on the stream: `writing` says that a thread is at it. Requests are answered after the lock is
 * dropped: they gather in a `struct answers`. Order of locks: session table, relay, libfuse, buffers. */
#pragma once
#include <pthread.h>
#include <semaphore.h>
#include "scudafs/arena.h"
#include "scudafs/buffer.h"
#include "scudafs/channel.h"
#include "scudafs/clock.h"
#include "scudafs/guard.h"
#include "scudafs/relay.h"
#include "wire/limits.h"
#include "wire/log.h"
#include "wire/look.h"
#include "wire/stream.h"

/* What a parked request waits for. */
enum {
	PARK_NONE,
	PARK_OPEN,
	PARK_ORDER,
	PARK_ROOM,
	PARK_REPLY,
	PARK_DATA,
	PARK_UPCALL,
	PARK_CHANNEL,
	PARK_UNTIL
};

#define HELD_MOST (1ull << 30)      /* bytes from the server kept for a program that waits behind them */
#define AHEAD_MOST (64u << 20)      /* bytes of batches kept whose turn has not come */
#define AHEAD_BATCHES 65536         /* how far a batch may be ahead of its turn */
#define DIRECT_MOST (128u << 10)    /* a batch up to here is written by the thread that brings it */
#define READING_MS 50               /* a program that has taken data so lately will take more */
enum socket { SOCKET_NONE, SOCKET_COMING, SOCKET_THERE };

#define RECEIVE_BYTES (64u << 10)
#define TRANSFER_BUCKETS 64

/* The order of a stream's frames, read from the bytes that pass by. */
struct scan {
	struct frame header;
	size_t have;                /* bytes of the header so far */
	uint64_t left;              /* bytes of head and bulk to come */
};
static inline bool scan_at_boundary(const struct scan *s) { return !s->have && !s->left; }

/* Data of one transfer to the host that is here and not read yet: buffers in rising order of their offset
 * (`tag`), without overlap. Exists while it has any. */
struct transfer {
	struct transfer *next;
	uint64_t id;                /* as short as in CTL_DATA */
	struct queue queue;
};

/* A frame that is received straight into shared memory: a reply into its slot, data to where it is awaited.
 * */
struct direct {
	bool on;                    /* there is one */
	bool shared;                /* stripes.c's thread receives those of the second connection */
	struct frame frame;
	uint8_t *to;                /* of a reply */
	const uint8_t *from;        /* data that is lent: its next byte */
	size_t left;                /* bytes to come */
	int slot;
};

/* The thread that receives stripes of the second connection (stripes.c). What is not said to be atomic is the
 * session's thread's, and the thread's from one `given` until `here`. */
struct stripes {
	bool tried, started;        /* there is a thread */
	pthread_t thread;
	sem_t given;
	uint8_t *to;                /* the frame's first byte */
	uint64_t n;
	_Atomic bool here;          /* those of the frame are in place */
	_Atomic bool awaited;       /* the session's thread sleeps and is to be woken then */
	_Atomic bool ends;
};

/* The second connection, for every second stripe of large bulks (second.c). Its stream is set once, by its
 * thread, which writes to it and watches for its end; the session's thread reads it, and closes it. */
enum second_state { SECOND_NONE, SECOND_ASKED, SECOND_UP, SECOND_OVER };
struct second {
	enum connections wish;
	enum second_state state;
	bool lends;                 /* it was asked for to lend memory by it */
	struct share_token token;
	pthread_t thread;
	bool started;               /* there is a thread, and wake_fd, an eventfd to wake it with */
	bool asleep;                /* it is to be woken when something is queued */
	int wake_fd;
	_Atomic uint64_t pushed;    /* stripes queued so far */
	struct stream *stream;
	struct queue queue;         /* taken and not written */
	uint64_t sent;              /* bytes given to the socket */
	uint64_t left, at;          /* of the striped bulk under way: bytes to come, and that have passed */
	/* How fast large bulks leave: bytes moved and microseconds so far, when not 0 since a moment and a
	 * number of bytes; whether the last WINDOW of them was fast enough. */
	uint64_t moved, busy, since, from;
	bool fast;
	/* The session's thread's own, of large data that comes: bytes and microseconds so far, and when the
	 * last of it came. */
	uint64_t heard, heard_busy, heard_at;
};

/* What is lent to the server (lend.c). */
struct lend {
	bool wanted, up;            /* the connection is one for that; the server has the arena */
	struct stream *stream;      /* the second connection, where that is what it is for; set once */
	uint64_t bulk, left;        /* of the lent bulk under way: bytes, and those to come */
	uint64_t given, taken;      /* pieces so far, and those that the server has taken */
	struct queue stretches;     /* not taken yet; tag: `given` behind its last piece */
	/* When `mark`, a record that is to be answered (0: none), is, the server has taken `marked` pieces.
	 * Since when that is so and it has not said it, ms; 0: it is not. */
	uint64_t mark, marked, overdue;
	bool heard;                 /* the session's thread's own: large data has come */
};

/* What the server lends us (lent.c): the session's thread's, but for the memory's coming. */
struct lent {
	const uint8_t *_Atomic memory;  /* NULL: nothing */
	uint64_t size;
	struct guard *guard;
	uint64_t taken;             /* DATA frames */
};

struct answers { struct request *head, **tail; };

struct relay {
	pthread_mutex_t lock;
	atomic_uint refs;
	struct relay *next;         /* in the table of sessions */
	unsigned id, server;
	uint64_t node;
	pid_t pid;
	uid_t uid;
	char command[32];
	char address[LIMIT_NAME + 16];
	struct credential *credential;      /* the daemon's, for ever */
	unsigned flags;             /* of the preamble */
	pthread_cond_t idle;        /* `writing` became false */
	int wake_fd, pid_fd;
	struct stream *stream;      /* set by the thread; closed by it when `writing` is false for good */
	bool up;                    /* connected */
	bool closing;               /* the last close was */
	int error;                  /* an errno: the session is over */
	struct request *parked;     /* a ring with this as its oldest */
	atomic_ullong bytes_out, bytes_in, bytes_lent, waits;
	struct channel *channel;    /* set once, by the thread; NULL: none */
	bool asked;                 /* the program wants one */
	atomic_int socket;          /* enum socket: the one in the mount through which it goes */

	/* to the server */
	uint64_t batch;             /* the last one taken */
	struct scan out;
	bool asks;                  /* the batch under way has a record that the program waits for */
	struct queue queue;         /* taken and not written */
	struct queue aside;         /* frames for the next boundary between records */
	size_t ahead;               /* bytes of batches whose turn has not come */
	bool writing;               /* a thread writes to the stream */
	bool blocked;               /* the stream takes nothing now: the session's thread polls */
	int broken;                 /* writing failed: the reason may still be in what the server sent */
	uint64_t *waiting;          /* numbers of the records that the server has to answer */
	unsigned waiting_count, waiting_cap;
	uint64_t written, alive;    /* bytes given to the socket; when the peer showed life last, ms */
	struct second second;
	struct lend lend;
	struct lent lent;

	/* from the server */
	struct queue replies;       /* nobody waited for them yet, or too large for the waiter; tag: seq */
	struct queue upcalls;
	uint64_t upcalls_due;       /* that the program has not answered */
	struct transfer *transfers[TRANSFER_BUCKETS];
	size_t held;                /* bytes of all these */
	uint64_t read_at;           /* when the program took data last, ms */
	bool paused;                /* nothing is read from the stream */
	/* the thread's own */
	uint8_t *receive;           /* RECEIVE_BYTES */
	size_t receive_len;
	struct buffer *large;       /* a frame that does not fit there, being received */
	size_t large_size;
	struct direct direct;
	struct stripes stripes;
	bool bulky;                 /* the last frame was such a one: the next is, too, as a rule */
	struct look spin;           /* what is expected comes so soon that sleeping is not worth it */
	bool awaits_long;           /* one of the few that look long for an answer */
	/* Milliseconds, since when the server waits for what we have given; 0: it does not. Of the bytes
	 * given to the connection by which that is to come, those at the peer when it said so last. */
	uint64_t misfit, arrived;
	uint64_t looked, acked, ping_at, pings, paused_at;
	bool whole;                 /* a frame has ended since bytes were heard of last */
	/* Under the lock: when as much of a frame was received last, ms, as only its sender sends, or could
	 * be; and bytes since then. */
	uint64_t came, trickled;
};

/* Bytes taken and not written. */
static inline size_t relay_queued(const struct relay *r) { return r->queue.bytes + r->second.queue.bytes; }

/* Bytes of the bulk under way that come as stretches alone. */
static inline uint64_t relay_apart(const struct relay *r) { return r->second.left + r->lend.left; }

static inline void answers_init(struct answers *a) { a->head = NULL, a->tail = &a->head; }
static inline void answers_add(struct answers *a, struct request *q, int r)
{
	q->result = r;
	q->next = NULL;
	*a->tail = q;
	a->tail = &q->next;
}
/* A request may be answered by another thread while the one that brought it is still at work here: it
 * keeps a reference of its own meanwhile. */
void relay_ref(struct relay *r);
void relay_unref(struct relay *r);

/* Both under the lock. The session is over: everybody parked is answered with it. The first error stays. */
void relay_fail(struct relay *r, int error, struct answers *a);
/* 0, or an errno, with a line in the log: a page of the session's shared memory was missing (guard.h), and
 * what was read or written there does not count. The session's thread, or under the lock. */
int relay_memory(const struct relay *r);
/* The session's thread has something to look at. */
void relay_wake(struct relay *r);

/* parked.c. Without the lock: */
void answers_send(struct answers *a);
/* All under the lock: */
void relay_park(struct relay *r, struct request *q, int state, struct answers *a);
void relay_unpark(struct relay *r, struct request *q);
bool relay_parked(const struct relay *r, int state);
/* Answers those whose time is over at `now`, in ms. */
void parked_expire(struct relay *r, uint64_t now, struct answers *a);
/* Answers those whose CTL_UNTIL has come true. */
void relay_tell_until(struct relay *r, struct answers *a);

/* sessions.c, without any lock. In the table from here on, with a thread to come; no longer found. */
void sessions_add(struct relay *r);
void sessions_remove(struct relay *r);
/* The thread has ended, or did not come. */
void sessions_thread_ended(void);
/* With a reference; NULL: there is none. */
struct relay *sessions_find(unsigned id);

/* session_thread.c. The thread takes over a reference. Returns 0 or an errno. */
int session_thread_start(struct relay *r);

/* heartbeat.c, under the lock, by the session's thread; `now` in ms. Pings, and ends a session whose peer is
 * dead or whose program has stalled it. */
void heartbeat_keep(struct relay *r, uint64_t now, struct answers *a);
/* Under the lock, by any thread: n bytes have come; all of them in the middle of one frame? */
void heartbeat_heard(struct relay *r, size_t n, bool in_frame);
/* How many ms from now on something is due. */
int heartbeat_next(const struct relay *r, uint64_t now);

/* outbound_order.c, under the lock. Takes what the program has put into shared memory. True when there was
 * anything. `linger`: channel_take's. */
bool outbound_drain(struct relay *r, struct answers *a, unsigned linger);

/* outbound_follow.c, under the lock. Follows n bytes of the ordered stream. Returns NULL, or what is wrong
 * with them; *boundary: the first place between two records, n + 1 if none. `own`: NULL, or the same bytes,
 * which are ours to change; then a record of which the whole header is there may go by two connections. */
const char *outbound_follow(
	struct relay *r, const uint8_t *p, uint8_t *own, size_t n, size_t *boundary);
/* The server has answered seq; false when it was not asked. */
bool outbound_answered(struct relay *r, uint64_t seq);
bool outbound_awaited(const struct relay *r, uint64_t seq);

/* outbound.c, all under the lock. Bytes that were followed go to the server; `b` holds the same bytes when
 * there is a copy already. */
void outbound_pass(struct relay *r, const uint8_t *p, size_t n, size_t boundary, struct buffer *b,
	struct answers *a);
/* Sends what is queued unless somebody does or the stream is blocked. */
void outbound_flush(struct relay *r, struct answers *a);
/* A frame of the daemon's or program's own between two records. */
int outbound_aside(struct relay *r, const void *p, size_t n);
void outbound_finish(struct relay *r);
/* Something was written: answers those who wait for that. */
void outbound_release(struct relay *r, struct answers *a);
/* The same, for the clock of large bulks: nothing may be on its way any more. */
void outbound_idle(struct relay *r);

/* second.c, under the lock. Asks for a second connection, once; `lends`: to lend memory by it. */
void second_ask(struct relay *r, bool lends);
/* The header of a record, by whose bulk in the arena the measure of large bulks
 * goes on: does every second stripe of that go by the second connection? */
bool second_takes(struct relay *r, const struct frame *f);
/* Bytes of such a bulk to both connections' queues. False when there is no memory. */
bool second_push(struct relay *r, struct buffer *b);
/* Bytes were sent. `idle`: no more are there. */
void second_measure(struct relay *r, bool idle);
/* The session is over. */
void second_wake(struct relay *r);
/* Without the lock, by the session's thread: n bytes of large data have come; the server's answer (0 or an
 * errno); and the end. */
void second_heard(struct relay *r, size_t n);
int second_answered(struct relay *r, const struct frame *f);
void second_finish(struct relay *r);

/* lend.c. By the session's thread: is the connection one by which memory may be lent? */
bool lend_may(const struct relay *r);
/* Under the lock. The header of a record whose bulk, if any, lies in the arena: is that lent? */
bool lend_takes(struct relay *r, const struct frame *f);
/* Without the lock, by the session's thread: large data comes. */
void lend_heard(struct relay *r);
/* A stretch of it. NULL, or what is wrong with it. */
const char *lend_push(struct relay *r, struct buffer *stretch);
/* Is nothing lent that the server has not taken? */
bool lend_is_idle(const struct relay *r);
/* A record that is to be answered follows what is lent; it is answered. Ought the server to have taken what
 * it has not for so long that it never will? */
void lend_asked(struct relay *r, uint64_t seq);
void lend_answered(struct relay *r, uint64_t seq);
bool lend_is_overdue(const struct relay *r, uint64_t now);
/* We were stopped ourselves: what was said meanwhile may not have been heard. */
void lend_late(struct relay *r, uint64_t now);
/* By second.c's thread, without the lock: meets the server. 1, 0: it does not take what is lent, or
 * -errno. */
int lend_meet(struct relay *r, struct stream *s);
/* With the lock: until the session or the connection ends. */
void lend_keep(struct relay *r, struct stream *s);
void lend_finish(struct relay *r);

/* lent.c. By second.c's thread: the memory that the server lends; false: it is not taken. */
bool lent_take(struct relay *r, uint64_t size, int fd);
/* By the session's thread: n bytes at that place; NULL: they are outside. All bytes of a DATA frame, n, have
 * been taken: 0 or an errno. */
const uint8_t *lent_at(const struct relay *r, uint64_t at, uint64_t n);
int lent_taken(struct relay *r, uint64_t n);
void lent_finish(struct relay *r);

/* inbound.c. A whole frame has come, n bytes with its header. `b` holds them, NULL when they lie in the
 * receive buffer; p is NULL when a reply lies in its slot already. Without the lock, by the session's thread.
 * Returns 0 or an errno. */
int inbound_reply(struct relay *r, const struct frame *f, const uint8_t *p, size_t n, struct buffer *b);
int inbound_data(struct relay *r, const struct frame *f, const uint8_t *p, size_t n, struct buffer *b);
int inbound_upcall(struct relay *r, const struct frame *f, const uint8_t *p, size_t n, struct buffer *b);
/* receive.c. Reads what the stream has, without the lock; called by the session's thread only. Returns
 * false when there was nothing. */
bool inbound_receive(struct relay *r);
/* Under the lock: does the next read have to wait until the program takes what is here? */
bool inbound_full(const struct relay *r, uint64_t now);
/* Under the lock: answers a wait whose reply is kept here already; false when it is not. */
bool inbound_give(struct relay *r, struct request *q, struct answers *a);
/* A whole frame has come. */
static inline void inbound_whole(struct relay *r)
{
	atomic_fetch_add_explicit(&counters.frames_in, 1, memory_order_relaxed);
	r->misfit = 0;
	r->whole = true;
}

/* direct.c, by the session's thread, without the lock; what returns int returns 0 or an errno. The next byte
 * is held up until the program has made room for it; there is room for some that have been received already,
 * or what stripes.c's thread receives has come. */
bool inbound_stalled(const struct relay *r);
bool inbound_pending(const struct relay *r);
/* The header of data is here: does its program await it at a place of its own (direct.on)? The same for data
 * at `at` of what the server lends; and for a large reply, of which `have` bytes are here. */
int direct_data(struct relay *r, const struct frame *f);
int direct_lent_data(struct relay *r, struct frame *f, uint64_t at);
void direct_reply(struct relay *r, const struct frame *f, const uint8_t *p, size_t have);
/* Where the next byte goes, and how many there; *room 0: the program has to make room. */
uint8_t *direct_place(const struct relay *r, size_t *room);
/* n more bytes are in place. */
int direct_took(struct relay *r, size_t n);
/* Puts in place what has been received already, as far as there is room, *used bytes; the same for what is
 * lent. */
int direct_feed(struct relay *r, const uint8_t *p, size_t n, size_t *used);
int direct_lent(struct relay *r);
/* All bytes are in place. */
int direct_end(struct relay *r);

/* stripes.c, by the session's thread. The stream that the next byte comes by, and how many of the next n
 * bytes come by it. */
struct stream *inbound_stream(const struct relay *r);
size_t stripes_room(const struct relay *r, size_t n);
/* Its thread receives those stripes of n bytes that come by the second connection, the first byte at `to`;
 * false: they are the caller's. */
bool stripes_give(struct relay *r, uint8_t *to, uint64_t n);
/* All of the frame is here but for those. */
bool stripes_missing(const struct relay *r);
/* The session's thread is about to sleep until they are here: it looks once more; and it is awake. */
void stripes_await(struct relay *r, bool asleep);
void stripes_finish(struct relay *r);

/* Is a frame here in part? */
static inline bool inbound_in_frame(const struct relay *r)
{
	return r->direct.on || r->large || r->receive_len;
}
void inbound_finish(struct relay *r);
void inbound_data_finish(struct relay *r);
/* Under the lock: what is kept of the server's, and what is kept no more. */
static inline void inbound_keep(struct relay *r, struct queue *q, struct buffer *b)
{
	queue_push(q, b);
	r->held += b->len - b->off + sizeof(*b);
}
static inline void inbound_dropped(struct relay *r, const struct buffer *b)
{
	r->held -= b->len - b->off + sizeof(*b);
}
