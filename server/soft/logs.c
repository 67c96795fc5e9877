/* SPDX-License-Identifier: Apache-2.0 */
/* The log: a line for each call that was refused and for each kernel that failed, kept in memory and told to
 * callbacks.
 *
 * Thread rule: a lock of its own; callbacks run without it and without the driver's, on the thread that the
 * message is about. There they may call the driver. */
#include "server/soft/logs.h"
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "server/soft/state.h"
#include "wire/log.h"

#define LINES 100u /* kept */
#define LINE_BYTES 256u
#define MEMORY_MOST 25600u
#define LISTENERS 16u

struct listener {
	struct listener *next;
	CUlogsCallback fn;
	void *data;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct listener *listeners;
static char line[LINES][LINE_BYTES];
static unsigned count; /* lines ever written: the iterator of the next */

/* What a thread has to tell once it has given the driver's lock away: in the order of their coming. */
struct message {
	struct message *next;
	CUlogLevel level;
	char text[LINE_BYTES];
};
_Thread_local struct message *logs_untold;

void soft_log(CUlogLevel level, const char *fmt, ...)
{
	char text[LINE_BYTES];
	struct timespec now;
	struct tm tm;
	va_list ap;
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	size_t n = strftime(text, sizeof text, "[%H:%M:%S", &tm);
	n += (size_t)snprintf(text + n, sizeof text - n, ".%03ld][%ld][CUDA][%s] ", now.tv_nsec / 1000000,
		syscall(SYS_gettid), level == CU_LOG_LEVEL_ERROR ? "E" : "W");
	size_t head = n;
	va_start(ap, fmt);
	vsnprintf(text + n, sizeof text - n, fmt, ap);
	va_end(ap);

	pthread_mutex_lock(&lock);
	memcpy(line[count++ % LINES], text, sizeof text);
	bool wanted = listeners;
	pthread_mutex_unlock(&lock);
	struct message *m = wanted ? malloc(sizeof *m) : NULL, **last = &logs_untold;
	if (wanted && !m)
		log_error("memory is short: no callback is told of: %s", text);
	if (!m)
		return;
	m->next = NULL;
	m->level = level;
	/* without time and thread, which are at hand there */
	memcpy(m->text, text + head, sizeof text - head);
	while (*last)
		last = &(*last)->next;
	*last = m;
}

static void tell(CUlogLevel level, char *text)
{
	struct listener each[LISTENERS];
	unsigned n = 0;
	pthread_mutex_lock(&lock);
	for (const struct listener *l = listeners; l && n < LISTENERS; l = l->next)
		each[n++] = *l;
	pthread_mutex_unlock(&lock);
	for (unsigned i = 0; i < n; i++)
		each[i].fn(each[i].data, level, text, strlen(text));
}

void logs_tell_now(void)
{
	static _Thread_local bool telling;
	if (telling)
		return;
	telling = true;
	while (logs_untold) {
		struct message *m = logs_untold;
		logs_untold = m->next;
		tell(m->level, m->text);
		free(m);
	}
	telling = false;
}

CUresult cuLogsRegisterCallback(CUlogsCallback fn, void *data, CUlogsCallbackHandle *out)
{
	struct listener *l = fn ? malloc(sizeof *l) : NULL;
	if (!fn)
		return CUDA_ERROR_INVALID_VALUE;
	if (!l)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*l = (struct listener){.fn = fn, .data = data};
	pthread_mutex_lock(&lock);
	struct listener **end = &listeners;
	unsigned n = 0;
	for (; *end; end = &(*end)->next)
		n++;
	if (n < LISTENERS)
		*end = l;
	pthread_mutex_unlock(&lock);
	if (n >= LISTENERS) {
		free(l);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (out)
		*out = (CUlogsCallbackHandle)l;
	return CUDA_SUCCESS;
}

CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle h)
{
	struct listener *gone = NULL;
	pthread_mutex_lock(&lock);
	for (struct listener **l = &listeners; *l; l = &(*l)->next)
		if ((void *)*l == (void *)h) {
			gone = *l;
			*l = gone->next;
			break;
		}
	pthread_mutex_unlock(&lock);
	free(gone);
	return gone ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLogsCurrent(CUlogIterator *out, unsigned flags)
{
	(void)flags; /* none means anything yet, and none is refused */
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	*out = count;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

/* The lines from the iterator on that are still there: the newest that fit, with their end. False: none
 * does. */
static bool collect(CUlogIterator *it, char *to, size_t room, size_t *n)
{
	pthread_mutex_lock(&lock);
	unsigned end = count, from = it ? *it : 0;
	size_t used = 0;
	if (from > end)
		from = end;
	if (end - from > LINES)
		from = end - LINES;
	unsigned first = end;
	while (first > from && used + strlen(line[(first - 1) % LINES]) + 2 <= room)
		used += strlen(line[--first % LINES]) + 1;
	bool fits = first < end || from == end;
	*n = 0;
	if (room)
		*to = 0;
	for (unsigned i = first; i < end; i++)
		*n += (size_t)sprintf(to + *n, "%s\n", line[i % LINES]);
	if (it && fits)
		*it = end;
	pthread_mutex_unlock(&lock);
	return fits;
}

CUresult cuLogsDumpToMemory(CUlogIterator *it, char *to, size_t *n, unsigned flags)
{
	if (!to || !n || flags)
		return CUDA_ERROR_INVALID_VALUE;
	return collect(it, to, *n < MEMORY_MOST ? *n : MEMORY_MOST, n) ? CUDA_SUCCESS
									: CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLogsDumpToFile(CUlogIterator *it, const char *path, unsigned flags)
{
	static const size_t room = (size_t)LINES * (LINE_BYTES + 1);
	if (!path || flags)
		return CUDA_ERROR_INVALID_VALUE;
	char *text = malloc(room);
	FILE *f = text ? fopen(path, "we") : NULL;
	size_t n = 0;
	CUresult r = !text ? CUDA_ERROR_OUT_OF_MEMORY : !f ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	if (!r) {
		collect(it, text, room, &n);
		if (fwrite(text, 1, n, f) != n)
			r = CUDA_ERROR_OPERATING_SYSTEM;
	}
	if (f && fclose(f) && !r)
		r = CUDA_ERROR_OPERATING_SYSTEM;
	free(text);
	return r;
}
