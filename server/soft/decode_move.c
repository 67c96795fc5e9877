/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding of mov: copies, and vectors on one side, which pack and unpack, up to 128 bits.
 *
 * Thread rule: the caller holds the module's lock. */
#include "server/soft/decode.h"

/* mov with a vector on one side: packing and unpacking. */
static void pack(struct decoder *d, unsigned t)
{
	const struct ptx_insn *i = d->i;
	const struct ptx_operand *to = &i->op[0], *from = &i->op[1];
	unsigned w = lane_bytes(t), bytes = ptx_type_bytes(t);
	if (from->kind == OP_VEC && to->kind != OP_VEC) {
		unsigned part = from->n ? bytes / from->n : 0;
		uint32_t s[8];
		if (from->n < 2 || from->n > 4 ||
			(from->n != 2 && !(bytes == 8 && part == 2) && !(bytes == 4 && part == 1))) {
			uncover(d);
			return;
		}
		for (unsigned k = 0; k < from->n; k++)
			s[k] = source(d, &from->vec[k], T_B32, 4);
		uint32_t dst = target(d, to, w, false);
		if (from->n == 2) {
			emit3(d,
				part == 4   ? "pack_b32"
				: part == 2 ? "pack_b16"
					    : "pack_b8",
				dst, s[0], s[1], NONE);
			return;
		}
		uint32_t lo = temp(d, 4), hi = temp(d, 4);
		emit3(d, part == 2 ? "pack_b16" : "pack_b8", lo, s[0], s[1], NONE);
		emit3(d, part == 2 ? "pack_b16" : "pack_b8", hi, s[2], s[3], NONE);
		emit3(d, part == 2 ? "pack_b32" : "pack_b16", dst, lo, hi, NONE);
		return;
	}
	unsigned n = to->n, part = n ? bytes / n : 0;
	if (from->kind == OP_VEC || n < 2 || n > 4 ||
		(n != 2 && !(bytes == 8 && part == 2) && !(bytes == 4 && part == 1))) {
		uncover(d);
		return;
	}
	uint32_t s = source(d, from, t, w);
	if (w == 8) { /* the destination may be a register that the source is made of */
		uint32_t lo = temp(d, 4), hi = temp(d, 4);
		emit3(d, "lo_b32", lo, s, NONE, NONE);
		emit3(d, "hi_b32", hi, s, NONE, NONE);
		for (unsigned k = 0; k < n; k++) {
			uint32_t dst = target(d, &to->vec[k], 4, false),
				 word = (n == 2 ? k : k / 2) ? hi : lo;
			emit3(d, n == 2 ? "mov_b32" : k & 1 ? "hi_b16" : "lo_b16", dst, word, NONE, NONE);
		}
		return;
	}
	uint32_t keep = temp(d, 4);
	emit3(d, "mov_b32", keep, s, NONE, NONE);
	static const char *const byte[] = {"byte0", "byte1", "byte2", "byte3"};
	for (unsigned k = 0; k < n; k++) {
		uint32_t dst = target(d, &to->vec[k], 4, false);
		emit3(d, part == 1 ? byte[k] : k ? "hi_b16" : "lo_b16", dst, keep, NONE, NONE);
	}
}

/* mov.b128: two halves of 64 bits each, packed, unpacked or copied. */
static bool move_pair(struct decoder *d)
{
	const struct ptx_operand *to = &d->i->op[0], *from = &d->i->op[1];
	uint32_t s[2], t[2];
	if (from->kind == OP_VEC && from->n == 2) {
		for (int k = 0; k < 2; k++)
			s[k] = source(d, &from->vec[k], T_B64, 8);
	} else if (from->kind == OP_VEC && from->n == 4) {
		for (int k = 0; k < 2; k++) {
			s[k] = temp(d, 8);
			emit3(d, "pack_b32", s[k], source(d, &from->vec[2 * k], T_B32, 4),
				source(d, &from->vec[2 * k + 1], T_B32, 4), NONE);
		}
	} else if (!pair_slots(d, from, s)) {
		return false;
	}
	if (to->kind == OP_VEC && to->n == 2) {
		for (int k = 0; k < 2; k++)
			t[k] = target(d, &to->vec[k], 8, false);
	} else if (to->kind == OP_VEC && to->n == 4) {
		uint32_t keep[2] = {temp(d, 8), temp(d, 8)};
		for (int k = 0; k < 2; k++)
			emit3(d, "mov_b64", keep[k], s[k], NONE, NONE);
		for (int k = 0; k < 4; k++)
			emit3(d, k & 1 ? "hi_b32" : "lo_b32", target(d, &to->vec[k], 4, false), keep[k / 2],
					NONE, NONE);
		return true;
	} else if (!pair_slots(d, to, t)) {
		return false;
	}
	uint32_t keep = temp(d, 8); /* the first half written may be what the second is read from */
	emit3(d, "mov_b64", keep, s[1], NONE, NONE);
	emit3(d, "mov_b64", t[0], s[0], NONE, NONE);
	emit3(d, "mov_b64", t[1], keep, NONE, NONE);
	return true;
}

bool decode_move(struct decoder *d)
{
	if (!op_is(d, "mov"))
		return false;
	const struct ptx_insn *i = d->i;
	unsigned t = i->m->types[0];
	if (t == T_B128 && i->nop == 2 && !i->m->nmods) {
		if (!move_pair(d))
			uncover(d);
		return true;
	}
	if (i->nop != 2 || !t || i->m->nmods || t == T_B128) {
		uncover(d);
		return true;
	}
	if (i->op[0].kind == OP_VEC || i->op[1].kind == OP_VEC) {
		pack(d, t);
		return true;
	}
	unsigned w = lane_bytes(t);
	uint32_t s = source(d, &i->op[1], t, w), dst = target(d, &i->op[0], w, false);
	emit3(d, t == T_PRED ? "mov_pred" : w == 8 ? "mov_b64" : "mov_b32", dst, s, NONE, NONE);
	return true;
}
