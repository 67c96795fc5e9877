/* SPDX-License-Identifier: Apache-2.0 */
/* The reader's module level: version and target, linkage, function headers, what is skipped (debug sections,
 * file tables).
 *
 * Thread rule: one call reads one text; calls are independent. */
#include "server/soft/names.h"
#include "server/soft/ptx_parse.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TARGET = 100000, UNSUPPORTED_PTX_VERSION = 222, OUT_OF_MEMORY = 2 };

/* .section name { ... } */
void parse_skip_section(struct parser *p)
{
	while (p->l.t.kind != TK_END && !lex_is(&p->l, '{'))
		lex_next(&p->l);
	unsigned depth = 0;
	do {
		depth += lex_is(&p->l, '{');
		depth -= lex_is(&p->l, '}');
		lex_next(&p->l);
	} while (depth && p->l.t.kind != TK_END);
}

static void version(struct parser *p)
{
	/* 7.5 is one number to the lexer; its text is what counts */
	unsigned major = 0, minor = 0;
	char b[16];
	snprintf(b, sizeof b, "%.*s", p->l.t.n < 15 ? (int)p->l.t.n : 15, p->l.t.s);
	if ((p->l.t.kind != TK_DECIMAL && p->l.t.kind != TK_INT) || sscanf(b, "%u.%u", &major, &minor) < 1 ||
		major > 99 || minor > 9) {
		lex_fail(&p->l, INVALID_PTX, "malformed .version");
		return;
	}
	p->u->version = (int)(major * 10 + minor);
	if (p->u->version > PTX_MAX_VERSION)
		lex_fail(&p->l, UNSUPPORTED_PTX_VERSION,
			"PTX version %u.%u is newer than this device reads (%d.%d)", major, minor,
			PTX_MAX_VERSION / 10, PTX_MAX_VERSION % 10);
	lex_next(&p->l);
}

static void target(struct parser *p)
{
	do {
		const char *s = p->l.t.s; /* no NUL ends it */
		unsigned sm = 0;
		for (uint32_t k = 3; p->l.t.kind == TK_NAME && k < p->l.t.n && s[k] >= '0' &&
				s[k] <= '9'; k++)
			sm = sm < MAX_TARGET ? sm * 10 + (unsigned)(s[k] - '0') : sm;
		if (sm && !memcmp(s, "sm_", 3)) {
			p->u->target = (int)sm;
			if (!engine_target_known(sm))
				lex_fail(&p->l, INVALID_PTX, "Unsupported .target '%.*s'",
					p->l.t.n < 40 ? (int)p->l.t.n : 40, s);
		}
		lex_next(&p->l);
	} while (lex_accept(&p->l, ','));
}

/* The parameters in parentheses. Offsets follow the C layout that the driver's packed block has. */
static struct ptx_var *params(struct parser *p, unsigned *count, uint32_t *bytes)
{
	struct ptx_var *first = NULL, **end = &first;
	uint64_t at = 0;
	*count = 0;
	while (!p->l.failed && !lex_is(&p->l, ')')) {
		struct ptx_var *v = parse_param(p);
		if (!v)
			return NULL;
		at = (at + v->align - 1) & ~(uint64_t)(v->align - 1);
		v->address = at;
		v->formal = true;
		at += v->bytes;
		if (at > PTX_MAX_PARAM) {
			lex_fail(&p->l, INVALID_PTX, "parameters too large");
			return NULL;
		}
		*end = v;
		end = &v->next;
		if (++*count > PTX_MAX_LIST)
			lex_fail(&p->l, INVALID_PTX, "too many parameters");
		if (!lex_accept(&p->l, ','))
			break;
	}
	lex_expect(&p->l, ')');
	*bytes = (uint32_t)at;
	return first;
}

static void tuning(struct parser *p, struct ptx_func *f)
{
	while (p->l.t.kind == TK_DOT) {
		bool most = lex_word(&p->l, TK_DOT, "maxntid"), exact = lex_word(&p->l, TK_DOT, "reqntid"),
		     cluster = lex_word(&p->l, TK_DOT, "reqnctapercluster");
		if (lex_word(&p->l, TK_DOT, "pragma")) {
			while (p->l.t.kind != TK_END && !lex_is(&p->l, ';'))
				lex_next(&p->l);
			lex_accept(&p->l, ';');
			continue;
		}
		lex_next(&p->l);
		uint64_t d[3] = {1, 1, 1};
		for (unsigned i = 0; p->l.t.kind == TK_INT; i++) {
			if (i < 3)
				d[i] = p->l.t.value < 1 << 20 ? p->l.t.value : 1 << 20;
			lex_next(&p->l);
			if (!lex_accept(&p->l, ','))
				break;
		}
		if (lex_accept(&p->l, '(')) {
			while (p->l.t.kind != TK_END && !lex_is(&p->l, ')'))
				lex_next(&p->l);
			lex_expect(&p->l, ')');
		}
		uint64_t all = d[0] * d[1] * d[2];
		if (most)
			f->maxntid = all < 1 << 20 ? (uint32_t)all : 1 << 20;
		for (unsigned i = 0; exact && i < 3; i++)
			f->reqntid[i] = (uint32_t)d[i];
		for (unsigned i = 0; cluster && i < 3; i++)
			f->cluster[i] = (uint32_t)d[i];
	}
}

/* From .entry or .func on. */
static void function(struct parser *p, bool entry, bool visible, bool weak)
{
	struct ptx_func *f = parse_alloc(p, sizeof *f);
	if (!f)
		return;
	lex_next(&p->l);
	f->entry = entry;
	f->visible = visible;
	f->weak = weak;
	f->unit = p->u;
	f->line = p->l.t.line;
	if (lex_word(&p->l, TK_DOT, "attribute")) {
		lex_next(&p->l);
		while (p->l.t.kind != TK_END && !lex_accept(&p->l, ')'))
			lex_next(&p->l);
	}
	p->f = f;
	uint32_t unused;
	if (!scope_open(p))
		return;
	if (lex_accept(&p->l, '('))
		f->rets = params(p, &f->nrets, &unused);
	if (p->l.t.kind != TK_NAME) {
		lex_fail(&p->l, INVALID_PTX, "name of a function expected");
		return;
	}
	struct token t = p->l.t;
	lex_next(&p->l);
	if (lex_accept(&p->l, '('))
		f->params = params(p, &f->nparams, &f->param_bytes);
	tuning(p, f);
	f->name = parse_text(p, t.s, t.n);
	/* The name belongs to the module, not to the function's own scope, and it must be known inside for
	 * recursion. */
	unsigned depth = p->depth;
	struct symbol *y = symbol_find(p, t.s, t.n);
	if (!y || y->depth || y->kind != SYM_FUNC) {
		p->depth = 0;
		y = symbol_add(p, t.s, t.n, SYM_FUNC);
		p->depth = depth;
	}
	if (p->l.failed)
		return;
	if (y)
		y->func = f;
	if (lex_accept(&p->l, '{')) {
		f->body = true;
		parse_body(p);
	} else {
		lex_accept(&p->l, ';');
	}
	scope_close(p);
	p->f = NULL;
	*p->funcs_end = f;
	p->funcs_end = &f->next;
}

static void statement(struct parser *p)
{
	bool is_extern = false, visible = false, weak = false, common = false;
	for (;; lex_next(&p->l)) {
		if (lex_word(&p->l, TK_DOT, "extern"))
			is_extern = true;
		else if (lex_word(&p->l, TK_DOT, "visible"))
			visible = true;
		else if (lex_word(&p->l, TK_DOT, "weak"))
			weak = true;
		else if (lex_word(&p->l, TK_DOT, "common"))
			common = true;
		else
			break;
	}
	if (lex_word(&p->l, TK_DOT, "entry") || lex_word(&p->l, TK_DOT, "func")) {
		function(p, lex_word(&p->l, TK_DOT, "entry"), visible, weak);
	} else if (lex_word(&p->l, TK_DOT, "global") || lex_word(&p->l, TK_DOT, "const") ||
		   lex_word(&p->l, TK_DOT, "shared") || lex_word(&p->l, TK_DOT, "local") ||
		   lex_word(&p->l, TK_DOT, "tex")) {
		parse_variables(p, is_extern, visible, weak, common);
	} else if (lex_word(&p->l, TK_DOT, "version")) {
		lex_next(&p->l);
		version(p);
	} else if (lex_word(&p->l, TK_DOT, "target")) {
		lex_next(&p->l);
		target(p);
	} else if (lex_word(&p->l, TK_DOT, "address_size")) {
		lex_next(&p->l);
		if (p->l.t.kind != TK_INT || p->l.t.value != 64)
			lex_fail(&p->l, INVALID_PTX, "only .address_size 64 is supported");
		lex_next(&p->l);
	} else if (lex_word(&p->l, TK_DOT, "section")) {
		parse_skip_section(p);
	} else if (lex_word(&p->l, TK_DOT, "file") || lex_word(&p->l, TK_DOT, "loc")) {
		parse_position(p);
	} else if (lex_word(&p->l, TK_DOT, "pragma") || lex_word(&p->l, TK_DOT, "alias")) {
		bool alias = lex_word(&p->l, TK_DOT, "alias");
		lex_next(&p->l);
		struct token a = p->l.t;
		lex_next(&p->l);
		if (alias && lex_accept(&p->l, ',')) {
			struct symbol *to = symbol_find(p, p->l.t.s, p->l.t.n),
				      *from = symbol_find(p, a.s, a.n);
			if (to && from && to->kind == SYM_FUNC && from->kind == SYM_FUNC)
				from->func->def = to->func;
		}
		while (p->l.t.kind != TK_END && !lex_is(&p->l, ';'))
			lex_next(&p->l);
		lex_accept(&p->l, ';');
	} else if (!lex_accept(&p->l, ';')) {
		lex_fail(&p->l, INVALID_PTX, "unexpected \"%.*s\"", p->l.t.n < 40 ? (int)p->l.t.n : 40,
			p->l.t.s);
	}
}

struct ptx_unit *ptx_read(struct arena *a, const char *text, size_t n, struct engine_error *error)
{
	*error = (struct engine_error){0};
	while (n && !text[n - 1])
		n--;
	struct parser *p = calloc(1, sizeof *p);
	struct ptx_unit *u = arena_alloc(a, sizeof *u);
	if (!p || !u || n > PTX_MAX_TEXT) {
		error->code = n > PTX_MAX_TEXT ? INVALID_PTX : OUT_OF_MEMORY;
		snprintf(error->text, sizeof error->text,
			n > PTX_MAX_TEXT ? "PTX text too large" : "no memory for the module");
		free(p);
		return NULL;
	}
	u->arena = a;
	p->u = u;
	p->vars_end = &u->vars;
	p->funcs_end = &u->funcs;
	lex_init(&p->l, text, n, error);
	if (p->l.t.kind == TK_END && !p->l.failed)
		lex_fail(&p->l, INVALID_PTX, "no PTX in the image");
	while (p->l.t.kind != TK_END)
		statement(p);
	if (!p->l.failed && !u->version)
		lex_fail(&p->l, INVALID_PTX, "missing .version");
	bool failed = p->l.failed;
	free(p);
	return failed ? NULL : u;
}
