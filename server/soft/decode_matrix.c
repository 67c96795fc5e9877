/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding of matrix instructions, asynchronous copies, barriers in shared memory.
 *
 * Thread rule: the caller holds the module's lock. */
#include "server/soft/decode.h"
#include "server/soft/exec_matrix.h"
#include <string.h>

void all_lanes(struct decoder *d)
{
	uint32_t mask = constant(d, ~0u, 4);
	struct op *o = emit_x(d, x_sync);
	o->fn = x_nop;
	o->a = mask;
}

static bool shape(struct decoder *d, struct matrix_op *x)
{
	static const struct {
		uint8_t mod, m, n;
		uint16_t k;
	} t[] = {{MOD_M16N16K16, 16, 16, 16}, {MOD_M8N32K16, 8, 32, 16}, {MOD_M32N8K16, 32, 8, 16},
		{MOD_M8N8K4, 8, 8, 4}, {MOD_M16N8K4, 16, 8, 4}, {MOD_M16N8K8, 16, 8, 8},
		{MOD_M16N8K16, 16, 8, 16}, {MOD_M16N8K32, 16, 8, 32}, {MOD_M8N8K16, 8, 8, 16},
		{MOD_M16N16K8, 16, 16, 8}, {MOD_M8N8K32, 8, 8, 32}, {MOD_M16N8K64, 16, 8, 64},
		{MOD_M8N8K32B, 8, 8, 128}, {MOD_M16N8K128, 16, 8, 128}, {MOD_M16N8K256, 16, 8, 256}};
	for (unsigned i = 0; i < sizeof t / sizeof *t; i++)
		if (has(d, t[i].mod)) {
			x->m = t[i].m;
			x->n = t[i].n;
			x->k = t[i].k;
			return true;
		}
	return false;
}

/* The registers of one fragment. Returns false when they cannot hold it. */
static bool fragment(
	struct decoder *d, struct fragment *f, const struct ptx_operand *o, unsigned type, bool write)
{
	const struct ptx_operand *v = o->kind == OP_VEC ? o->vec : o;
	unsigned n = o->kind == OP_VEC ? o->n : 1, w = type == T_F64 ? 8 : 4;
	if (!n || n > MATRIX_SLOTS)
		return false;
	f->n = (uint8_t)n;
	f->type = (uint8_t)type;
	for (unsigned i = 0; i < n; i++)
		f->slot[i] = write ? target(d, &v[i], w, false)
				   : source(d, &v[i], type == T_F64 ? T_B64 : T_B32, w);
	return true;
}

static bool known_type(unsigned t)
{
	return t == T_F16 || t == T_BF16 || t == T_TF32 || t == T_F32 || t == T_F64 || t == T_S8 ||
	       t == T_U8 || t == T_S4 || t == T_U4 || t == T_S32 || t == T_B1 || t == T_E4M3 || t == T_E5M2;
}

static bool enough(const struct fragment *f, unsigned elements)
{
	unsigned b = f->type == T_U4 || f->type == T_S4 ? 4
		     : f->type == T_B1                  ? 1
		     : f->type == T_TF32                ? 32
							: ptx_type_bytes(f->type) * 8;
	return f->n * (b > 32 ? 1 : 32 / b) * LANES >= elements;
}

/* A's layout is named first. */
static void layouts(const struct ptx_mnem *m, struct matrix_op *x)
{
	unsigned n = 0;
	for (unsigned k = 0; k < m->nmods; k++) {
		if (m->mods[k] != MOD_ROW && m->mods[k] != MOD_COL)
			continue;
		if (n++ == 0)
			x->a_column = m->mods[k] == MOD_COL;
		else
			x->b_row = m->mods[k] == MOD_ROW;
	}
}

/* mma.sp: which elements of A are there stands in a register of some of the lanes. */
static bool sparse(struct decoder *d, struct matrix_op *x, unsigned type)
{
	const struct ptx_insn *i = d->i;
	bool bytes = type == T_S8 || type == T_U8 || type == T_E4M3 || type == T_E5M2,
			parts = type == T_S4 || type == T_U4;
	if (i->nop != 6 || i->op[5].kind != OP_INT || i->op[5].off < 0 || x->m != 16)
		return false;
	/* columns that all four lanes tell of */
	unsigned whole = parts ? 128 : bytes ? 64 : type == T_TF32 ? 32 : 64;
	if (x->k > whole || whole % x->k || (uint64_t)i->op[5].off >= whole / x->k)
		return false;
	x->sparse = true;
	x->selector = (uint8_t)i->op[5].off;
	x->metadata = source(d, &i->op[4], T_B32, 4);
	return true;
}

static bool multiply(struct decoder *d, bool fixed)
{
	static const uint8_t known[] = {MOD_SYNC, MOD_ALIGNED, MOD_MMA, MOD_ROW, MOD_COL, MOD_SATFINITE,
		MOD_M16N16K16, MOD_M8N32K16, MOD_M32N8K16, MOD_M8N8K4, MOD_M16N8K4, MOD_M16N8K8, MOD_M16N8K16,
		MOD_M16N8K32, MOD_M8N8K16, MOD_M16N16K8, MOD_M8N8K32, MOD_M16N8K64, MOD_RN, MOD_M8N8K32B,
		MOD_M16N8K128, MOD_M16N8K256, MOD_XOR, MOD_AND, MOD_POPC, MOD_SPARSE, MOD_SPARSE2};
	const struct ptx_insn *i = d->i;
	const struct ptx_mnem *m = i->m;
	struct matrix_op *x = arena_alloc(d->m->arena, sizeof *x);
	bool half = has(d, MOD_SPARSE) || has(d, MOD_SPARSE2);
	if (!x || !shape(d, x) || i->nop != (half ? 6 : 4) || !only_mods(m, known, sizeof known) ||
		(m->ntypes != 4 && !(m->ntypes == 2 && !fixed)))
		return false;
	x->fixed = fixed;
	x->saturate = has(d, MOD_SATFINITE);
	unsigned dt = m->types[0], at = m->ntypes == 4 ? m->types[1] : T_F16,
		 bt = m->ntypes == 4 ? m->types[2] : T_F16, ct = m->types[m->ntypes - 1];
	if (!known_type(dt) || !known_type(at) || !known_type(bt) || !known_type(ct))
		return false;
	x->bit = BIT_NONE;
	if (has(d, MOD_POPC))
		x->bit = has(d, MOD_XOR) ? BIT_XOR : has(d, MOD_AND) ? BIT_AND : BIT_NONE;
	if ((at == T_B1) != (x->bit != BIT_NONE) || (at == T_B1) != (bt == T_B1))
		return false;
	if (half && (!fixed || x->bit || at == T_F64 || !sparse(d, x, at)))
		return false;
	if (fixed && at == T_F16 && x->k == 4) {
		x->quads = true;
		layouts(m, x);
	}
	if (!fragment(d, &x->a, &i->op[1], at, false) || !fragment(d, &x->b, &i->op[2], bt, false) ||
		!fragment(d, &x->c, &i->op[3], ct, false) || !fragment(d, &x->d, &i->op[0], dt, true))
		return false;
	unsigned times = x->quads ? 4 : 1; /* products of one instruction */
	if (!enough(&x->a, x->m * x->k * times / (half ? 2 : 1)) || !enough(&x->b, x->k * x->n * times) ||
		!enough(&x->c, x->m * x->n * times) || !enough(&x->d, x->m * x->n * times))
		return false;
	emit_x(d, x_mma)->p = x;
	return true;
}

/* The address operand, as decode_memory has it; local variables are no place for matrices. */
static bool place(struct decoder *d, struct matrix_op *x, const struct ptx_operand *o)
{
	unsigned space = d->i->m->nspaces ? d->i->m->space[0] : SP_GENERIC;
	x->shared = space == SP_SHARED;
	if (!o->addr || (o->kind != OP_REG && o->kind != OP_VAR))
		return false;
	x->offset = o->kind == OP_REG ? o->off : 0;
	x->address = source(d, o, T_B64, x->shared ? 4 : 8);
	return true;
}

static bool load_store(struct decoder *d)
{
	const struct ptx_insn *i = d->i;
	const struct ptx_mnem *m = i->m;
	bool load = has(d, MOD_LOAD);
	struct matrix_op *x = arena_alloc(d->m->arena, sizeof *x);
	static const uint8_t known[] = {MOD_SYNC, MOD_ALIGNED, MOD_LOAD, MOD_STORE, MOD_ROW, MOD_COL,
		MOD_AFRAG, MOD_BFRAG, MOD_CFRAG, MOD_DFRAG, MOD_M16N16K16, MOD_M8N32K16, MOD_M32N8K16,
		MOD_M8N8K4, MOD_M16N16K8, MOD_M8N8K32, MOD_M8N8K32B};
	if (!x || !shape(d, x) || i->nop < 2 || i->nop > 3 || m->ntypes != 1 || !known_type(m->types[0]) ||
		!only_mods(m, known, sizeof known))
		return false;
	x->which = has(d, MOD_AFRAG) ? FRAG_A : has(d, MOD_BFRAG) ? FRAG_B : FRAG_C;
	x->column = has(d, MOD_COL);
	x->stride = i->nop == 3 ? source(d, &i->op[2], T_U32, 4) : NONE;
	unsigned rows = x->which == FRAG_B ? x->k : x->m, cols = x->which == FRAG_A ? x->k : x->n;
	if (!place(d, x, &i->op[load ? 1 : 0]) ||
		!fragment(d, &x->d, &i->op[load ? 0 : 1], m->types[0], load) || !enough(&x->d, rows * cols) ||
		(!load && ptx_type_bytes(m->types[0]) < 2))
		return false;
	emit_x(d, load ? x_wmma_load : x_wmma_store)->p = x;
	return true;
}

static bool row_matrix(struct decoder *d, bool load)
{
	const struct ptx_insn *i = d->i;
	static const uint8_t known[] = {MOD_SYNC, MOD_ALIGNED, MOD_M8N8, MOD_X1, MOD_X2, MOD_X4, MOD_TRANS};
	struct matrix_op *x = arena_alloc(d->m->arena, sizeof *x);
	unsigned n = has(d, MOD_X4) ? 4 : has(d, MOD_X2) ? 2 : 1;
	if (!x || i->nop != 2 || !has(d, MOD_M8N8) || i->m->types[0] != T_B16 ||
		!only_mods(i->m, known, sizeof known))
		return false;
	x->column = has(d, MOD_TRANS);
	if (!place(d, x, &i->op[load ? 1 : 0]) || !fragment(d, &x->d, &i->op[load ? 0 : 1], T_B32, load) ||
		x->d.n != n)
		return false;
	emit_x(d, load ? x_ldmatrix : x_stmatrix)->p = x;
	return true;
}

static bool copy(struct decoder *d)
{
	const struct ptx_insn *i = d->i;
	static const uint8_t known[] = {
		MOD_ASYNC, MOD_CA, MOD_CG, MOD_L264, MOD_L2128, MOD_L2256, MOD_L2HINT};
	if (has(d, MOD_COMMIT_GROUP) || has(d, MOD_WAIT_GROUP) || has(d, MOD_WAIT_ALL)) {
		emit_x(d, x_nop);
		return true;
	}
	bool hint = has(d, MOD_L2HINT);
	unsigned n = i->nop - hint;
	if (has(d, MOD_RELEASEM) && i->nop == 1 &&
		i->op[0].addr) { /* cp.async.mbarrier.arrive: the copies are done */
		bool shared = i->m->nspaces && i->m->space[0] == SP_SHARED;
		uint32_t a = source(d, &i->op[0], T_B64, shared ? 4 : 8);
		struct op *o = emit_x(d, x_mbarrier);
		o->a = a;
		o->imm = i->op[0].kind == OP_REG ? i->op[0].off : 0;
		o->x = has(d, MOD_NOINC) ? MBAR_ARRIVE : MBAR_ASYNC;
		o->y = shared;
		return true;
	}
	if (!only_mods(i->m, known, sizeof known) || i->m->nspaces != 2 || i->m->space[0] != SP_SHARED ||
		i->m->space[1] != SP_GLOBAL || n < 3 || n > 4 || i->op[2].kind != OP_INT ||
		(i->op[2].off != 4 && i->op[2].off != 8 && i->op[2].off != 16) || !i->op[0].addr ||
		!i->op[1].addr)
		return false;
	uint32_t to = source(d, &i->op[0], T_B32, 4), from = source(d, &i->op[1], T_B64, 8), size = NONE,
		 ignore = NONE;
	if (n == 4 && i->op[3].kind == OP_REG && d->f->regs[i->op[3].reg] == T_PRED)
		ignore = source(d, &i->op[3], T_PRED, 4);
	else if (n == 4)
		size = source(d, &i->op[3], T_U32, 4);
	struct op *o = emit_x(d, x_cp_async);
	o->d = to;
	o->a = from;
	o->b = size;
	o->c = ignore;
	o->x = (uint32_t)i->op[2].off;
	o->y = i->op[0].kind == OP_REG ? (uint32_t)i->op[0].off : 0;
	o->imm = i->op[1].kind == OP_REG ? i->op[1].off : 0;
	return true;
}

static bool barrier_object(struct decoder *d)
{
	const struct ptx_insn *i = d->i;
	static const uint8_t known[] = {MOD_INIT, MOD_INVAL, MOD_ARRIVE, MOD_ARRIVE_DROP, MOD_TEST_WAIT,
		MOD_TRY_WAIT, MOD_PARITY, MOD_NOCOMPLETE, MOD_EXPECT_TX, MOD_COMPLETE_TX, MOD_PENDING,
		MOD_RELEASE, MOD_ACQUIRE, MOD_RELAXED, MOD_CTA, MOD_CLUSTER};
	if (!only_mods(i->m, known, sizeof known) || !i->nop)
		return false;
	bool test = has(d, MOD_TEST_WAIT) || has(d, MOD_TRY_WAIT), result = !i->op[0].addr,
	     shared = i->m->nspaces && i->m->space[0] == SP_SHARED;
	uint32_t what = has(d, MOD_INIT)          ? MBAR_INIT
			: has(d, MOD_INVAL)       ? MBAR_INVAL
			: has(d, MOD_PENDING)     ? MBAR_COUNT
			: test                    ? (has(d, MOD_PARITY) ? MBAR_PARITY : MBAR_TEST)
			: has(d, MOD_ARRIVE_DROP) ? MBAR_DROP
			: has(d, MOD_ARRIVE)      ? (has(d, MOD_EXPECT_TX) ? MBAR_ARRIVE_EXPECT : MBAR_ARRIVE)
			: has(d, MOD_EXPECT_TX)   ? MBAR_EXPECT
						  : MBAR_COMPLETE;
	unsigned at = result ? 1 : 0;
	bool state = what == MBAR_TEST || what == MBAR_COUNT, last = what != MBAR_COUNT && i->nop > at + 1u;
	if (what == MBAR_COUNT) {
		uint32_t b = source(d, &i->op[1], T_B64, 8), dst = target(d, &i->op[0], 4, false);
		struct op *o = emit_x(d, x_mbarrier);
		o->b = b;
		o->d = dst;
		o->x = what;
		return true;
	}
	if (i->nop <= at || !i->op[at].addr || (i->op[at].kind != OP_REG && i->op[at].kind != OP_VAR) ||
		(test && (!result || !last)))
		return false;
	bool cluster = i->m->nspaces && i->m->space[0] == SP_CLUSTER;
	uint32_t a = cluster ? generic_address(d, &i->op[at], SP_CLUSTER)
			     : source(d, &i->op[at], T_B64, shared ? 4 : 8),
		 b = last ? source(d, &i->op[at + 1], state ? T_B64 : T_U32, state ? 8 : 4) : NONE;
	uint32_t dst =
		result && !(i->op[0].kind == OP_SINK) ? target(d, &i->op[0], test ? 4 : 8, false) : NONE;
	struct op *o = emit_x(d, x_mbarrier);
	o->a = a;
	o->b = b;
	o->d = dst;
	o->imm = i->op[at].kind == OP_REG && !cluster ? i->op[at].off : 0;
	o->x = what;
	o->y = shared;
	return true;
}

bool decode_matrix(struct decoder *d)
{
	const struct ptx_insn *i = d->i;
	bool ok;
	if (op_is(d, "wmma") || op_is(d, "mma") || op_is(d, "ldmatrix") || op_is(d, "stmatrix") ||
		op_is(d, "movmatrix"))
		all_lanes(d);
	if (op_is(d, "wmma")) {
		ok = has(d, MOD_MMA) ? multiply(d, false) : load_store(d);
	} else if (op_is(d, "mma")) {
		ok = multiply(d, true);
	} else if (op_is(d, "ldmatrix") || op_is(d, "stmatrix")) {
		ok = row_matrix(d, op_is(d, "ldmatrix"));
	} else if (op_is(d, "movmatrix") && i->nop == 2) {
		uint32_t a = source(d, &i->op[1], T_B32, 4), dst = target(d, &i->op[0], 4, false);
		struct op *o = emit_x(d, x_movmatrix);
		o->d = dst;
		o->a = a;
		ok = true;
	} else if (op_is(d, "cp") && has(d, MOD_ASYNC)) {
		ok = copy(d);
	} else if (op_is(d, "mbarrier")) {
		ok = barrier_object(d);
	} else {
		return false;
	}
	if (!ok)
		uncover(d);
	return true;
}
