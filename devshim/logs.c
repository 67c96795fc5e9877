/* SPDX-License-Identifier: Apache-2.0 */
/* The log of the server's driver. Its messages come ahead of the answer to the call that they are about,
 * and the program's callbacks run on the thread of that call before it returns, as natively. What the
 * shim refuses by itself is in no log.
 *
 * Thread rule: `lock` guards the lists; callbacks run without it. */
#include "devshim/logs.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "devshim/call.h"
#include "devshim/file.h"
#include "devshim/handle.h"
#include "devshim/process.h"
#include "devshim/upcall.h"
#include "wire/cuda.h"
#include "wire/limits.h"
#include "wire/log.h"
#include "cuda.calls.h"

#define LOG_BYTES (64u << 10) /* of a whole log; the driver keeps 25600 */

struct callback {
	struct callback *next;
	CUlogsCallback fn;
	void *data, *handle;
};
struct message {
	struct message *next;
	CUlogLevel level;
	size_t len;
	char text[];
};

_Atomic unsigned logs_waiting;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct callback *callbacks;
static struct message *messages, **messages_end = &messages;

void logs_take(const uint8_t *p, size_t n)
{
	struct message *m = n ? malloc(sizeof *m + n) : NULL;

	if (!n)
		return;
	if (!m) {
		log_error("memory is short: a message of the driver's log is lost");
		return;
	}
	*m = (struct message){.level = (CUlogLevel)p[0], .len = n - 1};
	memcpy(m->text, p + 1, n - 1);
	m->text[n - 1] = 0;
	pthread_mutex_lock(&lock);
	*messages_end = m;
	messages_end = &m->next;
	atomic_fetch_add(&logs_waiting, 1);
	pthread_mutex_unlock(&lock);
}

static void tell(const struct message *m)
{
	pthread_mutex_lock(&lock);
	for (struct callback *c = callbacks; c;) {
		struct callback now = *c;

		pthread_mutex_unlock(&lock);
		now.fn(now.data, m->level, (char *)m->text, m->len);
		pthread_mutex_lock(&lock);
		/* It may have been taken away meanwhile, or another. */
		for (c = callbacks; c && c->handle != now.handle; c = c->next) {
		}
		c = c ? c->next : NULL;
	}
	pthread_mutex_unlock(&lock);
}

void logs_run_waiting(void)
{
	struct thread *t = thread_self();

	/* Inside a callback already, or a host function: the messages wait for the next answer. */
	if (!t || t->host_function || upcall_inside())
		return;
	t->host_function = true;
	for (;;) {
		pthread_mutex_lock(&lock);
		struct message *m = messages;

		if (m && !(messages = m->next))
			messages_end = &messages;
		if (m)
			atomic_fetch_sub(&logs_waiting, 1);
		pthread_mutex_unlock(&lock);
		if (!m)
			break;
		tell(m);
		free(m);
	}
	t->host_function = false;
}

static CUresult ask(unsigned id)
{
	struct call c;
	CUresult r = call_begin(&c, id);

	if (r)
		return r;
	r = call_wait(&c);
	return call_end(&c, r);
}

/* The server's driver is asked for its messages while the program has a callback. */
CUresult cuLogsRegisterCallback(
	CUlogsCallback callbackFunc, void *userData, CUlogsCallbackHandle *callback_out)
{
	struct callback *c;
	CUresult r = process_check();

	if (r)
		return r;
	if (!callbackFunc)
		return CUDA_ERROR_INVALID_VALUE;
	c = malloc(sizeof *c);
	if (!c)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*c = (struct callback){.fn = callbackFunc, .data = userData};
	c->handle = handle_new(HANDLE_CUlogsCallbackHandle);
	r = c->handle ? ask(CALL_cuLogsRegisterCallback) : CUDA_ERROR_OUT_OF_MEMORY;
	if (r) {
		if (c->handle)
			handle_drop(HANDLE_CUlogsCallbackHandle, c->handle);
		free(c);
		return r;
	}
	if (callback_out)
		*callback_out = c->handle;
	pthread_mutex_lock(&lock);
	struct callback **end = &callbacks;

	while (*end)
		end = &(*end)->next;
	*end = c;
	pthread_mutex_unlock(&lock);
	return r;
}

CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle callback)
{
	struct callback *gone = NULL;
	CUresult r = process_check();

	if (r)
		return r;
	pthread_mutex_lock(&lock);
	for (struct callback **c = &callbacks; *c && !gone; c = &(*c)->next)
		if ((*c)->handle == callback) {
			gone = *c;
			*c = gone->next;
			break;
		}
	pthread_mutex_unlock(&lock);
	if (!gone)
		return CUDA_ERROR_INVALID_VALUE;
	handle_drop(HANDLE_CUlogsCallbackHandle, gone->handle);
	free(gone);
	return ask(CALL_cuLogsUnregisterCallback);
}

/* The driver tells the size with an error, too. */
CUresult cuLogsDumpToMemory(CUlogIterator *iterator, char *buffer, size_t *size, unsigned int flags)
{
	size_t room;
	struct call c;
	CUresult r = call_begin(&c, CALL_cuLogsDumpToMemory);

	if (r)
		return r;
	if (!buffer || !size)
		return CUDA_ERROR_INVALID_VALUE;
	room = *size < LOG_BYTES ? *size : LOG_BYTES;
	put_bool(&c.out, iterator);
	put_u64(&c.out, iterator ? *iterator : 0);
	put_u64(&c.out, room);
	put_u64(&c.out, flags);
	c.bulk_out = buffer;
	c.bulk_out_len = room;
	r = call_wait(&c);
	if (c.in.len < c.in.cap) {
		unsigned next = (unsigned)get_u64(&c.in);

		if (iterator)
			*iterator = next;
		*size = get_u64(&c.in);
	}
	return call_end(&c, r);
}

CUresult cuLogsDumpToFile(CUlogIterator *iterator, const char *pathToFile, unsigned int flags)
{
	struct file f = {.path = pathToFile};
	char *text;
	size_t n = LOG_BYTES;
	CUresult r = process_check();

	if (r)
		return r;
	if (!pathToFile)
		return CUDA_ERROR_INVALID_VALUE;
	text = malloc(LOG_BYTES);
	r = text ? cuLogsDumpToMemory(iterator, text, &n, flags) : CUDA_ERROR_OUT_OF_MEMORY;
	if (!r)
		r = file_write(&f, text, n);
	free(text);
	return file_close(&f, r);
}
