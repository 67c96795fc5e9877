/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of PTX text.
 *
 * Thread rule: one lexer belongs to one thread. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "server/soft/engine.h"

enum token_kind { TK_END, TK_NAME, TK_DOT, TK_INT, TK_FLT32, TK_FLT64, TK_DECIMAL, TK_STRING, TK_PUNCT };

struct token {
	uint8_t kind;
	char punct; /* TK_PUNCT */
	uint32_t line;
	uint32_t n;
	const char *s; /* TK_DOT: without the dot */
	uint64_t value; /* TK_INT; bits of a float */
};

enum { INVALID_PTX = 218 }; /* for lex_fail: the error codes are the API's */

struct lexer {
	const char *p, *end;
	uint32_t line;
	struct token t; /* the current token */
	bool failed; /* sticky: every further token is TK_END */
	struct engine_error *error;
};

void lex_init(struct lexer *l, const char *text, size_t n, struct engine_error *error);
void lex_next(struct lexer *l);
/* Takes the rest of a mnemonic (letters, digits, dots, ::) behind the current name into it. */
void lex_mnemonic(struct lexer *l);
__attribute__((format(printf, 3, 4))) void lex_fail(struct lexer *l, int code, const char *fmt, ...);

static inline bool lex_is(const struct lexer *l, char c)
{
	return l->t.kind == TK_PUNCT && l->t.punct == c;
}
bool lex_accept(struct lexer *l, char c);
void lex_expect(struct lexer *l, char c);
/* The current token is the name or the directive s. */
bool lex_word(const struct lexer *l, enum token_kind k, const char *s);
