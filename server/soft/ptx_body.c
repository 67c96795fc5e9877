/* SPDX-License-Identifier: Apache-2.0 */
/* The reader's function bodies: scopes, labels, jump tables, instructions.
 *
 * Thread rule: one parser belongs to one thread. */
#include "server/soft/ptx_parse.h"
#include <string.h>

static void label(struct parser *p, const struct token *t)
{
	struct ptx_func *f = p->f;
	struct symbol *y = symbol_find(p, t->s, t->n);
	if (y && y->depth == p->depth && y->kind == SYM_LABEL) {
		lex_fail(
			&p->l, INVALID_PTX, "label \"%.*s\" appears twice", t->n < 80 ? (int)t->n : 80, t->s);
		return;
	}
	y = symbol_add(p, t->s, t->n, SYM_LABEL);
	if (!y)
		return;
	if (f->nlabels == f->clabels) {
		uint32_t cap = f->clabels ? f->clabels * 2 : 16;
		uint32_t *l = parse_alloc(p, cap * sizeof *l);
		if (!l)
			return;
		if (f->nlabels)
			memcpy(l, f->labels, f->nlabels * sizeof *l);
		f->labels = l;
		f->clabels = cap;
	}
	y->reg = f->nlabels;
	f->labels[f->nlabels++] = f->ninsns;
}

/* NAME: .branchtargets A, B; The others say nothing that the engine needs. */
static void table(struct parser *p, const struct token *t)
{
	bool branch = lex_word(&p->l, TK_DOT, "branchtargets");
	if (!branch) {
		struct symbol *y = symbol_add(p, t->s, t->n, SYM_TABLE);
		struct ptx_table *none = parse_alloc(p, sizeof *none);
		if (y)
			y->table = none;
		while (p->l.t.kind != TK_END && !lex_is(&p->l, ';'))
			lex_next(&p->l);
		lex_expect(&p->l, ';');
		return;
	}
	struct ptx_table *b = parse_alloc(p, sizeof *b);
	struct symbol *y = symbol_add(p, t->s, t->n, SYM_TABLE);
	struct lexer at = p->l;
	uint32_t n = 0;
	while (p->l.t.kind != TK_END && !lex_is(&p->l, ';')) { /* count first: the slots must not move */
		n += p->l.t.kind == TK_NAME;
		lex_next(&p->l);
	}
	if (n > PTX_MAX_LIST)
		lex_fail(&p->l, INVALID_PTX, "jump table too long");
	if (p->l.failed || !b || !y)
		return;
	b->label = parse_alloc(p, (n + 1) * sizeof *b->label);
	if (!b->label)
		return;
	p->l = at;
	lex_next(&p->l);
	for (; p->l.t.kind == TK_NAME; lex_accept(&p->l, ',')) {
		struct symbol *l = symbol_find(p, p->l.t.s, p->l.t.n);
		if (l && l->kind == SYM_LABEL)
			b->label[b->n] = l->reg;
		else
			parse_label_later(p, &p->l.t, NULL, &b->label[b->n]);
		b->n++;
		lex_next(&p->l);
	}
	lex_expect(&p->l, ';');
	b->name = y->name;
	y->table = b;
	b->next = p->f->tables;
	p->f->tables = b;
}

static struct ptx_insn *next_insn(struct parser *p)
{
	struct ptx_func *f = p->f;
	if (f->ninsns == f->cinsns) {
		uint32_t cap = f->cinsns ? f->cinsns * 2 : 64;
		struct ptx_insn *n = cap <= PTX_MAX_INSNS ? parse_alloc(p, cap * sizeof *n) : NULL;
		if (!n) {
			lex_fail(&p->l, INVALID_PTX, "function too long");
			return NULL;
		}
		if (f->ninsns)
			memcpy(n, f->insns, f->ninsns * sizeof *n);
		f->insns = n;
		f->cinsns = cap;
	}
	return &f->insns[f->ninsns++];
}

/* How many operands can follow: commas and bars up to the semicolon, so that the array never moves. */
static unsigned count_operands(const struct parser *p)
{
	unsigned n = 1;
	for (const char *q = p->l.t.s; q < p->l.end && *q != ';'; q++)
		n += *q == ',' || *q == '|';
	return n;
}

static void instruction(struct parser *p)
{
	uint32_t pred = 0;
	bool neg = false;
	if (lex_accept(&p->l, '@')) {
		neg = lex_accept(&p->l, '!');
		uint32_t r = p->l.t.kind == TK_NAME ? register_find(p, p->l.t.s, p->l.t.n) : PTX_MAX_REGS;
		if (r >= PTX_MAX_REGS || p->f->regs[r] != T_PRED) {
			lex_fail(&p->l, INVALID_PTX, "predicate register expected");
			return;
		}
		pred = r + 1;
		lex_next(&p->l);
	}
	if (p->l.t.kind != TK_NAME) {
		lex_fail(&p->l, INVALID_PTX, "instruction expected before \"%.*s\"",
			p->l.t.n < 40 ? (int)p->l.t.n : 40, p->l.t.s);
		return;
	}
	uint32_t line = p->l.t.line;
	lex_mnemonic(&p->l);
	const struct ptx_mnem *m = parse_mnemonic(p, p->l.t.s, p->l.t.n);
	lex_next(&p->l);
	if (!m)
		return;
	unsigned n = 0, most = count_operands(p);
	if (most > PTX_MAX_OPERANDS * 64)
		lex_fail(&p->l, INVALID_PTX, "too many operands");
	struct ptx_operand *op =
		!lex_is(&p->l, ';') && !p->l.failed ? parse_alloc(p, most * sizeof *op) : NULL;
	while (!p->l.failed && !lex_is(&p->l, ';')) {
		if (n == most || n == PTX_MAX_OPERANDS) {
			lex_fail(&p->l, INVALID_PTX, "too many operands");
			return;
		}
		parse_operand(p, &op[n]);
		bool dual = lex_is(&p->l, '|');
		op[n++].dual = dual;
		if (!dual && !lex_is(&p->l, ','))
			break;
		lex_next(&p->l);
	}
	lex_expect(&p->l, ';');
	struct ptx_insn *i = p->l.failed ? NULL : next_insn(p);
	if (!i)
		return;
	*i = (struct ptx_insn){
		.m = m, .op = op, .line = line, .pred = pred, .nop = (uint16_t)n, .pred_neg = neg};
	parse_check_operands(p, i);
}

static void directive(struct parser *p)
{
	if (lex_word(&p->l, TK_DOT, "loc") || lex_word(&p->l, TK_DOT, "file")) {
		parse_position(p);
	} else if (lex_word(&p->l, TK_DOT, "section")) {
		parse_skip_section(p);
	} else if (lex_word(&p->l, TK_DOT, "reg") || lex_word(&p->l, TK_DOT, "param") ||
		   lex_word(&p->l, TK_DOT, "local") || lex_word(&p->l, TK_DOT, "shared") ||
		   lex_word(&p->l, TK_DOT, "global") || lex_word(&p->l, TK_DOT, "const")) {
		parse_variables(p, false, false, false, false);
	} else if (lex_word(&p->l, TK_DOT, "extern")) {
		lex_next(&p->l);
		parse_variables(p, true, false, false, false);
	} else if (lex_word(&p->l, TK_DOT, "pragma") || lex_word(&p->l, TK_DOT, "maxntid") ||
		   lex_word(&p->l, TK_DOT, "minnctapersm")) {
		while (p->l.t.kind != TK_END && !lex_is(&p->l, ';'))
			lex_next(&p->l);
		lex_accept(&p->l, ';');
	} else {
		lex_fail(&p->l, INVALID_PTX, "unknown directive .%.*s", p->l.t.n < 40 ? (int)p->l.t.n : 40,
			p->l.t.s);
	}
}

/* After the opening brace; takes the closing one. The caller opened and closes the function's outermost
 * scope. */
void parse_body(struct parser *p)
{
	unsigned depth = p->depth;
	while (p->l.t.kind != TK_END) {
		if (lex_accept(&p->l, '{')) {
			if (!scope_open(p))
				return;
		} else if (lex_accept(&p->l, '}')) {
			if (p->depth == depth)
				return;
			scope_close(p);
		} else if (p->l.t.kind == TK_DOT) {
			directive(p);
		} else if (lex_accept(&p->l, ';')) {
			continue;
		} else if (p->l.t.kind == TK_NAME) {
			const char *q = p->l.p;
			while (q < p->l.end && (*q == ' ' || *q == '\t'))
				q++;
			if (q < p->l.end && *q == ':' && !(p->l.end - q > 1 && q[1] == ':')) {
				struct token t = p->l.t;
				lex_next(&p->l);
				lex_next(&p->l);
				if (lex_word(&p->l, TK_DOT, "branchtargets") ||
					lex_word(&p->l, TK_DOT, "calltargets") ||
					lex_word(&p->l, TK_DOT, "callprototype"))
					table(p, &t);
				else
					label(p, &t);
			} else {
				instruction(p);
			}
		} else {
			instruction(p);
		}
	}
	lex_fail(&p->l, INVALID_PTX, "function without an end");
}
