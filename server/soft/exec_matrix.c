/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix instructions: fragments are gathered from the registers of the warp, multiplied in double or 64-bit
 * integers, and spread again. The layout of mma is the one PTX prescribes; that of wmma is the engine's own:
 * element e of a matrix, row by row, in lane e / (elements / 32).
 *
 * Thread rule: a handler touches only its warp and device memory. */
#include "server/soft/exec_matrix.h"
#include "server/soft/check.h"
#include "server/soft/lane_bits.h"
#include "server/soft/lane_half.h"
#include "server/soft/lane_int.h"
#include "server/soft/lane_small.h"

enum { ILLEGAL_ADDRESS = 700, MISALIGNED_ADDRESS = 716, MAX_SIDE = 64 };

static unsigned bits_of(unsigned t)
{
	return t == T_U4 || t == T_S4 ? 4 : t == T_B1 ? 1 : t == T_TF32 ? 32 : ptx_type_bytes(t) * 8;
}

static uint64_t *where(struct warp *w, const struct fragment *f, unsigned bit, uint32_t lane, unsigned *shift)
{
	if (bits_of(f->type) == 64) {
		*shift = 0;
		return &REG(w, uint64_t, f->slot[bit / 64])[lane];
	}
	*shift = bit % 32;
	return NULL;
}

static uint64_t get_raw(struct warp *w, const struct fragment *f, unsigned i, uint32_t lane)
{
	unsigned b = bits_of(f->type), bit = i * b, shift;
	uint64_t *p = where(w, f, bit, lane, &shift);
	if (p)
		return *p;
	uint32_t v = REG(w, uint32_t, f->slot[bit / 32])[lane] >> shift;
	return b == 32 ? v : v & ((1u << b) - 1);
}

static void put_raw(struct warp *w, const struct fragment *f, unsigned i, uint32_t lane, uint64_t v)
{
	unsigned b = bits_of(f->type), bit = i * b, shift;
	uint64_t *p = where(w, f, bit, lane, &shift);
	if (p) {
		*p = v;
		return;
	}
	uint32_t *q = &REG(w, uint32_t, f->slot[bit / 32])[lane],
		 mask = b == 32 ? ~0u : ((1u << b) - 1) << shift;
	*q = (*q & ~mask) | ((uint32_t)v << shift & mask);
}

static double as_double(unsigned t, uint64_t v)
{
	switch (t) {
	case T_F16: return h2f((uint32_t)v);
	case T_BF16: return b2f((uint32_t)v);
	case T_TF32: return bits_f32((uint32_t)v & ~0x1fffu);
	case T_F32: return bits_f32((uint32_t)v);
	case T_E4M3: return e4m32f((uint32_t)v);
	case T_E5M2: return e5m22f((uint32_t)v);
	default: return bits_f64(v);
	}
}

static int64_t as_int(unsigned t, uint64_t v)
{
	switch (t) {
	case T_S8: return (int8_t)v;
	case T_U8: return (uint8_t)v;
	case T_S4: return (int64_t)(v << 60) >> 60;
	case T_U4: return (int64_t)(v & 15);
	case T_B1: return (int64_t)(v & 1);
	default: return (int32_t)v;
	}
}

double matrix_number(unsigned t, uint64_t v)
{
	bool integer = t == T_S8 || t == T_U8 || t == T_S4 || t == T_U4 || t == T_B1 || t == T_S32;
	return integer ? (double)as_int(t, v) : as_double(t, v);
}

/* Row and column of element i of a lane. Returns false past the end of the matrix. */
static bool place(const struct matrix_op *x, int which, unsigned type, unsigned i, uint32_t lane,
	unsigned *row, unsigned *col)
{
	unsigned rows = which == FRAG_B ? x->k : x->m,
			cols = which == FRAG_A ? x->k / (x->sparse ? 2 : 1) : x->n,
		 b = bits_of(type), each = b >= 32 ? 1 : 32 / b;
	if (!x->fixed) {
		unsigned share = rows * cols / LANES, e = lane * share + i;
		if (i >= share)
			return false;
		*row = e / cols;
		*col = e % cols;
		return true;
	}
	unsigned group = lane >> 2, quad = lane & 3, q = i / each, j = i % each;
	if (which == FRAG_A) {
		unsigned low = x->m == 16 ? q & 1 : 0, high = x->m == 16 ? q >> 1 : q;
		*row = group + 8 * low;
		*col = quad * each + j + high * 4 * each;
	} else if (which == FRAG_B) {
		*row = quad * each + j + q * 4 * each;
		*col = group;
	} else {
		*row = group + (x->m == 16 ? 8 * (i >> 1) : 0);
		*col = quad * 2 + (i & 1);
	}
	return *row < rows && *col < cols;
}

static unsigned elements(const struct fragment *f)
{
	unsigned b = bits_of(f->type);
	return b >= 32 ? f->n : f->n * (32 / b);
}

/* Where the element in that column of a sparse A belongs. A group of columns (4; 2 of 32 bits; 8 of 4 bits,
 * which come in pairs) has two indices of two bits. Those of 8 and fewer bits fill a word for each row; of
 * others, a word has 16 bits for two rows. */
static unsigned spread(struct warp *w, const struct matrix_op *x, unsigned row, unsigned col)
{
	unsigned b = bits_of(x->a.type), each = b == 4 ? 4 : b == 32 ? 1 : 2, group = col / each,
			in = col % each;
	uint32_t lane = 4 * (row % 8), shift;
	if (b <= 8) {
		lane += 2 * (x->selector + group / 8u) + row / 8;
		shift = group % 8 * 4;
	} else {
		unsigned units = x->k * (b == 32 ? 2u : 1u) / 16;
		lane += x->selector * units + group / 4;
		shift = row / 8 * 16 + group % 4 * 4;
	}
	uint32_t nibble = REG(w, uint32_t, x->metadata)[lane & 31] >> shift & 15;
	if (b == 32)
		return 2 * group + (nibble >> 1 & 1);
	if (b == 4)
		return 8 * group + 2 * (in < 2 ? nibble & 3 : nibble >> 2) + in % 2;
	return 4 * group + (in ? nibble >> 2 : nibble & 3);
}

static void gather(
	struct warp *w, const struct matrix_op *x, int which, const struct fragment *f, double *d, int64_t *n)
{
	bool part = which == FRAG_A && x->sparse;
	unsigned cols = which == FRAG_A ? x->k : x->n, row, col;
	for (unsigned e = 0; part && e < (unsigned)x->m * x->k; e++) {
		if (d)
			d[e] = 0;
		else
			n[e] = 0;
	}
	for (uint32_t l = 0; l < LANES; l++)
		for (unsigned i = 0; i < elements(f); i++)
			if (place(x, which, f->type, i, l, &row, &col)) {
				uint64_t v = get_raw(w, f, i, l);
				if (part)
					col = spread(w, x, row, col);
				if (d)
					d[row * cols + col] = as_double(f->type, v);
				else
					n[row * cols + col] = as_int(f->type, v);
			}
}

static uint64_t rounded(unsigned t, double v)
{
	switch (t) {
	case T_F16: return d2h(v);
	case T_F32: {
		float f = (float)v;
		return f != f ? 0x7fffffff : f32_bits(f);
	}
	default: return f64_bits(v);
	}
}

static void multiply_float(struct warp *w, const struct matrix_op *x)
{
	double a[MAX_SIDE * MAX_SIDE], b[MAX_SIDE * MAX_SIDE], c[MAX_SIDE * MAX_SIDE];
	gather(w, x, FRAG_A, &x->a, a, NULL);
	gather(w, x, FRAG_B, &x->b, b, NULL);
	gather(w, x, FRAG_C, &x->c, c, NULL);
	for (unsigned i = 0; i < x->m; i++)
		for (unsigned j = 0; j < x->n; j++) {
			double s = c[i * x->n + j];
			for (unsigned k = 0; k < x->k; k++)
				s = __builtin_fma(a[i * x->k + k], b[k * x->n + j], s);
			c[i * x->n + j] = s;
		}
	unsigned row, col;
	for (uint32_t l = 0; l < LANES; l++)
		for (unsigned i = 0; i < elements(&x->d); i++)
			if (place(x, FRAG_C, x->d.type, i, l, &row, &col))
				put_raw(w, &x->d, i, l, rounded(x->d.type, c[row * x->n + col]));
}

static void multiply_int(struct warp *w, const struct matrix_op *x)
{
	int64_t a[MAX_SIDE * MAX_SIDE], b[MAX_SIDE * MAX_SIDE], c[MAX_SIDE * MAX_SIDE];
	gather(w, x, FRAG_A, &x->a, NULL, a);
	gather(w, x, FRAG_B, &x->b, NULL, b);
	gather(w, x, FRAG_C, &x->c, NULL, c);
	for (unsigned i = 0; i < x->m; i++)
		for (unsigned j = 0; j < x->n; j++)
			for (unsigned k = 0; k < x->k; k++)
				c[i * x->n + j] += x->bit == BIT_XOR ? a[i * x->k + k] ^ b[k * x->n + j]
								     : a[i * x->k + k] * b[k * x->n + j];
	unsigned row, col;
	for (uint32_t l = 0; l < LANES; l++)
		for (unsigned i = 0; i < elements(&x->d); i++)
			if (place(x, FRAG_C, x->d.type, i, l, &row, &col)) {
				int64_t v = c[row * x->n + col];
				put_raw(w, &x->d, i, l,
					(uint32_t)(x->saturate ? sat_s32(v) : (int32_t)(uint32_t)v));
			}
}

/* Where element i of a lane is in its product, which the lanes 4 q to 4 q + 3 and those 16 above share. */
static void quad_place(const struct matrix_op *x, int which, unsigned type, unsigned i, uint32_t lane,
		unsigned *row,
	unsigned *col)
{
	unsigned in = lane & 3, upper = lane >= 16 ? 4 : 0;
	if (which == FRAG_A) {
		*row = (x->a_column ? i : in) + upper;
		*col = x->a_column ? in : i;
	} else if (which == FRAG_B) {
		*row = x->b_row ? in : i;
		*col = (x->b_row ? i : in) + upper;
	} else if (type == T_F16) {
		*row = in + upper;
		*col = i;
	} else {
		*row = (lane & 1) + (i & 2) + upper;
		*col = (i & 4) + (lane & 2) + (i & 1);
	}
}

/* mma.m8n8k4 of halves: four products of 8 by 8 by 4. */
static void multiply_quads(struct warp *w, const struct matrix_op *x)
{
	const struct fragment *f[3] = {&x->a, &x->b, &x->c};
	for (unsigned q = 0; q < 4; q++) {
		double m[3][8][8];
		unsigned row, col;
		for (uint32_t k = 0; k < 8; k++) {
			uint32_t l = q * 4 + (k & 3) + (k & 4) * 4;
			for (int which = 0; which < 3; which++)
				for (unsigned i = 0; i < (which == FRAG_C ? 8u : 4u); i++) {
					quad_place(x, which, f[which]->type, i, l, &row, &col);
					m[which][row][col] =
							as_double(f[which]->type, get_raw(w, f[which], i, l));
				}
		}
		for (unsigned i = 0; i < 8; i++)
			for (unsigned j = 0; j < 8; j++)
				for (unsigned k = 0; k < 4; k++)
					m[2][i][j] = __builtin_fma(m[0][i][k], m[1][k][j], m[2][i][j]);
		for (uint32_t k = 0; k < 8; k++) {
			uint32_t l = q * 4 + (k & 3) + (k & 4) * 4;
			for (unsigned i = 0; i < 8; i++) {
				quad_place(x, FRAG_C, x->d.type, i, l, &row, &col);
				put_raw(w, &x->d, i, l, rounded(x->d.type, m[2][row][col]));
			}
		}
	}
}

const struct op *x_mma(struct warp *w, const struct op *o)
{
	const struct matrix_op *x = o->p;
	unsigned t = x->a.type;
	if (x->quads)
		multiply_quads(w, x);
	else if (t == T_F16 || t == T_BF16 || t == T_TF32 || t == T_F64 || t == T_E4M3 || t == T_E5M2)
		multiply_float(w, x);
	else
		multiply_int(w, x);
	return o + 1;
}

/* The bytes at an address of the warp's own spaces, or NULL. */
static uint8_t *bytes_at(struct warp *w, bool shared, uint64_t at, uint64_t n)
{
	uint64_t lo = shared ? 0 : w->mem_lo, end = shared ? w->shared_size : w->mem_hi;
	if (at < lo || at > end || end - at < n)
		return NULL;
	return shared ? w->shared + at : (uint8_t *)at;
}

static uint64_t address(struct warp *w, bool shared, uint32_t slot, int64_t offset, uint32_t lane)
{
	return shared ? (uint32_t)(REG(w, uint32_t, slot)[lane] + (uint32_t)offset)
		      : REG(w, uint64_t, slot)[lane] + (uint64_t)offset;
}

static const struct op *move_fragment(struct warp *w, const struct op *o, bool load)
{
	const struct matrix_op *x = o->p;
	const struct fragment *f = &x->d;
	w->event = EV_NONE;
	uint32_t first = (uint32_t)__builtin_ctz(w->mask);
	unsigned rows = x->which == FRAG_B ? x->k : x->m, cols = x->which == FRAG_A ? x->k : x->n,
		 b = bits_of(f->type), row, col;
	uint64_t base = address(w, x->shared, x->address, x->offset, first);
	uint64_t stride =
		x->stride == UINT32_MAX ? (x->column ? rows : cols) : REG(w, uint32_t, x->stride)[first];
	for (uint32_t l = 0; l < LANES; l++)
		for (unsigned i = 0; i < elements(f); i++) {
			if (!place(x, x->which, f->type, i, l, &row, &col)) {
				if (load)
					put_raw(w, f, i, l, 0);
				continue;
			}
			uint64_t e = x->column ? col * stride + row : row * stride + col;
			uint8_t *p = bytes_at(w, x->shared, base + e * b / 8, b < 8 ? 1 : b / 8);
			if (!p)
				return warp_fault(w, o, ILLEGAL_ADDRESS);
			if ((uint64_t)p & (b < 8 ? 0 : b / 8 - 1))
				return warp_fault(w, o, MISALIGNED_ADDRESS);
			if (check_on() && !check_inside(w, o, l, (uint64_t)p, b < 8 ? 1 : b / 8,
					load ? CHECK_READ : CHECK_WRITE)) {
				if (w->event == EV_FAULT)
					return STOP;
				continue;
			}
			uint64_t v = 0;
			if (!load) {
				v = get_raw(w, f, i, l);
				memcpy(p, &v, b / 8);
				continue;
			}
			memcpy(&v, p, b < 8 ? 1 : b / 8);
			put_raw(w, f, i, l, b < 8 ? v >> (e * b % 8) & ((1u << b) - 1) : v);
		}
	return o + 1;
}

const struct op *x_wmma_load(struct warp *w, const struct op *o)
{
	return move_fragment(w, o, true);
}

const struct op *x_wmma_store(struct warp *w, const struct op *o)
{
	return move_fragment(w, o, false);
}

/* ldmatrix and stmatrix: lane 8 i + r has the address of row r of matrix i; x->column: transposed. */
static const struct op *rows(struct warp *w, const struct op *o, bool load)
{
	const struct matrix_op *x = o->p;
	const struct fragment *f = &x->d;
	w->event = EV_NONE;
	for (unsigned i = 0; i < f->n; i++) {
		uint16_t m[8][8];
		uint8_t *p[8];
		for (uint32_t r = 0; r < 8; r++) {
			p[r] = bytes_at(
				w, x->shared, address(w, x->shared, x->address, x->offset, i * 8 + r), 16);
			if (!p[r])
				return warp_fault(w, o, ILLEGAL_ADDRESS);
			if ((uint64_t)p[r] & 15)
				return warp_fault(w, o, MISALIGNED_ADDRESS);
			if (check_on() && !check_inside(w, o, i * 8 + r, (uint64_t)p[r], 16,
					load ? CHECK_READ : CHECK_WRITE) &&
				w->event == EV_FAULT)
				return STOP;
			memcpy(m[r], p[r], 16);
		}
		for (uint32_t l = 0; l < LANES; l++) {
			uint32_t *v = &REG(w, uint32_t, f->slot[i])[l], a = l / 4, b = l % 4 * 2;
			uint16_t *lo = x->column ? &m[b][a] : &m[a][b],
				 *hi = x->column ? &m[b + 1][a] : &m[a][b + 1];
			if (load)
				*v = *lo | (uint32_t)*hi << 16;
			else
				*lo = (uint16_t)*v, *hi = (uint16_t)(*v >> 16);
		}
		for (uint32_t r = 0; !load && r < 8; r++)
			memcpy(p[r], m[r], 16);
	}
	return o + 1;
}

const struct op *x_ldmatrix(struct warp *w, const struct op *o)
{
	return rows(w, o, true);
}

const struct op *x_stmatrix(struct warp *w, const struct op *o)
{
	return rows(w, o, false);
}

const struct op *x_movmatrix(struct warp *w, const struct op *o)
{
	uint16_t m[8][8];
	for (uint32_t l = 0; l < LANES; l++) {
		uint32_t v = REG(w, uint32_t, o->a)[l];
		m[l / 4][l % 4 * 2] = (uint16_t)v;
		m[l / 4][l % 4 * 2 + 1] = (uint16_t)(v >> 16);
	}
	for (uint32_t l = 0; l < LANES; l++)
		REG(w, uint32_t, o->d)[l] = m[l % 4 * 2][l / 4] | (uint32_t)m[l % 4 * 2 + 1][l / 4] << 16;
	return o + 1;
}
