/* SPDX-License-Identifier: Apache-2.0 */
/* The spin time is found out once: the processors that we may use decide, or the environment. Thread rule:
 * any thread. */
#include "scudafs/spin.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "wire/log.h"
#include "wire/look.h"

#define SPIN_US 100
#define AWAIT_US 10000              /* for an answer that a program waits for and looks for, too */
#define AWAIT_SHARE 8               /* of so many processors one may be busy with that */
#define SPIN_MOST 100000
#define CPUS_LEAST 4                /* a thread that spins takes a processor from nobody */
#define LOOKS 10                    /* pauses between two looks */

static struct {
	pthread_once_t once;
	unsigned us, await_us, cpus;
	_Atomic unsigned awaiting;
} spin = {.once = PTHREAD_ONCE_INIT};

static void find_out(void)
{
	cpu_set_t set;
	const char *s = getenv("SCUDAFS_SPIN_US");
	spin.cpus = sched_getaffinity(0, sizeof(set), &set) ? 1 : (unsigned)CPU_COUNT(&set);
	spin.us = spin.cpus >= CPUS_LEAST ? SPIN_US : 0;
	spin.await_us = AWAIT_US;
	if (!s || !*s)
		return;
	char *end;
	unsigned long v = strtoul(s, &end, 10);
	if (*end || v > SPIN_MOST)
		log_warning("SCUDAFS_SPIN_US=%s is not 0 to %d", s, SPIN_MOST);
	else
		spin.us = spin.await_us = (unsigned)v;
}

unsigned spin_us(void)
{
	pthread_once(&spin.once, find_out);
	return spin.us;
}

int spin_poll(struct pollfd *p, nfds_t n)
{
	struct look l = look_begin(1000ull * spin_us());
	int r;
	while (!(r = poll(p, n, look_on(&l) ? 0 : -1)))
		for (int i = 0; i < LOOKS; i++)
			look_relax();
	return r;
}

unsigned spin_cpus(void)
{
	pthread_once(&spin.once, find_out);
	return spin.cpus;
}

unsigned spin_await_us(void)
{
	pthread_once(&spin.once, find_out);
	return spin.await_us;
}

bool spin_await_begin(void)
{
	unsigned now = atomic_load_explicit(&spin.awaiting, memory_order_relaxed);
	while (spin_us() && now < spin_cpus() / AWAIT_SHARE)
		if (atomic_compare_exchange_weak_explicit(&spin.awaiting, &now, now + 1,
				memory_order_relaxed, memory_order_relaxed))
			return true;
	return false;
}

void spin_await_end(void) { atomic_fetch_sub_explicit(&spin.awaiting, 1, memory_order_relaxed); }
