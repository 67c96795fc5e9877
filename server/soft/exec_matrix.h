/* SPDX-License-Identifier: Apache-2.0 */
/* What matrix and asynchronous operations carry beside their slots.
 *
 * Thread rule: constant once decoded. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum { MATRIX_SLOTS = 16 };
enum { FRAG_A, FRAG_B, FRAG_C };
enum { BIT_NONE, BIT_XOR, BIT_AND };

struct fragment {
	uint8_t n, type;
	uint32_t slot[MATRIX_SLOTS];
};
struct matrix_op {
	uint16_t m, n, k;
	bool fixed; /* mma: the layout that PTX prescribes; wmma: the engine's own */
	bool saturate;
	bool quads, a_column, b_row; /* mma.m8n8k4 of halves: four products, and the layouts of A and B */
	uint8_t bit; /* of single bits: BIT_... */
	bool sparse; /* A has half of its elements; which, say the lanes that `selector` names */
	uint8_t selector;
	uint32_t metadata; /* slot */
	struct fragment d, a, b, c;
	/* loads and stores */
	uint8_t which; /* FRAG_* */
	bool column, shared;
	uint32_t address, stride; /* slots; stride UINT32_MAX: none */
	int64_t offset;
};

/* The value of an element of that type (enum ptx_type). */
double matrix_number(unsigned type, uint64_t bits);

enum {
	MBAR_INIT,
	MBAR_INVAL,
	MBAR_ARRIVE,
	MBAR_DROP,
	MBAR_EXPECT,
	MBAR_ARRIVE_EXPECT,
	MBAR_COMPLETE,
	MBAR_TEST,
	MBAR_PARITY,
	MBAR_COUNT,
	MBAR_ASYNC
};
/* Bytes that a barrier object has been waiting for have come. */
void mbarrier_complete(uint8_t *p, uint32_t bytes);
