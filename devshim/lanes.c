/* SPDX-License-Identifier: Apache-2.0 */
/* The threads are started at the first large copy and stay; between two copies they sleep.
 *
 * Thread rule: `owner` is held by the thread whose job it is; `lock` guards the job's helpers. A forked child
 * has neither the threads nor a session, so it never comes here. */
#include "devshim/lanes.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "devshim/process.h"
#include "wire/uncancelled.h"
#include "wire/log.h"

#define HELPERS_MOST 3
#define STACK (64u << 10)

struct job {
	int (*piece)(void *arg, uint64_t i);
	void *arg;
	uint64_t n;
	_Atomic uint64_t next;
	_Atomic int error;
	unsigned wanted, users; /* helpers that may join, that have joined and not left */
};

static struct {
	pthread_mutex_t owner, lock;
	pthread_cond_t work, done;
	struct job *job;
	unsigned threads;
	int helpers; /* -1: not found out */
} lanes = {.owner = PTHREAD_MUTEX_INITIALIZER,
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.work = PTHREAD_COND_INITIALIZER,
	.done = PTHREAD_COND_INITIALIZER,
	.helpers = -1};

/* How many threads a copy gets beside its own. Even on two processors one helps, because a thread mostly
 * waits for the daemon to wake it. */
static int helpers_allowed(void)
{
	const char *s = getenv("SCUDAFS_LANES");
	cpu_set_t set;
	int cpus = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
	int n = cpus >= 8 ? 2 : cpus >= 2 ? 1 : 0;

	if (s && *s >= '1' && *s <= '1' + HELPERS_MOST && !s[1])
		n = *s - '1';
	else if (s && *s)
		log_warning("SCUDAFS_LANES=%s is not 1 to %d", s, HELPERS_MOST + 1);
	return n;
}

static void work_on(struct job *j)
{
	while (!atomic_load(&j->error)) {
		uint64_t i = atomic_fetch_add(&j->next, 1);
		int none = 0;

		if (i >= j->n)
			return;
		int e = j->piece(j->arg, i);

		if (e)
			atomic_compare_exchange_strong(&j->error, &none, e);
	}
}

static void *helper_main(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&lanes.lock);
	for (;;) {
		struct job *j = lanes.job;

		if (!j || !j->wanted) {
			pthread_cond_wait(&lanes.work, &lanes.lock);
			continue;
		}
		j->wanted--;
		j->users++;
		pthread_mutex_unlock(&lanes.lock);
		work_on(j);
		pthread_mutex_lock(&lanes.lock);
		if (!--j->users)
			pthread_cond_signal(&lanes.done);
	}
	return NULL;
}

/* With the owner's mutex. */
static void run_shared(struct job *j)
{
	pthread_mutex_lock(&lanes.lock);
	while ((int)lanes.threads < lanes.helpers && !process_thread(helper_main, NULL, STACK, "scuda-lane"))
		lanes.threads++;
	j->wanted = lanes.threads;
	lanes.job = j;
	pthread_cond_broadcast(&lanes.work);
	pthread_mutex_unlock(&lanes.lock);
	work_on(j);
	pthread_mutex_lock(&lanes.lock);
	lanes.job = NULL;
	while (j->users)
		pthread_cond_wait(&lanes.done, &lanes.lock);
	pthread_mutex_unlock(&lanes.lock);
}

int lanes_run(int (*piece)(void *arg, uint64_t i), void *arg, uint64_t n)
{
	struct job j = {.piece = piece, .arg = arg, .n = n};
	uncancelled state = uncancelled_begin();

	if (!pthread_mutex_trylock(&lanes.owner)) {
		if (lanes.helpers < 0)
			lanes.helpers = helpers_allowed();
		if (lanes.helpers)
			run_shared(&j);
		pthread_mutex_unlock(&lanes.owner);
	}
	work_on(&j);
	return atomic_load(&j.error);
}
