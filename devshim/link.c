/* SPDX-License-Identifier: Apache-2.0 */
/* The linker. Inputs travel whole; the linked image comes back as a transfer of its own and lives until
 * the linker is destroyed, as the driver promises. Compiler options' logs are filled when an input is added
 * and when the link completes.
 *
 * Thread rule: a linker is used by one thread at a time. */
#include <stdlib.h>
#include <string.h>
#include "devshim/call.h"
#include "devshim/context.h"
#include "devshim/handle.h"
#include "devshim/module.h"
#include "devshim/transfer.h"
#include "wire/cuda.h"
#include "wire/limits.h"
#include "cuda.calls.h"

struct linked {
	struct linked *next;
	size_t size;
	uint8_t bytes[];
};

struct linker {
	struct jit jit; /* the application's buffers, which it must keep until the end */
	void **told; /* and its values, if there are any that tell something */
	struct linked *images; /* what it was given lives as long as the linker; the latest first */
};

static void linker_dropped(const void *h, void *data)
{
	struct linker *l = data;

	(void)h;
	free(l->jit.options);
	free(l->jit.values);
	for (struct linked *i = l->images, *next; i; i = next) {
		next = i->next;
		free(i);
	}
	free(l);
}

__attribute__((constructor)) static void watch_linkers(void)
{
	handle_on_drop(HANDLE_CUlinkState, linker_dropped);
}

/* Options whose value the driver replaces. */
static bool tells(CUjit_option o)
{
	return o == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES || o == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES ||
	       o == CU_JIT_WALL_TIME;
}

static bool keep_options(struct linker *l, unsigned n, const CUjit_option *options, void *const *values)
{
	l->jit.n = n;
	if (!n)
		return true;
	l->jit.options = malloc(n * sizeof *options);
	l->jit.values = malloc(n * sizeof *values);
	if (!l->jit.options || !l->jit.values)
		return false;
	memcpy(l->jit.options, options, n * sizeof *options);
	memcpy(l->jit.values, values, n * sizeof *values);
	for (unsigned i = 0; i < n; i++)
		if (tells(options[i]))
			l->told = (void **)(uintptr_t)values;
	return true;
}

CUresult cuLinkCreate_v2(
	unsigned int numOptions, CUjit_option *options, void **optionValues, CUlinkState *stateOut)
{
	struct context *ctx;
	struct call c;
	CUresult r = context_check(&ctx);

	if (!r && (!stateOut || (numOptions && (!options || !optionValues))))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = call_begin(&c, CALL_cuLinkCreate_v2);
	if (!r)
		r = put_jit(&c, &(struct jit){numOptions, options, optionValues});
	if (r)
		return r;
	struct linker *l = calloc(1, sizeof *l);
	CUlinkState s = NULL;

	if (!l || !keep_options(l, numOptions, options, optionValues)) {
		r = CUDA_ERROR_OUT_OF_MEMORY;
	} else {
		r = call_wait(&c);
		if (!r)
			s = get_handle(&c, HANDLE_CUlinkState);
		r = call_end(&c, r);
	}
	if (!r && handle_set_data(HANDLE_CUlinkState, s, l)) {
		*stateOut = s;
		return r;
	}
	if (l)
		linker_dropped(NULL, l);
	return r ? r : CUDA_ERROR_OUT_OF_MEMORY;
}

/* The logs so far, into the room that the application gave; their sizes and the time are told at the end,
 * which an error is, too. */
static void take_logs(struct call *c, const struct linker *l, bool end)
{
	void *values[LIMIT_OPTIONS];

	if (c->in.len == c->in.cap || l->jit.n > LIMIT_OPTIONS)
		return;
	if (l->jit.n)
		memcpy(values, l->jit.values, l->jit.n * sizeof *values);
	get_jit(c, &(struct jit){l->jit.n, l->jit.options, values});
	for (unsigned i = 0; end && l->told && i < l->jit.n; i++)
		if (tells(l->jit.options[i]))
			l->told[i] = values[i];
}

static CUresult add(CUlinkState state, CUjitInputType type, const void *data, size_t size, const char *name,
	const struct jit *j)
{
	struct call c;
	CUresult r = call_begin(&c, CALL_cuLinkAddData_v2);

	if (r)
		return r;
	if (!put_handle(&c, HANDLE_CUlinkState, state))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!data || !size || size > LIMIT_IMAGE)
		return CUDA_ERROR_INVALID_VALUE;
	put_i64(&c.out, type);
	put_text(&c.out, name);
	r = put_jit(&c, j);
	if (r)
		return r;
	c.bulk = data;
	c.bulk_len = size;
	r = call_wait(&c);
	struct linker *l = handle_data(HANDLE_CUlinkState, state);

	if (l)
		take_logs(&c, l, r != CUDA_SUCCESS);
	return call_end(&c, r);
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name,
	unsigned int numOptions, CUjit_option *options, void **optionValues)
{
	return add(state, type, data, size, name, &(struct jit){numOptions, options, optionValues});
}

CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path, unsigned int numOptions,
	CUjit_option *options, void **optionValues)
{
	void *bytes = NULL;
	size_t n = 0;
	CUresult r = process_check();

	if (r)
		return r;
	if (!path)
		return CUDA_ERROR_INVALID_VALUE;
	r = read_image_file(path, &bytes, &n);
	if (!r)
		r = add(state, type, bytes, n, path, &(struct jit){numOptions, options, optionValues});
	free(bytes);
	return r;
}

/* First the size and the logs; then the bytes. */
static CUresult complete(CUlinkState state, struct linker *l, uint64_t *size)
{
	struct call c;
	CUresult r = call_begin(&c, CALL_cuLinkComplete);

	if (r)
		return r;
	put_handle(&c, HANDLE_CUlinkState, state);
	put_u64(&c.out, 0);
	r = call_wait(&c);
	take_logs(&c, l, true);
	if (!r)
		*size = get_u64(&c.in);
	return call_end(&c, r);
}

CUresult cuLinkComplete(CUlinkState state, void **cubinOut, size_t *sizeOut)
{
	struct context *ctx;
	struct call c;
	uint64_t size = 0, id;
	CUresult r = context_check(&ctx);

	if (r)
		return r;
	struct linker *l = handle_data(HANDLE_CUlinkState, state);

	if (!l)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!cubinOut)
		return CUDA_ERROR_INVALID_VALUE;
	r = complete(state, l, &size);
	if (r)
		return r;
	struct linked *image = size && size <= LIMIT_IMAGE ? malloc(sizeof *image + size) : NULL;

	id = image ? transfer_new_plain(image->bytes, size) : 0;
	r = id ? call_begin(&c, CALL_cuLinkComplete) : CUDA_ERROR_OUT_OF_MEMORY;
	if (!r) {
		put_handle(&c, HANDLE_CUlinkState, state);
		put_u64(&c.out, id);
		r = call_wait_transfer(&c, id);
		r = call_end(&c, r);
	}
	if (r) {
		free(image);
		return r;
	}
	/* Completed again, a driver gives what it gave. */
	if (l->images && l->images->size == size && !memcmp(l->images->bytes, image->bytes, size)) {
		free(image);
	} else {
		image->size = size;
		image->next = l->images;
		l->images = image;
	}
	*cubinOut = l->images->bytes;
	if (sizeOut)
		*sizeOut = size;
	return r;
}

CUresult cuLinkDestroy(CUlinkState state)
{
	struct call c;
	CUresult r = call_begin(&c, CALL_cuLinkDestroy);

	if (r)
		return r;
	if (!put_handle(&c, HANDLE_CUlinkState, state))
		return CUDA_ERROR_INVALID_HANDLE;
	r = call_wait(&c);
	r = call_end(&c, r);
	if (!r)
		handle_drop(HANDLE_CUlinkState, state);
	return r;
}
