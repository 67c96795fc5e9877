/* SPDX-License-Identifier: Apache-2.0 */
/* What modules, libraries and the linker have in common: where images come from, compiler options, and a
 * load. Of an image that is not small the digest goes first; the bytes follow when the server does not have
 * them. Functions that the answer tells are known from then on, and images that it tells of are loaded by a
 * post.
 *
 * Thread rule: as call.h. */
#include "devshim/module.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "devshim/copy.h"
#include "devshim/device.h"
#include "devshim/function.h"
#include "devshim/handle.h"
#include "devshim/process.h"
#include "devshim/told.h"
#include "devshim/work.h"
#include "wire/digest.h"
#include "wire/limits.h"
#include "wire/log.h"
#include "wire/notes.h"
#include "wire/uncancelled.h"
#include "cuda.calls.h"

#define LIMIT_LOG (20u << 10)

void image_target(struct image_target *t)
{
	const char *force = getenv("CUDA_FORCE_PTX_JIT");
	int n = device_count();

	*t = (struct image_target){.force_ptx = force && atoi(force), .ptx_only = device_is_soft()};
	for (int d = 0; d < n && t->n < sizeof t->cc / sizeof *t->cc; d++)
		t->cc[t->n++] = 10 * device_attribute(d, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0) +
				device_attribute(d, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0);
}

static const CUjit_option log_buffer[2] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER};
static const CUjit_option log_size[2] = {
	CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};

/* The value of an option, or NULL. */
static void **option(const struct jit *j, CUjit_option o)
{
	for (unsigned i = 0; i < j->n; i++)
		if (j->options[i] == o)
			return &j->values[i];
	return NULL;
}

CUresult put_jit(struct call *c, const struct jit *j)
{
	if (j->n > LIMIT_OPTIONS || (j->n && (!j->options || !j->values)))
		return CUDA_ERROR_INVALID_VALUE;
	for (int k = 0; k < 2; k++) {
		void **b = option(j, log_buffer[k]), **s = option(j, log_size[k]);

		if (b && !*b && s && (uint32_t)(uintptr_t)*s)
			return CUDA_ERROR_INVALID_VALUE;
	}
	put_array(&c->out, j->n);
	for (unsigned i = 0; i < j->n; i++) {
		uint64_t v = (uintptr_t)j->values[i];

		switch ((int)j->options[i]) {
		case CU_JIT_GLOBAL_SYMBOL_NAMES:
		case CU_JIT_GLOBAL_SYMBOL_ADDRESSES:
		case CU_JIT_GLOBAL_SYMBOL_COUNT:
		case CU_JIT_REFERENCED_KERNEL_NAMES:
		case CU_JIT_REFERENCED_KERNEL_COUNT:
		case CU_JIT_REFERENCED_VARIABLE_NAMES:
		case CU_JIT_REFERENCED_VARIABLE_COUNT:
			log_warning("compiler option %d is not remoted", (int)j->options[i]);
			return CUDA_ERROR_NOT_SUPPORTED;
		case CU_JIT_INFO_LOG_BUFFER:
		case CU_JIT_ERROR_LOG_BUFFER:
		case CU_JIT_WALL_TIME: v = 0; break;
		}
		put_i64(&c->out, j->options[i]);
		put_u64(&c->out, v);
	}
	return CUDA_SUCCESS;
}

void get_jit(struct call *c, const struct jit *j)
{
	for (int k = 0; k < 2; k++) {
		size_t n = 0;
		const char *log = get_blob(&c->in, &n, LIMIT_LOG);
		bool told = !get_nil(&c->in);
		uint64_t used = told ? get_u64(&c->in) : 0;
		void **b = option(j, log_buffer[k]), **s = option(j, log_size[k]);
		size_t room = s ? (uintptr_t)*s : 0;

		/* A log of no bytes gets its NUL all the same, as from the driver. */
		if (b && *b && s && log) {
			n = n < room ? n : room ? room - 1 : 0;
			memcpy(*b, log, n);
			((char *)*b)[n] = 0;
		}
		if (s && told)
			*s = (void *)(uintptr_t)(used < room ? used : room);
	}
	float wall = (float)get_f64(&c->in);
	void **w = option(j, CU_JIT_WALL_TIME);

	if (w)
		memcpy(w, &wall, sizeof wall);
}

void jit_empty(const struct jit *j)
{
	if (j->n > LIMIT_OPTIONS || (j->n && (!j->options || !j->values)))
		return;
	for (int k = 0; k < 2; k++) {
		void **b = option(j, log_buffer[k]), **s = option(j, log_size[k]);

		if (b && *b && s && *s)
			*(char *)*b = 0;
		if (s)
			*s = NULL;
	}
}

CUresult read_image_file(const char *path, void **bytes, size_t *n)
{
	uncancelled state = uncancelled_begin();
	int saved = errno, fd = open(path, O_RDONLY | O_CLOEXEC);
	CUresult r = CUDA_ERROR_FILE_NOT_FOUND;
	struct stat st;
	char *p = NULL;
	size_t got = 0;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode))
		goto out;
	r = CUDA_ERROR_INVALID_IMAGE;
	if (st.st_size <= 0 || (uint64_t)st.st_size > LIMIT_IMAGE)
		goto out;
	r = CUDA_ERROR_OUT_OF_MEMORY;
	p = malloc((size_t)st.st_size + 1);
	if (!p)
		goto out;
	while (got < (size_t)st.st_size) {
		ssize_t k = read(fd, p + got, (size_t)st.st_size - got);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			break;
		got += (size_t)k;
	}
	if (got < (size_t)st.st_size) {
		/* It cannot be read, or somebody makes it shorter. */
		free(p);
		r = CUDA_ERROR_INVALID_IMAGE;
		goto out;
	}
	p[got] = 0;
	*bytes = p;
	*n = got;
	r = CUDA_SUCCESS;
out:
	if (fd >= 0)
		close(fd);
	errno = saved;
	return r;
}

/* Kind and sizes; then the digest, or the bytes behind the head. */
static void put_image(struct call *c, const struct image *i, const void *bytes, const uint8_t *asked)
{
	put_u64(&c->out, i->kind);
	put_array(&c->out, i->nparts);
	for (unsigned k = 0; k < i->nparts; k++)
		put_u64(&c->out, i->part_size[k]);
	put_bytes(&c->out, asked ? asked : (const uint8_t *)"", asked ? DIGEST : 0);
	if (!asked) {
		c->bulk = bytes;
		c->bulk_len = i->total;
	}
}

static unsigned functions_of(unsigned type)
{
	return type == HANDLE_CUlibrary ? HANDLE_CUkernel : HANDLE_CUfunction;
}

static CUresult load(unsigned id, unsigned type, const struct image *i, const void *bytes,
	const uint8_t *asked, const struct jit *j, void **handle, bool *known)
{
	struct call c;
	CUresult r = call_begin(&c, id);

	if (r)
		return r;
	put_image(&c, i, bytes, asked);
	r = put_jit(&c, j);
	if (r)
		return r;
	put_u64(&c.out, 0);
	c.bulk_out = malloc(NOTES_AHEAD);
	c.bulk_out_len = c.bulk_out ? NOTES_AHEAD : 0;
	if (!c.bulk_out)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = call_wait(&c);
	*known = true;
	if (c.in.len < c.in.cap) {
		*known = get_bool(&c.in);
		c.in.bad |= !*known && !asked;
		if (*known)
			get_jit(&c, j);
	}
	if (!r && *known) {
		*handle = get_handle(&c, type);
		told_functions(&c.in, functions_of(type), *handle);
		c.in.bad |= c.bulk_out_len && !told_images(c.bulk_out, c.bulk_out_len);
	}
	free(c.bulk_out);
	return call_end(&c, r);
}

/* A load that the server can only say yes to: it has read the image, which it took before. What becomes of it
 * all the same is told by the next call that CUDA lets tell it. */
static CUresult post(unsigned id, unsigned type, const struct image *i, const uint8_t *d, uint8_t *entries,
	size_t n, void **handle)
{
	void *h = handle_new(type);
	struct msg told;
	struct call c;
	CUresult r = h ? call_begin(&c, id) : CUDA_ERROR_OUT_OF_MEMORY;

	if (!r) {
		put_image(&c, i, NULL, d);
		put_array(&c.out, 0);
		put_u64(&c.out, (uintptr_t)h);
		r = call_post(&c);
	}
	if (r) {
		if (h)
			handle_drop(type, h);
		return r;
	}
	msg_init(&told, entries, n);
	told_functions(&told, functions_of(type), h);
	*handle = h;
	return r;
}

CUresult image_load(unsigned id, unsigned type, const struct image *i, const struct jit *j, void **handle)
{
	const void *bytes = i->piece[0].p;
	bool keeps = process_server_keeps, ask = keeps && i->total >= IMAGE_ASKED, known = true;
	bool expect = keeps && i->total >= IMAGE_KEPT && !j->n && told_any() && !work_capturing();
	uint8_t d[DIGEST], *entries = NULL;
	void *packed = NULL;
	size_t n = 0;
	CUresult r;

	if (i->npieces > 1) {
		bytes = packed = malloc(i->total);
		if (!packed)
			return CUDA_ERROR_OUT_OF_MEMORY;
		image_pack(i, packed);
	}
	if (ask || expect)
		digest(bytes, i->total, d);
	copy_drain();
	if (expect)
		entries = told_image(d, &n);
	if (entries) {
		r = post(id, type, i, d, entries, n, handle);
	} else {
		r = load(id, type, i, bytes, ask ? d : NULL, j, handle, &known);
		if (!r && !known)
			r = load(id, type, i, bytes, NULL, j, handle, &known);
	}
	free(entries);
	free(packed);
	return r;
}
