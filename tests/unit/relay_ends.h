/* SPDX-License-Identifier: Apache-2.0 */
/* Both ends of a relay without a mount: the test is the program, which calls relay_*, and the server,
 * which has the other end of the connection.
 *
 * Thread rule: the test's thread; answers may come on any. */
#pragma once
#include <check.h>
#include <pthread.h>
#include "scudafs/relay.h"
#include "wire/ctl.h"
#include "wire/frame.h"
#include "wire/limits.h"

#define MIB (1u << 20)

/* What the program asked, and its answer. */
struct op {
	struct request q;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool done, early; /* answered; was interrupted before it parked */
	int r;
	size_t n;
	uint8_t *bytes; /* of the answer */
};

extern int peer;                        /* the server's end */
extern struct relay *relay;

/* ---- the program's side: operations, whose answers are waited for no longer than they should take */

/* What a request calls. */
void answered(struct request *q, int r, const struct iovec *v, int n);
bool early(struct request *q);
/* One that asks nothing yet, for relay_*; op_free when it is answered. */
struct op *op_new(void);
void op_free(struct op *o);
bool is_done(struct op *o);
/* Waits for the answer; returns its result. The operation stays for a look at its bytes. */
int result(struct op *o);
/* Its result is that one, and it is freed. */
void check_result(struct op *o, int expected);

/* ---- the server's side */

/* n bytes from the mount, or to it. */
void get(void *p, size_t n);
void put(const void *p, size_t n);
/* The next frame's header, heartbeats apart, which are answered. */
struct frame get_frame(void);
size_t frame_bytes(uint8_t *to, struct frame f, const void *body);
/* Header, head and bulk. */
void put_frame(struct frame f, const void *body);
/* Where nobody listens. */
const char *closed_address(void);
/* For tcase_add_checked_fixture: a session whose preamble and first heartbeat have come. */
void setup(void);
void teardown(void);
/* `count` variants of a test, each with a session of its own, in one process. */
void in_turns(void (*once)(int variant), int turn, int count);

/* ---- records, and bytes that can be told from all others */

/* One of thread 1 with four bytes of head; its length. */
size_t record(uint8_t *b, unsigned kind, uint64_t seq, size_t bulk);
/* Asks the relay; the operation is the caller's. */
struct op *post(uint64_t batch, const void *p, size_t n);
struct op *wait_record(uint64_t batch, uint64_t seq, size_t room);
struct op *wait_again(uint64_t seq, size_t room);
struct op *data(uint64_t transfer, uint64_t offset, size_t n);
void expect_record(unsigned kind, uint64_t seq);
uint8_t byte_at(uint64_t offset);
void put_data(uint64_t transfer, uint64_t offset, size_t n);
/* One assertion for all bytes: each costs a system call. */
void check_bytes(const uint8_t *p, uint64_t offset, size_t n);
void check_data(struct op *o, uint64_t offset, size_t n);
void put_reply(uint64_t seq, size_t bulk);
/* The answer to a wait is the reply of that number, and `bulk` long; the operation is freed. */
struct ctl_wait check_wait(struct op *o, uint64_t seq, size_t bulk);
