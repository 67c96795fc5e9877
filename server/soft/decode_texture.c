/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding of texture and surface instructions.
 *
 * Thread rule: the caller holds the module's lock. */
#include "server/soft/decode.h"
#include "server/soft/exec_texture.h"

handler x_texture;

/* The shape in the mnemonic. */
static bool shape(struct decoder *d, struct texture_op *x)
{
	x->layered = has(d, MOD_A1D) || has(d, MOD_A2D) || has(d, MOD_ACUBE);
	x->cube = has(d, MOD_CUBE) || has(d, MOD_ACUBE);
	x->dimensions = has(d, MOD_G3D) || x->cube           ? 3
			: has(d, MOD_G2D) || has(d, MOD_A2D) ? 2
			: has(d, MOD_G1D) || has(d, MOD_A1D) ? 1
							     : 0;
	return x->dimensions;
}

/* The object: in a register, or where a reference of the module's keeps it. */
static bool object(struct decoder *d, struct texture_op *x, const struct ptx_operand *o)
{
	if (o->kind == OP_REG) {
		x->handle = source(d, o, T_B64, 8);
		return true;
	}
	if (o->kind != OP_VAR || !o->var || o->off)
		return false;
	const struct ptx_var *v = o->var->def ? o->var->def : o->var;
	if (!v->address || (v->type != T_TEXREF && v->type != T_SURFREF))
		return false;
	x->handle = NONE;
	x->cell = (const uint64_t *)(uintptr_t)v->address;
	return true;
}

/* [object, coordinates]: a register or a vector; what a layer needs comes first, what only fills up comes
 * last. */
static bool place(struct decoder *d, struct texture_op *x, const struct ptx_operand *o)
{
	if (!o->addr || o->kind != OP_VEC || o->n != 2)
		return false;
	const struct ptx_operand *c = &o->vec[1], *each = c->kind == OP_VEC ? c->vec : c;
	unsigned n = c->kind == OP_VEC ? c->n : 1, used = 0;
	if (n < (unsigned)x->dimensions + x->layered)
		return false;
	if (!object(d, x, &o->vec[0]))
		return false;
	x->layer = x->layered ? source(d, &each[used++], T_U32, 4) : NONE;
	for (unsigned k = 0; k < x->dimensions; k++)
		x->at[k] = source(d, &each[used++], x->whole ? T_S32 : T_F32, 4);
	return true;
}

static bool values(
	struct decoder *d, struct texture_op *x, const struct ptx_operand *o, bool write, unsigned width)
{
	const struct ptx_operand *v = o->kind == OP_VEC ? o->vec : o;
	unsigned n = o->kind == OP_VEC ? o->n : 1;
	if (!n || n > 4)
		return false;
	x->n = (uint8_t)n;
	for (unsigned k = 0; k < n; k++) {
		if (v[k].kind == OP_SINK)
			x->value[k] = NONE;
		else
			x->value[k] = write ? target(d, &v[k], width, false)
					    : source(d, &v[k], width == 8 ? T_B64 : T_B32, width);
	}
	return true;
}

/* As many registers as there are coordinates; what only fills up comes last. */
static bool vector(struct decoder *d, const struct texture_op *x, const struct ptx_operand *o, unsigned type,
	uint32_t *out)
{
	const struct ptx_operand *each = o->kind == OP_VEC ? o->vec : o;
	if ((o->kind == OP_VEC ? o->n : 1) < x->dimensions)
		return false;
	for (unsigned k = 0; k < x->dimensions; k++)
		out[k] = source(d, &each[k], type, 4);
	return true;
}

/* The type of the result. */
static bool result(struct texture_op *x, unsigned type)
{
	x->half = type == T_F16 ? HALF_EACH : type == T_F16X2 ? HALF_PAIRS : HALF_NONE;
	x->reads_float = type == T_F32 || x->half;
	return x->reads_float || type == T_S32 || type == T_U32;
}

/* Behind the coordinates: the level or the gradients, then offsets. A value to compare depths with is not
 * known. */
static bool behind(struct decoder *d, struct texture_op *x, unsigned at)
{
	const struct ptx_insn *i = d->i;
	x->lod = has(d, MOD_LEVEL)  ? LOD_GIVEN
		 : has(d, MOD_GRAD) ? LOD_GRADIENTS
		 : has(d, MOD_BASE) ? LOD_BASE
				    : LOD_NONE;
	if (has(d, MOD_LEVEL) + has(d, MOD_GRAD) + has(d, MOD_BASE) > 1 ||
		i->nop < at + (x->lod == LOD_GIVEN              ? 1u
				      : x->lod == LOD_GRADIENTS ? 2u
								: 0u))
		return false;
	if (x->lod == LOD_GIVEN)
		x->level = source(d, &i->op[at++], x->whole ? T_S32 : T_F32, 4);
	for (unsigned k = 0; k < 2 && x->lod == LOD_GRADIENTS; k++)
		if (x->whole || !vector(d, x, &i->op[at++], T_F32, x->gradient[k]))
			return false;
	x->shifted = at < i->nop && i->op[at].kind == OP_VEC && !x->cube;
	if (x->shifted && !vector(d, x, &i->op[at++], T_S32, x->offset))
		return false;
	return at == i->nop;
}

static bool texture(struct decoder *d, struct texture_op *x)
{
	static const uint8_t known[] = {MOD_G1D, MOD_G2D, MOD_G3D, MOD_A1D, MOD_A2D, MOD_CUBE, MOD_ACUBE,
		MOD_BASE, MOD_LEVEL, MOD_GRAD, MOD_RIGHT, MOD_GFRAG, MOD_BFRAG, MOD_AFRAG};
	const struct ptx_insn *i = d->i;
	const struct ptx_mnem *m = i->m;
	bool gather = op_is(d, "tld4"), dual = i->nop && i->op[0].dual,
	     chosen = has(d, MOD_RIGHT) || has(d, MOD_GFRAG) || has(d, MOD_BFRAG) || has(d, MOD_AFRAG);
	unsigned at = dual ? 2 : 1;
	if (!only_mods(m, known, sizeof known) || m->ntypes != 2 || i->nop <= at || !shape(d, x) ||
		!result(x, m->types[0]) || (m->types[1] != T_F32 && m->types[1] != T_S32))
		return false;
	x->what = gather ? TEX_GATHER : TEX_FETCH;
	x->whole = m->types[1] == T_S32;
	x->component = has(d, MOD_GFRAG) ? 1 : has(d, MOD_BFRAG) ? 2 : has(d, MOD_AFRAG) ? 3 : 0;
	if (gather != chosen ||
		(gather && (x->whole || (x->dimensions != 2 && !x->cube) || has(d, MOD_LEVEL) ||
				   has(d, MOD_GRAD))) ||
		(x->cube && x->whole))
		return false;
	if (dual) /* is it there? without sparse arrays everything is */
		emit3(d, "mov_pred", target(d, &i->op[1], 4, false), constant(d, ~0u, 4), NONE, NONE);
	return place(d, x, &i->op[at]) && behind(d, x, at + 1) && values(d, x, &i->op[0], true, 4) &&
	       (x->half != HALF_PAIRS || x->n <= 2);
}

static bool query(struct decoder *d, struct texture_op *x)
{
	static const uint8_t known[] = {MOD_WIDTH, MOD_HEIGHT, MOD_DEPTH, MOD_LAYERS, MOD_LEVELS, MOD_LEVEL};
	const struct ptx_insn *i = d->i;
	const struct ptx_operand *o = &i->op[1];
	bool level = has(d, MOD_LEVEL);
	if (!only_mods(i->m, known, sizeof known) || i->nop != (level ? 3 : 2) || !o->addr)
		return false;
	x->what = TEX_QUERY;
	x->component = has(d, MOD_HEIGHT)   ? QUERY_HEIGHT
		       : has(d, MOD_DEPTH)  ? QUERY_DEPTH
		       : has(d, MOD_LAYERS) ? QUERY_LAYERS
		       : has(d, MOD_LEVELS) ? QUERY_LEVELS
					    : QUERY_WIDTH;
	x->level = level ? source(d, &i->op[2], T_U32, 4) : NONE;
	return object(d, x, o) && values(d, x, &i->op[0], true, 4);
}

static bool surface(struct decoder *d, struct texture_op *x)
{
	static const uint8_t known[] = {MOD_BFRAG, MOD_G1D, MOD_G2D, MOD_G3D, MOD_A1D, MOD_A2D, MOD_TRAP,
		MOD_CLAMP, MOD_ZERO, MOD_CA, MOD_CG, MOD_CS, MOD_CV, MOD_WB, MOD_WT};
	const struct ptx_insn *i = d->i;
	bool load = op_is(d, "suld");
	if (i->m->unknown || !only_mods(i->m, known, sizeof known) || !has(d, MOD_BFRAG) ||
		i->m->ntypes != 1 || i->nop != 2 || !shape(d, x))
		return false;
	x->what = load ? SURF_LOAD : SURF_STORE;
	x->whole = true;
	x->bytes = (uint8_t)ptx_type_bytes(i->m->types[0]);
	x->outside = has(d, MOD_ZERO) ? OUT_ZERO : has(d, MOD_CLAMP) ? OUT_CLAMP : OUT_TRAP;
	if (!x->bytes || x->bytes > 8)
		return false;
	return place(d, x, &i->op[load ? 1 : 0]) &&
	       values(d, x, &i->op[load ? 0 : 1], load, x->bytes == 8 ? 8 : 4);
}

bool decode_texture(struct decoder *d)
{
	bool tex = op_is(d, "tex") || op_is(d, "tld4"), asks = op_is(d, "txq") || op_is(d, "suq"),
	     surf = op_is(d, "suld") || op_is(d, "sust");
	if (!tex && !asks && !surf)
		return false;
	struct texture_op *x = arena_alloc(d->m->arena, sizeof *x);
	if (x && (tex ? texture(d, x) : asks ? query(d, x) : surface(d, x)))
		emit_x(d, x_texture)->p = x;
	else
		uncover(d);
	return true;
}
