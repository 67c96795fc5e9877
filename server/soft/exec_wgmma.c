/* SPDX-License-Identifier: Apache-2.0 */
/* wgmma: the matrix product of four warps, whose operands lie in shared memory. Each warp makes its own 16
 * rows, when the instruction is issued; none goes on behind wgmma.fence before all four are there, nor behind
 * wgmma.wait_group before all four have issued what it waits for, so that what one of them gives back to be
 * overwritten has been read by all.
 *
 * Thread rule: a handler touches only its warp and its block's shared memory; a block belongs to one
 * thread. */
#include "server/soft/exec_wgmma.h"
#include "server/soft/check.h"
#include "server/soft/exec_matrix.h"
#include "server/soft/lane_bits.h"
#include "server/soft/lane_half.h"
#include "server/soft/lane_int.h"
#include <string.h>

enum { ILLEGAL_ADDRESS = 700, UNIT = 16, ROWS = WGMMA_ROWS / WGMMA_WARPS, MAX_K = 32 };

/* ---- the four warps */

/* Have all of them that live come as far as `n`? */
static bool all_come(const struct warp *w, size_t counter, uint32_t n)
{
	const struct block *b = w->block;
	unsigned first = w->id / WGMMA_WARPS * WGMMA_WARPS;
	for (unsigned k = first; k < first + WGMMA_WARPS && k < b->nwarps; k++) {
		const struct warp *v = &b->warps[k];
		uint32_t count;
		memcpy(&count, (const char *)v + counter, sizeof count);
		if (v->exited != v->exists && (int32_t)(count - n) < 0)
			return false;
	}
	return true;
}

const struct op *x_wgmma_fence(struct warp *w, const struct op *o)
{
	if (!w->group_waits)
		w->group_fences++;
	w->group_waits = !all_come(w, offsetof(struct warp, group_fences), w->group_fences);
	if (w->group_waits)
		return warp_stop(w, o, EV_RETRY);
	check_fence(w);
	return o + 1;
}

const struct op *x_wgmma_commit(struct warp *w, const struct op *o)
{
	w->group_commits++;
	return o + 1;
}

/* x: so many of the last groups may be pending */
const struct op *x_wgmma_wait(struct warp *w, const struct op *o)
{
	if (!all_come(w, offsetof(struct warp, group_commits), w->group_commits - o->x))
		return warp_stop(w, o, EV_RETRY);
	check_fence(w);
	return o + 1;
}

/* ---- matrices in shared memory */

/* What 64 bits say of one: where it begins, and how far units of 16 bytes and groups of 8 are from each
 * other. */
struct layout {
	struct warp *w;
	const struct op *o;
	uint32_t start, leading, stride, phase;
	uint32_t width; /* of the swizzled row: 32, 64, 128 bytes; 16: none */
	bool failed;
};

static struct layout layout_of(struct warp *w, const struct op *o, uint64_t d)
{
	static const uint8_t width[] = {16, 128, 64, 32};
	return (struct layout){.w = w,
		.o = o,
		.start = (uint32_t)(d & 0x3fff) << 4,
		.leading = (uint32_t)(d >> 16 & 0x3fff) << 4,
		.stride = (uint32_t)(d >> 32 & 0x3fff) << 4,
		.phase = (uint32_t)(d >> 49 & 7),
		.width = width[d >> 62]};
}

/* The 16 bytes that are that far from the start; zeros, and failed, where they are outside. */
static void unit(struct layout *x, uint32_t offset, uint8_t to[UNIT])
{
	struct warp *w = x->w;
	uint32_t at = x->start + offset, units = x->width / UNIT - 1;
	at ^= (((at >> 7) - x->phase) & units) << 4;
	memset(to, 0, UNIT);
	if (at + UNIT > w->shared_size) {
		x->failed = true;
		return;
	}
	if (check_on() && !check_inside(w, x->o, 0, (uint64_t)w->shared + at, UNIT, CHECK_READ)) {
		x->failed |= w->event == EV_FAULT;
		return;
	}
	memcpy(to, w->shared + at, UNIT);
}

/* Unit u of the k bytes of row r (of A; of B: column r). */
static void along_k(struct layout *x, unsigned r, unsigned u, uint8_t to[UNIT])
{
	unit(x, r % 8 * x->width + r / 8 * x->stride + u * (x->width == UNIT ? x->leading : UNIT), to);
}

/* Unit u of the rows (8 of them), at place k; elements have 16 bits. */
static void across_k(struct layout *x, unsigned u, unsigned k, uint8_t to[UNIT])
{
	unsigned units = x->width / UNIT;
	if (units == 1)
		unit(x, u * x->stride + k % 8 * UNIT + k / 8 * x->leading, to);
	else
		unit(x, u % units * UNIT + u / units * x->leading + k % 8 * x->width + k / 8 * x->stride, to);
}

static double element(unsigned type, const uint8_t *p, unsigned i)
{
	unsigned n = type == T_TF32 ? 4 : ptx_type_bytes(type);
	uint64_t v = 0;
	memcpy(&v, p + i * n, n);
	return matrix_number(type, v);
}

/* `rows` rows from `first` on; element (r, k) goes to to[r * r_step + k * k_step]. */
static void gather(struct layout *x, unsigned type, bool across, unsigned first, unsigned rows,
		unsigned depth,
	double *to, unsigned r_step, unsigned k_step)
{
	uint8_t u[UNIT];
	unsigned each = UNIT / (type == T_TF32 ? 4 : ptx_type_bytes(type));
	if (across) {
		for (unsigned k = 0; k < depth; k++)
			for (unsigned r = 0; r < rows; r += 8) {
				across_k(x, (first + r) / 8, k, u);
				for (unsigned i = 0; i < 8; i++)
					to[(r + i) * r_step + k * k_step] = element(type, u, i);
			}
		return;
	}
	for (unsigned r = 0; r < rows; r++)
		for (unsigned k = 0; k < depth; k += each) {
			along_k(x, first + r, k / each, u);
			for (unsigned i = 0; i < each; i++)
				to[r * r_step + (k + i) * k_step] = element(type, u, i);
		}
}

/* ---- fragments in registers */

/* Unit u of row r of A, which four lanes hold together. */
static void held(struct warp *w, const struct wgmma_op *x, unsigned r, unsigned u, uint8_t to[UNIT])
{
	for (unsigned l = 0; l < 4; l++)
		memcpy(to + 4 * l, &REG(w, uint32_t, x->a[r / 8 + 2 * u])[r % 8 * 4 + l], 4);
}

static uint32_t rounded(const struct wgmma_op *x, double v)
{
	if (x->d_type == T_S32) {
		int64_t n = (int64_t)v;
		return (uint32_t)(x->saturate ? sat_s32(n) : n);
	}
	float f = (float)v;
	return f != f ? 0x7fffffff : f32_bits(f);
}

/* Element i of a lane lies there. */
static unsigned row_of(uint32_t lane, unsigned i)
{
	return lane / 4 + 8 * (i >> 1 & 1);
}

static unsigned column_of(uint32_t lane, unsigned i)
{
	return lane % 4 * 2 + (i & 1) + i / 4 * 8;
}

typedef double sums[WGMMA_WIDTH];

static void load(struct warp *w, const struct wgmma_op *x, sums *d)
{
	for (uint32_t l = 0; l < LANES; l++)
		for (unsigned i = 0; i < x->n / 2u; i++) {
			bool half = x->d_type == T_F16;
			uint32_t v = REG(w, uint32_t, x->d[half ? i / 2 : i])[l];
			d[row_of(l, i)][column_of(l, i)] =
				matrix_number(x->d_type, half ? v >> (i & 1) * 16 & 0xffff : v);
		}
}

static void store(struct warp *w, const struct wgmma_op *x, sums *d)
{
	for (uint32_t l = 0; l < LANES; l++)
		for (unsigned i = 0; i < x->n / 2u; i++) {
			double v = d[row_of(l, i)][column_of(l, i)];
			if (x->d_type != T_F16) {
				REG(w, uint32_t, x->d[i])[l] = rounded(x, v);
				continue;
			}
			uint32_t *p = &REG(w, uint32_t, x->d[i / 2])[l], shift = (i & 1) * 16;
			*p = (*p & ~(0xffffu << shift)) | d2h(v) << shift;
		}
}

/* ---- the product */

typedef double four __attribute__((vector_size(32)));

/* Products of these types are exact as doubles, and so are sums of integers. */
static void multiply(const struct wgmma_op *x, double a[ROWS][MAX_K], const sums *b, sums *d)
{
	for (unsigned i = 0; i < ROWS; i++)
		for (unsigned k = 0; k < x->k; k++) {
			double v = x->minus ? -a[i][k] : a[i][k];
			four f = {v, v, v, v}, *to = (four *)d[i];
			const four *from = (const four *)b[k];
			for (unsigned j = 0; j < x->n / 4u; j++)
				to[j] += f * from[j];
		}
}

/* Single bits: how many two rows have in common. */
static void common_bits(struct warp *w, const struct wgmma_op *x, struct layout *a, struct layout *b, sums *d)
{
	uint64_t rows[ROWS][4], column[4];
	unsigned first = w->id % WGMMA_WARPS * ROWS;
	for (unsigned i = 0; i < ROWS; i++)
		for (unsigned u = 0; u < 2; u++) {
			if (x->registers)
				held(w, x, i, u, (uint8_t *)&rows[i][2 * u]);
			else
				along_k(a, first + i, u, (uint8_t *)&rows[i][2 * u]);
		}
	for (unsigned j = 0; j < x->n; j++) {
		for (unsigned u = 0; u < 2; u++)
			along_k(b, j, u, (uint8_t *)&column[2 * u]);
		for (unsigned i = 0; i < ROWS; i++)
			for (unsigned k = 0; k < 4; k++)
				d[i][j] += __builtin_popcountll(rows[i][k] & column[k]);
	}
}

static void matrices(struct warp *w, const struct wgmma_op *x, struct layout *la, struct layout *lb, sums *d)
{
	_Alignas(32) double a[ROWS][MAX_K];
	_Alignas(32) sums b[MAX_K];
	uint8_t u[UNIT];
	unsigned each = UNIT / (x->a_type == T_TF32 ? 4 : ptx_type_bytes(x->a_type));
	for (unsigned i = 0; x->registers && i < ROWS; i++)
		for (unsigned k = 0; k < x->k; k++) {
			if (k % each == 0)
				held(w, x, i, k / each, u);
			a[i][k] = element(x->a_type, u, k % each);
		}
	if (!x->registers)
		gather(la, x->a_type, x->a_column, w->id % WGMMA_WARPS * ROWS, ROWS, x->k, a[0], MAX_K, 1);
	gather(lb, x->b_type, x->b_row, 0, x->n, x->k, b[0], 1, WGMMA_WIDTH);
	multiply(x, a, (const sums *)b, d);
}

const struct op *x_wgmma(struct warp *w, const struct op *o)
{
	const struct wgmma_op *x = o->p;
	uint32_t l = (uint32_t)__builtin_ctz(w->mask);
	_Alignas(32) sums d[ROWS];
	struct layout a = layout_of(w, o, x->registers ? 0 : REG(w, uint64_t, x->a[0])[l]),
		      b = layout_of(w, o, REG(w, uint64_t, x->b)[l]);
	w->event = EV_NONE;
	if (x->scale_d == UINT32_MAX ? x->adds : REG(w, int32_t, x->scale_d)[l] != 0)
		load(w, x, d);
	else
		memset(d, 0, sizeof d);
	if (x->a_type == T_B1)
		common_bits(w, x, &a, &b, d);
	else
		matrices(w, x, &a, &b, d);
	if (a.failed || b.failed)
		return w->event == EV_FAULT ? STOP : warp_fault(w, o, ILLEGAL_ADDRESS);
	store(w, x, d);
	return o + 1;
}
