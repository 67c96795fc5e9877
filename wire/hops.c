/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a process is mapped at its first mark, and anew after a fork: a server's sessions have each
 * their own.
 *
 * Thread rule: as hops.h; no locks. */
#include "wire/hops.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "wire/uncancelled.h"

bool hops_on;
static const char *folder;
static struct hop_mark *_Atomic marks;
static _Atomic unsigned count;
static _Atomic int owner;           /* the process whose file is mapped */

uint64_t hops_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

__attribute__((constructor)) static void hops_start(void)
{
	folder = secure_getenv("SCUDAFS_HOPS");
	hops_on = folder && *folder;
}

/* One thread opens it; marks that others make meanwhile are lost. */
static void begin(int pid)
{
	uncancelled state = uncancelled_begin();
	char path[PATH_MAX];
	int before = atomic_load(&owner), saved = errno;
	if (before == pid || !atomic_compare_exchange_strong(&owner, &before, pid))
		return;
	atomic_store(&marks, NULL);
	atomic_store(&count, 0);
	int n = snprintf(path, sizeof path, "%s/%d", folder, pid);
	bool fits = n > 0 && (size_t)n < sizeof path;
	int fd = fits ? open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
	size_t size = HOP_MARKS * sizeof(struct hop_mark);
	void *p = MAP_FAILED;
	if (fd >= 0 && !ftruncate(fd, (off_t)size))
		p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	if (p != MAP_FAILED)
		atomic_store(&marks, p);
	errno = saved;
}

void hops_note(enum hop h, uint64_t record, uint64_t ns)
{
	int pid = getpid();
	if (__builtin_expect(atomic_load_explicit(&owner, memory_order_relaxed) != pid, 0))
		begin(pid);
	struct hop_mark *m = atomic_load_explicit(&marks, memory_order_acquire);
	unsigned i = m ? atomic_fetch_add_explicit(&count, 1, memory_order_relaxed) : HOP_MARKS;
	if (i < HOP_MARKS)
		m[i] = (struct hop_mark){.ns = ns ? ns : hops_now(), .record = record, .hop = h};
}
