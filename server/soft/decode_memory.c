/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding of loads and stores in every state space. Global, constant and local addresses are host
 * addresses; shared ones are offsets; kernel parameters are read from the launch's block; parameters of calls
 * are slots.
 *
 * Thread rule: the caller holds the module's lock. */
#include "server/soft/decode.h"
#include "server/soft/exec_pair.h"
#include "server/soft/exec_matrix.h"
#include "server/soft/check.h"
#include <stdio.h>
#include <string.h>

static const uint8_t harmless[] = {MOD_VOLATILE, MOD_RELAXED, MOD_ACQUIRE, MOD_RELEASE, MOD_WEAK, MOD_MMIO,
	MOD_CTA, MOD_CLUSTER, MOD_GPU, MOD_SYS, MOD_NC, MOD_CA, MOD_CG, MOD_CS, MOD_LU, MOD_CV, MOD_WB,
	MOD_WT, MOD_EVICT, MOD_EVICT1, MOD_EVICT2, MOD_EVICT3, MOD_NOALLOC, MOD_L264, MOD_L2128, MOD_L2256,
	MOD_L2HINT, MOD_L2EN, MOD_L2EL, MOD_L2EF};

/* The name of a type's memory handlers. */
static const char *mem_type(unsigned t)
{
	switch (ptx_type_bytes(t)) {
	case 1: return t == T_S8 ? "s8" : "u8";
	case 2: return t == T_S16 ? "s16" : "u16";
	case 4: return "b32";
	default: return "b64";
	}
}

struct address address_of(struct decoder *d, const struct ptx_operand *o, unsigned space)
{
	struct address a = {.off = o->off, .shared = space == SP_SHARED};
	unsigned w = a.shared ? 4 : 8;
	if (o->kind == OP_REG) {
		a.slot = source(d, o, T_B64, w);
	} else if (o->kind == OP_VAR) {
		struct ptx_var *v = o->var->def ? o->var->def : o->var;
		a.shared |= (space == SP_GENERIC || space == SP_CLUSTER) && v->space == SP_SHARED;
		if (v->space == SP_LOCAL) { /* no addition at run time */
			a.slot = sreg(d, SR_LOCAL_BASE);
			a.off += (int64_t)v->address;
		} else {
			struct ptx_operand plain = *o;
			plain.off = 0;
			a.slot = source(d, &plain, T_B64, a.shared ? 4 : 8);
		}
	} else if (o->kind == OP_INT) {
		a.slot = constant(d, (uint64_t)o->off, w);
		a.off = 0;
	} else {
		uncover(d);
		a.slot = 0;
	}
	if (space == SP_CLUSTER && a.shared) { /* the block's own variable */
		a.shared = true;
	} else if (space == SP_CLUSTER) {
		uint32_t low = temp(d, 4), t = temp(d, 8);
		emit3(d, "lo_b32", low, a.slot, NONE, NONE);
		struct op *x = emit_x(d, x_cluster_address);
		x->d = t;
		x->a = low;
		a.slot = t;
	}
	return a;
}

uint32_t generic_address(struct decoder *d, const struct ptx_operand *o, unsigned space)
{
	struct address a = address_of(d, o, space);
	uint32_t at = a.slot;
	if (a.shared) {
		uint32_t wide = temp(d, 8);
		at = temp(d, 8);
		emit3(d, "cvt_u64_u32", wide, a.slot, NONE, NONE);
		emit3(d, "add_b64", at, wide, sreg(d, SR_SHARED_BASE), NONE);
	}
	if (!a.off)
		return at;
	uint32_t t = temp(d, 8);
	emit3(d, "add_b64", t, at, constant(d, (uint64_t)a.off, 8), NONE);
	return t;
}

/* ld.param and st.param of variables: the kernel's own parameters, or words of a call. */
static void param_access(struct decoder *d, bool load, unsigned t, const struct ptx_operand *where,
	const struct ptx_operand *reg)
{
	struct ptx_var *v = where->var;
	unsigned bytes = ptx_type_bytes(t);
	int64_t off = where->off;
	if (off < 0 || (uint64_t)off + bytes > v->bytes || off % bytes) {
		uncover(d);
		return;
	}
	bool kernel = d->f->entry && v->formal, sign = *ptx_type_name(t) == 's';
	unsigned w = lane_bytes(t);
	if (kernel && !load) {
		uncover(d);
		return;
	}
	if (kernel) {
		uint32_t dst = target(d, reg, w, sign);
		struct op *o = emit_name(d, "ldp_%s", mem_type(t));
		o->d = dst;
		o->imm = (int64_t)v->address + off;
		return;
	}
	uint32_t word = param_slot(d, v) + (uint32_t)(off / 4) * SLOT32;
	uint32_t s = load ? target(d, reg, w, sign) : source(d, reg, t, w);
	struct op *o = emit_name(d, "%s_%s", load ? "ldw" : "stw",
		load || bytes > 2 ? mem_type(t)
		: bytes == 1      ? "u8"
				  : "u16");
	o->d = load ? s : word;
	o->a = load ? word : s;
	o->y = (uint32_t)(off % 4) * 8;
}

/* The same of 128 bits: two halves. */
static bool param_pair(struct decoder *d, bool load, const struct ptx_operand *where,
		const struct ptx_operand *reg)
{
	struct ptx_var *v = where->var;
	bool kernel = d->f->entry && v->formal;
	uint32_t half[2];
	if (where->off < 0 || (uint64_t)where->off + 16 > v->bytes || where->off % 16 || (kernel && !load) ||
			!pair_slots(d, reg, half))
		return false;
	for (unsigned k = 0; k < 2; k++) {
		int64_t off = where->off + 8 * k;
		struct op *o = emit_name(d, kernel ? "ldp_b64" : load ? "ldw_b64" : "stw_b64");
		if (kernel) {
			o->d = half[k];
			o->imm = (int64_t)v->address + off;
			continue;
		}
		uint32_t word = param_slot(d, v) + (uint32_t)(off / 4) * SLOT32;
		o = &d->ops[d->nops - 1];
		o->d = load ? half[k] : word;
		o->a = load ? word : half[k];
	}
	return true;
}

/* Other threads may look at it: it must not be seen by halves. */
static bool watched(const struct decoder *d)
{
	return has(d, MOD_RELAXED) || has(d, MOD_VOLATILE) || has(d, MOD_ACQUIRE) || has(d, MOD_RELEASE) ||
		has(d, MOD_MMIO);
}

unsigned access_order(const struct decoder *d)
{
	return has(d, MOD_ACQUIRE) || has(d, MOD_RELEASE) || has(d, MOD_ACQ_REL) ? CHECK_FENCE : 0;
}

/* The first look of a loop around a compare and swap, which need not be the last word: what it reads is what
 * the swap compares. */
static bool guess(const struct decoder *d, const struct ptx_operand *to)
{
	for (uint32_t k = 0; check_on() && to->kind == OP_REG && k < d->f->ninsns; k++) {
		const struct ptx_insn *i = &d->f->insns[k];
		if (i->nop > 3 && ptx_has(i->m, MOD_CAS) && i->op[2].kind == OP_REG &&
				i->op[2].reg == to->reg)
			return true;
	}
	return false;
}

static void access(struct decoder *d, bool load, const struct ptx_operand *where,
	const struct ptx_operand *regs, unsigned n, int64_t extra)
{
	const struct ptx_mnem *m = d->i->m;
	unsigned t = m->types[0], bytes = ptx_type_bytes(t), w = lane_bytes(t);
	bool sign = *ptx_type_name(t) == 's';
	struct address a = address_of(d, where, m->nspaces ? m->space[0] : SP_GENERIC);
	uint32_t s[4] = {NONE, NONE, NONE, NONE};
	for (unsigned k = 0; k < n; k++)
		s[k] = load ? (regs[k].kind == OP_SINK && n > 1 ? NONE : target(d, &regs[k], w, sign))
			    : source(d, &regs[k], t, w);
	bool whole = !a.shared && bytes >= 4 && (n * bytes == 8 || n * bytes == 16) && n > 1 && watched(d);
	emit_check(d, (load ? CHECK_READ : CHECK_WRITE) | access_order(d) |
			(watched(d) || (load && guess(d, regs)) ? CHECK_ATOMIC : 0) |
			      (a.shared ? CHECK_SHARED : 0),
		n * bytes, bytes);
	struct op *o = whole ? emit_x(d, x_pair)
			     : emit_name(d, "%s_%c_%s_v%u", load ? "ld" : "st", a.shared ? 's' : 'g',
				       load || bytes > 2 ? mem_type(t)
				       : bytes == 1      ? "u8"
							 : "u16",
				       n);
	if (whole) {
		o->x = n | (load ? PAIR_LOAD : 0u);
		o->y = bytes;
	}
	o->a = a.slot;
	o->imm = a.off + extra;
	o->d = s[0];
	o->b = s[1];
	o->c = s[2];
	o->e = s[3];
	if (!whole)
		shape_access(d, a.slot, a.shared, n * bytes);
}

/* ld.b128 and st.b128: a vector of two halves. */
static bool load_store_pair(struct decoder *d, bool load)
{
	const struct ptx_insn *i = d->i;
	uint32_t s[2];
	if (i->nop < 2 || !only_mods(i->m, harmless, sizeof harmless) || i->m->vec != 1)
		return false;
	const struct ptx_operand *where = &i->op[load ? 1 : 0];
	bool param = i->m->nspaces && i->m->space[0] == SP_PARAM;
	if (where->addr && param && where->kind == OP_VAR && where->var->space == SP_PARAM)
		return param_pair(d, load, where, &i->op[load ? 0 : 1]);
	if (!where->addr || param || !pair_slots(d, &i->op[load ? 0 : 1], s))
		return false;
	struct address a = address_of(d, where, i->m->nspaces ? i->m->space[0] : SP_GENERIC);
	bool whole = !a.shared && watched(d);
	emit_check(d, (load ? CHECK_READ : CHECK_WRITE) | access_order(d) | (watched(d) ? CHECK_ATOMIC : 0) |
			      (a.shared ? CHECK_SHARED : 0),
		16, 8);
	struct op *o = whole ? emit_x(d, x_pair)
			     : emit_name(d, "%s_%c_b64_v2", load ? "ld" : "st", a.shared ? 's' : 'g');
	if (whole) {
		o->x = 2 | (load ? PAIR_LOAD : 0u);
		o->y = 8;
	}
	o->a = a.slot;
	o->imm = a.off;
	o->d = s[0];
	o->b = s[1];
	return true;
}

void barrier_tell(struct decoder *d, const struct ptx_operand *barrier, unsigned bytes)
{
	uint32_t a = generic_address(d, barrier, d->i->m->space[0]), n = constant(d, bytes, 4);
	struct op *o = emit_x(d, x_mbarrier);
	o->a = a;
	o->b = n;
	o->x = MBAR_COMPLETE;
}

/* st.async [a], b, [barrier] */
static void store_async(struct decoder *d)
{
	static const uint8_t known[] = {MOD_ASYNC, MOD_WEAK, MOD_BYTES};
	const struct ptx_insn *i = d->i;
	const struct ptx_operand *v = i->nop > 1 && i->op[1].kind == OP_VEC ? i->op[1].vec : &i->op[1];
	unsigned t = i->m->types[0], n = i->nop > 1 && i->op[1].kind == OP_VEC ? i->op[1].n : 1;
	static const uint8_t to_host[] = {MOD_ASYNC, MOD_MMIO, MOD_RELEASE, MOD_GPU, MOD_SYS};
	if (has(d, MOD_MMIO) && i->nop == 2 && only_mods(i->m, to_host, sizeof to_host) && i->m->vec == 1 &&
			n == 1 && i->op[0].addr &&
		(!i->m->nspaces || i->m->space[0] == SP_GLOBAL) && ptx_type_bytes(t) >= 4 &&
		ptx_type_bytes(t) <= 8) {
		access(d, false, &i->op[0], v, 1, 0);
		return;
	}
	if (i->nop != 3 || !only_mods(i->m, known, sizeof known) || !has(d, MOD_BYTES) ||
			i->m->nspaces != 1 ||
		i->m->space[0] != SP_CLUSTER || i->m->ntypes != 1 || ptx_type_bytes(t) < 4 ||
		ptx_type_bytes(t) > 8 || n != i->m->vec || n > 4 || !i->op[0].addr || !i->op[2].addr) {
		uncover(d);
		return;
	}
	access(d, false, &i->op[0], v, n, 0);
	barrier_tell(d, &i->op[2], n * ptx_type_bytes(t));
}

static void load_store(struct decoder *d, bool load)
{
	const struct ptx_insn *i = d->i;
	const struct ptx_mnem *m = i->m;
	unsigned t = m->types[0];
	bool hint = has(d, MOD_L2HINT);
	if (!load && has(d, MOD_BULK)) {
		if (!decode_zeros(d))
			uncover(d);
		return;
	}
	if (!load && has(d, MOD_ASYNC)) {
		store_async(d);
		return;
	}
	if (t == T_B128 && m->ntypes == 1 && load_store_pair(d, load))
		return;
	if (i->nop != 2u + hint || m->ntypes != 1 || m->nspaces > 1 || t == T_B128 || t == T_PRED ||
		!ptx_type_bytes(t) || !only_mods(m, harmless, sizeof harmless)) {
		uncover(d);
		return;
	}
	const struct ptx_operand *where = &i->op[load ? 1 : 0], *reg = &i->op[load ? 0 : 1];
	const struct ptx_operand *regs = reg->kind == OP_VEC ? reg->vec : reg;
	unsigned n = reg->kind == OP_VEC ? reg->n : 1;
	if (!where->addr || n != m->vec) {
		uncover(d);
		return;
	}
	bool param = m->nspaces && m->space[0] == SP_PARAM;
	if (param && where->kind == OP_VAR && where->var->space == SP_PARAM) {
		for (unsigned k = 0; k < n; k++) {
			struct ptx_operand at = *where;
			at.off += (int64_t)(k * ptx_type_bytes(t));
			param_access(d, load, t, &at, &regs[k]);
		}
		return;
	}
	for (unsigned k = 0; k < n; k += 4)
		access(d, load, where, regs + k, n - k < 4 ? n - k : 4, (int64_t)(k * ptx_type_bytes(t)));
}

bool decode_memory(struct decoder *d)
{
	if (op_is(d, "ld") || op_is(d, "ldu")) {
		load_store(d, true);
		return true;
	}
	if (op_is(d, "st")) {
		load_store(d, false);
		return true;
	}
	if (op_is(d, "prefetch") || op_is(d, "prefetchu") || op_is(d, "applypriority") ||
		op_is(d, "discard")) {
		emit_x(d, x_nop);
		return true;
	}
	if (op_is(d, "createpolicy") && d->i->nop) { /* nothing is cached here: any value will do */
		emit3(d, "mov_b64", target(d, &d->i->op[0], 8, false), constant(d, 0, 8), NONE, NONE);
		return true;
	}
	return false;
}
