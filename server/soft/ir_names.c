/* SPDX-License-Identifier: Apache-2.0 */
/* The names that texts share: what a module defines for others, and what it uses and does not have.
 *
 * Thread rule: reads a linked module, which is constant. */
#include <string.h>
#include "server/soft/builtin.h"
#include "server/soft/ir.h"
#include "server/soft/names.h"

struct visitor {
	bool (*visit)(void *arg, const struct engine_name *n);
	void *arg;
};

static bool tell(const struct visitor *v, const char *name, enum engine_name_kind kind, bool function)
{
	return v->visit(v->arg, &(struct engine_name){name, kind, function});
}

static bool defined(const struct visitor *v, const struct ptx_unit *u)
{
	for (const struct ptx_func *f = u->funcs; f; f = f->next) {
		bool alias = !f->body && f->def->body && strcmp(f->name, f->def->name);
		if ((f->body || alias) && (f->visible || f->weak) &&
			!tell(v, f->name, f->weak || alias ? ENGINE_NAME_WEAK : ENGINE_NAME_DEFINED, true))
			return false;
	}
	for (const struct ptx_var *x = u->vars; x; x = x->next)
		if ((x->visible || x->weak || x->common) && !x->is_extern &&
			(x->space == SP_GLOBAL || x->space == SP_CONST) &&
			!tell(v, x->name, x->visible && !x->weak ? ENGINE_NAME_DEFINED : ENGINE_NAME_WEAK,
				false))
			return false;
	return true;
}

/* An operand of an instruction, and those of its list: lists nest no deeper than the reader let them. */
static bool used(const struct visitor *v, const struct ptx_operand *o)
{
	if (o->kind == OP_FUNC && !o->func->def->body && builtin_find(o->func->name) == BUILTIN_NONE)
		return tell(v, o->func->name, ENGINE_NAME_USED, true);
	if (o->kind == OP_VAR && o->var->is_extern && o->var->def && o->var->def->is_extern &&
		(o->var->space == SP_GLOBAL || o->var->space == SP_CONST))
		return tell(v, o->var->name, ENGINE_NAME_USED, false);
	for (uint32_t k = 0; o->kind == OP_VEC && k < o->n; k++)
		if (!used(v, &o->vec[k]))
			return false;
	return true;
}

bool engine_names(struct engine_module *m, bool (*visit)(void *arg, const struct engine_name *n), void *arg)
{
	struct visitor v = {visit, arg};
	for (unsigned u = 0; u < m->nunits; u++)
		if (!defined(&v, m->units[u]))
			return false;
	for (unsigned k = 0; k < m->nfuncs; k++)
		for (uint32_t i = 0; i < m->funcs[k]->ninsns; i++)
			for (unsigned n = 0; n < m->funcs[k]->insns[i].nop; n++)
				if (!used(&v, &m->funcs[k]->insns[i].op[n]))
					return false;
	for (const struct ptx_missing *x = m->missing; x; x = x->next)
		if (!tell(&v, x->name, ENGINE_NAME_USED, false))
			return false;
	return true;
}
