/* SPDX-License-Identifier: Apache-2.0 */
/* The spin time is found out once: the processors that we may use decide, or the environment. Thread rule:
 * any thread. */
#include "scudafs/spin.h"
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include "wire/log.h"

#define SPIN_US 100
#define SPIN_MOST 100000
#define CPUS_LEAST 4                /* a thread that spins takes a processor from nobody */

static struct { pthread_once_t once; unsigned us, cpus; } spin = {.once = PTHREAD_ONCE_INIT};

static void find_out(void)
{
	cpu_set_t set;
	const char *s = getenv("SCUDAFS_SPIN_US");
	spin.cpus = sched_getaffinity(0, sizeof(set), &set) ? 1 : (unsigned)CPU_COUNT(&set);
	spin.us = spin.cpus >= CPUS_LEAST ? SPIN_US : 0;
	if (!s || !*s)
		return;
	char *end;
	unsigned long v = strtoul(s, &end, 10);
	if (*end || v > SPIN_MOST)
		log_warning("SCUDAFS_SPIN_US=%s is not 0 to %d", s, SPIN_MOST);
	else
		spin.us = (unsigned)v;
}

unsigned spin_us(void)
{
	pthread_once(&spin.once, find_out);
	return spin.us;
}

unsigned spin_cpus(void)
{
	pthread_once(&spin.once, find_out);
	return spin.cpus;
}
