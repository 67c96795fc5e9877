/* SPDX-License-Identifier: Apache-2.0 */
/* Atomic operations, one lane after the other in rising order. Device memory is shared with other workers and
 * with the host, so each one is an atomic operation of the host; order is sequential, which is more than PTX
 * asks for.
 *
 * Thread rule: a handler touches only its warp and device memory. */
#include "server/soft/exec_atom.h"
#include "server/soft/exec.h"
#include "server/soft/memory.h"
#include "server/soft/lane_bits.h"
#include "server/soft/lane_float.h"
#include "server/soft/lane_half.h"

enum { ILLEGAL_ADDRESS = 700, MISALIGNED_ADDRESS = 716 };

static uint64_t integer(uint32_t op, unsigned t, uint64_t old, uint64_t v, uint64_t cmp)
{
	unsigned bits = ptx_type_bytes(t) * 8;
	bool sign = t == T_S32 || t == T_S64;
	int64_t so = bits == 64 ? (int64_t)old : (int32_t)old, sv = bits == 64 ? (int64_t)v : (int32_t)v;
	switch (op) {
	case ATOM_ADD: return old + v;
	case ATOM_AND: return old & v;
	case ATOM_OR: return old | v;
	case ATOM_XOR: return old ^ v;
	case ATOM_MIN: return sign ? (so < sv ? old : v) : old < v ? old : v;
	case ATOM_MAX: return sign ? (so > sv ? old : v) : old > v ? old : v;
	case ATOM_INC: return old >= v ? 0 : old + 1;
	case ATOM_DEC: return old == 0 || old > v ? v : old - 1;
	case ATOM_EXCH: return v;
	default: return old == cmp ? v : old;
	}
}

static uint32_t half(uint32_t op, unsigned t, uint32_t a, uint32_t b)
{
	bool f16 = t == T_F16 || t == T_F16X2;
	float x = f16 ? h2f(a & 0xffff) : b2f(a & 0xffff), y = f16 ? h2f(b & 0xffff) : b2f(b & 0xffff);
	float r = op == ATOM_MIN ? fmin_f32(x, y) : op == ATOM_MAX ? fmax_f32(x, y) : x + y;
	return f16 ? f2h(r) : f2b(r);
}

static uint64_t updated(uint32_t op, unsigned t, uint64_t old, uint64_t v, uint64_t cmp)
{
	if (op == ATOM_EXCH || op == ATOM_CAS)
		return integer(op, t, old, v, cmp);
	switch (t) {
	case T_F32: {
		float r = bits_f32((uint32_t)old) + bits_f32((uint32_t)v);
		return r != r ? 0x7fffffff : f32_bits(r);
	}
	case T_F64: return f64_bits(bits_f64(old) + bits_f64(v));
	case T_F16:
	case T_BF16: return half(op, t, (uint32_t)old, (uint32_t)v);
	case T_F16X2:
	case T_BF16X2:
		return half(op, t, (uint32_t)old, (uint32_t)v) |
		       half(op, t, (uint32_t)(old >> 16), (uint32_t)(v >> 16)) << 16;
	default: return integer(op, t, old, v, cmp);
	}
}

#define CASES(T)                                                                                             \
	static uint64_t on_##T(uint32_t op, unsigned t, T *p, uint64_t v, uint64_t cmp)                      \
	{                                                                                                    \
		T old = __atomic_load_n(p, __ATOMIC_RELAXED);                                                \
		switch (op) {                                                                                \
		case ATOM_EXCH: return __atomic_exchange_n(p, (T)v, __ATOMIC_SEQ_CST);                       \
		case ATOM_CAS:                                                                               \
			old = (T)cmp;                                                                        \
			__atomic_compare_exchange_n(                                                         \
				p, &old, (T)v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                   \
			return old;                                                                          \
		case ATOM_ADD:                                                                               \
			if (t != T_F32 && t != T_F64 && t != T_F16 && t != T_BF16 && t != T_F16X2 &&         \
				t != T_BF16X2)                                                               \
				return __atomic_fetch_add(p, (T)v, __ATOMIC_SEQ_CST);                        \
		}                                                                                            \
		while (!__atomic_compare_exchange_n(                                                         \
			p, &old, (T)updated(op, t, old, v, cmp), false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) \
			;                                                                                    \
		return old;                                                                                  \
	}
CASES(uint16_t)
CASES(uint32_t)
CASES(uint64_t)

/* Additions to shared memory, which only this thread touches: histograms live on them. */
static const struct op *shared_add(struct warp *w, const struct op *o)
{
	const uint32_t *a = REG(w, uint32_t, o->a), *b = REG(w, uint32_t, o->b);
	uint32_t *d = o->d == UINT32_MAX ? NULL : REG(w, uint32_t, o->d), imm = (uint32_t)o->imm;
	FOR_LANES(w, l)
	{
		uint64_t at = (uint32_t)(a[l] + imm);
		if (at + 4 > w->shared_size)
			return warp_fault(w, o, ILLEGAL_ADDRESS);
		if (at & 3)
			return warp_fault(w, o, MISALIGNED_ADDRESS);
		uint32_t *p = (uint32_t *)(w->shared + at), v = b[l], old = *p;
		*p = old + v;
		if (d)
			d[l] = old;
	}
	return o + 1;
}

uint64_t atom_one(uint32_t op, unsigned type, void *p, uint64_t v, uint64_t cmp)
{
	switch (ptx_type_bytes(type)) {
	case 2: return on_uint16_t(op, type, p, v, cmp);
	case 4: return on_uint32_t(op, type, p, v, cmp);
	default: return on_uint64_t(op, type, p, v, cmp);
	}
}

const struct op *x_atom(struct warp *w, const struct op *o)
{
	if (o->x == ATOM_ADD && (o->y == (T_U32 | ATOM_SHARED) || o->y == (T_S32 | ATOM_SHARED)))
		return shared_add(w, o);
	unsigned t = o->y & 255, bytes = ptx_type_bytes(t);
	bool shared = o->y & ATOM_SHARED;
	uint64_t lo = shared ? 0 : w->mem_lo, end = shared ? w->shared_size : w->mem_hi;
	FOR_LANES(w, l)
	{
		uint64_t at = shared ? (uint32_t)(REG(w, uint32_t, o->a)[l] + (uint32_t)o->imm)
				     : REG(w, uint64_t, o->a)[l] + (uint64_t)o->imm;
		if ((at < lo || at > end || end - at < bytes) && (shared || soft_reach(&at, 1, bytes)))
			return warp_fault(w, o, ILLEGAL_ADDRESS);
		if (at & (bytes - 1))
			return warp_fault(w, o, MISALIGNED_ADDRESS);
		void *p = shared ? w->shared + at : (void *)at;
		uint64_t v = bytes == 8 ? REG(w, uint64_t, o->b)[l] : REG(w, uint32_t, o->b)[l], c = 0, old;
		if (o->c != UINT32_MAX) { /* compare and swap: b is compared, c is stored */
			c = v;
			v = bytes == 8 ? REG(w, uint64_t, o->c)[l] : REG(w, uint32_t, o->c)[l];
		}
		old = atom_one(o->x, t, p, v, c);
		if (o->d == UINT32_MAX)
			continue;
		if (bytes == 8)
			REG(w, uint64_t, o->d)[l] = old;
		else
			REG(w, uint32_t, o->d)[l] = (uint32_t)old;
	}
	return o + 1;
}
