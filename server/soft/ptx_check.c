/* SPDX-License-Identifier: Apache-2.0 */
/* What no PTX assembler takes: first words that are none, plain operations without a type, with too few or
 * too many operands, or with registers of another width. Only instructions whose operands all follow from
 * their one type are looked at; what this device lacks of others shows when it is decoded.
 *
 * Thread rule: one parser belongs to one thread. */
#include <string.h>
#include "server/soft/opcodes.h"
#include "server/soft/ptx_parse.h"

/* Of each operand: t of the instruction's type, w twice as wide, u 32 bits, p a predicate. */
struct ptx_form {
	const char *opcode, *operands, *more; /* more: with one operand more; NULL: there is no such form */
};

static const struct ptx_form forms[] = {
	{"abs", "tt", NULL},
	{"add", "ttt", NULL},
	{"addc", "ttt", NULL},
	{"and", "ttt", NULL},
	{"brev", "tt", NULL},
	{"clz", "ut", NULL},
	{"cnot", "tt", NULL},
	{"copysign", "ttt", NULL},
	{"cos", "tt", NULL},
	{"div", "ttt", NULL},
	{"ex2", "tt", NULL},
	{"fma", "tttt", NULL},
	{"lg2", "tt", NULL},
	{"mad", "tttt", NULL},
	{"mad24", "tttt", NULL},
	{"madc", "tttt", NULL},
	{"max", "ttt", "tttt"},
	{"min", "ttt", "tttt"},
	{"mov", "tt", NULL},
	{"mul", "ttt", NULL},
	{"mul24", "ttt", NULL},
	{"neg", "tt", NULL},
	{"not", "tt", NULL},
	{"or", "ttt", NULL},
	{"popc", "ut", NULL},
	{"rcp", "tt", NULL},
	{"rem", "ttt", NULL},
	{"rsqrt", "tt", NULL},
	{"sad", "tttt", NULL},
	{"selp", "tttp", NULL},
	{"shl", "ttu", NULL},
	{"shr", "ttu", NULL},
	{"sin", "tt", NULL},
	{"sqrt", "tt", NULL},
	{"sub", "ttt", NULL},
	{"subc", "ttt", NULL},
	{"tanh", "tt", NULL},
	{"xor", "ttt", NULL},
};
static const struct ptx_form wide_mul = {"mul", "wtt", NULL}, wide_mad = {"mad", "wttw", NULL};

static const struct ptx_form *form_of(const struct ptx_mnem *m)
{
	if (ptx_has(m, MOD_WIDE))
		return !strcmp(m->opcode, "mul") ? &wide_mul : !strcmp(m->opcode, "mad") ? &wide_mad : NULL;
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
		if (!strcmp(forms[i].opcode, m->opcode))
			return &forms[i];
	return NULL;
}

void parse_check_mnemonic(struct parser *p, struct read_mnem *read)
{
	const struct ptx_mnem *m = &read->m;
	const char *wrong = NULL;
	read->form = form_of(m);
	if (!opcode_known(m->opcode))
		wrong = "Not a name of any known instruction:";
	else if (read->form && !m->ntypes)
		wrong = "Unexpected instruction types specified for";
	if (wrong && read->strange)
		lex_fail(&p->l, INVALID_PTX, "Unknown modifier '.%.40s'\n%s '%.80s'", read->strange, wrong,
			m->opcode);
	else if (wrong)
		lex_fail(&p->l, INVALID_PTX, "%s '%.80s'", wrong, m->opcode);
}

static bool fits(const struct ptx_func *f, const struct ptx_operand *o, char how, unsigned type)
{
	unsigned bytes = ptx_type_bytes(type);
	if (o->kind != OP_REG || o->part || o->field.n)
		return true;
	unsigned have = f->regs[o->reg];
	if (how == 'p' || (how != 'u' && type == T_PRED) || have == T_PRED)
		return have == T_PRED && (how == 'p' || (how == 't' && type == T_PRED));
	return ptx_type_bytes(have) == (how == 'u' ? 4 : how == 'w' ? 2 * bytes : bytes);
}

void parse_check_operands(struct parser *p, const struct ptx_insn *i)
{
	const struct ptx_form *form = ((const struct read_mnem *)i->m)->form;
	if (!form || i->m->ntypes != 1)
		return;
	const char *how = form->more && i->nop == strlen(form->more) ? form->more : form->operands;
	bool right = i->nop == strlen(how);
	for (unsigned n = 0; right && n < i->nop; n++)
		right = fits(p->f, &i->op[n], how[n], i->m->types[0]);
	if (right)
		return;
	p->l.t.line = i->line;
	lex_fail(&p->l, INVALID_PTX, "Arguments mismatch for instruction '%s'", i->m->opcode);
}
