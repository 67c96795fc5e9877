/* SPDX-License-Identifier: Apache-2.0 */
/* A few threads and a list of requests with their answers. A program's read of a MiB costs a copy into the
 * program; done by the session's thread, that time is lost for the connection. The threads are started when
 * they are needed first, and stay.
 *
 * Thread rule: `lock` guards the list and the counts. */
#include "scudafs/answerer.h"
#include "scudafs/spin.h"

#define LARGE (256u << 10)          /* from here on a wake-up is cheaper than the copy */
#define CPUS_LEAST 4                /* with fewer processors it gains nothing */
#define THREADS_MOST 4
#define THREAD_STACK (128u << 10)

static struct {
	pthread_mutex_t lock;
	pthread_cond_t work, idle;
	struct request *head, **tail;
	unsigned threads, waiting, busy;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER,
	.work = PTHREAD_COND_INITIALIZER,
	.idle = PTHREAD_COND_INITIALIZER,
	.tail = &pool.head};

static void *answerer_main(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&pool.lock);
	for (;;) {
		while (!pool.head) {
			if (!pool.busy)
				pthread_cond_broadcast(&pool.idle);
			pool.waiting++;
			pthread_cond_wait(&pool.work, &pool.lock);
			pool.waiting--;
		}
		struct answers a;
		struct request *q = pool.head;
		pool.head = q->next;
		if (!pool.head)
			pool.tail = &pool.head;
		pool.busy++;
		pthread_mutex_unlock(&pool.lock);
		answers_init(&a);
		answers_add(&a, q, q->result);
		answers_send(&a);
		pthread_mutex_lock(&pool.lock);
		pool.busy--;
	}
	return NULL;
}

/* Under the lock. Returns false when there is no thread at all. */
static bool have_thread(void)
{
	pthread_attr_t attr;
	pthread_t thread;
	if (pool.waiting || pool.threads >= THREADS_MOST || pool.threads > spin_cpus() / CPUS_LEAST)
		return pool.threads;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, THREAD_STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (!pthread_create(&thread, &attr, answerer_main, NULL))
		pool.threads++;
	pthread_attr_destroy(&attr);
	return pool.threads;
}

static size_t bytes_of(const struct answers *a)
{
	size_t n = 0;
	for (const struct request *q = a->head; q; q = q->next)
		for (int i = 0; i < q->parts; i++)
			n += q->part[i].iov_len;
	return n;
}

void answerer_send(struct answers *a)
{
	if (bytes_of(a) < LARGE) {
		answers_send(a);
		return;
	}
	pthread_mutex_lock(&pool.lock);
	bool elsewhere = spin_cpus() >= CPUS_LEAST && have_thread();
	if (elsewhere) {
		*pool.tail = a->head;
		pool.tail = a->tail;
		answers_init(a);
		pthread_cond_signal(&pool.work);
	}
	pthread_mutex_unlock(&pool.lock);
	answers_send(a);
}

void answerer_finish(void)
{
	pthread_mutex_lock(&pool.lock);
	while (pool.head || pool.busy)
		pthread_cond_wait(&pool.idle, &pool.lock);
	pthread_mutex_unlock(&pool.lock);
}
