/* SPDX-License-Identifier: Apache-2.0 */
/* The reader's variables: declarations in every state space, arrays, initialisers with addresses in them, and
 * parameters.
 *
 * Thread rule: one parser belongs to one thread. */
#include "server/soft/ptx_parse.h"
#include <stdlib.h>
#include <string.h>

enum { ALIGN_MAX = 1 << 16 };

static unsigned space_find(const struct lexer *l)
{
	static const struct {
		const char *s;
		uint8_t sp;
	} t[] = {{"reg", SP_REG}, {"param", SP_PARAM}, {"local", SP_LOCAL}, {"shared", SP_SHARED},
		{"global", SP_GLOBAL}, {"const", SP_CONST}, {"tex", SP_GLOBAL}};
	for (unsigned i = 0; i < sizeof t / sizeof *t; i++)
		if (lex_word(l, TK_DOT, t[i].s))
			return t[i].sp;
	return 0;
}

struct initialiser {
	struct ptx_var *v;
	uint64_t at, cap;
	unsigned width;
};

static uint8_t *room(struct parser *p, struct initialiser *in, uint64_t n)
{
	struct ptx_var *v = in->v;
	if (v->bytes && in->at + n > v->bytes) {
		lex_fail(&p->l, INVALID_PTX, "more initial values than \"%.80s\" holds", v->name);
		return NULL;
	}
	uint64_t need = v->bytes ? v->bytes : in->at + n;
	if (need > PTX_MAX_TEXT) {
		lex_fail(&p->l, INVALID_PTX, "initial values of \"%.80s\" are too large", v->name);
		return NULL;
	}
	if (need > in->cap) {
		uint64_t cap = v->bytes ? need : need * 2;
		uint8_t *b = parse_alloc(p, cap);
		if (!b)
			return NULL;
		if (in->cap)
			memcpy(b, v->init, in->cap);
		v->init = b;
		in->cap = cap;
	}
	return v->init + in->at;
}

/* name, name + 4, generic(name) + 4, inside a mask when shift and size say so. */
static void init_address(struct parser *p, struct initialiser *in, unsigned size, unsigned shift)
{
	bool paren = false;
	if (lex_word(&p->l, TK_NAME, "generic")) {
		lex_next(&p->l);
		lex_expect(&p->l, '(');
		paren = true;
	}
	struct ptx_reloc *r = parse_alloc(p, sizeof *r);
	if (!r || p->l.t.kind != TK_NAME) {
		lex_fail(&p->l, INVALID_PTX, "name expected in an initialiser");
		return;
	}
	r->name = parse_text(p, p->l.t.s, p->l.t.n);
	lex_next(&p->l);
	if (paren)
		lex_expect(&p->l, ')');
	while (lex_is(&p->l, '+') || lex_is(&p->l, '-')) {
		bool minus = lex_is(&p->l, '-');
		lex_next(&p->l);
		if (lex_accept(&p->l, '-'))
			minus = !minus;
		r->addend += minus ? -(int64_t)p->l.t.value : (int64_t)p->l.t.value;
		lex_next(&p->l);
	}
	if (!room(p, in, size))
		return;
	r->offset = in->at;
	r->size = (uint8_t)size;
	r->shift = (uint8_t)shift;
	r->next = in->v->relocs;
	in->v->relocs = r;
	in->at += size;
}

static void init_number(struct parser *p, struct initialiser *in)
{
	bool minus = false, invert = false;
	while (lex_is(&p->l, '-') || lex_is(&p->l, '+') || lex_is(&p->l, '~')) {
		minus ^= lex_is(&p->l, '-');
		invert |= lex_is(&p->l, '~');
		lex_next(&p->l);
	}
	struct token t = p->l.t;
	lex_next(&p->l);
	uint64_t v = t.value;
	if (t.kind == TK_INT && lex_accept(&p->l, '(')) { /* 0xFF00(generic(name)): one byte of an address */
		unsigned shift = v ? (unsigned)__builtin_ctzll(v) : 0;
		init_address(p, in, 1, shift & ~7u);
		lex_expect(&p->l, ')');
		return;
	}
	if (t.kind == TK_DECIMAL) {
		double d;
		memcpy(&d, &v, 8);
		d = minus ? -d : d;
		float f = (float)d;
		v = 0;
		if (in->v->type == T_F32)
			memcpy(&v, &f, 4);
		else
			memcpy(&v, &d, 8);
	} else if (t.kind == TK_FLT32 || t.kind == TK_FLT64) {
		if (t.kind == TK_FLT32 && in->v->type == T_F64) {
			float f;
			memcpy(&f, &v, 4);
			double d = f;
			memcpy(&v, &d, 8);
		} else if (t.kind == TK_FLT64 && in->v->type == T_F32) {
			double d;
			memcpy(&d, &v, 8);
			float f = (float)d;
			v = 0;
			memcpy(&v, &f, 4);
		}
		if (minus)
			v ^= in->v->type == T_F64 ? 1ull << 63 : 1ull << 31;
	} else if (t.kind == TK_INT) {
		v = minus ? -v : v;
		v = invert ? ~v : v;
		if (in->v->type == T_F32 || in->v->type == T_F64) {
			double d = (double)(int64_t)v;
			float f = (float)d;
			memcpy(&v, in->v->type == T_F32 ? (void *)&f : (void *)&d, in->width);
		}
	} else {
		lex_fail(&p->l, INVALID_PTX, "value expected in an initialiser");
		return;
	}
	uint8_t *b = room(p, in, in->width);
	if (b)
		memcpy(b, &v, in->width < 8 ? in->width : 8);
	in->at += in->width;
}

/* `inner`: bytes of one element of this nesting level, so that a short inner list leaves zeros behind it. */
static void init_values(struct parser *p, struct initialiser *in, const uint64_t *inner, unsigned ninner)
{
	if (++p->nest > PTX_MAX_DEPTH)
		lex_fail(&p->l, INVALID_PTX, "initialiser nests too deep");
	if (lex_accept(&p->l, '{')) {
		uint64_t start = in->at;
		unsigned i = 0;
		while (!p->l.failed && !lex_is(&p->l, '}')) {
			if (ninner && lex_is(&p->l, '{'))
				in->at = start + i * inner[0];
			init_values(p, in, inner + !!ninner, ninner ? ninner - 1 : 0);
			i++;
			if (!lex_accept(&p->l, ','))
				break;
		}
		lex_expect(&p->l, '}');
	} else if (p->l.t.kind == TK_STRING) {
		uint8_t *b = room(p, in, p->l.t.n + 1u);
		if (b)
			memcpy(b, p->l.t.s, p->l.t.n);
		in->at += p->l.t.n + 1u;
		lex_next(&p->l);
	} else if (p->l.t.kind == TK_NAME) {
		init_address(p, in, in->width, 0);
	} else {
		init_number(p, in);
	}
	p->nest--;
}

struct head {
	unsigned space, vec, type;
	uint32_t align;
	bool managed;
};

/* The directives in front of the name: .global .align 4 .attribute(.managed) .v2 .u32, .ptr .global for
 * parameters. */
static struct head read_head(struct parser *p)
{
	struct head h = {.space = space_find(&p->l), .vec = 1};
	lex_next(&p->l);
	if (p->l.t.kind == TK_PUNCT && lex_accept(&p->l, '[')) { /* .const[3] of old texts */
		lex_next(&p->l);
		lex_expect(&p->l, ']');
	}
	while (p->l.t.kind == TK_DOT) {
		struct token t = p->l.t;
		unsigned type = ptx_type_find(t.s, t.n);
		lex_next(&p->l);
		if (t.n == 5 && !memcmp(t.s, "align", 5)) {
			h.align = p->l.t.kind == TK_INT && p->l.t.value <= ALIGN_MAX ? (uint32_t)p->l.t.value
										     : 0;
			if (!h.align || (h.align & (h.align - 1)))
				lex_fail(&p->l, INVALID_PTX, "bad alignment");
			lex_next(&p->l);
		} else if (t.n == 9 && !memcmp(t.s, "attribute", 9)) {
			lex_expect(&p->l, '(');
			for (; !lex_is(&p->l, ')') && p->l.t.kind != TK_END; lex_next(&p->l))
				h.managed |= lex_word(&p->l, TK_DOT, "managed");
			lex_expect(&p->l, ')');
		} else if (t.n == 2 && t.s[0] == 'v' && (t.s[1] == '2' || t.s[1] == '4' || t.s[1] == '8')) {
			h.vec = (unsigned)(t.s[1] - '0');
		} else if (t.n == 3 && !memcmp(t.s, "ptr", 3)) {
			while (space_find(&p->l))
				lex_next(&p->l);
		} else if (type) {
			h.type = type;
		}
	}
	if (!h.type)
		lex_fail(&p->l, INVALID_PTX, "type expected in a declaration");
	return h;
}

static void declare_registers(struct parser *p, const struct head *h)
{
	struct ptx_func *f = p->f;
	struct token t = p->l.t;
	lex_next(&p->l);
	uint64_t count = 1;
	bool family = lex_accept(&p->l, '<');
	if (family) {
		count = p->l.t.kind == TK_INT ? p->l.t.value : 0;
		lex_next(&p->l);
		lex_expect(&p->l, '>');
	}
	if (!f || !count || count > PTX_MAX_REGS || f->nregs + count * h->vec > PTX_MAX_REGS) {
		lex_fail(&p->l, INVALID_PTX, f ? "too many registers" : ".reg outside a function");
		return;
	}
	struct symbol *y = symbol_add(p, t.s, t.n, family ? SYM_FAMILY : SYM_REG);
	if (!y)
		return;
	y->reg = f->nregs;
	y->count = (uint32_t)count;
	uint32_t need = f->nregs + (uint32_t)count;
	if (need > f->cregs) {
		uint32_t cap = need * 2;
		uint8_t *r = parse_alloc(p, cap);
		if (!r)
			return;
		if (f->nregs)
			memcpy(r, f->regs, f->nregs);
		f->regs = r;
		f->cregs = cap;
	}
	memset(f->regs + f->nregs, (int)h->type, count);
	f->nregs = need;
}

/* [4][2] behind the name; *n is multiplied. Returns the number of dimensions; an empty first one makes it
 * unsized. */
static unsigned dimensions(struct parser *p, uint64_t *n, bool *unsized, uint64_t *dim, unsigned most)
{
	unsigned d = 0;
	while (lex_accept(&p->l, '[')) {
		uint64_t k = 1;
		if (p->l.t.kind == TK_INT) {
			k = p->l.t.value;
			lex_next(&p->l);
		} else {
			*unsized = true;
		}
		lex_expect(&p->l, ']');
		if (__builtin_mul_overflow(*n, k, n) || *n > PTX_MAX_VAR || d == most) {
			lex_fail(&p->l, INVALID_PTX, "variable too large");
			return 0;
		}
		dim[d++] = k;
	}
	return d;
}

static struct ptx_var *declare(struct parser *p, const struct head *h, bool local_name)
{
	if (p->l.t.kind != TK_NAME) {
		lex_fail(&p->l, INVALID_PTX, "name expected in a declaration");
		return NULL;
	}
	struct token t = p->l.t;
	struct ptx_var *v = parse_alloc(p, sizeof *v);
	struct symbol *y = v ? symbol_add(p, t.s, t.n, SYM_VAR) : NULL;
	if (!y)
		return NULL;
	y->var = v;
	v->name = y->name;
	v->line = t.line;
	v->type = (uint8_t)h->type;
	v->space = (uint8_t)h->space;
	v->managed = h->managed;
	v->owner = local_name ? p->f : NULL;
	lex_next(&p->l);
	unsigned width = ptx_type_bytes(h->type);
	uint64_t n = (uint64_t)h->vec * width, dim[8], inner[8];
	bool unsized = false;
	unsigned d = dimensions(p, &n, &unsized, dim, 8);
	v->bytes = unsized ? 0 : n;
	v->align = h->align > h->vec * width ? h->align : h->align ? h->align : h->vec * width;
	if (!v->align)
		v->align = 1;
	if (lex_accept(&p->l, '=')) {
		struct initialiser in = {.v = v, .width = width};
		uint64_t e = (uint64_t)h->vec * width;
		for (unsigned i = d; i-- > 0; e *= dim[i])
			inner[i] = e;
		init_values(p, &in, inner, d);
		if (unsized)
			v->bytes = in.at;
		if (v->bytes && in.cap < v->bytes)
			room(p, &(struct initialiser){.v = v, .at = 0, .cap = in.cap}, v->bytes);
	}
	return v;
}

void parse_variables(struct parser *p, bool is_extern, bool visible, bool weak, bool common)
{
	struct head h = read_head(p);
	while (!p->l.failed) {
		if (h.space == SP_REG) {
			declare_registers(p, &h);
		} else {
			struct ptx_var *v = declare(p, &h, p->f != NULL);
			if (!v)
				return;
			/* Shared memory of a known size is the text's own, as for ptxas (LLVM writes it
			 * so). */
			v->is_extern = is_extern && !(v->space == SP_SHARED && v->bytes);
			v->visible = visible;
			v->weak = weak;
			v->common = common;
			if (p->f) {
				v->next = p->f->vars;
				p->f->vars = v;
			} else {
				*p->vars_end = v;
				p->vars_end = &v->next;
			}
		}
		if (!lex_accept(&p->l, ','))
			break;
	}
	lex_expect(&p->l, ';');
}

struct ptx_var *parse_param(struct parser *p)
{
	struct head h = read_head(p);
	return declare(p, &h, true);
}
