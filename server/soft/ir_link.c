/* SPDX-License-Identifier: Apache-2.0 */
/* Linking the texts of a module: names across texts, offsets of shared variables, places and initial values
 * of global and constant ones.
 *
 * Thread rule: one thread links a module before anybody else sees it; ir_layout_shared wants the module's
 * lock. */
#include "server/soft/ir.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "server/soft/builtin.h"
#include "server/soft/memory.h"

enum { OUT_OF_MEMORY = 2, INVALID_PTX = 218, TABLE = 4096, VAR_ALIGN = 16, MAX_SHARED = 64 << 20 };

struct entry {
	const char *name;
	struct ptx_func *func;
	struct ptx_var *var;
	struct entry *next;
};
struct table {
	struct entry *bucket[TABLE];
};

static struct entry *find(struct table *t, const char *name, bool func)
{
	uint32_t h = 2166136261u;
	for (const char *s = name; *s; s++)
		h = (h ^ (unsigned char)*s) * 16777619u;
	for (struct entry *e = t->bucket[h % TABLE]; e; e = e->next)
		if (!strcmp(e->name, name) && !!e->func == func)
			return e;
	return NULL;
}

static bool enter(
	struct engine_module *m, struct table *t, const char *name, struct ptx_func *f, struct ptx_var *v)
{
	struct entry *e = arena_alloc(m->arena, sizeof *e);
	if (!e)
		return false;
	uint32_t h = 2166136261u;
	for (const char *s = name; *s; s++)
		h = (h ^ (unsigned char)*s) * 16777619u;
	*e = (struct entry){name, f, v, t->bucket[h % TABLE]};
	t->bucket[h % TABLE] = e;
	return true;
}

static int fail(struct engine_error *error, int code, const char *what, const char *name, unsigned line)
{
	error->code = code;
	error->line = line;
	snprintf(error->text, sizeof error->text, what, name);
	return code;
}

/* A definition beats a declaration, a strong one a weak one; two strong ones of different texts are an error.
 */
static int collect_funcs(struct engine_module *m, struct table *t, struct engine_error *error)
{
	for (unsigned u = 0; u < m->nunits; u++)
		for (struct ptx_func *f = m->units[u]->funcs; f; f = f->next) {
			struct entry *e = find(t, f->name, true);
			if (!e) {
				if (!enter(m, t, f->name, f, NULL))
					return fail(error, OUT_OF_MEMORY, "no memory for %s", f->name, 0);
			} else if (f->body && (!e->func->body || (e->func->weak && !f->weak))) {
				e->func = f;
			} else if (f->body && e->func->body && !f->weak && !e->func->weak &&
				   f->unit == e->func->unit) {
				return fail(error, INVALID_PTX, "function %.120s is defined twice", f->name,
					f->line);
			}
		}
	for (unsigned u = 0; u < m->nunits; u++)
		for (struct ptx_func *f = m->units[u]->funcs; f; f = f->next) {
			struct ptx_func *def = f->def; /* an alias */
			struct entry *e = find(t, def ? def->name : f->name, true);
			f->def = e ? e->func : f;
			if (f->body && !f->weak && !f->visible)
				f->def = f; /* private to its text */
			m->nfuncs++;
		}
	m->funcs = arena_alloc(m->arena, (m->nfuncs + 1) * sizeof *m->funcs);
	if (!m->funcs)
		return fail(error, OUT_OF_MEMORY, "no memory for %s", "functions", 0);
	unsigned n = 0;
	for (unsigned u = 0; u < m->nunits; u++)
		for (struct ptx_func *f = m->units[u]->funcs; f; f = f->next) {
			f->index = n;
			m->funcs[n++] = f;
		}
	return 0;
}

static bool placed_space(const struct ptx_var *v)
{
	return v->space == SP_GLOBAL || v->space == SP_CONST;
}

static int collect_vars(struct engine_module *m, struct table *t, struct engine_error *error)
{
	for (unsigned u = 0; u < m->nunits; u++)
		for (struct ptx_var *v = m->units[u]->vars; v; v = v->next) {
			bool global = v->visible || v->is_extern || v->weak || v->common;
			struct entry *e = global && placed_space(v) ? find(t, v->name, false) : NULL;
			if (!global || !placed_space(v))
				continue;
			if (!e) {
				if (!enter(m, t, v->name, NULL, v))
					return fail(error, OUT_OF_MEMORY, "no memory for %s", v->name, 0);
			} else if ((!v->is_extern && e->var->is_extern) ||
				   (v->init && !e->var->init && !v->is_extern) ||
				   (v->common && e->var->common && v->bytes > e->var->bytes)) {
				e->var = v;
			}
		}
	for (unsigned u = 0; u < m->nunits; u++)
		for (struct ptx_var *v = m->units[u]->vars; v; v = v->next) {
			struct entry *e =
				(v->visible || v->is_extern || v->weak || v->common) && placed_space(v)
					? find(t, v->name, false)
					: NULL;
			v->def = e ? e->var : v;
		}
	return 0;
}

static int address_of(
	struct engine_module *m, struct table *t, const struct ptx_unit *u, const char *name, uint64_t *out)
{
	for (const struct ptx_var *v = u->vars; v; v = v->next)
		if (!strcmp(v->name, name)) {
			*out = v->def->address;
			return v->def->space == SP_SHARED || v->def->address ? 0 : -1;
		}
	for (const struct ptx_func *f = u->funcs; f; f = f->next)
		if (!strcmp(f->name, name)) {
			*out = ir_func_value(m, f->def);
			return 0;
		}
	struct entry *e = find(t, name, false);
	if (!e || !e->var->address)
		return -1;
	*out = e->var->address;
	return 0;
}

/* A name that nothing has: a part waits for those that do. */
static int missing(struct engine_module *m, const char *name, unsigned line, struct engine_error *error)
{
	struct ptx_missing *x = m->part ? arena_alloc(m->arena, sizeof *x) : NULL;
	error->unresolved = !x;
	if (!x)
		return fail(error, INVALID_PTX, "undefined name %.120s in an initialiser", name, line);
	*x = (struct ptx_missing){name, m->missing};
	m->missing = x;
	return 0;
}

static int fill(struct engine_module *m, struct table *t, const struct ptx_unit *u, struct ptx_var *v,
	struct engine_error *error)
{
	if (v->init)
		memcpy((void *)v->address, v->init, v->bytes);
	for (const struct ptx_reloc *r = v->relocs; r; r = r->next) {
		uint64_t a = 0;
		if (address_of(m, t, u, r->name, &a) && missing(m, r->name, v->line, error))
			return error->code;
		a = (a + (uint64_t)r->addend) >> r->shift;
		if (r->offset + r->size <= v->bytes && r->size <= 8)
			memcpy((void *)(v->address + r->offset), &a, r->size);
	}
	return 0;
}

/* Variables of functions (static ones) are listed like those of their text. */
static void hoist(struct ptx_unit *u)
{
	struct ptx_var **end = &u->vars;
	while (*end)
		end = &(*end)->next;
	for (struct ptx_func *f = u->funcs; f; f = f->next)
		for (struct ptx_var **p = &f->vars; *p;) {
			struct ptx_var *v = *p;
			if (!placed_space(v)) {
				p = &v->next;
				continue;
			}
			*p = v->next;
			v->next = NULL;
			*end = v;
			end = &v->next;
		}
}

static int place(struct engine_module *m, struct table *t, struct engine_error *error)
{
	uint64_t size[3] = {0}, at[3];
	for (int pass = 0; pass < 2; pass++) {
		for (int k = 0; pass && k < 3; k++) {
			if (!size[k])
				continue;
			m->memory[k] = soft_alloc(size[k], 4096);
			if (!m->memory[k])
				return fail(error, OUT_OF_MEMORY, "no device memory for %s",
					"the module's variables", 0);
		}
		memcpy(at, m->memory, sizeof at);
		for (unsigned u = 0; u < m->nunits; u++)
			for (struct ptx_var *v = m->units[u]->vars; v; v = v->next) {
				if (!placed_space(v) || v->def != v || v->is_extern || !v->bytes)
					continue;
				unsigned k = v->space == SP_CONST ? 1 : v->managed ? 2 : 0;
				uint64_t align = v->align > VAR_ALIGN ? v->align : VAR_ALIGN,
					 *p = pass ? &at[k] : &size[k];
				*p = (*p + align - 1) & ~(align - 1);
				if (pass)
					v->address = *p;
				*p += v->bytes;
				if (!pass && *p > PTX_MAX_VAR * 64)
					return fail(error, OUT_OF_MEMORY, "variable %.120s is too large",
						v->name, v->line);
				m->nglobals += pass;
				m->const_bytes += pass && k == 1 ? v->bytes : 0;
			}
	}
	m->globals = arena_alloc(m->arena, (m->nglobals + 1) * sizeof *m->globals);
	if (!m->globals)
		return fail(error, OUT_OF_MEMORY, "no memory for %s", "variables", 0);
	unsigned n = 0;
	for (unsigned u = 0; u < m->nunits; u++)
		for (struct ptx_var *v = m->units[u]->vars; v; v = v->next)
			if (v->address && placed_space(v) && v->def == v) {
				m->globals[n++] = v;
				int r = fill(m, t, m->units[u], v, error);
				if (r)
					return r;
			}
	return 0;
}

static void each_shared(struct ptx_func *f, uint64_t *at, uint32_t mark)
{
	for (uint32_t k = 0; k < f->ninsns; k++)
		for (unsigned n = 0; n < f->insns[k].nop; n++) {
			const struct ptx_operand *o = &f->insns[k].op[n];
			struct ptx_var *v = o->kind == OP_VAR ? o->var : NULL;
			if (!v || v->space != SP_SHARED || v->is_extern || !v->bytes || v->spilled ||
				v->mark == mark)
				continue;
			v->mark = mark;
			*at = (*at + v->align - 1) & ~(uint64_t)(v->align - 1);
			v->address = *at;
			*at += v->bytes;
			*at = *at < MAX_SHARED ? *at : MAX_SHARED;
			if (mark == UINT32_MAX)
				v->spilled = true; /* fixed for every kernel */
		}
}

/* What functions other than kernels use has one place for all kernels, at the start. */
static void layout_device_shared(struct engine_module *m)
{
	uint64_t at = 0;
	for (unsigned k = 0; k < m->nfuncs; k++)
		if (m->funcs[k]->body && !m->funcs[k]->entry)
			each_shared(m->funcs[k], &at, UINT32_MAX);
	m->device_shared = (uint32_t)((at + 15) & ~15ull);
}

uint32_t ir_layout_shared(struct engine_module *m, struct ptx_func *entry)
{
	bool calls = m->device_shared && entry->ninsns;
	uint64_t at = 0;
	if (calls) { /* only kernels that call something, or name such a variable, carry it */
		calls = false;
		for (uint32_t k = 0; k < entry->ninsns; k++) {
			calls |= !strcmp(entry->insns[k].m->opcode, "call");
			for (unsigned n = 0; n < entry->insns[k].nop; n++) {
				const struct ptx_operand *o = &entry->insns[k].op[n];
				calls |= o->kind == OP_VAR && o->var->space == SP_SHARED && o->var->spilled;
			}
		}
		at = calls ? m->device_shared : 0;
	}
	each_shared(entry, &at, entry->index + 1);
	return (uint32_t)at;
}

struct ptx_func *ir_func_at(const struct engine_module *m, uint64_t value)
{
	uint64_t index = (value >> IR_FUNC_SHIFT & ((1u << (IR_MODULE_SHIFT - IR_FUNC_SHIFT)) - 1)) - 1;
	if (value >> IR_MODULE_SHIFT != m->id || index >= m->nfuncs || value & ((1u << IR_FUNC_SHIFT) - 1))
		return NULL;
	return m->funcs[index];
}

int ir_link(struct engine_module *m, struct engine_error *error)
{
	struct table *t = calloc(1, sizeof *t);
	if (!t)
		return fail(error, OUT_OF_MEMORY, "no memory for %s", "the module", 0);
	for (unsigned u = 0; u < m->nunits; u++)
		hoist(m->units[u]);
	int r = collect_funcs(m, t, error);
	r = r ? r : collect_vars(m, t, error);
	r = r ? r : place(m, t, error);
	if (!r)
		layout_device_shared(m);
	free(t);
	return r;
}
