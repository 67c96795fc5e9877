/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the reader: scopes, register families, labels used before they are defined.
 *
 * Thread rule: one parser belongs to one thread. */
#include "server/soft/ptx_parse.h"
#include <ctype.h>
#include <string.h>

enum { OUT_OF_MEMORY = 2, FAMILY_DIGITS = 7 };

void *parse_alloc(struct parser *p, size_t n)
{
	void *m = arena_alloc(p->u->arena, n);
	if (!m)
		lex_fail(&p->l, OUT_OF_MEMORY, "no memory for the module");
	return m;
}

char *parse_text(struct parser *p, const char *s, size_t n)
{
	char *t = arena_text(p->u->arena, s, n);
	if (!t)
		lex_fail(&p->l, OUT_OF_MEMORY, "no memory for the module");
	return t;
}

static uint32_t hash(const char *s, size_t n)
{
	uint32_t h = 2166136261u;
	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)s[i]) * 16777619u;
	return h;
}

struct symbol *symbol_find(struct parser *p, const char *s, size_t n)
{
	uint32_t h = hash(s, n);
	for (struct symbol *y = p->bucket[h % SYMBOL_BUCKETS]; y; y = y->next)
		if (y->hash == h && y->n == n && y->kind != SYM_FAMILY && !memcmp(y->name, s, n))
			return y;
	return NULL;
}

static struct symbol *family_find(struct parser *p, const char *s, size_t n)
{
	uint32_t h = hash(s, n);
	for (struct symbol *y = p->bucket[h % SYMBOL_BUCKETS]; y; y = y->next)
		if (y->hash == h && y->n == n && y->kind == SYM_FAMILY && !memcmp(y->name, s, n))
			return y;
	return NULL;
}

struct symbol *symbol_add(struct parser *p, const char *s, size_t n, enum symbol_kind k)
{
	struct symbol *y = parse_alloc(p, sizeof *y);
	char *name = parse_text(p, s, n);
	if (!y || !name)
		return NULL;
	y->name = name;
	y->n = (uint32_t)n;
	y->hash = hash(s, n);
	y->kind = k;
	y->depth = p->depth;
	struct symbol **b = &p->bucket[y->hash % SYMBOL_BUCKETS];
	y->next = *b;
	*b = y;
	y->scope_next = p->scope[p->depth].symbols;
	p->scope[p->depth].symbols = y;
	return y;
}

bool scope_open(struct parser *p)
{
	if (p->depth + 1 >= PTX_MAX_DEPTH) {
		lex_fail(&p->l, INVALID_PTX, "scopes nest deeper than %d", PTX_MAX_DEPTH);
		return false;
	}
	p->scope[++p->depth] = (struct scope){0};
	return true;
}

void scope_close(struct parser *p)
{
	struct scope *s = &p->scope[p->depth];
	const struct pending *undefined = NULL; /* the first in the text, which is the last of the list */
	for (struct pending *q = s->pending, *next; q; q = next) {
		next = q->next;
		struct symbol *y = symbol_find(p, q->name, q->n);
		if (y && y->kind == SYM_LABEL && y->depth == p->depth) {
			if (q->op) {
				q->op->kind = OP_LABEL;
				q->op->reg = y->reg;
			} else {
				*q->slot = y->reg;
			}
		} else if (p->depth <= 1) {
			undefined = q;
		} else {
			q->next = p->scope[p->depth - 1].pending;
			p->scope[p->depth - 1].pending = q;
		}
	}
	if (undefined) {
		p->l.t.line = undefined->line;
		lex_fail(&p->l, INVALID_PTX, "Unknown symbol '%.*s'",
			undefined->n < 80 ? (int)undefined->n : 80, undefined->name);
	}
	for (struct symbol *y = s->symbols; y; y = y->scope_next) {
		struct symbol **b = &p->bucket[y->hash % SYMBOL_BUCKETS];
		while (*b !=
			y) /* at the head but for functions, which are added to the scope around theirs */
			b = &(*b)->next;
		*b = y->next;
	}
	p->depth--;
}

uint32_t register_find(struct parser *p, const char *s, size_t n)
{
	struct symbol *y = symbol_find(p, s, n);
	if (y)
		return y->kind == SYM_REG ? y->reg : PTX_MAX_REGS;
	uint32_t k = 0, scale = 1;
	for (size_t d = 1; d < n && d <= FAMILY_DIGITS && isdigit((unsigned char)s[n - d]); d++) {
		k += (uint32_t)(s[n - d] - '0') * scale;
		scale *= 10;
		y = family_find(p, s, n - d);
		if (y && k < y->count)
			return y->reg + k;
	}
	return PTX_MAX_REGS;
}
