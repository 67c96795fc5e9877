/* SPDX-License-Identifier: Apache-2.0 */
/* How a copy is written into its record, and how its bytes move: along with the record, inside the answer or
 * behind it as data, or in the program's own memory.
 *
 * Thread rule: any thread. */
#include "devshim/copy_parts.h"
#include <stdlib.h>
#include <string.h>
#include "devshim/channel.h"
#include "devshim/range.h"
#include "wire/cuda.h"

/* ---- encoding */

static bool put_side(struct call *c, const struct copy_side *s)
{
	put_u64(&c->out, s->type);
	put_u64(&c->out, s->type == CU_MEMORYTYPE_DEVICE ? s->address : 0);
	if (s->type != CU_MEMORYTYPE_ARRAY)
		put_u64(&c->out, 0);
	else if (!put_handle(c, HANDLE_CUarray, s->array))
		return false;
	put_u64(&c->out, s->x);
	put_u64(&c->out, s->y);
	put_u64(&c->out, s->z);
	put_u64(&c->out, s->lod);
	put_u64(&c->out, s->pitch);
	put_u64(&c->out, s->height);
	return true;
}

static unsigned call_of(const struct copy *k, bool async)
{
	if (!k->linear)
		return async ? CALL_cuMemcpy3DAsync_v2 : CALL_cuMemcpy3D_v2;
	if (k->src.type == CU_MEMORYTYPE_HOST)
		return async ? CALL_cuMemcpyHtoDAsync_v2 : CALL_cuMemcpyHtoD_v2;
	if (k->dst.type == CU_MEMORYTYPE_HOST)
		return async ? CALL_cuMemcpyDtoHAsync_v2 : CALL_cuMemcpyDtoH_v2;
	return async ? CALL_cuMemcpyDtoDAsync_v2 : CALL_cuMemcpyDtoD_v2;
}

CUresult copy_put(struct call *c, const struct copy *k)
{
	if (!put_side(c, &k->src) || !put_side(c, &k->dst))
		return handle_error(HANDLE_CUarray);
	put_u64(&c->out, k->w);
	put_u64(&c->out, k->h);
	put_u64(&c->out, k->d);
	return CUDA_SUCCESS;
}

CUresult copy_encode(
	struct call *c, const struct copy *k, enum copy_mode mode, CUstream stream, uint64_t transfer)
{
	CUresult r = call_begin(c, call_of(k, mode == COPY_ASYNC || mode == COPY_HELD));

	if (r)
		return r;
	put_u64(&c->out, mode);
	if (mode != COPY_ASYNC && mode != COPY_HELD)
		put_u64(&c->out, 0);
	else if (!put_handle(c, HANDLE_CUstream, stream))
		return handle_error(HANDLE_CUstream);
	if (!k->linear) {
		r = copy_put(c, k);
		put_u64(&c->out, transfer);
		return r;
	}
	if (k->dst.type == CU_MEMORYTYPE_DEVICE)
		put_u64(&c->out, k->dst.address);
	if (k->src.type == CU_MEMORYTYPE_DEVICE)
		put_u64(&c->out, k->src.address);
	put_u64(&c->out, k->w);
	if (k->dst.type == CU_MEMORYTYPE_HOST)
		put_u64(&c->out, transfer);
	return CUDA_SUCCESS;
}

/* ---- moving */

/* Sends the bytes along. */
CUresult copy_send_bytes(
	const struct copy *k, enum copy_mode mode, CUstream stream, bool post, uint64_t *seq)
{
	struct call c;
	void *packed = NULL;
	CUresult r = copy_encode(&c, k, mode, stream, 0);

	if (r)
		return r;
	c.bulk = copy_host_base(&k->src);
	c.bulk_len = copy_total(k);
	if (!copy_is_contiguous(k, &k->src)) {
		uint8_t *p = packed = malloc(copy_total(k));

		if (!p)
			return CUDA_ERROR_OUT_OF_MEMORY;
		for (size_t z = 0; z < k->d; z++)
			for (size_t y = 0; y < k->h; y++, p += k->w)
				memcpy(p,
					(const uint8_t *)c.bulk + z * k->src.pitch * k->src.height +
						y * k->src.pitch,
					k->w);
		c.bulk = packed;
	}
	/* Pinned memory may be where the mount sees it; natively, too, an asynchronous copy reads it later.
	 * */
	c.bulk_at = packed ? 0 : range_arena((uintptr_t)c.bulk, c.bulk_len);
	c.bulk_held = mode == COPY_ASYNC || mode == COPY_HELD;
	r = post ? call_post(&c) : copy_wait_for(&c);
	free(packed);
	*seq = c.seq;
	return r;
}

/* Waits for the bytes: small ones are in the answer, others come as data. */
CUresult copy_fetch_bytes(const struct copy *k, enum copy_mode mode, CUstream stream)
{
	struct transfer t = copy_place(k, &k->dst);
	size_t n = copy_total(k);
	struct call c;
	CUresult r;

	/* Inside the answer: fewer requests to the mount. */
	if (n <= channel_answer_room()) {
		bool direct = copy_is_contiguous(k, &k->dst);
		void *p = direct ? t.to : malloc(n);

		r = p ? copy_encode(&c, k, mode, stream, 0) : CUDA_ERROR_OUT_OF_MEMORY;
		if (!r) {
			c.bulk_out = p;
			c.bulk_out_len = n;
			r = copy_wait_for(&c);
			if (!r && !direct)
				transfer_place(&t, 0, p, n);
		}
		if (!direct)
			free(p);
		return r;
	}
	uint64_t id = transfer_new(&t);

	if (!id)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = copy_encode(&c, k, mode, stream, id);
	if (r) {
		transfer_drop(id);
		return r;
	}
	r = call_wait_transfer(&c, id);
	return call_end(&c, r);
}

void copy_in_program(const struct copy *k)
{
	const uint8_t *from = copy_host_base(&k->src);
	uint8_t *to = copy_host_base(&k->dst);

	for (size_t z = 0; z < k->d; z++)
		for (size_t y = 0; y < k->h; y++)
			memmove(to + z * k->dst.pitch * k->dst.height + y * k->dst.pitch,
				from + z * k->src.pitch * k->src.height + y * k->src.pitch, k->w);
}
