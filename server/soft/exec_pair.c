/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors that other threads watch (ld.relaxed.v2, st.volatile.v4, ...): 8 or 16 bytes of a lane in one
 * access, so that nobody sees half of one. Programs publish a value together with the word that says it is
 * there.
 *
 * Thread rule: a handler touches only the warp it is given, and device memory as the kernel says. */
#include "server/soft/exec_pair.h"
#include <emmintrin.h>
#include <string.h>
#include "server/soft/memory.h"

enum { ILLEGAL_ADDRESS = 700, MISALIGNED_ADDRESS = 716 };

/* 16 bytes at a multiple of 16 are one access on every processor with AVX; older ones may need two. */
static void copy(void *to, const void *from, unsigned bytes)
{
	if (bytes == 8)
		__atomic_store_n((uint64_t *)to, __atomic_load_n((const uint64_t *)from, __ATOMIC_ACQUIRE),
			__ATOMIC_RELEASE);
	else
		_mm_store_si128((__m128i *)to, _mm_load_si128((const __m128i *)from));
}

/* d: where the old value goes, its upper half x bytes behind; b: the value; c: CAS: what is stored when b is
 * there, or NONE; y: a shared address. The upper halves of b and c are a slot behind. */
__attribute__((target("cx16"))) const struct op *x_atom_pair(struct warp *w, const struct op *o)
{
	enum { HALF = 8 * LANES };
	FOR_LANES(w, l)
	{
		uint64_t at = o->y ? (uint32_t)(REG(w, uint32_t, o->a)[l] + (uint32_t)o->imm)
				   : REG(w, uint64_t, o->a)[l] + (uint64_t)o->imm;
		uint64_t lo = o->y ? 0 : w->mem_lo, end = o->y ? w->shared_size : w->mem_hi;
		if ((at < lo || at > end || end - at < 16) && (o->y || soft_reach(&at, 1, 16)))
			return warp_fault(w, o, ILLEGAL_ADDRESS);
		if (at & 15)
			return warp_fault(w, o, MISALIGNED_ADDRESS);
		unsigned __int128 *p = o->y ? (void *)(w->shared + at) : (void *)at;
		unsigned __int128 b = REG(w, uint64_t, o->b)[l] |
				      (unsigned __int128)REG(w, uint64_t, o->b + HALF)[l] << 64,
				  old = 0, seen;
		if (o->c != UINT32_MAX) {
			unsigned __int128 c = REG(w, uint64_t, o->c)[l] |
					      (unsigned __int128)REG(w, uint64_t, o->c + HALF)[l] << 64;
			old = __sync_val_compare_and_swap(p, b, c);
		} else {
			while ((seen = __sync_val_compare_and_swap(p, old, b)) != old)
				old = seen;
		}
		REG(w, uint64_t, o->d)[l] = (uint64_t)old;
		REG(w, uint64_t, o->d + o->x)[l] = (uint64_t)(old >> 64);
	}
	return o + 1;
}

const struct op *x_pair(struct warp *w, const struct op *o)
{
	bool load = o->x & PAIR_LOAD;
	unsigned each = o->y, n = o->x & PAIR_COUNT, bytes = n * each;
	const uint32_t slots[4] = {o->d, o->b, o->c, o->e};
	FOR_LANES(w, l)
	{
		_Alignas(16) uint8_t block[16];
		uint64_t at = REG(w, uint64_t, o->a)[l] + (uint64_t)o->imm;
		if ((at < w->mem_lo || at > w->mem_hi || w->mem_hi - at < bytes) && soft_reach(&at, 1, bytes))
			return warp_fault(w, o, ILLEGAL_ADDRESS);
		if (at & (bytes - 1))
			return warp_fault(w, o, MISALIGNED_ADDRESS);
		if (load)
			copy(block, (const void *)at, bytes);
		for (unsigned k = 0; k < n; k++) {
			if (slots[k] == UINT32_MAX)
				continue;
			uint8_t *r = w->r + slots[k] + l * each;
			if (load)
				memcpy(r, block + k * each, each);
			else
				memcpy(block + k * each, r, each);
		}
		if (!load)
			copy((void *)at, block, bytes);
	}
	return o + 1;
}
