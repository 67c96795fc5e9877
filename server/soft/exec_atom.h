/* SPDX-License-Identifier: Apache-2.0 */
/* What the x and y fields of an atomic operation mean.
 *
 * Thread rule: constants only. */
#pragma once
#include <stdint.h>

enum { ATOM_ADD, ATOM_AND, ATOM_OR, ATOM_XOR, ATOM_MIN, ATOM_MAX, ATOM_INC, ATOM_DEC, ATOM_EXCH, ATOM_CAS };
enum { ATOM_SHARED = 256 }; /* in y, beside the type */
/* One atomic operation on aligned memory; returns the old value. cmp: what ATOM_CAS compares with. */
uint64_t atom_one(uint32_t op, unsigned type, void *p, uint64_t v, uint64_t cmp);
