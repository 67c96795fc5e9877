/* SPDX-License-Identifier: Apache-2.0 */
/* The file in which a process tells how much device memory it uses (usage.h).
 *
 * Thread rule: called once, by whoever initialises the driver. */
#include "server/soft/usage.h"
#include <sys/mman.h>
#include <unistd.h>
#include "wire/log.h"

_Atomic uint64_t *usage_open(void)
{
	const size_t bytes = USAGE_DEVICES * sizeof(uint64_t);
	int fd = memfd_create(USAGE_FILE, MFD_CLOEXEC);
	void *p = MAP_FAILED;
	if (fd >= 0 && !ftruncate(fd, (off_t)bytes))
		p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p != MAP_FAILED)
		return p; /* the descriptor stays open: it is how the file is found */
	log_info("who lists processes is not told this one's memory: %m");
	if (fd >= 0)
		close(fd);
	return NULL;
}
