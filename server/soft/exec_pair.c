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
