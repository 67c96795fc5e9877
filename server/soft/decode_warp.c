/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding of what the lanes of a warp do together: shuffles, votes, matches, reductions.
 *
 * Thread rule: the caller holds the module's lock. */
#include "server/soft/decode.h"
#include "server/soft/exec_warp.h"

/* In front of a .sync operation: waits for the lanes that the mask names. Nothing to do for a full warp. */
static uint32_t rendezvous(struct decoder *d, const struct ptx_operand *mask)
{
	uint32_t s = source(d, mask, T_B32, 4);
	struct op *o = emit_x(d, x_sync);
	o->fn = x_nop;
	o->a = s;
	return s;
}

static void shuffle(struct decoder *d)
{
	const struct ptx_insn *i = d->i;
	static const uint8_t known[] = {MOD_SYNC, MOD_UP, MOD_DOWN, MOD_BFLY, MOD_IDX};
	bool dual = i->nop && i->op[0].dual, sync = has(d, MOD_SYNC);
	unsigned at = dual ? 2 : 1;
	if (i->nop != at + 3u + sync || !only_mods(i->m, known, sizeof known) ||
		ptx_type_bytes(i->m->types[0]) != 4) {
		uncover(d);
		return;
	}
	if (sync)
		rendezvous(d, &i->op[at + 3]);
	uint32_t a = source(d, &i->op[at], T_B32, 4), b = source(d, &i->op[at + 1], T_B32, 4),
		 c = source(d, &i->op[at + 2], T_B32, 4);
	uint32_t dst = target(d, &i->op[0], 4, false), p = NONE;
	if (dual && !(i->op[1].kind == OP_REG && !d->uses[i->op[1].reg]))
		p = target(d, &i->op[1], 4, false);
	struct op *o = emit3(d,
		has(d, MOD_UP)     ? "shfl_up"
		: has(d, MOD_DOWN) ? "shfl_down"
		: has(d, MOD_BFLY) ? "shfl_bfly"
				   : "shfl_idx",
		dst, a, b, c);
	o->e = p;
}

static void vote(struct decoder *d)
{
	const struct ptx_insn *i = d->i;
	static const uint8_t known[] = {MOD_SYNC, MOD_ALL, MOD_ANY, MOD_UNI, MOD_BALLOT};
	bool sync = has(d, MOD_SYNC);
	if (i->nop != 2u + sync || !only_mods(i->m, known, sizeof known)) {
		uncover(d);
		return;
	}
	uint32_t m = sync ? rendezvous(d, &i->op[2]) : NONE;
	uint32_t a = source(d, &i->op[1], T_PRED, 4), dst = target(d, &i->op[0], 4, false);
	struct op *o = emit_x(d, x_vote);
	o->d = dst;
	o->a = a;
	o->b = m;
	o->x = has(d, MOD_ALL)   ? VOTE_ALL
	       : has(d, MOD_ANY) ? VOTE_ANY
	       : has(d, MOD_UNI) ? VOTE_UNI
				 : VOTE_BALLOT;
}

static void match(struct decoder *d)
{
	const struct ptx_insn *i = d->i;
	static const uint8_t known[] = {MOD_SYNC, MOD_ALL, MOD_ANY};
	bool dual = i->nop && i->op[0].dual;
	unsigned at = dual ? 2 : 1;
	if (i->nop != at + 2u || !only_mods(i->m, known, sizeof known)) {
		uncover(d);
		return;
	}
	uint32_t m = rendezvous(d, &i->op[at + 1]);
	unsigned w = lane_bytes(i->m->types[0]);
	uint32_t a = source(d, &i->op[at], i->m->types[0], w), dst = target(d, &i->op[0], 4, false),
		 p = dual ? target(d, &i->op[1], 4, false) : NONE;
	struct op *o = emit_x(d, x_match);
	o->d = dst;
	o->a = a;
	o->b = m;
	o->e = p;
	o->x = has(d, MOD_ALL);
	o->y = w;
}

static void reduce(struct decoder *d)
{
	const struct ptx_insn *i = d->i;
	static const uint8_t known[] = {
		MOD_SYNC, MOD_ADD, MOD_MIN, MOD_MAX, MOD_AND, MOD_OR, MOD_XOR, MOD_ABS, MOD_NAN2};
	if (i->nop != 3 || !only_mods(i->m, known, sizeof known)) {
		uncover(d);
		return;
	}
	uint32_t m = rendezvous(d, &i->op[2]);
	uint32_t a = source(d, &i->op[1], T_B32, 4), dst = target(d, &i->op[0], 4, false);
	struct op *o = emit_x(d, x_redux);
	o->d = dst;
	o->a = a;
	o->b = m;
	o->x = has(d, MOD_ADD)   ? REDUX_ADD
	       : has(d, MOD_MIN) ? REDUX_MIN
	       : has(d, MOD_MAX) ? REDUX_MAX
	       : has(d, MOD_AND) ? REDUX_AND
	       : has(d, MOD_OR)  ? REDUX_OR
				 : REDUX_XOR;
	o->y = i->m->types[0] | (has(d, MOD_ABS) ? REDUX_ABS : 0) | (has(d, MOD_NAN2) ? REDUX_NAN : 0);
}

bool decode_warp(struct decoder *d)
{
	const struct ptx_insn *i = d->i;
	if (op_is(d, "shfl")) {
		shuffle(d);
	} else if (op_is(d, "vote")) {
		vote(d);
	} else if (op_is(d, "match")) {
		match(d);
	} else if (op_is(d, "redux")) {
		reduce(d);
	} else if (op_is(d, "activemask") && i->nop == 1) {
		uint32_t dst = target(d, &i->op[0], 4, false);
		emit_x(d, x_activemask)->d = dst;
	} else if (op_is(d, "elect") && i->nop == 3 && i->op[0].dual) {
		uint32_t m = rendezvous(d, &i->op[2]), dst = target(d, &i->op[0], 4, false),
			 p = target(d, &i->op[1], 4, false);
		struct op *o = emit_x(d, x_elect);
		o->d = dst;
		o->e = p;
		o->b = m;
	} else if (op_is(d, "fns") && i->nop == 4) {
		uint32_t a = source(d, &i->op[1], T_B32, 4), b = source(d, &i->op[2], T_B32, 4),
			 c = source(d, &i->op[3], T_S32, 4);
		uint32_t dst = target(d, &i->op[0], 4, false);
		struct op *o = emit_x(d, x_fns);
		o->d = dst;
		o->a = a;
		o->b = b;
		o->c = c;
	} else {
		return false;
	}
	return true;
}
