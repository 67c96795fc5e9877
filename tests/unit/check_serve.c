/* SPDX-License-Identifier: Apache-2.0 */
/* Every serve function, of the driver's calls and of NVML's, against arguments that nobody would send: for
 * each call the test searches, value by value, for heads that its decoder takes, runs them with odd numbers
 * and bulk, and then breaks them. The driver is a table whose functions do nothing and succeed, or fail. What
 * counts is that no function crashes, hangs or touches memory that is not its own (make check-asan). Each
 * call is tried in a process of its own. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/nvml.h"
#include "server/state.h"
#include "wire/log.h"
#include "cuda.calls.h"
#include "nvml.calls.h"
#include "tests/unit/unit.h"

#define TRIES 300           /* for the next value of a head */
#define VALUES 40           /* of a head */
#define STRUCT_MOST 20000u  /* bytes */
#define BULK 5000u
#define ANSWERED (64u << 20)    /* bytes: a copy may be of 4 GiB, which a sanitizer takes minutes for */

static struct session *s;
static struct session_start start;
static struct report report;
static unsigned seed;
static int answer;          /* of every driver function; -1: as it comes */

/* All of the driver: System V functions take any arguments. */
static CUresult driver_function(void)
{
	if (answer >= 0)
		return answer;
	return rand_r(&seed) % 3 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Each try ends without waiting for its reader, which is no leak. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "report_thread_leaks=0";
}

static void *drain(void *arg)
{
	static char waste[1 << 16];
	size_t got = 0;
	ssize_t n;

	do {
		n = read((int)(intptr_t)arg, waste, sizeof waste);
		got += n > 0 ? (size_t)n : 0;
	} while (n > 0 && got < ANSWERED);
	/* A session that ends waits for its BYE to have been read. */
	close((int)(intptr_t)arg);
	return NULL;
}

static void setup_session(void)
{
	const char *identity, *why;
	pthread_t thread;
	int pair[2];

	s = session_self();
	s->start = &start;
	start.report = s->report = &report;
	s->handles = handles_create();
	atomic_store(&s->driver_ready, 1);
	s->calls = CALL_COUNT;
	for (unsigned i = 0; i < CALL_COUNT; i++)
		s->call[i] = i;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) ||
	    stream_accept(pair[0], NULL, 1000, &s->stream,
			&identity, &why) ||
	    pthread_create(&thread, NULL, drain, (void *)(intptr_t)pair[1]))
		_exit(99);
	if (!input_open(s, FIRST, s->stream))
		_exit(99);
	CUresult (*f)(void) = driver_function;

	for (unsigned i = 0; i < driver_symbol_count; i++)
		memcpy((char *)&drv + driver_symbols[i].offset, &f, sizeof f);
	for (unsigned i = 0; i < nvml_driver_symbol_count; i++)
		memcpy((char *)&nvml + nvml_driver_symbols[i].offset, &f, sizeof f);
	/* A handle of each type, so that decoders go on behind one. */
	for (unsigned t = 1; t < HANDLE_TYPES; t++)
		handle_bind(s->handles, t, HANDLE_ID(t, 0x2000), calloc(1, 4096));
}

/* ---- values ---- */

static uint64_t number(unsigned type)
{
	static const uint64_t odd[] = {0, 1, 2, 3, 4, 8, 16, 64, 255, 4096, 65536, INT32_MAX, UINT32_MAX,
			(uint64_t)1 << 40,
		INT64_MAX, UINT64_MAX};

	if (rand_r(&seed) % 4 == 0)
		return HANDLE_ID(type, 0x2000);
	return rand_r(&seed) % 3 ? odd[rand_r(&seed) % 6] : odd[rand_r(&seed) % (sizeof odd / sizeof *odd)];
}

static void put_value(struct msg *m, int depth)
{
	static uint8_t bytes[2048];
	static const uint16_t sizes[] = {0, 1, 4, 8, 12, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104,
			112, 128, 144, 184, 200,
		256, 512};
	char text[32];
	size_t n;

	switch (rand_r(&seed) % (depth ? 8 : 7)) {
	case 0:
	case 1:
	case 2:
		put_u64(m, number(1 + rand_r(&seed) % (HANDLE_TYPES - 1)));
		return;
	case 3:
		for (n = 0; n < sizeof bytes; n++)
			bytes[n] = rand_r(&seed) % 2 ? 0 : rand_r(&seed);
		n = rand_r(&seed) % 8 ? sizes[rand_r(&seed) % (sizeof sizes / sizeof *sizes)] :
				(unsigned)rand_r(&seed) % 600;
		put_bytes(m, bytes, n);
		return;
	case 4:
		n = rand_r(&seed) % sizeof text;
		memset(text, 'a' + rand_r(&seed) % 26, n);
		text[n ? n - 1 : 0] = 0;
		put_text(m, text);
		return;
	case 5:
		if (rand_r(&seed) % 2)
			put_nil(m);
		else
			put_bool(m, rand_r(&seed) % 2);
		return;
	case 6:
		if (rand_r(&seed) % 2)
			put_f64(m, 0.5);
		else
			put_i64(m, -(int64_t)(rand_r(&seed) % 5));
		return;
	default:
		/* The elements come as values of their own, so that each is searched for. */
		put_array(m, rand_r(&seed) % 4);
	}
}

/* ---- running ---- */

enum taken { NO, MORE, ALL };

/* Runs the head with a byte behind it that no decoder takes: what was read tells how far it pleased. */
static enum taken run(unsigned call, unsigned kind, const uint8_t *head, size_t n, bool whole)
{
	/* Behind an exec lies its mirror, which holds no baton. */
	static struct { struct exec x; uint8_t mirror[512]; } m;
	static uint8_t in[LIMIT_HEAD + 1], out[LIMIT_HEAD];
	struct exec *x = &m.x;

	memset(&m, 0, sizeof m);
	memcpy(in, head, n);
	in[n] = 0xc1;
	x->session = s;
	x->name = call_entry((uint16_t)call)->name;
	x->frame = (struct frame){.kind = kind, .call = call, .thread = 1, .seq = 1};
	x->frame.bulk_len = x->bulk_left = rand_r(&seed) % 3 ? 0 : rand_r(&seed) % BULK;
	memset(s->source[FIRST].bytes, rand_r(&seed), BULK);
	s->source[FIRST].pos = 0;
	s->source[FIRST].len = s->source[FIRST].left = x->bulk_left;
	msg_init(&x->in, in, whole ? n : n + 1);
	msg_init(&x->out, out, sizeof out - 5);
	call_entry((uint16_t)call)->serve(x);
	if (x->gathered)
		later_sent(s, x->gathered, false);
	exec_finish(x);
	free(x->arena);
	if (whole)
		return ALL;
	if (x->in.len == n && !x->in.bad)
		return ALL;
	return x->in.len == n + 1 ? MORE : NO;
}

static const uint8_t zeros[STRUCT_MOST];

/* Searches a head that the call takes whole; 0 when there is none in the time. */
static size_t search(unsigned call, unsigned kind, uint8_t *head)
{
	size_t n = 0;

	for (int values = 0; values < VALUES; values++) {
		enum taken taken = run(call, kind, head, n, false);
		int tries = 0;
		struct msg m;

		if (taken == ALL)
			return n;
		for (; tries < TRIES; tries++) {
			msg_init(&m, head + n, LIMIT_HEAD - n);
			put_value(&m, 1);
			taken = run(call, kind, head, n + m.len, false);
			if (taken != NO)
				break;
		}
		/* A struct of a size that is not among the usual ones. */
		for (unsigned size = 4; taken == NO && size <= STRUCT_MOST &&
				n + size + 8 < LIMIT_HEAD; size += 4) {
			msg_init(&m, head + n, LIMIT_HEAD - n);
			put_bytes(&m, zeros, size);
			taken = run(call, kind, head, n + m.len, false);
		}
		if (taken == NO)
			return 0;
		n += m.len;
	}
	return 0;
}

static _Noreturn void try_call(unsigned call, unsigned round)
{
	static uint8_t head[LIMIT_HEAD], broken[LIMIT_HEAD];
	unsigned kind = round % 2 ? FRAME_WAIT : FRAME_POST;
	size_t n;

	/* libcheck's own handler would end the whole test, and nobody would know in which call. */
	signal(SIGALRM, SIG_DFL);
	alarm(60u * (unsigned)unit_slow());
	seed = call * 7 + round;
	setup_session();
	/* A driver that refuses all: a handle that is not the program's to choose does not end the session.
	 * */
	answer = round % 3 == 0 ? 0 : round == 2 ? CUDA_ERROR_INVALID_VALUE : -1;
	n = search(call, kind, head);
	run(call, kind, head, n, true);
	for (int i = 0; i < 60; i++) {
		memcpy(broken, head, n);
		for (int flips = 1 + rand_r(&seed) % 3; n && flips; flips--)
			broken[rand_r(&seed) % n] = rand_r(&seed);
		run(call, kind, broken, n, true);
		run(call, kind, head, n ? rand_r(&seed) % n : 0, true);
	}
	/* 1: a head was found that was taken whole. */
	_exit(n || run(call, kind, head, 0, false) == ALL ? 1 : 2);
}

#define CALLS (CALL_COUNT + NVML_CALL_COUNT)     /* as call_entry numbers them */
static unsigned found[CALLS];

START_TEST(calls)
{
	unsigned tried = 0, whole = 0;

	for (unsigned call = _i; call < CALLS; call += 8) {
		if (!call_entry((uint16_t)call)->serve)
			continue;
		tried++;
		for (unsigned round = 0; round < 4; round++) {
			int status;
			pid_t pid = fork();

			if (!pid)
				try_call(call, round);
			ck_assert_int_eq(waitpid(pid, &status, 0), pid);
			/* 0: the function ended the session. */
			ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) <= 2,
					"%s, round %u: status %#x",
					call_entry((uint16_t)call)->name, round, status);
			found[call] |= WEXITSTATUS(status) == 1;
		}
		whole += found[call];
		if (!found[call])
			printf("no head found for %s\n", call_entry((uint16_t)call)->name);
		fflush(stdout); /* or each child has it too */
	}
	printf("heads found for %u of %u calls\n", whole, tried);
	fflush(stdout);
	ck_assert_msg(whole == tried,
		"a head that is taken whole is not found for every call: put_value, TRIES");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("serve");
	TCase *t = tcase_create("arguments");

	log_init("serve", -1);
	if (CALL_COUNT != serve_count || NVML_CALL_COUNT != nvml_serve_count)
		return 1;
	tcase_set_timeout(t, 600);
	tcase_add_loop_test(t, calls, 0, 8);
	suite_add_tcase(s, t);
	return unit_run(s);
}
