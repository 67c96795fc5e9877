/* SPDX-License-Identifier: Apache-2.0 */
/* The linker. The driver writes logs into buffers that must live as long as the linker, so these belong to
 * a table keyed by the linker; so does the linked image's size between the answer that tells it and the
 * one that brings it.
 *
 * Thread rule: as exec.h; `lock` guards the table. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "server/exec.h"
#include "server/serve.h"
#include "wire/image.h"
#include "wire/limits.h"
#include "cuda.calls.h"

#define LINKERS 1024 /* of one session at a time */

struct linker {
	struct linker *next;
	CUlinkState state;
	struct jit jit;
	void *image; /* the driver's */
	size_t size;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct linker *linkers;
static unsigned count;

static struct linker *find(CUlinkState s)
{
	struct linker *l;

	pthread_mutex_lock(&lock);
	for (l = linkers; l && l->state != s; l = l->next) {
	}
	pthread_mutex_unlock(&lock);
	return l;
}

static void linker_free(struct linker *l)
{
	if (!l)
		return;
	free(l->jit.log[0]);
	free(l->jit.log[1]);
	free(l);
}

/* Logs that outlive the record. */
static bool own_logs(struct linker *l)
{
	for (int k = 0; k < 2; k++) {
		if (!l->jit.log[k])
			continue;
		char *own = calloc(1, LIMIT_JIT_LOG + 1);

		for (unsigned i = 0; i < l->jit.n; i++)
			if (l->jit.value[i] == l->jit.log[k])
				l->jit.value[i] = own;
		l->jit.log[k] = own;
		if (!own)
			return false;
	}
	return true;
}

/* [options] -> [linker] */
CUresult serve_cuLinkCreate_v2(struct exec *x)
{
	struct linker *l = calloc(1, sizeof *l);
	CUresult r;

	if (!l || !get_jit(x, &l->jit) || !get_end(&x->in)) {
		free(l);
		return SERVE_BAD;
	}
	if (count >= LINKERS || !own_logs(l)) {
		linker_free(l);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	r = drv.cuLinkCreate_v2(l->jit.n, l->jit.option, l->jit.value, &l->state);
	if (r) {
		linker_free(l);
		return r;
	}
	pthread_mutex_lock(&lock);
	l->next = linkers;
	linkers = l;
	count++;
	pthread_mutex_unlock(&lock);
	exec_put_handle(x, HANDLE_CUlinkState, l->state);
	return r;
}

/* [linker, type, name, options], bulk */
CUresult serve_cuLinkAddData_v2(struct exec *x)
{
	CUlinkState s = exec_handle(x, HANDLE_CUlinkState);
	CUjitInputType type = (CUjitInputType)get_i64(&x->in);
	char *name = exec_alloc(x, LIMIT_STRING + 1);
	uint64_t n = x->frame.bulk_len;
	struct jit j;
	CUresult r = SERVE_BAD;

	if (!name)
		return SERVE_BAD;
	if (!get_nil(&x->in))
		get_text(&x->in, name, LIMIT_STRING + 1);
	if (!get_jit(x, &j) || !get_end(&x->in) || !n || n > LIMIT_IMAGE)
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	uint8_t *data = malloc(n + 1);

	if (!data)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (exec_bulk(x, data, n)) {
		data[n] = 0;
		if (n >= 4 && u32(data) == IMAGE_WRAPPER_MAGIC) /* a program's addresses: nothing is there
		                                                 * here */
			r = CUDA_ERROR_INVALID_IMAGE;
		else
			r = drv.cuLinkAddData_v2(
				s, type, data, n, *name ? name : NULL, j.n, j.option, j.value);
	}
	free(data);
	struct linker *l = r == SERVE_BAD ? NULL : find(s);

	if (l) /* what is wrong with an input is told when it is added */
		put_jit(x, &l->jit);
	return r;
}

/* [linker, transfer]: with transfer 0 the logs and the size, else the bytes. */
CUresult serve_cuLinkComplete(struct exec *x)
{
	CUlinkState s = exec_handle(x, HANDLE_CUlinkState);
	uint64_t transfer = get_u64(&x->in);
	struct linker *l;
	CUresult r;

	if (!get_end(&x->in))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	l = find(s);
	if (!l)
		return CUDA_ERROR_INVALID_HANDLE;
	if (transfer)
		return l->image && exec_send_data(x, transfer, 0, l->image, l->size) ? CUDA_SUCCESS
										     : SERVE_BAD;
	r = drv.cuLinkComplete(s, &l->image, &l->size);
	put_jit(x, &l->jit);
	if (r)
		l->image = NULL;
	else
		put_u64(&x->out, l->size);
	return r;
}

CUresult serve_cuLinkDestroy(struct exec *x)
{
	CUlinkState s = exec_handle(x, HANDLE_CUlinkState);
	struct linker **at, *l = NULL;

	if (!get_end(&x->in))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	CUresult r = drv.cuLinkDestroy(s);

	if (r)
		return r;
	pthread_mutex_lock(&lock);
	for (at = &linkers; *at && (*at)->state != s; at = &(*at)->next) {
	}
	if ((l = *at)) {
		*at = l->next;
		count--;
	}
	pthread_mutex_unlock(&lock);
	linker_free(l);
	return r;
}
