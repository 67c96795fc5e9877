/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous copies, which are done at once, and the barriers that are objects in shared memory. Such an
 * object holds, from bit 0: 20 bits of expected arrivals, 20 bits of pending ones, 22 bits of pending bytes,
 * one unused bit and the phase.
 *
 * Thread rule: a handler touches only its warp and device memory. */
#include "server/soft/exec_matrix.h"
#include "server/soft/check.h"
#include <string.h>

enum { ILLEGAL_ADDRESS = 700, MISALIGNED_ADDRESS = 716, COUNT_BITS = 20, TX_BITS = 22 };

static uint8_t *shared_at(
	struct warp *w, const struct op *o, uint32_t slot, int64_t off, uint32_t l, uint64_t n, bool shared)
{
	uint64_t at = shared ? (uint32_t)(REG(w, uint32_t, slot)[l] + (uint32_t)off)
			     : REG(w, uint64_t, slot)[l] + (uint64_t)off;
	uint64_t lo = shared ? 0 : w->mem_lo, end = shared ? w->shared_size : w->mem_hi;
	int bad = at < lo || at > end || end - at < n ? ILLEGAL_ADDRESS
		  : at & (n - 1)                      ? MISALIGNED_ADDRESS
						      : 0;
	if (bad) {
		warp_fault(w, o, bad);
		return NULL;
	}
	return shared ? w->shared + at : (uint8_t *)at;
}

/* In checked mode: may this access be made? It ends the launch where that is due. */
static bool checked(struct warp *w, const struct op *o, uint32_t l, const uint8_t *p, uint64_t n,
		unsigned kind)
{
	w->event = EV_NONE;
	return !check_on() || check_inside(w, o, l, (uint64_t)p, (unsigned)n, kind);
}

/* d: destination (shared), a: source (global), b: slot of the bytes to read or NONE, c: slot of an ignore
 * predicate or NONE, x: size; imm and y: offsets */
const struct op *x_cp_async(struct warp *w, const struct op *o)
{
	FOR_LANES(w, l)
	{
		uint32_t n = o->b == UINT32_MAX ? o->x : REG(w, uint32_t, o->b)[l];
		if (o->c != UINT32_MAX && REG(w, int32_t, o->c)[l])
			n = 0;
		n = n < o->x ? n : o->x;
		uint8_t *to = shared_at(w, o, o->d, (int32_t)o->y, l, o->x, true), *from = NULL;
		if (to && n)
			from = shared_at(w, o, o->a, o->imm, l, o->x, false);
		if (!to || (n && !from))
			return STOP;
		if ((n && !checked(w, o, l, from, n, CHECK_READ)) ||
				!checked(w, o, l, to, o->x, CHECK_WRITE)) {
			if (w->event == EV_FAULT)
				return STOP;
			continue;
		}
		if (n)
			memcpy(to, from, n);
		memset(to + n, 0, o->x - n);
	}
	return o + 1;
}

struct mbar {
	uint32_t expected, pending;
	int32_t tx;
	uint32_t phase;
};

static struct mbar unpack(uint64_t v)
{
	return (struct mbar){(uint32_t)v & ((1 << COUNT_BITS) - 1),
		(uint32_t)(v >> COUNT_BITS) & ((1 << COUNT_BITS) - 1),
		(int32_t)((int64_t)(v << 2) >> (64 - TX_BITS)), (uint32_t)(v >> 63)};
}

static uint64_t packed(struct mbar m)
{
	uint64_t count = (1 << COUNT_BITS) - 1;
	return (m.expected & count) | (m.pending & count) << COUNT_BITS |
	       ((uint64_t)(uint32_t)m.tx & ((1u << TX_BITS) - 1)) << 2 * COUNT_BITS | (uint64_t)m.phase << 63;
}

static void settle(struct mbar *m)
{
	if (m->pending || m->tx)
		return;
	m->phase ^= 1;
	m->pending = m->expected;
}

void mbarrier_complete(uint8_t *p, uint32_t bytes)
{
	uint64_t v;
	memcpy(&v, p, 8);
	struct mbar m = unpack(v);
	m.tx -= (int32_t)bytes;
	settle(&m);
	v = packed(m);
	memcpy(p, &v, 8);
}

/* a: address, b: count, bytes, state or parity (a slot or NONE), d: state or predicate (or NONE), x: what, y:
 * shared address */
const struct op *x_mbarrier(struct warp *w, const struct op *o)
{
	bool missed = false;
	check_fence(w);
	if (o->x == MBAR_COUNT) {
		FOR_LANES(w, l)
		REG(w, uint32_t, o->d)[l] = unpack(REG(w, uint64_t, o->b)[l]).pending;
		return o + 1;
	}
	FOR_LANES(w, l)
	{
		uint8_t *p = shared_at(w, o, o->a, o->imm, l, 8, o->y);
		if (!p)
			return STOP;
		if (!checked(w, o, l, p, 8,
			    CHECK_ATOMIC | (o->x == MBAR_INIT ? CHECK_WRITE : CHECK_READ | CHECK_WRITE)) &&
			w->event == EV_FAULT)
			return STOP;
		uint64_t v;
		memcpy(&v, p, 8);
		struct mbar m = unpack(v);
		uint32_t k = o->b == UINT32_MAX ? 1 : REG(w, uint32_t, o->b)[l];
		switch (o->x) {
		case MBAR_INIT: m = (struct mbar){.expected = k, .pending = k}; break;
		case MBAR_ARRIVE:
			m.pending -= k;
			settle(&m);
			break;
		case MBAR_DROP:
			m.pending -= k;
			m.expected -= k;
			settle(&m);
			break;
		case MBAR_EXPECT: m.tx += (int32_t)k; break;
		case MBAR_ARRIVE_EXPECT:
			m.tx += (int32_t)k;
			m.pending--;
			settle(&m);
			break;
		case MBAR_COMPLETE:
			m.tx -= (int32_t)k;
			settle(&m);
			break;
		case MBAR_TEST:
		case MBAR_PARITY: {
			uint32_t phase =
				o->x == MBAR_PARITY ? k & 1 : (uint32_t)(REG(w, uint64_t, o->b)[l] >> 63);
			bool done = m.phase != phase;
			missed |= !done;
			REG(w, int32_t, o->d)[l] = -(int32_t)done;
			continue;
		}
		default: /* invalidated, or an arrival that the same operation undoes */ break;
		}
		uint64_t after = packed(m);
		memcpy(p, &after, 8);
		if (o->d != UINT32_MAX)
			REG(w, uint64_t, o->d)[l] = v;
	}
	check_fence(w);
	if (missed) /* the program will ask again: others first */
		return warp_stop(w, o, EV_SLEEP);
	return o + 1;
}
