/* SPDX-License-Identifier: Apache-2.0 */
/* Where a line of PTX comes from: .file and .loc, which nvcc -lineinfo and other compilers write.
 *
 * Thread rule: one parser belongs to one thread; what it has read is constant. */
#include "server/soft/ptx_parse.h"
#include <string.h>

static bool number(struct parser *p, uint32_t line, uint32_t *out)
{
	if (p->l.t.kind != TK_INT || p->l.t.line != line || p->l.t.value > UINT32_MAX)
		return false;
	*out = (uint32_t)p->l.t.value;
	lex_next(&p->l);
	return true;
}

static void add_loc(struct parser *p, struct ptx_loc l)
{
	struct ptx_unit *u = p->u;
	if (u->nlocs == u->clocs) {
		uint32_t cap = u->clocs ? u->clocs * 2 : 256;
		struct ptx_loc *more = cap <= PTX_MAX_INSNS ? parse_alloc(p, cap * sizeof *more) : NULL;
		if (!more)
			return; /* reports do without */
		if (u->nlocs)
			memcpy(more, u->locs, u->nlocs * sizeof *more);
		u->locs = more;
		u->clocs = cap;
	}
	u->locs[u->nlocs++] = l;
}

static void add_file(struct parser *p, uint32_t n)
{
	const char *s = p->l.t.s, *end = s + p->l.t.n, *slash = memrchr(s, '/', p->l.t.n);
	struct ptx_file *f = parse_alloc(p, sizeof *f);
	if (!f)
		return;
	s = slash ? slash + 1 : s;
	*f = (struct ptx_file){n, parse_text(p, s, (size_t)(end - s)), p->u->files};
	if (f->name)
		p->u->files = f;
}

void parse_position(struct parser *p)
{
	struct ptx_loc l = {.at = p->l.t.line};
	bool loc = lex_word(&p->l, TK_DOT, "loc");
	lex_next(&p->l);
	if (loc && number(p, l.at, &l.file) && number(p, l.at, &l.line))
		add_loc(p, l);
	else if (!loc && number(p, l.at, &l.file) && p->l.t.kind == TK_STRING && p->l.t.line == l.at)
		add_file(p, l.file);
	while (p->l.t.kind != TK_END && p->l.t.line == l.at)
		lex_next(&p->l);
}

bool ptx_source(const struct ptx_func *f, uint32_t line, const char **file, uint32_t *source)
{
	const struct ptx_unit *u = f->unit;
	uint32_t lo = 0, hi = u->nlocs;
	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;
		if (u->locs[mid].at < line)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || u->locs[lo - 1].at < f->line)
		return false;
	const struct ptx_loc *l = &u->locs[lo - 1];
	for (const struct ptx_file *x = u->files; x; x = x->next)
		if (x->number == l->file) {
			*file = x->name;
			*source = l->line;
			return true;
		}
	return false;
}
