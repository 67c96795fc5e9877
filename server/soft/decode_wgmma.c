/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding of wgmma: the matrix product of a warpgroup, its fence, and its groups.
 *
 * Thread rule: the caller holds the module's lock. */
#include "server/soft/decode.h"
#include "server/soft/exec_wgmma.h"
#include <stdio.h>
#include <string.h>

static bool types(const struct ptx_mnem *m, struct wgmma_op *x)
{
	if (m->ntypes != 3)
		return false;
	unsigned d = x->d_type = m->types[0], a = x->a_type = m->types[1], b = x->b_type = m->types[2];
	bool bytes = a == T_E4M3 || a == T_E5M2, integers = a == T_S8 || a == T_U8;
	x->k = a == T_B1 ? 256 : bytes || integers ? 32 : a == T_TF32 ? 8 : 16;
	if (a == T_F16 || bytes)
		return (d == T_F32 || d == T_F16) && (bytes ? b == T_E4M3 || b == T_E5M2 : a == b);
	if (a == T_BF16 || a == T_TF32)
		return d == T_F32 && a == b;
	return d == T_S32 && (integers ? b == T_S8 || b == T_U8 : a == T_B1 && b == T_B1);
}

/* .m64nNkK */
static bool shape(const struct ptx_mnem *m, struct wgmma_op *x)
{
	unsigned n, k;
	char behind;
	const char *s = strstr(m->text, ".m64n");
	if (!s || sscanf(s, ".m64n%3uk%3u%c", &n, &k, &behind) != 3 || behind != '.')
		return false;
	x->n = (uint16_t)n;
	x->nd = n / (x->d_type == T_F16 ? 4 : 2);
	bool integers = x->d_type == T_S32;
	return k == x->k && n && n <= WGMMA_WIDTH && n % (integers && n > 24 ? 16 : 8) == 0;
}

/* The registers of a fragment of 32-bit words. */
static bool words(struct decoder *d, const struct ptx_operand *o, uint32_t n, uint32_t *slot)
{
	if (o->kind != OP_VEC || o->addr || o->n != n)
		return false;
	for (uint32_t k = 0; k < n; k++) {
		const struct ptx_operand *r = &o->vec[k];
		unsigned type = r->kind == OP_REG ? d->f->regs[r->reg] : T_NONE;
		if (type == T_PRED || ptx_type_bytes(type) != 4 || r->part || r->field.n)
			return false;
		slot[k] = reg_slot(d, r->reg);
	}
	return true;
}

static bool literal(const struct ptx_operand *o, int64_t a, int64_t b)
{
	return o->kind == OP_INT && (o->off == a || o->off == b);
}

/* What follows the two matrices: scale-d; of floats the signs; of those of 16 bits which way they lie. */
static bool scales(struct decoder *d, struct wgmma_op *x)
{
	const struct ptx_insn *i = d->i;
	bool floats = x->d_type != T_S32, either = x->a_type == T_F16 || x->a_type == T_BF16;
	if (i->nop != 4u + 2 * floats + (either ? 2 - x->registers : 0))
		return false;
	const struct ptx_operand *o = &i->op[3];
	if (o->kind == OP_REG && d->f->regs[o->reg] == T_PRED && !o->neg)
		x->scale_d = source(d, o, T_PRED, 4);
	else if (literal(o, 0, 1))
		x->adds = o->off;
	else
		return false;
	if (floats && (!literal(&o[1], 1, -1) || !literal(&o[2], 1, -1)))
		return false;
	x->minus = floats && o[1].off != o[2].off;
	if (!either)
		return true;
	const struct ptx_operand *ways = &o[3], *last = &i->op[i->nop - 1];
	if ((!x->registers && !literal(ways, 0, 1)) || !literal(last, 0, 1))
		return false;
	x->a_column = !x->registers && ways->off;
	x->b_row = last->off;
	return true;
}

static bool product(struct decoder *d)
{
	static const uint8_t known[] = {MOD_MMA_ASYNC, MOD_SYNC, MOD_ALIGNED, MOD_M64, MOD_SATFINITE, MOD_AND,
		MOD_POPC};
	const struct ptx_insn *i = d->i;
	struct wgmma_op *x = arena_alloc(d->m->arena, sizeof *x);
	if (!x)
		return false;
	*x = (struct wgmma_op){.scale_d = NONE, .saturate = has(d, MOD_SATFINITE)};
	if (!only_mods(i->m, known, sizeof known) || !types(i->m, x) || !shape(i->m, x) || i->nop < 4 ||
		(x->saturate && (x->d_type != T_S32 || x->a_type == T_B1)) ||
		has(d, MOD_AND) != (x->a_type == T_B1) || has(d, MOD_POPC) != has(d, MOD_AND))
		return false;
	x->registers = i->op[1].kind == OP_VEC;
	if (!words(d, &i->op[0], x->nd, x->d) || !scales(d, x))
		return false;
	if (x->registers && !words(d, &i->op[1], 4, x->a))
		return false;
	if (!x->registers)
		x->a[0] = source(d, &i->op[1], T_B64, 8);
	x->b = source(d, &i->op[2], T_B64, 8);
	emit_x(d, x_wgmma)->p = x;
	return true;
}

bool decode_wgmma(struct decoder *d)
{
	static const uint8_t plain[] = {MOD_FENCE, MOD_COMMIT_GROUP, MOD_WAIT_GROUP, MOD_SYNC, MOD_ALIGNED};
	const struct ptx_insn *i = d->i;
	if (!op_is(d, "wgmma"))
		return false;
	all_lanes(d);
	bool wait = has(d, MOD_WAIT_GROUP),
			ok = has(d, MOD_MMA_ASYNC) ? product(d) : only_mods(i->m, plain, sizeof plain);
	if (ok && wait)
		ok = i->nop == 1 && i->op[0].kind == OP_INT && i->op[0].off >= 0 && i->op[0].off < INT32_MAX;
	else if (ok && !has(d, MOD_MMA_ASYNC))
		ok = !i->nop && has(d, MOD_FENCE) != has(d, MOD_COMMIT_GROUP);
	if (!ok)
		uncover(d);
	else if (wait)
		emit_x(d, x_wgmma_wait)->x = (uint32_t)i->op[0].off;
	else if (!has(d, MOD_MMA_ASYNC))
		emit_x(d, has(d, MOD_FENCE) ? x_wgmma_fence : x_wgmma_commit);
	return true;
}
