/* SPDX-License-Identifier: Apache-2.0 */
/* Bulk copies: cp.async.bulk, its tensor form, and their reductions. They are done when they are issued, and
 * tell their barrier at once.
 *
 * Thread rule: a handler touches only its warp and device memory. */
#include "server/soft/exec_bulk.h"
#include <string.h>
#include "server/soft/check.h"
#include "server/soft/exec.h"
#include "server/soft/exec_atom.h"
#include "server/soft/exec_matrix.h"
#include "server/soft/memory.h"

enum {
	ILLEGAL_ADDRESS = 700,
	ILLEGAL_INSTRUCTION = 715,
	MISALIGNED_ADDRESS = 716,
	ALIGN = 16,
	MAX_BOX = 1 << 20
};

/* Is it memory of the device, or mapped memory of the host? Holes in it are for the fault handler. */
static bool reaches(const struct warp *w, uint64_t at, uint64_t n)
{
	uint64_t base;
	size_t bytes;
	if (at >= w->mem_lo && at <= w->mem_hi && w->mem_hi - at >= n)
		return true;
	return soft_find(at, &base, &bytes) && n <= bytes - (at - base);
}

static void reduce(unsigned op, unsigned type, uint64_t to, const uint8_t *from, uint64_t n)
{
	unsigned each = ptx_type_bytes(type);
	for (uint64_t i = 0; i + each <= n; i += each) {
		uint64_t v = 0;
		memcpy(&v, from + i, each);
		atom_one(op, type, (void *)(to + i), v, 0);
	}
}

static int move(
	struct warp *w, const struct op *o, uint32_t l, unsigned type, uint64_t to, uint64_t from, uint64_t n)
{
	const struct bulk_op *x = o->p;
	if (!reaches(w, to, n) || !reaches(w, from, n))
		return ILLEGAL_ADDRESS;
	if (check_on() && (!check_inside(w, o, l, from, (unsigned)n, CHECK_READ) ||
				  !check_inside(w, o, l, to, (unsigned)n, CHECK_WRITE)))
		return w->event == EV_FAULT ? w->fault : 0;
	if (x->bytes_mask != UINT32_MAX) {
		uint32_t mask = REG(w, uint32_t, x->bytes_mask)[l];
		for (uint64_t k = 0; k < n; k++)
			if (mask >> k % 16 & 1)
				*(uint8_t *)(to + k) = *(const uint8_t *)(from + k);
	} else if (x->reduce)
		reduce(x->reduce - 1u, type, to, (const uint8_t *)from, n);
	else
		memmove((void *)to, (const void *)from, n);
	return 0;
}

static int tell(struct warp *w, uint64_t barrier, uint64_t bytes)
{
	if (!reaches(w, barrier, 8))
		return ILLEGAL_ADDRESS;
	if (barrier & 7)
		return MISALIGNED_ADDRESS;
	mbarrier_complete((uint8_t *)barrier, (uint32_t)bytes);
	return 0;
}

/* ---- boxes of a tensor */

/* Swizzling: the 16-byte units of a row change places by the number of the row. */
static uint64_t swizzled(const struct tensor_map *t, uint64_t at)
{
	if (!t->swizzle)
		return at;
	uint64_t units = (1ull << (t->swizzle - 4)) - 1;
	return at ^ (at >> 7 & units) << 4;
}

/* What elements outside of the tensor are read as. */
static void outside(const struct tensor_map *t, uint8_t *to)
{
	static const uint8_t nan[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f};
	memset(to, 0, t->element);
	if (t->fill)
		memcpy(to, nan + 8 - t->element, t->element);
}

/* Copies one element, which is `far` in global memory, if it is in the tensor, and element e of what begins
 * at `shared`. */
static int element(struct warp *w, const struct op *o, uint32_t l, const struct tensor_map *t, uint64_t far,
		bool in, uint64_t e,
	uint64_t shared, uint64_t base)
{
	const struct bulk_op *x = o->p;
	uint64_t near = base + swizzled(t, shared - base + e * t->element);
	if (in)
		return move(w, o, l, t->type, x->store ? far : near, x->store ? near : far, t->element);
	if (x->store)
		return 0;
	if (!reaches(w, near, t->element))
		return ILLEGAL_ADDRESS;
	if (!check_on() || check_inside(w, o, l, near, t->element, CHECK_WRITE))
		outside(t, (uint8_t *)near);
	else if (w->event == EV_FAULT)
		return w->fault;
	return 0;
}

/* Copies the box at `c` to or from `shared`, an address in the window that begins at `base`. */
static int box(struct warp *w, const struct op *o, uint32_t l, const struct tensor_map *t, const int32_t *c,
	uint64_t shared, uint64_t base, uint64_t *bytes)
{
	uint64_t count = 1, n[5] = {1, 1, 1, 1, 1}, i[5] = {0};
	for (unsigned k = 0; k < t->dimensions; k++) {
		n[k] = (t->box[k] + t->step[k] - 1u) / t->step[k];
		count *= n[k];
	}
	if (!count || count > MAX_BOX)
		return ILLEGAL_INSTRUCTION;
	*bytes = count * t->element;
	for (uint64_t e = 0; e < count; e++) {
		uint64_t far = t->address;
		bool in = true;
		for (unsigned k = 0; k < t->dimensions; k++) {
			int64_t at = c[k] + (int64_t)(i[k] * t->step[k]);
			in &= at >= 0 && at <= t->size[k];
			far += (uint64_t)at * (k ? t->stride[k - 1] : t->element);
		}
		int r = element(w, o, l, t, far, in, e, shared, base);
		if (r)
			return r;
		for (unsigned k = 0; k < t->dimensions && ++i[k] == n[k]; k++)
			i[k] = 0;
	}
	return 0;
}

/* Copies `count` pixels from c on: along a line from its first place to its last, then along the next line,
 * and on into the next image. */
static int pixels(struct warp *w, const struct op *o, uint32_t l, const struct tensor_map *t,
		const int32_t *c, uint64_t shared,
	uint64_t base, uint64_t *bytes)
{
	const struct bulk_op *x = o->p;
	unsigned last = t->dimensions - 1u;
	int64_t at[5], offset[5] = {0};
	for (unsigned k = 0; k <= last; k++) {
		at[k] = c[k];
		if (k && k < last && x->offset[k - 1] != UINT32_MAX)
			offset[k] = REG(w, uint32_t, x->offset[k - 1])[l] & 0xffff;
	}
	*bytes = (uint64_t)t->count * t->channels * t->element;
	for (uint64_t p = 0; p < t->count; p++) {
		uint64_t far = t->address;
		bool in = true;
		for (unsigned k = 1; k <= last; k++) {
			int64_t place = at[k] + offset[k];
			in &= place >= 0 && place <= t->size[k];
			far += (uint64_t)place * t->stride[k - 1];
		}
		for (uint64_t i = 0; i < t->channels; i++) {
			int64_t channel = c[0] + (int64_t)i;
			int r = element(w, o, l, t, far + (uint64_t)channel * t->element,
				in && channel >= 0 && channel <= t->size[0], p * t->channels + i, shared,
				base);
			if (r)
				return r;
		}
		unsigned k = 1;
		while (k < last && (at[k] += t->step[k]) > (int64_t)t->size[k] + t->upper[k - 1]) {
			at[k] = t->lower[k - 1];
			k++;
		}
		at[last] += k == last;
	}
	return 0;
}

static bool sensible(const struct tensor_map *t, const struct bulk_op *x)
{
	bool steps = true;
	for (unsigned k = 0; k < x->dimensions; k++)
		steps &= t->step[k] != 0;
	return t->magic == TENSOR_MAP_MAGIC && t->dimensions == x->dimensions && steps && !t->interleaved &&
	       t->pixels == x->pixels && t->element <= 8 &&
	       t->element && (!t->swizzle || (t->swizzle >= 5 && t->swizzle <= 7)) &&
	       ptx_type_bytes(t->type) == t->element && (!x->reduce || t->element >= 2);
}

/* One copy to one place; *bytes: how many. */
static int copy(struct warp *w, const struct op *o, uint32_t l, uint64_t to, uint64_t from, uint64_t base,
	uint64_t *bytes)
{
	const struct bulk_op *x = o->p;
	if (!x->tensor) {
		*bytes = REG(w, uint32_t, x->bytes)[l];
		return (to | from | *bytes) & (ALIGN - 1) ? MISALIGNED_ADDRESS
							  : move(w, o, l, x->type, to, from, *bytes);
	}
	struct tensor_map t;
	int32_t c[5] = {0};
	uint64_t map = x->store ? to : from, shared = x->store ? from : to;
	if (!reaches(w, map, sizeof t))
		return ILLEGAL_ADDRESS;
	memcpy(&t, (const void *)map, sizeof t);
	for (unsigned k = 0; k < (x->rows ? 5u : x->dimensions); k++)
		c[k] = REG(w, int32_t, x->at[k])[l];
	if (!sensible(&t, x) || (x->rows && t.box[1] != 1))
		return ILLEGAL_INSTRUCTION;
	if (shared & (ALIGN - 1))
		return MISALIGNED_ADDRESS;
	if (x->pixels)
		return pixels(w, o, l, &t, c, shared, base, bytes);
	if (!x->rows)
		return box(w, o, l, &t, c, shared, base, bytes);
	uint64_t sum = 0;
	for (unsigned k = 0; k < 4; k++) {
		int32_t at[5] = {c[0], c[k + 1]};
		int r = box(w, o, l, &t, at, shared + sum, base, bytes);
		if (r)
			return r;
		sum += *bytes;
	}
	*bytes = sum;
	return 0;
}

/* To each block of the mask, at the same place in its shared memory as in the one that is named. */
static int spread(
	struct warp *w, const struct op *o, uint32_t l, uint64_t to, uint64_t from, uint64_t barrier)
{
	const struct bulk_op *x = o->p;
	struct block *b = w->block;
	uint32_t ranks = b->cluster ? b->cluster->n : 1,
		 mask = x->mask == UINT32_MAX ? 0 : REG(w, uint32_t, x->mask)[l];
	uint64_t bytes = 0, end, base = (uint64_t)w->shared, at = x->store ? from : to;
	for (uint32_t k = 0; k < ranks; k++) {
		uint64_t s = cluster_shared(b, k, &end);
		if (at >= s && at < end)
			base = s;
	}
	if (x->mask == UINT32_MAX) {
		int r = copy(w, o, l, to, from, base, &bytes);
		return r || x->barrier == UINT32_MAX ? r : tell(w, barrier, bytes);
	}
	if (mask >> 16 || mask >> ranks)
		return ILLEGAL_INSTRUCTION;
	for (uint32_t k = 0; mask >> k; k++) {
		uint64_t s = cluster_shared(b, k, &end);
		int r = mask >> k & 1 ? copy(w, o, l, to - base + s, from, s, &bytes) : 0;
		if (!r && mask >> k & 1 && x->barrier != UINT32_MAX)
			r = tell(w, barrier - base + s, bytes);
		if (r)
			return r;
	}
	return 0;
}

const struct op *x_bulk(struct warp *w, const struct op *o)
{
	const struct bulk_op *x = o->p;
	FOR_LANES(w, l)
	{
		uint64_t barrier = x->barrier == UINT32_MAX ? 0 : REG(w, uint64_t, x->barrier)[l];
		int r = spread(w, o, l, REG(w, uint64_t, x->to)[l], REG(w, uint64_t, x->from)[l], barrier);
		if (r)
			return warp_fault(w, o, r);
	}
	if (x->barrier != UINT32_MAX)
		check_fence(w); /* who waits for the barrier may read what was brought */
	return o + 1;
}

/* Programs may begin with 128 zeros and give a map field after field. */
static int replace(struct warp *w, const struct op *o, uint32_t l, uint64_t at, uint64_t v)
{
	/* the numbers are not those of CUtensorMapDataType */
	static const uint8_t types[] = {T_U8, T_U16, T_U32, T_S32, T_U64, T_S64, T_F16, T_F32, T_F32, T_F64,
			T_BF16, T_F32,
		T_F32};
	struct tensor_map t;
	if (at % 64)
		return MISALIGNED_ADDRESS;
	if (!reaches(w, at, TENSOR_MAP_BYTES))
		return ILLEGAL_ADDRESS;
	if (check_on() && !check_inside(w, o, l, at, TENSOR_MAP_BYTES, CHECK_READ | CHECK_WRITE))
		return w->event == EV_FAULT ? w->fault : 0;
	memcpy(&t, (const void *)at, sizeof t);
	t.magic = TENSOR_MAP_MAGIC;
	switch (o->x) {
	case MAP_ADDRESS: t.address = v; break;
	case MAP_RANK: t.dimensions = (uint8_t)((v & 7) + 1); break;
	case MAP_BOX: t.box[o->y] = (uint16_t)(((v - 1) & 255) + 1); break;
	case MAP_SIZE: t.size[o->y] = (uint32_t)v - 1; break;
	case MAP_STRIDE: t.stride[o->y] = v & ~15ull; break;
	case MAP_STEP: t.step[o->y] = (uint8_t)(((v - 1) & 7) + 1); break;
	case MAP_TYPE:
		t.type = v < sizeof types ? types[v] : T_NONE;
		t.element = (uint8_t)ptx_type_bytes(t.type);
		break;
	case MAP_INTERLEAVE: t.interleaved = v & 3; break;
	case MAP_SWIZZLE: t.swizzle = v & 3 ? (uint8_t)(4 + (v & 3)) : 0; break;
	default: t.fill = v & 1; break;
	}
	memcpy((void *)at, &t, sizeof t);
	return 0;
}

/* tensormap.replace. a: generic address, b: the value, a slot of 8 bytes, x: which field, y: of which
 * dimension */
const struct op *x_map_replace(struct warp *w, const struct op *o)
{
	FOR_LANES(w, l)
	{
		int r = replace(w, o, l, REG(w, uint64_t, o->a)[l], REG(w, uint64_t, o->b)[l]);
		if (r)
			return warp_fault(w, o, r);
	}
	return o + 1;
}

/* tensormap.cp_fenceproxy. a, b: generic addresses, the same in all lanes */
const struct op *x_map_copy(struct warp *w, const struct op *o)
{
	uint32_t l = (uint32_t)__builtin_ctz(w->mask);
	uint64_t to = REG(w, uint64_t, o->a)[l], from = REG(w, uint64_t, o->b)[l];
	int r = (to | from) % TENSOR_MAP_BYTES
			? MISALIGNED_ADDRESS
		: !reaches(w, to, TENSOR_MAP_BYTES) || !reaches(w, from, TENSOR_MAP_BYTES) ? ILLEGAL_ADDRESS
											   : 0;
	w->event = EV_NONE;
	if (r)
		return warp_fault(w, o, r);
	if (!check_on() || (check_inside(w, o, l, from, TENSOR_MAP_BYTES, CHECK_READ) &&
				   check_inside(w, o, l, to, TENSOR_MAP_BYTES, CHECK_WRITE)))
		memcpy((void *)to, (const void *)from, TENSOR_MAP_BYTES);
	return w->event == EV_FAULT ? STOP : o + 1;
}

static int zeros(struct warp *w, const struct op *o, uint32_t l, uint64_t to, uint64_t n)
{
	if ((to | n) & 7)
		return MISALIGNED_ADDRESS;
	if (!reaches(w, to, n))
		return ILLEGAL_ADDRESS;
	if (check_on() && n && !check_inside(w, o, l, to, (unsigned)n, CHECK_WRITE))
		return w->event == EV_FAULT ? w->fault : 0;
	memset((void *)to, 0, n);
	return 0;
}

/* st.bulk. a: generic address, b: bytes */
const struct op *x_zeros(struct warp *w, const struct op *o)
{
	FOR_LANES(w, l)
	{
		int r = zeros(w, o, l, REG(w, uint64_t, o->a)[l], REG(w, uint64_t, o->b)[l]);
		if (r)
			return warp_fault(w, o, r);
	}
	return o + 1;
}

/* clusterlaunchcontrol.try_cancel: the answer is no. a: generic address of the answer, b: of its barrier; x:
 * in all blocks of the cluster */
const struct op *x_cancel(struct warp *w, const struct op *o)
{
	enum { ANSWER = 16 };
	struct block *b = w->block;
	FOR_LANES(w, l)
	{
		uint64_t to = REG(w, uint64_t, o->a)[l], barrier = REG(w, uint64_t, o->b)[l], end;
		for (uint32_t k = 0; k < (o->x && b->cluster ? b->cluster->n : 1); k++) {
			uint64_t shift = o->x ? cluster_shared(b, k, &end) - (uint64_t)w->shared : 0;
			int r = (to + shift) & (ANSWER - 1) ? MISALIGNED_ADDRESS
							    : zeros(w, o, l, to + shift, ANSWER);
			r = r ? r : tell(w, barrier + shift, ANSWER);
			if (r)
				return warp_fault(w, o, r);
		}
	}
	return o + 1;
}
