/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding of control: calls and returns, barriers, fences, jump tables, traps.
 *
 * Thread rule: the caller holds the module's lock. */
#include "server/soft/decode.h"
#include "server/soft/builtin.h"
#include <stdlib.h>
#include <string.h>

enum { LEAST_ALIGN = 8, MAX_ALIGN = 4096 }; /* of alloca */

/* Arguments or results of a call as words; registers and literals get words of their own. */
static bool words(
	struct decoder *d, const struct ptx_operand *list, uint32_t n, struct param_words *out, bool args)
{
	for (uint32_t k = 0; k < n; k++) {
		const struct ptx_operand *o = &list[k];
		if (o->kind == OP_VAR && o->var->space == SP_PARAM && !o->off) {
			out[k].slot = param_slot(d, o->var);
			out[k].words = (uint32_t)((o->var->bytes + 7) / 8 * 2);
			continue;
		}
		if ((o->kind != OP_REG && o->kind != OP_INT && o->kind != OP_SINK) ||
			(!args && o->kind == OP_INT)) {
			uncover(d);
			return false;
		}
		unsigned w = o->kind == OP_REG ? lane_bytes(d->f->regs[o->reg]) : 4;
		out[k] = (struct param_words){slot_new(d, 4), 2};
		slot_new(d, 4);
		if (!args)
			continue;
		uint32_t s = source(d, o, w == 8 ? T_B64 : T_B32, w);
		emit3(d, w == 8 ? "stw_b64" : "stw_b32", out[k].slot, s, NONE, NONE);
	}
	return true;
}

static void call(struct decoder *d)
{
	const struct ptx_insn *i = d->i;
	static const uint8_t known[] = {MOD_UNI};
	unsigned at = i->nop > 1 && i->op[0].kind == OP_VEC ? 1 : 0;
	struct call_info *ci = arena_alloc(d->m->arena, sizeof *ci);
	if (!ci || at >= i->nop || !only_mods(i->m, known, 1)) {
		uncover(d);
		return;
	}
	const struct ptx_operand *to = &i->op[at], *args = at + 1 < i->nop && i->op[at + 1].kind == OP_VEC
								   ? &i->op[at + 1]
								   : NULL;
	ci->nrets = at ? i->op[0].n : 0;
	ci->nargs = args ? args->n : 0;
	ci->rets = arena_alloc(d->m->arena, (ci->nrets + 1) * sizeof *ci->rets);
	ci->args = arena_alloc(d->m->arena, (ci->nargs + 1) * sizeof *ci->args);
	if (!ci->rets || !ci->args) {
		d->failed = true;
		return;
	}
	if (to->kind == OP_FUNC) {
		ci->func = to->func->def ? to->func->def : to->func;
		if (!ci->func->body) {
			ci->builtin_id = builtin_find(ci->func->name);
			if (!ci->builtin_id)
				uncover(d);
		} else if (ci->func->nparams != ci->nargs || ci->func->nrets != ci->nrets) {
			uncover(d);
		}
	} else {
		ci->slot = source(d, to, T_B64, 8);
	}
	if (!words(d, i->op[0].vec, ci->nrets, ci->rets, false) ||
		(args && !words(d, args->vec, ci->nargs, ci->args, true)))
		return;
	struct op *o = emit_x(d, x_call);
	o->p = ci;
	for (uint32_t k = 0; k < ci->nrets; k++) {
		const struct ptx_operand *r = &i->op[0].vec[k];
		if (r->kind != OP_REG)
			continue;
		unsigned w = lane_bytes(d->f->regs[r->reg]);
		emit3(d, w == 8 ? "ldw_b64" : "ldw_b32", target(d, r, w, false), ci->rets[k].slot, NONE,
			NONE);
	}
}

/* bar.sync a, b; bar.arrive a, b; bar.red.popc.u32 d, a, b, p; barrier.* is spelled the same way. */
static void barrier(struct decoder *d)
{
	const struct ptx_insn *i = d->i;
	static const uint8_t known[] = {
		MOD_SYNC, MOD_ARRIVE, MOD_RED, MOD_ALIGNED, MOD_CTA, MOD_POPC, MOD_AND, MOD_OR};
	bool red = has(d, MOD_RED), arrive = has(d, MOD_ARRIVE);
	if (has(d, MOD_WARP)) {
		if (i->nop != 1) {
			uncover(d);
			return;
		}
		uint32_t a = source(d, &i->op[0], T_B32, 4);
		emit_x(d, x_warp_barrier)->a = a;
		return;
	}
	if (has(d, MOD_CLUSTER)) {
		static const uint8_t of_cluster[] = {MOD_CLUSTER, MOD_ARRIVE, MOD_WAIT, MOD_ALIGNED,
			MOD_RELAXED, MOD_RELEASE, MOD_ACQUIRE};
		if (i->nop || !only_mods(i->m, of_cluster, sizeof of_cluster)) {
			uncover(d);
		} else if (arrive) {
			emit_x(d, x_cluster_arrive);
		} else {
			uint32_t id = constant(d, CLUSTER_BARRIER, 4);
			struct op *o = emit_x(d, x_cluster_wait);
			o->a = id;
			o->x = BAR_SYNC;
		}
		return;
	}
	unsigned at = red ? 1 : 0, last = red ? i->nop - 1u : i->nop;
	if (!i->nop || i->nop > 4 || last <= at || last - at > 2 || !only_mods(i->m, known, sizeof known)) {
		uncover(d);
		return;
	}
	uint32_t id = source(d, &i->op[at], T_B32, 4),
		 count = last - at == 2 ? source(d, &i->op[at + 1], T_B32, 4) : NONE;
	uint32_t p = red ? source(d, &i->op[last], T_PRED, 4) : NONE,
		 dst = red ? target(d, &i->op[0], 4, false) : NONE;
	struct op *o = emit_x(d, x_barrier);
	o->a = id;
	o->b = count;
	o->c = p;
	o->d = dst;
	o->x = arrive             ? BAR_ARRIVE
	       : !red             ? BAR_SYNC
	       : has(d, MOD_POPC) ? BAR_POPC
	       : has(d, MOD_AND)  ? BAR_AND
				  : BAR_OR;
}

static void brx(struct decoder *d)
{
	const struct ptx_insn *i = d->i;
	if (i->nop != 2 || i->op[1].kind != OP_TABLE || !i->op[1].table->n) {
		uncover(d);
		return;
	}
	uint32_t a = source(d, &i->op[0], T_U32, 4);
	struct op *o = emit_x(d, x_brx);
	o->a = a;
	o->p = i->op[1].table;
	o->x = i->op[1].table->n;
}

/* alloca, stacksave, stackrestore: each lane has its own stack, and takes from its end. */
static bool dynamic_stack(struct decoder *d)
{
	bool alloca = op_is(d, "alloca"), save = op_is(d, "stacksave");
	const struct ptx_insn *i = d->i;
	if (!alloca && !save && !op_is(d, "stackrestore"))
		return false;
	unsigned w = lane_bytes(i->m->types[0]);
	bool aligned = alloca && i->nop == 3;
	if (i->nop != (alloca ? 2u + aligned : 1u) || i->m->ntypes != 1 || i->m->nmods ||
		(aligned && (i->op[2].kind != OP_INT || i->op[2].off < 1 || i->op[2].off > MAX_ALIGN ||
				    (i->op[2].off & (i->op[2].off - 1))))) {
		uncover(d);
		return true;
	}
	uint32_t a = save ? NONE : source(d, &i->op[alloca ? 1 : 0], i->m->types[0], w),
		 dst = alloca || save ? target(d, &i->op[0], w, false) : NONE;
	struct op *o = emit_x(d, alloca ? x_alloca : save ? x_stack_save : x_stack_restore);
	o->d = dst;
	o->a = a;
	o->x = w;
	o->imm = aligned && i->op[2].off > LEAST_ALIGN ? i->op[2].off : LEAST_ALIGN;
	return true;
}

bool decode_flow(struct decoder *d)
{
	if (op_is(d, "ret")) {
		if (d->c->dynamic_stack && !d->f->entry)
			emit_x(d, x_stack_leave)->a = d->stack;
		emit_x(d, d->f->entry ? x_exit : x_ret);
	} else if (dynamic_stack(d))
		return true;
	else if (op_is(d, "exit"))
		emit_x(d, x_exit);
	else if (op_is(d, "call"))
		call(d);
	else if (op_is(d, "bar") || op_is(d, "barrier"))
		barrier(d);
	else if (op_is(d, "brx"))
		brx(d);
	else if (op_is(d, "trap"))
		emit_x(d, x_trap);
	else if (op_is(d, "membar") || op_is(d, "fence"))
		emit_x(d, x_fence);
	else if (op_is(d, "brkpt") || op_is(d, "pmevent") || op_is(d, "setmaxnreg") ||
		 op_is(d, "griddepcontrol"))
		emit_x(d, x_nop);
	else if (op_is(d, "nanosleep") && d->i->nop == 1) {
		uint32_t a = source(d, &d->i->op[0], T_U32, 4);
		emit_x(d, x_nanosleep)->a = a;
	} else {
		return false;
	}
	return true;
}
