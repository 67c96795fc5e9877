/* SPDX-License-Identifier: Apache-2.0 */
/* The reader's own state: symbols in nested scopes. Private to ptx_*.c.
 *
 * Thread rule: one parser belongs to one thread. */
#pragma once
#include "server/soft/ptx.h"
#include "server/soft/ptx_lex.h"

enum symbol_kind { SYM_REG = 1, SYM_FAMILY, SYM_VAR, SYM_FUNC, SYM_LABEL, SYM_TABLE };

struct symbol {
	const char *name;
	uint32_t n, hash, depth;
	uint8_t kind;
	uint32_t reg, count; /* SYM_REG, SYM_FAMILY; SYM_LABEL: number */
	union {
		struct ptx_var *var;
		struct ptx_func *func;
		struct ptx_table *table;
	};
	struct symbol *next; /* of the same bucket */
	struct symbol *scope_next;
};

/* What the reader alone knows of a mnemonic. */
struct read_mnem {
	struct ptx_mnem m; /* first: an instruction points to it */
	const char *strange; /* the first modifier that is none the reader knows; NULL: none */
	const struct ptx_form *form; /* of its operands; NULL: not looked at */
};

/* A use of a label that is not defined yet. */
struct pending {
	const char *name;
	uint32_t n, line;
	struct ptx_operand *op;
	uint32_t *slot;
	struct pending *next;
};

struct scope {
	struct symbol *symbols;
	struct pending *pending;
};

enum { SYMBOL_BUCKETS = 4096 };
struct parser {
	struct lexer l;
	struct ptx_unit *u;
	struct ptx_func *f; /* the function being read */
	struct symbol *bucket[SYMBOL_BUCKETS];
	struct scope scope[PTX_MAX_DEPTH];
	unsigned depth;
	struct ptx_var **vars_end; /* of the unit */
	struct ptx_func **funcs_end;
	unsigned nest; /* recursion of lists and expressions */
};

void *parse_alloc(struct parser *p, size_t n);
char *parse_text(struct parser *p, const char *s, size_t n);
struct symbol *symbol_find(struct parser *p, const char *s, size_t n);
struct symbol *symbol_add(struct parser *p, const char *s, size_t n, enum symbol_kind k);
bool scope_open(struct parser *p);
void scope_close(struct parser *p);
/* The register called s, directly or as a member of a family like %r<100>; PTX_MAX_REGS when there is none.
 */
uint32_t register_find(struct parser *p, const char *s, size_t n);

/* Variables, from the current directive (.global and so on) to the semicolon. */
void parse_variables(struct parser *p, bool is_extern, bool visible, bool weak, bool common);
/* One parameter of a function, without the comma. */
struct ptx_var *parse_param(struct parser *p);
void parse_body(struct parser *p);
/* The mnemonic of those n bytes; NULL: there is none, or memory is short. */
const struct ptx_mnem *parse_mnemonic(struct parser *p, const char *s, size_t n);
/* What is wrong with a mnemonic or an instruction, where the reader's tables say how it is: fails. */
void parse_check_mnemonic(struct parser *p, struct read_mnem *m);
void parse_check_operands(struct parser *p, const struct ptx_insn *i);
/* Operands must be at their final places, since labels are filled in later. */
void parse_operand(struct parser *p, struct ptx_operand *o);
/* The use of a label that is not defined yet, in an operand or a slot of a jump table. */
void parse_label_later(struct parser *p, const struct token *t, struct ptx_operand *op, uint32_t *slot);
/* .loc and .file, to the end of the line. */
void parse_position(struct parser *p);
void parse_skip_section(struct parser *p);
