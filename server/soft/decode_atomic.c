/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding of atomics and reductions in memory.
 *
 * Thread rule: the caller holds the module's lock. */
#include "server/soft/check.h"
#include "server/soft/decode.h"
#include "server/soft/exec_atom.h"
#include "server/soft/exec_pair.h"

static int operation(const struct decoder *d)
{
	static const struct {
		uint8_t mod, op;
	} t[] = {{MOD_ADD, ATOM_ADD}, {MOD_AND, ATOM_AND}, {MOD_OR, ATOM_OR}, {MOD_XOR, ATOM_XOR},
		{MOD_MIN, ATOM_MIN}, {MOD_MAX, ATOM_MAX}, {MOD_INC, ATOM_INC}, {MOD_DEC, ATOM_DEC},
		{MOD_EXCH, ATOM_EXCH}, {MOD_CAS, ATOM_CAS}};
	for (unsigned k = 0; k < sizeof t / sizeof *t; k++)
		if (has(d, t[k].mod))
			return t[k].op;
	return -1;
}

/* atom.exch.b128 and atom.cas.b128. */
static bool atomic_pair(struct decoder *d, int op)
{
	const struct ptx_insn *i = d->i;
	unsigned values = op == ATOM_CAS ? 2 : 1;
	uint32_t to[2], v[2][2] = {{NONE, NONE}, {NONE, NONE}};
	if (op_is(d, "red") || (op != ATOM_CAS && op != ATOM_EXCH) ||
		i->nop != 2 + values + (has(d, MOD_L2HINT) ? 1u : 0u) || !i->op[1].addr ||
		i->m->nspaces > 1 ||
		!pair_slots(d, &i->op[0], to))
		return false;
	for (unsigned k = 0; k < values; k++)
		if (!pair_slots(d, &i->op[2 + k], v[k]))
			return false;
	struct address a = address_of(d, &i->op[1], i->m->nspaces ? i->m->space[0] : SP_GENERIC);
	emit_check(d, CHECK_READ | CHECK_WRITE | CHECK_ATOMIC | access_order(d) |
			(a.shared ? CHECK_SHARED : 0), 16, 16);
	struct op *o = emit_x(d, x_atom_pair);
	o->d = to[0];
	o->a = a.slot;
	o->b = v[0][0];
	o->c = v[1][0];
	o->imm = a.off;
	o->x = to[1] - to[0];
	o->y = a.shared;
	return true;
}

bool decode_atomic(struct decoder *d)
{
	bool red = op_is(d, "red");
	if (!red && !op_is(d, "atom"))
		return false;
	static const uint8_t known[] = {MOD_RELAXED, MOD_ACQUIRE, MOD_RELEASE, MOD_ACQ_REL, MOD_CTA,
		MOD_CLUSTER, MOD_GPU, MOD_SYS, MOD_ADD, MOD_AND, MOD_OR, MOD_XOR, MOD_MIN, MOD_MAX, MOD_INC,
		MOD_DEC, MOD_EXCH, MOD_CAS, MOD_NOFTZ, MOD_L2HINT, MOD_ASYNC, MOD_BYTES, MOD_MMIO};
	const struct ptx_insn *i = d->i;
	const struct ptx_mnem *m = i->m;
	int op = operation(d);
	if (m->types[0] == T_B128 && m->ntypes == 1) {
		if (!only_mods(m, known, sizeof known) || !atomic_pair(d, op))
			uncover(d);
		return true;
	}
	unsigned t = m->types[0], sources = op == ATOM_CAS ? 2 : 1, first = red ? 0 : 1, n = m->vec;
	bool pairs = t == T_F16X2 || t == T_BF16X2, later = has(d, MOD_ASYNC) && !has(d, MOD_MMIO);
	if (op < 0 || m->ntypes != 1 || !only_mods(m, known, sizeof known) || t == T_B128 ||
		ptx_type_bytes(t) < 2 || (pairs && op != ATOM_ADD && op != ATOM_MIN && op != ATOM_MAX) ||
		i->nop != first + 1 + sources + (has(d, MOD_L2HINT) || later ? 1u : 0u) ||
		!i->op[first].addr ||
		later != has(d, MOD_BYTES) || (has(d, MOD_MMIO) && (!red || !has(d, MOD_ASYNC))) ||
		(later && (!red || !i->op[2].addr || !m->nspaces)) ||
		m->nspaces > 1) {
		uncover(d);
		return true;
	}
	unsigned w = lane_bytes(t);
	struct address a = address_of(d, &i->op[first], m->nspaces ? m->space[0] : SP_GENERIC);
	const struct ptx_operand *value = &i->op[first + 1], *to = red ? NULL : &i->op[0];
	if (n > 1 && (value->kind != OP_VEC || value->n != n || (to && (to->kind != OP_VEC || to->n != n)))) {
		uncover(d);
		return true;
	}
	for (unsigned k = 0; k < n; k++) { /* a vector is that many single ones: PTX promises no more */
		uint32_t b = source(d, n > 1 ? &value->vec[k] : value, t, w),
			 c = sources == 2 ? source(d, &i->op[first + 2], t, w) : NONE;
		uint32_t dst = red ? NONE : target(d, n > 1 ? &to->vec[k] : to, w, false);
		emit_check(d, CHECK_READ | CHECK_WRITE | CHECK_ATOMIC | access_order(d) |
				(a.shared ? CHECK_SHARED : 0),
			ptx_type_bytes(t), ptx_type_bytes(t));
		struct op *o = emit_x(d, x_atom);
		o->d = dst;
		o->a = a.slot;
		o->b = b;
		o->c = c;
		o->imm = a.off + (int64_t)(k * ptx_type_bytes(t));
		o->x = (uint32_t)op;
		o->y = t | (a.shared ? ATOM_SHARED : 0);
	}
	if (later)
		barrier_tell(d, &i->op[2], n * ptx_type_bytes(t));
	return true;
}
