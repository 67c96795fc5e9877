/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a session, for the files that make it up (session, input, send, baton, exec, hello, later,
 * upcall, output). One per process.
 *
 * Thread rules: what belongs to the baton is touched only by who holds it (baton.c). Locks are taken in
 * this order, each alone or: deliver_lock, output_lock, write_lock; alive_lock comes last. */
#pragma once
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include "server/exec.h"
#include "server/handle.h"
#include "server/lent.h"
#include "server/report.h"
#include "server/session.h"
#include "wire/limits.h"
#include "wire/stream.h"

#define INPUT_BUFFER (128u << 10)
#define NO_CALL UINT16_MAX
#define MIRROR_BUCKETS 256u

struct mirror;
struct upcall;

/* A connection as the holder of the baton reads it: bytes [pos, len) of `bytes`, which has room for cap, are
 * received and not taken. */
struct source {
	struct stream *_Atomic stream;  /* NULL: there is none */
	uint8_t *bytes;
	size_t pos, len, cap;
	_Atomic uint64_t left;      /* bytes of the current record that come by it and are not taken yet */
};
enum { FIRST, SECOND, SOURCES };

struct session {
	const struct session_start *start;
	struct stream *stream;
	struct report *report;
	int64_t began;              /* when the connection was accepted, ms */

	/* the baton's, under input_lock because the reader looks ahead (input_scan) */
	pthread_mutex_t input_lock;
	struct source source[SOURCES];
	unsigned scanned;           /* frames in the buffer that input_scan has dealt with */
	struct lent lent;

	/* the baton's */
	uint64_t next_seq;
	bool greeted;               /* the hello was answered */
	unsigned calls;
	uint16_t call[LIMIT_CALLS]; /* program's call id to ours, NO_CALL */
	bool wants_driver, wants_nvml;  /* calls of its list */
	struct mirror *mirrors[MIRROR_BUCKETS];
	unsigned mirror_count;

	_Atomic int baton;          /* enum baton_state */
	_Atomic bool receiving;     /* its holder waits for the connection */
	atomic_flag second_asked;   /* second.c */
	int epoll, wake, signals;   /* the reader's */

	pthread_mutex_t write_lock; /* whole frames */
	atomic_uint held_up;        /* how many threads wait for the mount to take more */
	_Atomic bool stripes;       /* the mount takes stripes (stripes.c) */
	_Atomic bool spoke;         /* a PONG_REST was sent since its acknowledgement was looked for */

	pthread_mutex_t alive_lock;
	uint64_t seen;              /* bytes from the mount when it was looked at last, unread ones too */
	int64_t heard;              /* when it showed life last, ms */

	_Atomic int driver_ready;
	pthread_mutex_t ready_lock;
	pthread_cond_t ready_cond;

	pthread_mutex_t nvml_lock;
	bool nvml_tried;

	struct handles *handles;
	_Atomic bool configured;    /* the program chose a cache configuration: what the driver answers
	                             * then is of no other program */
	_Atomic uint64_t failed;    /* first failed post not told: code << 48 | seq */

	pthread_mutex_t deliver_lock;   /* from gathering deliveries until they are sent */
	_Atomic unsigned later_count;   /* registered and not sent */
	pthread_mutex_t later_lock;     /* guards the two lists */
	struct later *later, **later_end;
	struct later *_Atomic sent;
	_Atomic uint64_t delivered;     /* of all frames so far; a reply and an upcall tell it */

	pthread_mutex_t upcall_lock;
	pthread_cond_t upcall_cond;
	struct upcall *upcalls;
	atomic_uint upcalls_waiting;    /* their number */
	uint64_t last_upcall;

	int output, errors;         /* read ends of what are standard output and error here; errors: -1 if
	                             * none */
	atomic_uint outputs;        /* OUTPUT frames sent; every reply tells how many */
	pthread_mutex_t output_lock;
};

/* ---- session.c ---- */
/* Ends the process after one line in the report, without a word to the program: the connection is gone. */
_Noreturn void session_lost(struct session *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Blocks until the driver is there. */
void session_wait_driver(struct session *s);
/* The same for NVML, which it loads; ends the session where there is none. */
void session_wait_nvml(struct session *s);

/* ---- input.c: by the holder of the baton; none returns when the connection ends ---- */
/* A source over the stream, with a buffer of INPUT_BUFFER bytes. False without memory. */
bool input_open(struct session *s, unsigned source, struct stream *stream);
/* Bytes of the current frame's head, or of a bulk that is not striped. */
void input_take(struct session *s, void *p, size_t n);
/* The same with input_lock. */
void input_take_held(struct session *s, void *p, size_t n);
/* Bytes of the bulk of f, the current frame, from byte `at` of it on: from where they come. */
void input_bulk(struct session *s, const struct frame *f, uint64_t at, void *p, size_t n);
/* Throws n bytes of the bulk away. */
void input_skip(struct session *s, const struct frame *f, uint64_t at, uint64_t n);
/* Bytes of the current frame that have not come or are not taken. */
uint64_t input_left(const struct session *s);
/* Bytes are there, or come without waiting. */
bool input_there(struct session *s);
/* Bytes were received and not taken: no event will tell of them. */
bool input_buffered(struct session *s);
/* By the reader, while the baton's holder is busy: takes what bypasses the ordered stream out of the bytes
 * that wait. */
void input_scan(struct session *s);
/* The next record's header, checked; what is not a record is dealt with. With !block, false when nothing
 * more is there. */
bool input_record(struct session *s, struct frame *f, bool block);

/* ---- second.c: by the holder of the baton ---- */
/* The mount's word on the second connection, an enum second_word. */
void second_said(struct session *s, uint64_t word);
/* serve_share.c: the listener shall pass the connection of whoever comes with *token, which it makes, to the
 * other end of fd. 0 or -errno; fd stays the caller's. */
int share_expect_second(int fd, struct share_token *token);

/* ---- alive.c ---- */
#define TIME_LISTEN 1000        /* ms between two looks at whether the mount lives */
/* Ends the process when the mount has shown no life for TIME_SILENCE. `busy`: nobody listens, which is no
 * fault of the mount's. */
void alive_check(struct session *s, bool busy);

/* ---- send.c ---- */
/* A whole frame; waits for as long as the mount lives and takes none; ends the process when the connection
 * does. */
void send_frame(struct session *s, const struct iovec *v, int n);
/* Bytes of a frame, by one of the connections, on the same terms; the caller keeps their order. */
void send_bytes(struct session *s, struct stream *to, const struct iovec *v, int n);
/* A sign of life; never waits. None is needed while other bytes are on their way. */
void send_pong(struct session *s, uint64_t seq);
/* The same in the middle of a record: its rest is to come by that source. */
void send_pong_rest(struct session *s, unsigned source);
void send_data(struct session *s, uint64_t transfer, uint64_t offset, const void *p, uint64_t n);
/* The answer to the WAIT that x runs. */
void send_reply(struct exec *x, CUresult r);

/* ---- stripes.c ---- */
/* Of the n bytes at p, the bulk of one DATA frame, has every second stripe sent by the second connection, if
 * the mount takes them there and that is worth it. Then (true) the caller sends the frame, FRAME_STRIPED,
 * with the others, and calls stripes_await; until that has returned the bytes are in use. */
bool stripes_give(struct session *s, const void *p, uint64_t n);
void stripes_await(void);
/* Stripes from, from + 2, ... of n bytes at p into v; how many. */
int stripes_pick(struct iovec *v, unsigned from, uint8_t *p, uint64_t n);

/* ---- baton.c ---- */
enum baton_state { BATON_FREE, BATON_HELD };
/* Gives the baton to nobody: the reader, or the first who comes, takes it when bytes arrive. */
void baton_release(struct session *s);
bool baton_take(struct session *s);
/* Makes the reader look. */
void baton_wake(struct session *s);
/* Hands the record and the baton to the record's thread. */
void baton_hand(struct session *s, const struct frame *f);
/* The bulk of a WAIT has been taken: others may go on. */
void baton_bulk_taken(struct exec *x);

/* ---- aside.c ---- */
/* Runs a record of an upcall's thread out of its turn: head and bulk are at `body`. False without memory, or
 * when LIMIT_QUEUE bytes wait: then it is tried again, or comes in its turn. */
bool aside_run(struct session *s, const struct frame *f, const uint8_t *body);

/* ---- exec.c ---- */
/* Runs the record of x, whose head and buffers are set. */
CUresult exec_run(struct exec *x);
void exec_finish(struct exec *x);
/* Notes a failed post. */
void exec_failed(struct exec *x, CUresult r);
CUcontext context_real(struct session *s, uint64_t id);
uint64_t context_id(struct session *s, CUcontext real);

/* ---- hello.c ---- */
/* What runs a call, by this build's id of it; NULL for NO_CALL. */
const struct serve_entry *call_entry(uint16_t id);
bool call_is_nvml(uint16_t id);
/* Reads and answers the hello whose header is f. Not `greeted` afterwards: another one will come. */
void hello_answer(struct session *s, const struct frame *f);

/* ---- later.c ---- */
/* Deliveries for one reply or upcall: `count` pairs, then the small ones' bytes. While it is open,
 * deliver_lock is held. */
struct gathered {
	uint8_t *bytes;             /* the pairs (struct delivery), then the small ones' bytes */
	size_t len, pairs;          /* of bytes; number of pairs */
	bool data;                  /* some went as DATA */
	struct later *sent;
};
/* NULL when there is nothing; room: bytes that the frame has for them. */
struct gathered *later_gather(struct session *s, size_t room, bool callback);
/* After the frame was sent. */
void later_sent(struct session *s, struct gathered *g, bool callback);

/* ---- upcall.c ---- */
void upcall_done(struct session *s, uint64_t seq);

/* ---- output.c ---- */
/* Makes standard output and error pipes. 0 or -errno. */
int output_open(struct session *s);
/* Sends what was printed. `flush`: by a thread that runs a record. */
void output_drain(struct session *s, bool flush);
