/* SPDX-License-Identifier: Apache-2.0 */
/* Names of processes (process.h), from /proc; where that cannot be read a process is its number alone.
 *
 * Thread rule: no state. */
#include "server/soft/process.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PID_BITS 22 /* the kernel's own limit of process numbers */
#define PID_MASK ((1u << PID_BITS) - 1)
#define STARTED 19 /* fields from the state to the time of the start, in clock ticks since the machine's */

/* 0: not known. */
static uint64_t started(int pid, char *state)
{
	char path[32], text[1024];
	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return 0;
	text[n] = 0;
	const char *p = strrchr(text, ')'); /* the program's name before it may hold anything */
	if (!p || p[1] != ' ')
		return 0;
	*state = *(p += 2);
	for (int k = 0; p && k < STARTED; k++) {
		p = strchr(p, ' ');
		p = p ? p + 1 : NULL;
	}
	return p ? strtoull(p, NULL, 10) : 0;
}

uint64_t process_name(void)
{
	char state;
	int pid = getpid();
	return started(pid, &state) << PID_BITS | (unsigned)pid;
}

bool process_gone(uint64_t name)
{
	char state = 0;
	int pid = (int)(name & PID_MASK);
	uint64_t then = name >> PID_BITS, now = then ? started(pid, &state) : 0;
	if (now)
		return now != then || state == 'Z' || state == 'X';
	return kill(pid, 0) && errno == ESRCH;
}
