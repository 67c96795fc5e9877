/* SPDX-License-Identifier: Apache-2.0 */
/* The core of decoding: emitting operations, and noting what cannot be.
 *
 * Thread rule: the caller holds the module's lock. */
#include "server/soft/decode.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "server/soft/check.h"

enum { MAX_UNCOVERED = 2048 };

void *grow(void *p, uint32_t *cap, uint32_t need, size_t each)
{
	if (need <= *cap)
		return p;
	uint32_t c = *cap * 2 > need ? *cap * 2 : need < 16 ? 16 : need;
	void *q = reallocarray(p, c, each);
	if (q)
		*cap = c;
	return q;
}

struct op *emit_raw(struct decoder *d)
{
	static struct op scrap;
	struct op *o = grow(d->ops, &d->cops, d->nops + 1, sizeof *o);
	if (!o) {
		d->failed = true;
		return &scrap;
	}
	d->ops = o;
	o += d->nops++;
	*o = (struct op){
		.line = d->i ? d->i->line : 0, .d = NONE, .a = NONE, .b = NONE, .c = NONE, .e = NONE};
	return o;
}

struct op *emit_x(struct decoder *d, handler *fn)
{
	struct op *o = emit_raw(d);
	o->fn = o->pfn = fn;
	return o;
}

struct op *emit(struct decoder *d, enum handler_id h)
{
	if (h == H_NONE) {
		uncover(d);
		return emit_x(d, x_uncovered);
	}
	struct op *o = emit_raw(d);
	o->fn = d->handlers[h].full;
	o->pfn = d->handlers[h].partial;
	return o;
}

struct op *emit_name(struct decoder *d, const char *fmt, ...)
{
	char b[128];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(b, sizeof b, fmt, ap);
	va_end(ap);
	return emit(d, handlers_find(b));
}

struct op *emit3(struct decoder *d, const char *name, uint32_t dst, uint32_t a, uint32_t b, uint32_t c)
{
	struct op *o = emit(d, handlers_find(name));
	o->d = dst;
	o->a = a;
	o->b = b;
	o->c = c;
	return o;
}

void emit_check(struct decoder *d, unsigned kind, unsigned bytes, unsigned each)
{
	if (!check_on())
		return;
	struct op *o = emit_x(d, x_checked);
	o->x = bytes;
	o->y = kind | each << 8;
}

void emit_branch(struct decoder *d, enum handler_id h, uint32_t pred, uint32_t label)
{
	struct op *o = emit(d, h);
	o->a = pred;
	struct fixup *x = grow(d->fixups, &d->cfixups, d->nfixups + 1, sizeof *x);
	if (!x) {
		d->failed = true;
		return;
	}
	d->fixups = x;
	x[d->nfixups++] = (struct fixup){d->nops - 1, label};
}

/* Why, where it is not just missing. */
static const char *reason(const struct ptx_insn *i)
{
	static const struct {
		const char *opcode, *why;
	} t[] = {{"tcgen05", " (sm_100a's alone)"},
		{"multimem", " (there is no multicast memory)"}};
	for (size_t k = 0; k < sizeof t / sizeof *t; k++)
		if (!strcmp(i->m->opcode, t[k].opcode))
			return t[k].why;
	return "";
}

/* What a call wants, and nobody has. */
static const char *wanted(const struct ptx_insn *i)
{
	for (unsigned k = 0; k < i->nop && k < 2 && !strcmp(i->m->opcode, "call"); k++)
		if (i->op[k].kind == OP_FUNC)
			return i->op[k].func->name;
	return NULL;
}

/* Notes the instruction, once for each mnemonic. */
void uncover(struct decoder *d)
{
	d->uncovered = true;
	if (!d->i)
		return;
	const char *before = d->c->uncovered, *name = d->i->m->text;
	size_t n = strlen(name);
	for (const char *p = before; p && (p = strstr(p, name)); p += n)
		if ((p == before || p[-1] == ' ') && p[n] == ' ')
			return;
	if (before && strlen(before) > MAX_UNCOVERED)
		return;
	char *text;
	const char *of = wanted(d->i);
	if (asprintf(&text, "%s%s%s%s%.80s at line %u%s", before ? before : "", before ? ", " : "", name,
		    of ? " of " : "", of ? of : "", d->i->line, reason(d->i)) < 0) {
		d->failed = true;
		return;
	}
	free(d->c->uncovered);
	d->c->uncovered = text;
}

bool only_mods(const struct ptx_mnem *m, const uint8_t *mods, unsigned n)
{
	if (m->unknown)
		return false;
	for (unsigned i = 0; i < m->nmods; i++) {
		bool ok = false;
		for (unsigned k = 0; k < n; k++)
			ok |= m->mods[i] == mods[k];
		if (!ok)
			return false;
	}
	return true;
}

void emit_mode(struct decoder *d, unsigned csr)
{
	if (!csr)
		return;
	struct op *o = emit(d, H_moded);
	o->y = csr;
	o->x = 2;
}

unsigned mode_of(const struct ptx_mnem *m, bool flush)
{
	unsigned csr = flush && ptx_has(m, MOD_FTZ) ? 0x8040 : 0;
	return csr | (ptx_has(m, MOD_RZ)          ? 0x6000
			     : ptx_has(m, MOD_RM) ? 0x2000
			     : ptx_has(m, MOD_RP) ? 0x4000
						  : 0);
}
