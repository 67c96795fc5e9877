/* SPDX-License-Identifier: Apache-2.0 */
/* What the driver tells by itself: messages of its log and notices about devices go to the program, whose
 * callbacks they are for; the settings of core dumps can be read.
 *
 * Thread rule: the serve functions as exec.h; callbacks run on any thread and call no driver function. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "server/serve.h"
#include "wire/limits.h"
#include "cuda.calls.h"

#define LOG_BYTES (64u << 10) /* of a whole log */
#define SETTING_BYTES 1024u /* of a core dump's setting: the path, with its end */

/* ---- the log */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned listeners; /* callbacks that the program has */
static CUlogsCallbackHandle listening;

static void message(void *session, CUlogLevel level, char *text, size_t n)
{
	session_log(session, level, text, n);
}

/* One callback of ours serves all of the program's. */
CUresult serve_cuLogsRegisterCallback(struct exec *x)
{
	CUresult r = CUDA_SUCCESS;

	if (!get_end(&x->in))
		return SERVE_BAD;
	pthread_mutex_lock(&lock);
	if (!listeners)
		r = drv.cuLogsRegisterCallback(message, x->session, &listening);
	if (!r)
		listeners++;
	pthread_mutex_unlock(&lock);
	return r;
}

CUresult serve_cuLogsUnregisterCallback(struct exec *x)
{
	CUresult r = CUDA_SUCCESS;

	if (!get_end(&x->in))
		return SERVE_BAD;
	pthread_mutex_lock(&lock);
	if (!listeners)
		r = CUDA_ERROR_INVALID_VALUE;
	else if (!--listeners)
		r = drv.cuLogsUnregisterCallback(listening);
	pthread_mutex_unlock(&lock);
	return r;
}

/* [has an iterator, it, room, flags] -> [iterator, bytes], with an error, too; bulk: the text with its end */
CUresult serve_cuLogsDumpToMemory(struct exec *x)
{
	bool has = get_bool(&x->in);
	CUlogIterator iterator = (CUlogIterator)get_u64(&x->in);
	size_t room = get_u64(&x->in), n = room;
	unsigned flags = (unsigned)get_u64(&x->in);

	if (!get_end(&x->in) || room > LOG_BYTES)
		return SERVE_BAD;
	char *text = exec_alloc(x, room + 1);

	if (!text)
		return SERVE_BAD;
	CUresult r = drv.cuLogsDumpToMemory(has ? &iterator : NULL, text, &n, flags);

	if (n > room)
		n = room;
	put_u64(&x->out, iterator);
	put_u64(&x->out, n);
	x->bulk = text;
	x->bulk_len = r ? 0 : n + (n < room);
	return r;
}

/* ---- notices */

struct notice {
	struct notice *next;
	struct session *session;
	uint64_t upcall;
	CUasyncCallbackHandle handle;
};
static struct notice *notices;

static void notice(CUasyncNotificationInfo *info, void *arg, CUasyncCallbackHandle handle)
{
	const struct notice *n = arg;
	uint64_t values[UPCALL_VALUES] = {info->type, info->info.overBudget.bytesOverBudget};

	(void)handle;
	session_upcall_with(n->session, n->upcall, values);
}

/* [device, upcall] -> [handle] */
CUresult serve_cuDeviceRegisterAsyncNotification(struct exec *x)
{
	CUdevice device = (CUdevice)get_i64(&x->in);
	uint64_t upcall = get_u64(&x->in);

	if (!get_end(&x->in))
		return SERVE_BAD;
	struct notice *n = malloc(sizeof *n);

	if (!n)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*n = (struct notice){.session = x->session, .upcall = upcall};
	CUresult r = drv.cuDeviceRegisterAsyncNotification(device, notice, n, &n->handle);

	if (r) {
		free(n);
		return r;
	}
	pthread_mutex_lock(&lock);
	n->next = notices;
	notices = n;
	pthread_mutex_unlock(&lock);
	exec_put_handle(x, HANDLE_CUasyncCallbackHandle, n->handle);
	return r;
}

/* [device, handle] */
CUresult serve_cuDeviceUnregisterAsyncNotification(struct exec *x)
{
	CUdevice device = (CUdevice)get_i64(&x->in);
	CUasyncCallbackHandle handle = exec_handle(x, HANDLE_CUasyncCallbackHandle);
	struct notice *gone = NULL;

	if (!get_end(&x->in))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	CUresult r = drv.cuDeviceUnregisterAsyncNotification(device, handle);

	if (r)
		return r;
	exec_drop(x, HANDLE_CUasyncCallbackHandle, handle);
	pthread_mutex_lock(&lock);
	for (struct notice **at = &notices; *at && !gone; at = &(*at)->next)
		if ((*at)->handle == handle) {
			gone = *at;
			*at = gone->next;
			break;
		}
	pthread_mutex_unlock(&lock);
	free(gone);
	return r;
}

/* ---- core dumps: [setting, wanted, room] -> [size], bulk: the value */

static CUresult serve_setting(struct exec *x, CUresult (*get)(CUcoredumpSettings, void *, size_t *))
{
	CUcoredumpSettings which = (CUcoredumpSettings)get_i64(&x->in);
	bool wanted = get_bool(&x->in);
	size_t size = get_u64(&x->in), room = size;
	uint8_t *value;

	if (!get_end(&x->in) || room > LIMIT_STRING)
		return SERVE_BAD;
	value = exec_alloc(x, (room < SETTING_BYTES ? SETTING_BYTES : room) + 1);
	if (!value)
		return SERVE_BAD;
	CUresult r = get(which, wanted ? value : NULL, &size);

	if (r)
		return r;
	put_u64(&x->out, size);
	if (wanted) {
		x->bulk = value;
		x->bulk_len = size < room ? size : room;
	}
	return r;
}

CUresult serve_cuCoredumpGetAttribute(struct exec *x)
{
	return serve_setting(x, drv.cuCoredumpGetAttribute);
}

CUresult serve_cuCoredumpGetAttributeGlobal(struct exec *x)
{
	return serve_setting(x, drv.cuCoredumpGetAttributeGlobal);
}
