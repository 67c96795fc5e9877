/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of device memory: a kernel that touches a guard page or memory that is not allocated raises SIGSEGV
 * on the thread that runs it. The handler returns to the start of the slice, and the launch ends with 700. A
 * fault anywhere else goes to whatever handler was there before.
 *
 * Thread rule: the jump buffer is per thread; the handler is installed once under a lock. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <xmmintrin.h>
#include "server/soft/exec.h"
#include "server/soft/memory.h"

enum { ILLEGAL_ADDRESS = 700 };

static __thread sigjmp_buf *guard;
static struct sigaction previous[2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void on_fault(int sig, siginfo_t *info, void *context)
{
	uint64_t at = (uint64_t)info->si_addr;
	if (guard && at >= soft_mem_base && at < soft_mem_end)
		siglongjmp(*guard, 1);
	const struct sigaction *old = &previous[sig == SIGBUS];
	if (old->sa_flags & SA_SIGINFO) {
		old->sa_sigaction(sig, info, context);
	} else if (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN) {
		old->sa_handler(sig);
	} else { /* the instruction runs again and meets the default */
		struct sigaction def = {.sa_handler = SIG_DFL};
		sigaction(sig, &def, NULL);
	}
}

static void install(void)
{
	static const int signals[2] = {SIGSEGV, SIGBUS};
	pthread_mutex_lock(&lock);
	for (int k = 0; k < 2; k++) {
		struct sigaction now;
		if (sigaction(signals[k], NULL, &now) ||
			((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_fault))
			continue;
		previous[k] = now;
		struct sigaction mine = {
			.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
		sigaction(signals[k], &mine, NULL);
	}
	pthread_mutex_unlock(&lock);
}

int fault_guard(int (*run)(struct block *), struct block *b)
{
	static __thread bool checked;
	if (!checked) {
		install();
		checked = true;
	}
	sigjmp_buf here;
	sigjmp_buf *outer = guard;
	unsigned csr = _mm_getcsr();
	if (sigsetjmp(here, 0)) {
		guard = outer;
		_mm_setcsr(csr);
		return ILLEGAL_ADDRESS;
	}
	guard = &here;
	int r = run(b);
	guard = outer;
	return r;
}
