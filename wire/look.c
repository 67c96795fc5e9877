/* SPDX-License-Identifier: Apache-2.0 */
/* Thread rule: look.h. */
#include "wire/look.h"
#include <stdatomic.h>
#include <time.h>

#define LOST_NS 1000000u
#define REST_NS 1000000000u

static _Atomic uint64_t rest_end;       /* nobody looks until then */

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void look_again(struct look *l, uint64_t ns)
{
	l->last = now_ns();
	l->end = l->last < atomic_load_explicit(&rest_end, memory_order_relaxed) ? 0 : l->last + ns;
}

struct look look_begin(uint64_t ns)
{
	struct look l = {0};
	if (ns)
		look_again(&l, ns);
	return l;
}

void look_resume(struct look *l)
{
	if (l->end)
		l->last = now_ns();
}

bool look_on(struct look *l)
{
	if (l->last >= l->end)
		return false;
	uint64_t now = now_ns();
	if (now - l->last > LOST_NS) {
		atomic_store_explicit(&rest_end, now + REST_NS, memory_order_relaxed);
		l->end = 0;
	}
	l->last = now;
	return now < l->end;
}
