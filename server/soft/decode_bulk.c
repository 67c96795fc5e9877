/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding of cp.async.bulk and cp.reduce.async.bulk, plain and of tensors. The groups that they form are
 * complete as soon as they are issued; prefetches have nothing to do.
 *
 * Thread rule: the caller holds the module's lock. */
#include "server/soft/decode.h"
#include "server/soft/exec_atom.h"
#include "server/soft/exec_bulk.h"

static unsigned dimensions(const struct decoder *d)
{
	static const uint8_t shape[] = {MOD_G1D, MOD_G2D, MOD_G3D, MOD_G4D, MOD_G5D};
	for (unsigned k = 0; k < sizeof shape; k++)
		if (has(d, shape[k]))
			return k + 1;
	return 0;
}

static unsigned reduction(const struct decoder *d)
{
	static const struct {
		uint8_t mod, op;
	} t[] = {{MOD_ADD, ATOM_ADD}, {MOD_MIN, ATOM_MIN}, {MOD_MAX, ATOM_MAX}, {MOD_INC, ATOM_INC},
		{MOD_DEC, ATOM_DEC}, {MOD_AND, ATOM_AND}, {MOD_OR, ATOM_OR}, {MOD_XOR, ATOM_XOR}};
	for (unsigned k = 0; k < sizeof t / sizeof *t; k++)
		if (has(d, t[k].mod))
			return t[k].op + 1u;
	return 0;
}

/* [map, {coordinates}] */
static bool tensor(struct decoder *d, struct bulk_op *x, const struct ptx_operand *o, uint32_t *map)
{
	if (!o->addr || o->kind != OP_VEC || o->n != 2)
		return false;
	const struct ptx_operand *c = &o->vec[1], *each = c->kind == OP_VEC ? c->vec : c;
	unsigned n = x->rows ? 5 : x->dimensions; /* a column and four rows */
	if ((c->kind == OP_VEC ? c->n : 1) != n)
		return false;
	struct ptx_operand at = o->vec[0];
	at.addr = true;
	*map = generic_address(d, &at, SP_GENERIC);
	for (unsigned k = 0; k < n; k++)
		x->at[k] = source(d, &each[k], T_S32, 4);
	return true;
}

static bool bulk(struct decoder *d)
{
	static const uint8_t known[] = {MOD_ASYNC, MOD_BULK, MOD_REDUCE, MOD_TENSOR, MOD_BYTES,
		MOD_BULK_GROUP, MOD_MULTICAST, MOD_L2HINT, MOD_TILE, MOD_G1D, MOD_G2D, MOD_G3D, MOD_G4D,
		MOD_G5D, MOD_ADD, MOD_MIN, MOD_MAX, MOD_INC, MOD_DEC, MOD_AND, MOD_OR, MOD_XOR, MOD_NOFTZ,
		MOD_CP_MASK, MOD_GATHER4, MOD_SCATTER4, MOD_IM2COL, MOD_IM2COL_STORE};
	const struct ptx_insn *i = d->i;
	const struct ptx_mnem *m = i->m;
	struct bulk_op *x = arena_alloc(d->m->arena, sizeof *x);
	bool reduce = has(d, MOD_REDUCE), many = has(d, MOD_MULTICAST), masked = has(d, MOD_CP_MASK);
	if (!x || !only_mods(m, known, sizeof known) || m->nspaces != 2)
		return false;
	*x = (struct bulk_op){.bytes = NONE,
		.barrier = NONE,
		.mask = NONE,
		.bytes_mask = NONE,
		.tensor = has(d, MOD_TENSOR),
		.rows = has(d, MOD_GATHER4) || has(d, MOD_SCATTER4),
		.store = m->space[0] == SP_GLOBAL,
		.pixels = has(d, MOD_IM2COL) || has(d, MOD_IM2COL_STORE),
		.offset = {NONE, NONE, NONE},
		.dimensions = (uint8_t)dimensions(d)};
	x->reduce = (uint8_t)reduction(d);
	x->type = m->types[0];
	unsigned at = x->tensor ? 2 : 3; /* operands so far */
	bool barrier = has(d, MOD_BYTES), offsets = has(d, MOD_IM2COL);
	if ((x->reduce != 0) != reduce || x->tensor != (x->dimensions != 0) ||
		barrier == has(d, MOD_BULK_GROUP) || (many && x->store) ||
		i->nop != at + barrier + offsets + many + masked + has(d, MOD_L2HINT) ||
		(x->pixels && (x->dimensions < 3 || x->rows || has(d, MOD_TILE) || x->store == offsets)) ||
		(masked && (x->tensor || !x->store || reduce)) ||
		(x->rows && (x->dimensions != 2 || reduce)) || (has(d, MOD_GATHER4) && x->store) ||
		(has(d, MOD_SCATTER4) && !x->store) ||
		(reduce && !x->tensor &&
			(m->ntypes != 1 || ptx_type_bytes(x->type) < 2 || ptx_type_bytes(x->type) > 8)))
		return false;
	const struct ptx_operand *to = &i->op[0], *from = &i->op[1];
	if (x->tensor) {
		if (!tensor(d, x, x->store ? to : from, x->store ? &x->to : &x->from))
			return false;
	} else if (x->store) {
		x->to = generic_address(d, to, SP_GLOBAL);
	} else {
		x->from = generic_address(d, from, m->space[1]);
	}
	if (x->store)
		x->from = generic_address(d, from, m->space[1]);
	else
		x->to = generic_address(d, to, m->space[0]);
	if (!x->tensor)
		x->bytes = source(d, &i->op[2], T_U32, 4);
	if (barrier)
		x->barrier = generic_address(d, &i->op[at],
			m->space[0] == SP_CLUSTER && m->space[1] == SP_GLOBAL ? SP_CLUSTER : m->space[0]);
	const struct ptx_operand *from_pixel = &i->op[at + 1];
	if (offsets && (from_pixel->kind != OP_VEC || from_pixel->addr ||
			from_pixel->n != x->dimensions - 2u))
		return false;
	for (unsigned k = 0; offsets && k < from_pixel->n; k++)
		x->offset[k] = source(d, &from_pixel->vec[k], T_U16, 4);
	if (many)
		x->mask = source(d, &i->op[at + 1 + offsets], T_U16, 4);
	if (masked) /* behind the hint */
		x->bytes_mask = source(d, &i->op[i->nop - 1], T_U16, 4);
	emit_x(d, x_bulk)->p = x;
	return true;
}

/* st.bulk [a], bytes, 0 */
bool decode_zeros(struct decoder *d)
{
	static const uint8_t known[] = {MOD_BULK, MOD_WEAK};
	const struct ptx_insn *i = d->i;
	unsigned space = i->m->nspaces ? i->m->space[0] : SP_GENERIC;
	if (i->nop != 3 || !only_mods(i->m, known, sizeof known) || i->m->nspaces > 1 ||
		(i->m->nspaces && space != SP_SHARED) || !i->op[0].addr || i->op[2].kind != OP_INT ||
		i->op[2].off)
		return false;
	uint32_t a = generic_address(d, &i->op[0], space), n = source(d, &i->op[1], T_U64, 8);
	struct op *o = emit_x(d, x_zeros);
	o->a = a;
	o->b = n;
	return true;
}

/* clusterlaunchcontrol: a cluster that has not started could be taken over. None ever is here: they have all
 * been dealt out. */
static bool cancel(struct decoder *d)
{
	static const uint8_t tries[] = {MOD_TRY_CANCEL, MOD_ASYNC, MOD_BYTES, MOD_MULTICAST_ALL},
			     asks[] = {MOD_QUERY_CANCEL, MOD_CANCELED, MOD_FIRST, MOD_FIRST_X, MOD_FIRST_Y,
				     MOD_FIRST_Z};
	const struct ptx_insn *i = d->i;
	if (has(d, MOD_TRY_CANCEL)) {
		unsigned space = i->m->nspaces ? i->m->space[0] : SP_GENERIC;
		if (i->nop != 2 || !only_mods(i->m, tries, sizeof tries) || !has(d, MOD_BYTES) ||
			!i->op[0].addr || !i->op[1].addr || i->m->nspaces > 1)
			return false;
		uint32_t a = generic_address(d, &i->op[0], space), b = generic_address(d, &i->op[1], space);
		struct op *o = emit_x(d, x_cancel);
		o->a = a;
		o->b = b;
		o->x = has(d, MOD_MULTICAST_ALL);
		return true;
	}
	uint32_t half[2];
	if (i->nop != 2 || !only_mods(i->m, asks, sizeof asks) || !pair_slots(d, &i->op[1], half))
		return false;
	if (has(d, MOD_CANCELED)) {
		uint32_t any = temp(d, 8);
		emit3(d, "or_b64", any, half[0], half[1], NONE);
		emit3(d, "setp_ne_u64", target(d, &i->op[0], 4, false), any, constant(d, 0, 8), NONE);
		return true;
	}
	static const uint8_t which[] = {MOD_FIRST_X, MOD_FIRST_Y, MOD_FIRST_Z};
	bool all = has(d, MOD_FIRST), done = false;
	if (all && (i->op[0].kind != OP_VEC || i->op[0].n != 4))
		return false;
	for (unsigned k = 0; k < 3; k++) {
		if (!all && !has(d, which[k]))
			continue;
		emit3(d, k & 1 ? "hi_b32" : "lo_b32", target(d, all ? &i->op[0].vec[k] : &i->op[0], 4, false),
			half[k / 2], NONE, NONE);
		done = true;
	}
	return done;
}

/* tensormap.replace: a field, of some the dimension, and what it becomes. */
static bool replace(struct decoder *d)
{
	static const struct {
		uint8_t mod;
		enum map_field field;
		uint8_t ordinals, type; /* of how many; of the value */
	} t[] = {{MOD_MAP_ADDRESS, MAP_ADDRESS, 0, T_U64}, {MOD_MAP_RANK, MAP_RANK, 0, T_U32},
			{MOD_MAP_BOX, MAP_BOX, 5, T_U32},
		{MOD_MAP_SIZE, MAP_SIZE, 5, T_U32}, {MOD_MAP_STRIDE, MAP_STRIDE, 4, T_U64},
			{MOD_MAP_STEP, MAP_STEP, 5, T_U32},
		{MOD_MAP_TYPE, MAP_TYPE, 0, T_U32}, {MOD_MAP_INTERLEAVE, MAP_INTERLEAVE, 0, T_U32},
		{MOD_MAP_SWIZZLE, MAP_SWIZZLE, 0, T_U32}, {MOD_MAP_FILL, MAP_FILL, 0, T_U32}};
	static const uint8_t known[] = {MOD_REPLACE, MOD_TILE, MOD_B1024, MOD_MAP_ADDRESS, MOD_MAP_RANK,
			MOD_MAP_BOX, MOD_MAP_SIZE,
		MOD_MAP_STRIDE, MOD_MAP_STEP, MOD_MAP_TYPE, MOD_MAP_INTERLEAVE, MOD_MAP_SWIZZLE,
		MOD_MAP_FILL};
	const struct ptx_insn *i = d->i;
	unsigned space = i->m->nspaces ? i->m->space[0] : SP_GENERIC, k = 0;
	while (k < sizeof t / sizeof *t && !has(d, t[k].mod))
		k++;
	if (k == sizeof t / sizeof *t || !only_mods(i->m, known, sizeof known) ||
			i->nop != 2u + (t[k].ordinals != 0) ||
		!i->op[0].addr || i->m->ntypes != 1)
		return false;
	const struct ptx_operand *which = &i->op[1], *value = &i->op[i->nop - 1];
	if (t[k].ordinals && (which->kind != OP_INT || which->off < 0 || which->off >= t[k].ordinals))
		return false;
	uint32_t a = generic_address(d, &i->op[0], space), b = source(d, value, t[k].type, 8);
	struct op *o = emit_x(d, x_map_replace);
	o->a = a;
	o->b = b;
	o->x = t[k].field;
	o->y = t[k].ordinals ? (uint32_t)which->off : 0;
	return true;
}

/* tensormap.cp_fenceproxy [to], [from], 128: by the whole warp */
static bool publish(struct decoder *d)
{
	static const uint8_t known[] = {MOD_FENCEPROXY, MOD_MAP_PROXY, MOD_RELEASE, MOD_CTA, MOD_CLUSTER,
			MOD_GPU, MOD_SYS,
		MOD_SYNC, MOD_ALIGNED};
	const struct ptx_insn *i = d->i;
	if (i->nop != 3 || !only_mods(i->m, known, sizeof known) || i->m->nspaces != 2 ||
			i->m->space[0] != SP_GLOBAL ||
		i->m->space[1] != SP_SHARED || !i->op[0].addr || !i->op[1].addr || i->op[2].kind != OP_INT ||
		i->op[2].off != TENSOR_MAP_BYTES)
		return false;
	all_lanes(d);
	uint32_t a = generic_address(d, &i->op[0], SP_GLOBAL), b = generic_address(d, &i->op[1], SP_SHARED);
	struct op *o = emit_x(d, x_map_copy);
	o->a = a;
	o->b = b;
	return true;
}

bool decode_bulk(struct decoder *d)
{
	if (op_is(d, "tensormap")) {
		if (!(has(d, MOD_REPLACE) ? replace(d) : has(d, MOD_FENCEPROXY) && publish(d)))
			uncover(d);
		return true;
	}
	if (op_is(d, "clusterlaunchcontrol")) {
		if (!cancel(d))
			uncover(d);
		return true;
	}
	if (!op_is(d, "cp") || !has(d, MOD_BULK))
		return false;
	if (has(d, MOD_COMMIT_GROUP) || has(d, MOD_WAIT_GROUP) || has(d, MOD_PREFETCH))
		emit_x(d, x_nop);
	else if (!bulk(d))
		uncover(d);
	return true;
}
