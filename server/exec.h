/* SPDX-License-Identifier: Apache-2.0 */
/* One record being executed in a session: its arguments, its answer. The generated dispatch
 * (build/gen/cuda.serve.c) and the hand-written serve_NAME functions use it alike. Runs on the server's
 * thread that mirrors the program's thread; its current context is set before the function is called.
 *
 * What the functions of this file may be called from: exec_* from the thread that runs the record, while
 * it runs; session_deliver_later the same; session_upcall from any thread, a driver's callback included.
 * One process serves one session, so state of a whole session may be static. */
#pragma once
#include "server/driver.h"
#include "wire/cuda_types.h"
#include "wire/frame.h"
#include "wire/msg.h"

struct session;
struct exec {
	struct session *session;
	struct frame frame;         /* the record's header */
	struct msg in;              /* arguments */
	struct msg out;             /* results, sent when the record is a WAIT */
	bool bad_handle;            /* an argument was no live handle of its type: the driver is not called */
	CUresult handle_code;       /* what to answer then */
	void *bulk;                 /* answer's bulk, at most LIMIT_REPLY, from exec_alloc */
	size_t bulk_len;
	uint64_t bulk_left;         /* the record's bulk not taken yet by exec_bulk */
	const uint8_t *aside;       /* where that is when the record was taken out of its turn; NULL: the
	                             * connection */
	const char *name;           /* the API name, for log lines */
	struct arena *arena;        /* of exec_alloc */
	struct gathered *gathered;  /* deliveries for the reply */
	/* The module, library, kernel or graph among the arguments: functions and nodes that come of it end
	 * with it. */
	uint64_t parent;
	uint64_t first_id;          /* the first handle among the arguments */
	unsigned effects;           /* of the call: enum effect */
};

/* Memory that lives until the record is answered, at most 64 MiB a record in all; NULL past it (the record
 * is then bad). Zeroed. */
void *exec_alloc(struct exec *x, size_t n);
/* Takes the next n bytes of the record's bulk from the connection into p. False when the connection ended
 * or n is more than is left. Bulk that a function leaves is thrown away after it. */
bool exec_bulk(struct exec *x, void *p, size_t n);
/* The whole bulk, at most max, in exec_alloc'ed memory. NULL when too large. */
void *exec_bulk_all(struct exec *x, size_t max);

/* Handle arguments: NULL stays NULL; streams 0, 1, 2 pass. An unknown or wrongly typed one sets
 * bad_handle. HANDLE_CUfunction accepts CUkernel ids too. */
void *exec_handle(struct exec *x, unsigned type);
/* The same for an id that was read by other means (inside a struct). */
void *exec_handle_of(struct exec *x, unsigned type, uint64_t id);
/* Handle results: known real handles keep their id, new ones get one. NULL stays NULL. */
void exec_put_handle(struct exec *x, unsigned type, void *real);
/* The id that exec_put_handle would put. 0 past LIMIT_HANDLES (the record is then bad). */
uint64_t exec_id_of(struct exec *x, unsigned type, void *real);
/* A NEW call: reads the id that the client chose (before the driver is called), and binds it after
 * success. */
uint64_t exec_new_id(struct exec *x);
void exec_bind(struct exec *x, unsigned type, uint64_t id, void *real);
/* For a hand-written call that ended what `real` is: its handle, and what belongs to it, is forgotten. Of a
 * call whose first handle is described as DROP that is done anyway. */
void exec_drop(struct exec *x, unsigned type, void *real);

/* Bytes of a copy to the host: FRAME_DATA pieces of `transfer` from `offset` of it on. Replies of other
 * threads may pass between the pieces. False when the connection ended. */
bool exec_send_data(struct exec *x, uint64_t transfer, uint64_t offset, const void *p, size_t n);

/* Copies to the host whose completion is told later (wire/frame.h, Deliveries). The serve function starts
 * the copy into memory of its own, notes in stream order how to see its end, and registers it; the session
 * calls `finished` before each reply and upcall, in the order of registration, and sends the bytes of
 * those that are. */
struct later {
	uint64_t transfer;
	const void *p;              /* the bytes, valid until release */
	uint64_t n;
	/* 1 done, 0 not yet, -1 failed (no bytes are sent: the program gets the error otherwise).
	 * `callback`: asked from a host function's thread, where no driver function may be called; answer
	 * 0 when it cannot be known there. Called with the calling thread's capture mode relaxed, else. */
	int (*finished)(struct later *l, bool callback);
	/* The bytes were sent or given up; frees l itself. Called without locks, never from a callback's
	 * thread. */
	void (*release)(struct later *l);
	struct later *next;         /* the session's */
};
void session_deliver_later(struct exec *x, struct later *l);
/* Gathers what has finished for the reply that follows. The session does this by itself before every
 * reply; a function calls it, last of all it does, only when it must know that the memory of finished
 * transfers is free again. */
void session_deliveries(struct exec *x);

/* Asks the program to run the host function that it called `id`; with `wait`, returns when it has (or
 * never: the process ends with the connection). Finished transfers go ahead of it, so that the host
 * function sees the bytes: UPCALL's `deliveries` and bulk are like a REPLY's. */
void session_upcall(struct session *s, uint64_t id, bool wait);
/* The same without waiting, with UPCALL_VALUES numbers for the function. */
void session_upcall_with(struct session *s, uint64_t id, const uint64_t *values);
/* Sends a message of the driver's log, which the program has before the answer to the record that is run. */
void session_log(struct session *s, unsigned level, const char *text, size_t n);

/* Ends the session: tells the program `code` and the text, logs one line. Does not return. */
_Noreturn void session_end(struct session *s, CUresult code, const char *fmt,
		...) __attribute__((format(printf, 3, 4)));

/* The server was started with consent to calls that change a card for everybody (clocks, power, modes). */
bool exec_may_change(const struct exec *x);

/* The session whose process this is; never NULL while records run. */
struct session *session_self(void);
/* True when the software device serves. */
bool session_soft(const struct session *s);

/* What follows a call that succeeded, by its words in the description. */
enum effect {
	EFFECT_DROPS = 1,           /* DROP: its first handle, and what belongs to it, is forgotten */
	EFFECT_ALTERS = 2,          /* ALTER: what was told ahead of its first handle is void */
	EFFECT_FREES = 4,           /* FREES: managed memory may have ended */
	EFFECT_SYNCS = 8,           /* SYNCS: the program may read what the device wrote */
	EFFECT_CONFIGURES = 16,     /* CONFIGURES: what is told of functions is no other program's */
};

/* The function of a call id of this build, and what the dispatch knows about it. */
struct serve_entry {
	const char *name;           /* NULL-terminated table serve_table[], index = this build's call id */
	uint32_t signature;
	unsigned effects;
	CUresult (*serve)(struct exec *x);  /* NULL: not remoted */
};
extern const struct serve_entry serve_table[];
extern const unsigned serve_count;

/* What serve returns when the record was malformed: the session ends. */
#define SERVE_BAD ((CUresult)-1)
