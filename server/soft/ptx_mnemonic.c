/* SPDX-License-Identifier: Apache-2.0 */
/* The reader's mnemonics: opcode, types, spaces and modifiers, taken apart once per text.
 *
 * Thread rule: one parser belongs to one thread. */
#include "server/soft/ptx_parse.h"
#include <string.h>

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

/* False: it is no modifier that the reader knows. */
static bool piece(struct ptx_mnem *m, const char *s, size_t n)
{
	unsigned type = ptx_type_find(s, n);
	if (type) {
		if (m->ntypes < 4)
			m->types[m->ntypes++] = (uint8_t)type;
		else
			m->unknown = true;
		return true;
	}
	if (piece_space(m, s, n))
		return true;
	if (n == 2 && s[0] == 'v' && (s[1] == '2' || s[1] == '4' || s[1] == '8')) {
		m->vec = (uint8_t)(s[1] - '0');
		return true;
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
			return true;
		}
	m->unknown = true;
	return false;
}

const struct ptx_mnem *parse_mnemonic(struct parser *p, const char *s, size_t n)
{
	uint32_t h = 2166136261u;
	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)s[i]) * 16777619u;
	struct ptx_mnem **b = &p->u->mnems[(h ^ h >> 8) & 255];
	for (struct ptx_mnem *m = *b; m; m = m->next)
		if (!strncmp(m->text, s, n) && !m->text[n])
			return m;
	struct read_mnem *read = parse_alloc(p, sizeof *read);
	if (!read)
		return NULL;
	struct ptx_mnem *m = &read->m;
	m->text = parse_text(p, s, n);
	const char *dot = memchr(s, '.', n), *end = s + n;
	m->opcode = parse_text(p, s, dot ? (size_t)(dot - s) : n);
	if (!m->text || !m->opcode)
		return NULL;
	m->vec = 1;
	while (dot) {
		const char *q = memchr(dot + 1, '.', (size_t)(end - dot - 1));
		size_t k = (size_t)((q ? q : end) - dot - 1);
		if (!piece(m, dot + 1, k) && !read->strange)
			read->strange = parse_text(p, dot + 1, k);
		dot = q;
	}
	parse_check_mnemonic(p, read);
	if (p->l.failed)
		return NULL;
	m->next = *b;
	return *b = m;
}
