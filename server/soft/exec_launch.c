/* SPDX-License-Identifier: Apache-2.0 */
/* Launches: a queue of kernels, worker threads that take their blocks in rising order, and the caller, who
 * works, too, while a place is free. A cooperative kernel has all blocks under way; its threads take turns
 * among theirs.
 *
 * Thread rule: pool.lock guards the queue, the counts and launch.threads; blocks are claimed atomically; a
 * block belongs to one thread. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "server/soft/builtin.h"
#include "server/soft/check.h"
#include "server/soft/exec.h"
#include "server/soft/ir.h"
#include "server/soft/decode.h"
#include "server/soft/memory.h"
#include "wire/deadline.h"

enum {
	INVALID_VALUE = 1,
	OUT_OF_MEMORY = 2,
	LAUNCH_OUT_OF_RESOURCES = 701,
	COOPERATIVE_TOO_LARGE = 720,
	NOT_SUPPORTED = 801,
	INVALID_CLUSTER_SIZE = 912,
	LAUNCH_FAILED = 719
};
enum {
	MAX_WORKERS = 256,
	MAX_RESIDENT = 4096,
	WORKSPACE = 256,
	START_WAIT_MS = 2,
	MAX_NAP_NS = 1000000
};

struct worker {
	struct block block;
	struct worker *next;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct launch *queue;
	unsigned workers, threads, active, idle;
	struct worker *spare;
	bool busy[MAX_WORKERS]; /* multiprocessor numbers in use */
	_Atomic uint64_t launches;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER};

void engine_init(unsigned workers)
{
	long n = workers ? (long)workers : sysconf(_SC_NPROCESSORS_ONLN);
	pthread_mutex_lock(&pool.lock);
	if (!pool.workers)
		pool.workers = n < 1 ? 1 : n > MAX_WORKERS ? MAX_WORKERS : (unsigned)n;
	pthread_mutex_unlock(&pool.lock);
}

unsigned engine_workers(void)
{
	if (!pool.workers)
		engine_init(0);
	return pool.workers;
}

static void fail(struct launch *l, int r)
{
	int none = 0;
	if (r)
		atomic_compare_exchange_strong(&l->error, &none, r);
}

static void nap(uint64_t until)
{
	uint64_t now = exec_now_ns(), ns = until > now ? until - now : 0;
	ns = ns < MAX_NAP_NS ? ns : MAX_NAP_NS;
	if (ns)
		nanosleep(&(struct timespec){.tv_nsec = (long)ns}, NULL);
}

static void run_blocks(struct launch *l, struct block *b)
{
	while (!atomic_load_explicit(&l->error, memory_order_relaxed)) {
		uint64_t i = atomic_fetch_add(&l->next, 1);
		if (i >= l->blocks)
			return;
		int r = block_start(b, l, i);
		while (!r && b->live) {
			r = fault_guard(block_run, b);
			if (!r && b->live && b->wake_ns)
				nap(b->wake_ns);
		}
		fail(l, r);
	}
}

static unsigned cluster_size(const struct engine_launch *e)
{
	return e->cluster[0] * e->cluster[1] * e->cluster[2];
}

/* The number in the grid of the block with that rank of that cluster. */
static uint64_t cluster_block(const struct engine_launch *e, uint64_t cluster, unsigned rank)
{
	uint64_t at[3], part = rank;
	for (int k = 0; k < 3; k++) {
		unsigned across = e->grid[k] / e->cluster[k];
		at[k] = cluster % across * e->cluster[k] + part % e->cluster[k];
		cluster /= across;
		part /= e->cluster[k];
	}
	return at[0] + e->grid[0] * (at[1] + e->grid[1] * at[2]);
}

/* Starts one block, or those of a cluster, in front of *first. Returns 0 or a CUresult. */
static int start_resident(struct launch *l, uint64_t unit, unsigned smid, struct block **first)
{
	unsigned n = cluster_size(l->l);
	struct cluster *c = n > 1 ? calloc(1, sizeof *c) : NULL;
	if (n > 1 && !c)
		return OUT_OF_MEMORY;
	int r = 0;
	for (unsigned k = 0; k < n && !r; k++) {
		struct block *b = calloc(1, sizeof *b);
		if (!b) {
			r = OUT_OF_MEMORY;
			break;
		}
		b->smid = smid;
		b->cluster = c;
		b->rank = k;
		b->next = *first;
		*first = b;
		if (c) {
			c->block[c->n++] = b;
			c->running++;
			c->refs++;
		}
		r = block_start(b, l, cluster_block(l->l, unit, k));
	}
	if (c && !c->n)
		free(c);
	return r;
}

static void end_resident(struct block *b)
{
	struct cluster *c = b->cluster;
	block_release(b);
	free(b);
	if (c && !--c->refs)
		free(c);
}

/* Several blocks take turns: those of a cluster, of a cooperative launch all that there are. A new one is
 * started after each round over those that are under way. Shared memory of a cluster lives until its last
 * block has ended. */
static void run_resident(struct launch *l, unsigned smid)
{
	struct block *first = NULL, *b;
	for (;;) {
		uint64_t i = l->blocks;
		if (!atomic_load(&l->error) && (!first || l->l->cooperative) &&
				atomic_load(&l->next) < l->blocks)
			i = atomic_fetch_add(&l->next, 1);
		if (i < l->blocks)
			fail(l, start_resident(l, i, smid, &first));
		uint64_t wake = UINT64_MAX;
		for (struct block **p = &first; *p;) {
			b = *p;
			if (!atomic_load(&l->error) && b->live)
				fail(l, fault_guard(block_run, b));
			bool stop = atomic_load(&l->error);
			if (!b->live && !b->ended && b->cluster) {
				b->ended = true;
				b->cluster->running--;
			}
			if (stop || (!b->live && !(b->cluster && b->cluster->running))) {
				*p = b->next;
				end_resident(b);
				continue;
			}
			if (b->live)
				wake = b->wake_ns < wake ? b->wake_ns : wake;
			p = &b->next;
		}
		bool n = first != NULL;
		if (!n && (atomic_load(&l->error) || atomic_load(&l->next) >= l->blocks))
			return;
		if (n && wake && wake != UINT64_MAX)
			nap(wake);
	}
}

/* Called and left with the lock held. */
static void work_on(struct launch *l)
{
	struct worker *k = pool.spare;
	l->threads++;
	l->started = true;
	pool.active++;
	unsigned smid =
		0; /* of two that run at the same time never the same, while they are no more than workers */
	while (smid < MAX_WORKERS - 1 && pool.busy[smid])
		smid++;
	pool.busy[smid] = true;
	if (k)
		pool.spare = k->next;
	pthread_mutex_unlock(&pool.lock);
	if (!k)
		k = calloc(1, sizeof *k);
	if (!k) {
		fail(l, OUT_OF_MEMORY);
	} else if (l->l->cooperative || cluster_size(l->l) > 1) {
		run_resident(l, smid);
	} else {
		k->block.smid = smid;
		run_blocks(l, &k->block);
	}
	pthread_mutex_lock(&pool.lock);
	if (k) {
		k->next = pool.spare;
		pool.spare = k;
	}
	pool.active--;
	pool.busy[smid] = false;
	l->threads--;
	if (l->queued) { /* no block is left to start */
		struct launch **q = &pool.queue;
		while (*q != l)
			q = &(*q)->queue;
		*q = l->queue;
		l->queued = false;
	}
	if (!l->threads)
		pthread_cond_broadcast(&l->finished);
	if (pool.queue && pool.idle)
		pthread_cond_signal(&pool.work);
}

/* The first launch that still has blocks to start. */
static struct launch *waiting(void)
{
	for (struct launch *l = pool.queue; l; l = l->queue)
		if (atomic_load(&l->next) < l->blocks)
			return l;
	return NULL;
}

static void *worker(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&pool.lock);
	for (;;) {
		struct launch *l = pool.active < pool.workers ? waiting() : NULL;
		if (l) {
			work_on(l);
			continue;
		}
		pool.idle++;
		pthread_cond_wait(&pool.work, &pool.lock);
		pool.idle--;
	}
	return NULL;
}

/* With the lock held. A failure leaves fewer workers: the caller works, too. */
static void add_threads(void)
{
	sigset_t all, old;
	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	while (pool.threads < pool.workers) {
		pthread_t t;
		if (pthread_create(&t, NULL, worker, NULL))
			break;
		pthread_detach(t);
		pool.threads++;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void run(struct launch *l)
{
	pthread_mutex_lock(&pool.lock);
	struct launch **q = &pool.queue;
	while (*q)
		q = &(*q)->queue;
	*q = l;
	l->queued = true;
	if (l->blocks > 1 || pool.active >= pool.workers)
		add_threads();
	unsigned wake = l->blocks - 1 < pool.idle ? (unsigned)l->blocks - 1 : pool.idle;
	while (wake--)
		pthread_cond_signal(&pool.work);
	if (pool.active < pool.workers)
		work_on(l);
	while (!l->started) {
		struct timespec t = deadline_in(START_WAIT_MS);
		/* Kernels that run may wait for this one: it must not wait for them. */
		if (pthread_cond_clockwait(&l->finished, &pool.lock, CLOCK_MONOTONIC, &t) == ETIMEDOUT &&
				!l->started)
			work_on(l);
	}
	while (l->threads || l->queued)
		pthread_cond_wait(&l->finished, &pool.lock);
	pthread_mutex_unlock(&pool.lock);
}

static int verify(const struct engine_launch *e, uint64_t *blocks, struct engine_error *error)
{
	const struct engine_function_info *info = engine_function_info(e->function);
	uint64_t threads = 1;
	unsigned in_cluster = 1;
	bool exact = true;
	*blocks = 1;
	for (int k = 0; k < 3; k++) {
		if (!e->block[k] || !e->grid[k] || e->block[k] > MAX_THREADS ||
			__builtin_mul_overflow(*blocks, e->grid[k], blocks))
			return INVALID_VALUE;
		if (!e->cluster[k] || e->cluster[k] > ENGINE_CLUSTER || e->grid[k] % e->cluster[k])
			return INVALID_CLUSTER_SIZE;
		in_cluster *= e->cluster[k];
		threads *= e->block[k];
		exact &= !info->required[0] || info->required[k] == e->block[k];
	}
	if (threads > MAX_THREADS || (!exact && threads > 1) || (info->param_bytes && !e->params))
		return INVALID_VALUE;
	if (info->uncovered) {
		snprintf(error->text, sizeof error->text, "%.80s: this device lacks %.120s", info->name,
			info->uncovered);
		return NOT_SUPPORTED;
	}
	if (in_cluster > ENGINE_CLUSTER)
		return INVALID_CLUSTER_SIZE;
	if (e->cooperative && *blocks > MAX_RESIDENT)
		return COOPERATIVE_TOO_LARGE;
	*blocks /= in_cluster;
	return 0;
}

static void describe(const struct launch *l, const char *name, struct engine_error *error)
{
	static const struct {
		int code;
		const char *what;
	} t[] = {{700, "illegal address"}, {702, "time limit"}, {710, "assertion"},
		{715, "illegal instruction"}, {716, "misaligned address"}, {719, "trap or failure"},
		{801, "instruction not covered"}, {2, "out of memory"}};
	const char *what = "error";
	for (unsigned k = 0; k < sizeof t / sizeof *t; k++)
		if (t[k].code == l->error)
			what = t[k].what;
	const char *file;
	uint32_t source;
	error->line = l->error_line;
	if (ptx_source(l->code->func, l->error_line, &file, &source))
		snprintf(error->text, sizeof error->text, "kernel %.120s: %s at %.60s:%u (PTX line %u)", name,
				what, file,
			source, l->error_line);
	else
		snprintf(error->text, sizeof error->text, "kernel %.120s: %s at PTX line %u", name, what,
			l->error_line);
}

int engine_launch(const struct engine_launch *e, struct engine_error *error)
{
	struct engine_error unused;
	error = error ? error : &unused;
	*error = (struct engine_error){0};
	struct launch l = {.l = e, .finished = PTHREAD_COND_INITIALIZER};
	error->code = verify(e, &l.blocks, error);
	if (error->code)
		return error->code;
	engine_workers();
	const struct engine_function_info *info = engine_function_info(e->function);
	l.code = e->function->func->code;
	l.module = e->function->module;
	l.id = atomic_fetch_add(&pool.launches, 1) + 1;
	if (e->time_limit_s > 0)
		l.deadline_ns = exec_now_ns() + (uint64_t)(e->time_limit_s * 1e9);
	if (e->cooperative)
		l.workspace = soft_alloc(WORKSPACE, 256);
	if (l.code->param_address && info->param_bytes) {
		l.params = soft_alloc(info->param_bytes, 256);
		if (l.params)
			memcpy((void *)l.params, e->params, info->param_bytes);
	}
	l.out = printf_open();
	if ((e->cooperative && !l.workspace) || (l.code->param_address && info->param_bytes && !l.params) ||
		!l.out)
		l.error = OUT_OF_MEMORY;
	else
		run(&l);
	if (l.workspace)
		soft_free(l.workspace);
	if (l.params)
		soft_free(l.params);
	printf_close(l.out);
	check_launch_end(&l);
	pthread_cond_destroy(&l.finished);
	error->code = l.error;
	if (l.error)
		describe(&l, info->name, error);
	return l.error;
}
