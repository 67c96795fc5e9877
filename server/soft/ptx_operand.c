/* SPDX-License-Identifier: Apache-2.0 */
/* The reader's operands: registers and their parts, numbers, addresses, names, lists of these.
 *
 * Thread rule: one parser belongs to one thread. */
#include "server/soft/ptx_parse.h"
#include <string.h>

void parse_label_later(struct parser *p, const struct token *t, struct ptx_operand *op, uint32_t *slot)
{
	struct pending *q = parse_alloc(p, sizeof *q);
	if (!q)
		return;
	*q = (struct pending){.name = t->s,
		.n = t->n,
		.line = t->line,
		.op = op,
		.slot = slot,
		.next = p->scope[p->depth].pending};
	p->scope[p->depth].pending = q;
}

static void offset(struct parser *p, struct ptx_operand *o)
{
	while (lex_is(&p->l, '+') || lex_is(&p->l, '-')) {
		bool minus = lex_is(&p->l, '-');
		lex_next(&p->l);
		while (lex_accept(&p->l, '-'))
			minus = !minus;
		if (p->l.t.kind != TK_INT) {
			lex_fail(&p->l, INVALID_PTX, "offset expected");
			return;
		}
		o->off = (int64_t)((uint64_t)o->off + (minus ? -p->l.t.value : p->l.t.value));
		lex_next(&p->l);
	}
}

/* The parts of a register behind it: .b0, .h32. */
static bool fields(struct parser *p, struct ptx_field *f)
{
	const struct token *t = &p->l.t;
	if (t->kind != TK_DOT || t->n < 2 || t->n > 5 || (*t->s != 'b' && *t->s != 'h'))
		return false;
	struct ptx_field out = {.bits = *t->s == 'b' ? 8 : 16, .n = (uint8_t)(t->n - 1)};
	for (unsigned k = 0; k < out.n; k++) {
		if (t->s[k + 1] < '0' || t->s[k + 1] > '7')
			return false;
		out.at[k] = (uint8_t)(t->s[k + 1] - '0');
	}
	*f = out;
	lex_next(&p->l);
	return true;
}

/* A component of a vector register or of a special one: the .x behind it. */
static unsigned component(struct parser *p)
{
	if (p->l.t.kind != TK_DOT || p->l.t.n != 1)
		return 0;
	const char *q = strchr("xrygzbwa", *p->l.t.s);
	return q && *q ? (unsigned)(q - "xrygzbwa") / 2 + 1 : 0;
}

/* The use of a name. The operand must be at its final place, since labels are filled in later. */
static void name_operand(struct parser *p, struct ptx_operand *o)
{
	struct token t = p->l.t;
	lex_next(&p->l);
	if (t.n == 1 && *t.s == '_') {
		o->kind = OP_SINK;
		return;
	}
	if (*t.s == '%') {
		unsigned part = component(p);
		size_t n = part && p->l.t.s == t.s + t.n + 1 ? t.n + 2u : t.n;
		unsigned sr = ptx_sreg_find(t.s, n);
		if (sr) {
			if (n != t.n)
				lex_next(&p->l);
			o->kind = OP_SREG;
			o->reg = sr;
			return;
		}
	}
	uint32_t r = register_find(p, t.s, t.n);
	if (r < PTX_MAX_REGS) {
		o->kind = OP_REG;
		o->reg = r;
		if (!fields(p, &o->field)) {
			o->part = (uint8_t)component(p);
			if (o->part)
				lex_next(&p->l);
		}
		offset(p, o);
		return;
	}
	struct symbol *y = symbol_find(p, t.s, t.n);
	if (!y && t.n == 7 && !memcmp(t.s, "WARP_SZ", 7)) {
		o->kind = OP_INT;
		o->off = 32;
	} else if (!y) {
		o->kind = OP_NAME;
		o->name = t.s;
		parse_label_later(p, &t, o, NULL);
	} else if (y->kind == SYM_VAR) {
		o->kind = OP_VAR;
		o->var = y->var;
		offset(p, o);
	} else if (y->kind == SYM_FUNC) {
		o->kind = OP_FUNC;
		o->func = y->func;
	} else if (y->kind == SYM_LABEL) {
		o->kind = OP_LABEL;
		o->reg = y->reg;
	} else if (y->kind == SYM_TABLE) {
		o->kind = OP_TABLE;
		o->table = y->table;
	}
}

static void list(struct parser *p, struct ptx_operand *o, char close);

static void number_operand(struct parser *p, struct ptx_operand *o)
{
	bool minus = false, invert = false;
	while (lex_is(&p->l, '-') || lex_is(&p->l, '+') || lex_is(&p->l, '~')) {
		minus ^= lex_is(&p->l, '-');
		invert |= lex_is(&p->l, '~');
		lex_next(&p->l);
	}
	struct token t = p->l.t;
	if (minus && !invert && t.kind == TK_NAME) {
		name_operand(p, o);
		o->minus = true;
		return;
	}
	lex_next(&p->l);
	if (t.kind == TK_INT) {
		o->kind = OP_INT;
		o->off = (int64_t)(minus ? -t.value : t.value);
		o->off = invert ? ~o->off : o->off;
		offset(p, o);
	} else if (t.kind == TK_FLT32) {
		o->kind = OP_FLT32;
		o->bits = t.value ^ (minus ? 1ull << 31 : 0);
	} else if (t.kind == TK_FLT64 || t.kind == TK_DECIMAL) {
		o->kind = OP_FLT64;
		o->bits = t.value ^ (minus ? 1ull << 63 : 0);
	} else {
		int n = t.n < 40 ? (int)t.n : 40;
		lex_fail(&p->l, INVALID_PTX, "operand expected before \"%.*s\"", n, t.s ? t.s : "");
	}
}

void parse_operand(struct parser *p, struct ptx_operand *o)
{
	if (lex_accept(&p->l, '[')) {
		list(p, o, ']');
		if (o->kind == OP_VEC && o->n == 1) {
			struct ptx_operand *only = o->vec;
			if (only->kind == OP_NAME) {
				lex_fail(&p->l, INVALID_PTX, "undefined name in an address");
				return;
			}
			*o = *only;
		}
		o->addr = true;
	} else if (lex_accept(&p->l, '{')) {
		list(p, o, '}');
	} else if (lex_accept(&p->l, '(')) {
		list(p, o, ')');
	} else if (lex_accept(&p->l, '!')) {
		parse_operand(p, o);
		o->neg = true;
	} else if (p->l.t.kind == TK_NAME) {
		name_operand(p, o);
	} else {
		number_operand(p, o);
	}
}

static void list(struct parser *p, struct ptx_operand *o, char close)
{
	if (++p->nest > PTX_MAX_DEPTH) {
		lex_fail(&p->l, INVALID_PTX, "operands nest too deep");
		return;
	}
	struct ptx_operand *v = NULL;
	uint32_t n = 0, cap = 0;
	while (!p->l.failed && !lex_is(&p->l, close)) {
		if (n == cap) {
			/* label uses inside keep the address of their operand: a list that grows is only one
			 * of arguments */
			uint32_t more = cap ? cap * 4 : 4;
			struct ptx_operand *w =
				more <= PTX_MAX_LIST ? parse_alloc(p, more * sizeof *w) : NULL;
			if (!w) {
				lex_fail(&p->l, INVALID_PTX, "list too long");
				return;
			}
			if (n)
				memcpy(w, v, n * sizeof *w);
			v = w;
			cap = more;
		}
		parse_operand(p, &v[n]);
		if (v[n].kind == OP_NAME) {
			lex_fail(&p->l, INVALID_PTX, "undefined name in a list of operands");
			return;
		}
		n++;
		if (!lex_accept(&p->l, ','))
			break;
	}
	lex_expect(&p->l, close);
	o->kind = OP_VEC;
	o->vec = v;
	o->n = n;
	p->nest--;
}
