/* SPDX-License-Identifier: Apache-2.0 */
/* The reader's function bodies: scopes, labels, jump tables, instructions and their operands.
 *
 * Thread rule: one parser belongs to one thread. */
#include "server/soft/ptx_parse.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INVALID_PTX = 218 };

static const struct {
	const char *s;
	uint8_t mod;
} mods[] = {
#define M(e, s) {s, MOD_##e},
#include "server/soft/ptx_mods.inc"
#undef M
};

static bool piece_space(struct ptx_mnem *m, const char *s, size_t n)
{
	static const struct {
		const char *s;
		uint8_t sp;
	} t[] = {{"param", SP_PARAM}, {"param::entry", SP_PARAM}, {"param::func", SP_PARAM},
		{"local", SP_LOCAL}, {"shared", SP_SHARED}, {"shared::cta", SP_SHARED},
		{"shared::cluster", SP_CLUSTER}, {"global", SP_GLOBAL}, {"const", SP_CONST}};
	for (unsigned i = 0; i < sizeof t / sizeof *t; i++)
		if (strlen(t[i].s) == n && !memcmp(t[i].s, s, n)) {
			if (m->nspaces < 2)
				m->space[m->nspaces++] = t[i].sp;
			return true;
		}
	return false;
}

static void piece(struct ptx_mnem *m, const char *s, size_t n)
{
	unsigned type = ptx_type_find(s, n);
	if (type) {
		if (m->ntypes < 4)
			m->types[m->ntypes++] = (uint8_t)type;
		else
			m->unknown = true;
		return;
	}
	if (piece_space(m, s, n))
		return;
	if (n == 2 && s[0] == 'v' && (s[1] == '2' || s[1] == '4' || s[1] == '8')) {
		m->vec = (uint8_t)(s[1] - '0');
		return;
	}
	if (n > 4 && !memcmp(s, "m64n", 4)) /* the shapes of wgmma, which reads the rest itself */
		n = 4;
	for (unsigned i = 0; i < sizeof mods / sizeof *mods; i++)
		if (strlen(mods[i].s) == n && !memcmp(mods[i].s, s, n)) {
			m->set[mods[i].mod >> 6] |= 1ull << (mods[i].mod & 63);
			if (m->nmods < PTX_MAX_MODS)
				m->mods[m->nmods++] = mods[i].mod;
			else
				m->unknown = true;
			return;
		}
	m->unknown = true;
}

static const struct ptx_mnem *mnemonic(struct parser *p, const char *s, size_t n)
{
	uint32_t h = 2166136261u;
	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)s[i]) * 16777619u;
	struct ptx_mnem **b = &p->u->mnems[(h ^ h >> 8) & 255];
	for (struct ptx_mnem *m = *b; m; m = m->next)
		if (!strncmp(m->text, s, n) && !m->text[n])
			return m;
	struct ptx_mnem *m = parse_alloc(p, sizeof *m);
	if (!m)
		return NULL;
	m->text = parse_text(p, s, n);
	const char *dot = memchr(s, '.', n), *end = s + n;
	m->opcode = parse_text(p, s, dot ? (size_t)(dot - s) : n);
	if (!m->text || !m->opcode)
		return NULL;
	m->vec = 1;
	while (dot) {
		const char *q = memchr(dot + 1, '.', (size_t)(end - dot - 1));
		piece(m, dot + 1, (size_t)((q ? q : end) - dot - 1));
		dot = q;
	}
	m->next = *b;
	return *b = m;
}

static void wait_label(struct parser *p, const struct token *t, struct ptx_operand *op, uint32_t *slot)
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
		wait_label(p, &t, o, NULL);
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

static void operand(struct parser *p, struct ptx_operand *o)
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
		operand(p, o);
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
		operand(p, &v[n]);
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
			wait_label(p, &p->l.t, NULL, &b->label[b->n]);
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
	const struct ptx_mnem *m = mnemonic(p, p->l.t.s, p->l.t.n);
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
		operand(p, &op[n]);
		bool dual = lex_is(&p->l, '|');
		op[n++].dual = dual;
		if (!dual && !lex_is(&p->l, ','))
			break;
		lex_next(&p->l);
	}
	lex_expect(&p->l, ';');
	struct ptx_insn *i = p->l.failed ? NULL : next_insn(p);
	if (i)
		*i = (struct ptx_insn){
			.m = m, .op = op, .line = line, .pred = pred, .nop = (uint16_t)n, .pred_neg = neg};
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
