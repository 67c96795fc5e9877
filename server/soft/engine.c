/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's modules and functions as the driver side sees them: loading, lookup, what a function needs.
 *
 * Thread rule: modules are independent; a module's lock guards decoding, which happens when a function is
 * first asked for. */
#include "server/soft/engine.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "server/soft/decode.h"
#include "server/soft/ir.h"
#include "server/soft/memory.h"
#include "server/soft/names.h"

enum {
	OUT_OF_MEMORY = 2,
	INVALID_VALUE = 1,
	MAX_TEXTS = 4096,
	MAX_REGISTERS = 255,
	MAX_THREADS_DEFAULT = 1024
};
#define MAX_ARENA ((size_t)4 << 30)

static _Atomic uint32_t module_ids;

static bool describe(struct engine_module *m, struct ptx_func *f, struct engine_function *e)
{
	struct engine_param *p = arena_alloc(m->arena, (f->nparams + 1) * sizeof *p);
	if (!p)
		return false;
	unsigned n = 0;
	for (const struct ptx_var *v = f->params; v; v = v->next)
		p[n++] = (struct engine_param){(uint32_t)v->address, (uint32_t)v->bytes};
	e->module = m;
	e->func = f;
	e->info = (struct engine_function_info){.name = f->name,
		.params = p,
		.nparams = n,
		.param_bytes = f->param_bytes,
		.const_bytes = m->const_bytes,
		.registers = 1,
		.max_threads = f->maxntid ? (int)f->maxntid : MAX_THREADS_DEFAULT,
		.ptx_version = f->unit->target};
	memcpy(e->info.required, f->reqntid, sizeof f->reqntid);
	memcpy(e->info.cluster, f->cluster, sizeof f->cluster);
	if (e->info.max_threads > MAX_THREADS_DEFAULT)
		e->info.max_threads = MAX_THREADS_DEFAULT;
	return true;
}

static int load(struct engine_module *m, const char *const *text, const size_t *n, unsigned count,
	struct engine_error *error)
{
	m->units = arena_alloc(m->arena, (count + 1) * sizeof *m->units);
	if (!m->units)
		return error->code = OUT_OF_MEMORY;
	for (unsigned u = 0; u < count; u++) {
		m->units[u] = ptx_read(m->arena, text[u], n[u], error);
		if (!m->units[u])
			return error->code;
		m->nunits++;
	}
	int r = ir_link(m, error);
	if (r)
		return r;
	for (unsigned k = 0; k < m->nfuncs; k++)
		m->nentries += m->funcs[k]->entry && m->funcs[k]->body && m->funcs[k]->def == m->funcs[k];
	m->entries = arena_alloc(m->arena, (m->nentries + 1) * sizeof *m->entries);
	if (!m->entries)
		return error->code = OUT_OF_MEMORY;
	unsigned e = 0;
	for (unsigned k = 0; k < m->nfuncs; k++)
		if (m->funcs[k]->entry && m->funcs[k]->body && m->funcs[k]->def == m->funcs[k] &&
			!describe(m, m->funcs[k], &m->entries[e++]))
			return error->code = OUT_OF_MEMORY;
	return 0;
}

static int module_new(const char *const *text, const size_t *n, unsigned count, bool part,
	struct engine_module **out, struct engine_error *error)
{
	struct engine_error unused;
	error = error ? error : &unused;
	*error = (struct engine_error){0};
	*out = NULL;
	struct engine_module *m = calloc(1, sizeof *m);
	if (m)
		m->arena = arena_create(MAX_ARENA);
	if (!m || !m->arena || count > MAX_TEXTS) {
		free(m);
		error->code = OUT_OF_MEMORY;
		snprintf(error->text, sizeof error->text, "no memory for the module");
		return error->code;
	}
	pthread_mutex_init(&m->lock, NULL);
	m->id = atomic_fetch_add(&module_ids, 1) + 1;
	m->part = part;
	int r = load(m, text, n, count, error);
	if (r) {
		if (!*error->text)
			snprintf(error->text, sizeof error->text, "no memory for the module");
		engine_module_unload(m);
		return r;
	}
	*out = m;
	return 0;
}

int engine_module_load(const char *const *text, const size_t *n, unsigned count, struct engine_module **out,
	struct engine_error *error)
{
	return module_new(text, n, count, false, out, error);
}

int engine_module_part(const char *text, size_t n, struct engine_module **out, struct engine_error *error)
{
	return module_new(&text, &n, 1, true, out, error);
}

void engine_module_unload(struct engine_module *m)
{
	if (!m)
		return;
	for (int k = 0; k < 3; k++)
		if (m->memory[k])
			soft_free(m->memory[k]);
	for (unsigned k = 0; k < m->nfuncs; k++) {
		struct code *c = m->funcs[k]->code;
		if (!c)
			continue;
		free(c->ops);
		free(c->inits);
		free(c->params);
		free(c->rets);
		free(c->uncovered);
	}
	pthread_mutex_destroy(&m->lock);
	arena_destroy(m->arena);
	free(m);
}

struct engine_function *engine_function_at(struct engine_module *m, unsigned i)
{
	return i < m->nentries ? &m->entries[i] : NULL;
}

struct engine_function *engine_function_find(struct engine_module *m, const char *name)
{
	for (unsigned i = 0; i < m->nentries; i++)
		if (!strcmp(m->entries[i].info.name, name))
			return &m->entries[i];
	return NULL;
}

/* An honest guess: the slots that the registers of a thread take, in words. */
static int registers(const struct code *c)
{
	uint32_t words = c->frame_bytes / SLOT32;
	return words < 1 ? 1 : words > MAX_REGISTERS ? MAX_REGISTERS : (int)words;
}

const struct engine_function_info *engine_function_info(const struct engine_function *f)
{
	struct engine_function *e = (struct engine_function *)f;
	if (atomic_load_explicit(&e->checked, memory_order_acquire))
		return &e->info;
	pthread_mutex_lock(&e->module->lock);
	if (!atomic_load(&e->checked)) {
		struct engine_error error = {0};
		int r = decode_function(e->module, e->func, &error);
		struct code *c = e->func->code;
		if (r || !c) {
			e->info.uncovered = "too large to be decoded";
		} else {
			e->info.uncovered = c->uncovered;
			e->info.shared_bytes = c->shared_bytes;
			e->info.local_bytes = c->local_bytes;
			e->info.registers = registers(c);
		}
		atomic_store_explicit(&e->checked, true, memory_order_release);
	}
	pthread_mutex_unlock(&e->module->lock);
	return &e->info;
}

bool engine_global_at(struct engine_module *m, unsigned i, const char **name, uint64_t *address,
	size_t *bytes, bool *managed)
{
	if (i >= m->nglobals)
		return false;
	const struct ptx_var *v = m->globals[i];
	if (name)
		*name = v->name;
	if (address)
		*address = v->address;
	if (bytes)
		*bytes = v->bytes;
	if (managed)
		*managed = v->managed;
	return true;
}

bool engine_global_find(
	struct engine_module *m, const char *name, uint64_t *address, size_t *bytes, bool *managed)
{
	for (unsigned i = 0; i < m->nglobals; i++)
		if (!strcmp(m->globals[i]->name, name))
			return engine_global_at(m, i, NULL, address, bytes, managed);
	return false;
}

bool engine_reference_find(struct engine_module *m, const char *name, bool surface, uint64_t **cell)
{
	for (unsigned i = 0; i < m->nglobals; i++) {
		const struct ptx_var *v = m->globals[i];
		if (strcmp(v->name, name) || v->type != (surface ? T_SURFREF : T_TEXREF) || !v->address)
			continue;
		*cell = (uint64_t *)(uintptr_t)v->address;
		return true;
	}
	return false;
}
