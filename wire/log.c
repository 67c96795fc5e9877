/* SPDX-License-Identifier: Apache-2.0 */
/* The one log: each event is one write of one line to standard error, so that lines of threads and
 * processes never mix. Control bytes of hostile texts are replaced.
 *
 * Thread rule: log_init once, before threads; the rest from anywhere, but not from a signal handler. */
#include "wire/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "wire/uncancelled.h"

/* Set by log_to, for the log of a library in the same process. */
#define FD_VARIABLE "SCUDAFS_LOG_FD"

static const char *log_name = "scudafs";
static int log_level = -1;
static int log_fd = STDERR_FILENO;
static const char *const level_names[] = {"error", "warning", "info", "debug"};

void log_init(const char *name, int fallback)
{
	const char *wanted = getenv("SCUDAFS_LOG"), *fd = getenv(FD_VARIABLE);

	if (fd && atoi(fd) > 0)
		log_fd = atoi(fd);
	log_name = name;
	log_level = fallback;
	if (!wanted)
		return;
	/* Any other value, 1 for example, means the usual level. */
	log_level = fallback < LOG_LEVEL_INFO ? LOG_LEVEL_INFO : fallback;
	for (int i = 0; i < 4; i++)
		if (!strcmp(wanted, level_names[i]))
			log_level = i;
}

void log_to(int fd)
{
	char text[16];

	log_fd = fd;
	snprintf(text, sizeof text, "%d", fd);
	setenv(FD_VARIABLE, text, 1);
}

bool log_enabled(enum log_level level)
{
	return (int)level <= log_level;
}

static void log_line(enum log_level level, const char *fmt, va_list args)
{
	uncancelled state = uncancelled_begin();
	char line[1024];
	int head, n;

	head = snprintf(line, sizeof line, "%s[%d]: %s", log_name, (int)getpid(),
			level == LOG_LEVEL_WARNING ? "warning: " : "");
	n = vsnprintf(line + head, sizeof line - 1 - head, fmt, args);
	if (n < 0)
		return;
	n += head;
	if (n > (int)sizeof line - 2)
		n = sizeof line - 2;
	for (int i = head; i < n; i++)
		if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
			line[i] = '?';
	line[n++] = '\n';
	/* Nothing can be done about a log that cannot be written. */
	if (write(log_fd, line, n) < 0)
		return;
}

void log_at(enum log_level level, const char *fmt, ...)
{
	int saved = errno;
	va_list args;

	if (!log_enabled(level))
		return;
	va_start(args, fmt);
	errno = saved;
	log_line(level, fmt, args);
	va_end(args);
	errno = saved;
}

int log_errno(int r, const char *fmt, ...)
{
	int saved = errno;
	va_list args;

	if (!log_enabled(LOG_LEVEL_ERROR))
		return r;
	va_start(args, fmt);
	errno = r < 0 ? -r : r;
	log_line(LOG_LEVEL_ERROR, fmt, args);
	va_end(args);
	errno = saved;
	return r;
}
