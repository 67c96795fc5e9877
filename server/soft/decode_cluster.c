/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding of what asks where a block of the cluster has its shared memory: mapa, getctarank.
 *
 * Thread rule: the caller holds the module's lock. */
#include "server/soft/decode.h"

static bool usual(const struct decoder *d, unsigned operands)
{
	const struct ptx_insn *i = d->i;
	return i->nop == operands && i->m->ntypes == 1 && !i->m->nmods &&
	       (!i->m->nspaces || (i->m->nspaces == 1 && i->m->space[0] == SP_CLUSTER));
}

bool decode_cluster(struct decoder *d)
{
	const struct ptx_insn *i = d->i;
	bool generic = !i->m->nspaces, mapa = op_is(d, "mapa");
	if (!mapa && !op_is(d, "getctarank"))
		return false;
	if (!usual(d, mapa ? 3 : 2)) {
		uncover(d);
		return true;
	}
	/* the type is that of the address; getctarank's result has 32 bits */
	unsigned w = lane_bytes(i->m->types[0]);
	w = !mapa && i->op[1].kind == OP_REG ? lane_bytes(d->f->regs[i->op[1].reg]) : w;
	if (generic && w != 8) {
		uncover(d);
		return true;
	}
	uint32_t a = source(d, &i->op[1], w == 8 ? T_U64 : T_U32, w),
		 b = mapa ? source(d, &i->op[2], T_U32, 4) : NONE,
		 dst = target(d, &i->op[0], mapa ? w : 4, false);
	struct op *o = emit_x(d, mapa ? x_mapa : x_rank);
	o->d = dst;
	o->a = a;
	o->b = b;
	o->x = w == 8;
	o->y = generic;
	return true;
}
