/* SPDX-License-Identifier: Apache-2.0 */
/* Where there are processors enough, the flusher looks for posts for a while before it sleeps, so that they
 * pay for no wake-up; and it leaves one alone for a moment, because a wait that follows takes it along.
 *
 * Thread rule: `started` is guarded by the channel's lock; `asleep` is a futex word, 1 while the thread
 * sleeps. */
#include "devshim/flusher.h"
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "devshim/channel_parts.h"
#include "devshim/process.h"
#include "wire/look.h"

#define LOOK_CPUS 8                         /* a flusher that looks takes a processor from nobody */
#define LOOK_NS 50000
#define GRACE_NS 3000
#define PAUSES 8                            /* between two looks */

static bool started;
static _Atomic uint32_t asleep;

/* Waits until the queue is `filled` or empty, at most so long. */
static bool look(bool filled, uint64_t ns)
{
	struct look l = look_begin(ns);
	while (channel_is_filled() != filled) {
		if (!look_on(&l))
			return false;
		for (int i = 0; i < PAUSES; i++)
			look_relax();
	}
	return true;
}

static void *flusher(void *unused)
{
	cpu_set_t set;
	bool looks = !sched_getaffinity(0, sizeof set, &set) && CPU_COUNT(&set) >= LOOK_CPUS;
	(void)unused;
	for (;;) {
		bool seen = looks && look(true, LOOK_NS);
		if (seen)
			look(false, GRACE_NS);
		int r = channel_flush(seen ? NULL : &asleep);
		if (r < 0) {
			process_die(r, "sending");
			return NULL;
		}
		while (atomic_load(&asleep))
			syscall(SYS_futex, &asleep, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
	}
}

void flusher_wake(void)
{
	uint32_t one = 1;
	if (atomic_load_explicit(&asleep, memory_order_relaxed) &&
			atomic_compare_exchange_strong(&asleep, &one, 0))
		syscall(SYS_futex, &asleep, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

bool flusher_start(void)
{
	if (!started && process_thread(flusher, NULL, 64u << 10, "scuda-flush") == 0)
		started = true;
	return started;
}
