/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of PTX text: names, directives, numbers in all their forms, strings, punctuation. The text comes
 * from a client: every step is bounded by its end.
 *
 * Thread rule: one lexer belongs to one thread. */
#include "server/soft/ptx_lex.h"
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_MAX = 64 };

static bool name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%';
}

void lex_fail(struct lexer *l, int code, const char *fmt, ...)
{
	if (l->failed)
		return;
	l->failed = true;
	l->error->code = code;
	l->error->line = l->t.line;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(l->error->text, sizeof l->error->text, fmt, ap);
	va_end(ap);
	l->t.kind = TK_END;
	l->p = l->end;
}

static void skip_space(struct lexer *l)
{
	while (l->p < l->end) {
		char c = *l->p;
		if (c == '\n') {
			l->line++;
			l->p++;
		} else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
			l->p++;
		} else if (c == '/' && l->end - l->p > 1 && l->p[1] == '/') {
			while (l->p < l->end && *l->p != '\n')
				l->p++;
		} else if (c == '/' && l->end - l->p > 1 && l->p[1] == '*') {
			l->p += 2;
			while (l->p < l->end && !(*l->p == '*' && l->end - l->p > 1 && l->p[1] == '/'))
				l->line += *l->p++ == '\n';
			l->p = l->end - l->p > 2 ? l->p + 2 : l->end;
		} else if (c == '#') {
			while (l->p < l->end && *l->p != '\n')
				l->p++;
		} else {
			return;
		}
	}
}

static int digit_value(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : isxdigit((unsigned char)c) ? (c | 32) - 'a' + 10 : 99;
}

static uint64_t digits(struct lexer *l, unsigned base, unsigned most)
{
	uint64_t v = 0;
	unsigned n = 0;
	while (l->p < l->end && (unsigned)digit_value(*l->p) < base) {
		v = v * base + (unsigned)digit_value(*l->p++);
		if (++n > most) {
			lex_fail(l, INVALID_PTX, "number too long");
			return 0;
		}
	}
	if (!n)
		lex_fail(l, INVALID_PTX, "malformed number");
	return v;
}

/* A decimal number with a point or an exponent. */
static bool decimal(struct lexer *l)
{
	const char *q = l->p;
	bool real = false;
	while (q < l->end && isdigit((unsigned char)*q))
		q++;
	if (q < l->end && *q == '.') {
		real = true;
		for (q++; q < l->end && isdigit((unsigned char)*q); q++)
			;
	}
	if (q < l->end && (*q == 'e' || *q == 'E')) {
		const char *e = q + 1;
		if (e < l->end && (*e == '+' || *e == '-'))
			e++;
		if (e < l->end && isdigit((unsigned char)*e)) {
			real = true;
			for (q = e; q < l->end && isdigit((unsigned char)*q); q++)
				;
		}
	}
	if (!real)
		return false;
	char b[NUMBER_MAX];
	size_t n = (size_t)(q - l->p);
	if (n >= sizeof b) {
		lex_fail(l, INVALID_PTX, "number too long");
		return true;
	}
	memcpy(b, l->p, n);
	b[n] = 0;
	double d = strtod(b, NULL);
	memcpy(&l->t.value, &d, 8);
	l->t.kind = TK_DECIMAL;
	l->p = q;
	return true;
}

static void number(struct lexer *l)
{
	char x = l->end - l->p > 1 && *l->p == '0' ? (char)(l->p[1] | 32) : 0;
	l->t.kind = TK_INT;
	if (x == 'f' || x == 'd') {
		l->p += 2;
		l->t.kind = x == 'f' ? TK_FLT32 : TK_FLT64;
		l->t.value = digits(l, 16, x == 'f' ? 8 : 16);
	} else if (x == 'x') {
		l->p += 2;
		l->t.value = digits(l, 16, 16);
	} else if (x == 'b') {
		l->p += 2;
		l->t.value = digits(l, 2, 64);
	} else if (!decimal(l)) {
		l->t.value = digits(l, *l->p == '0' ? 8 : 10, 24);
	}
	if (l->p < l->end && (*l->p == 'U' || *l->p == 'u'))
		l->p++;
	if (l->failed)
		l->t.kind = TK_END;
}

void lex_next(struct lexer *l)
{
	skip_space(l);
	l->t = (struct token){.line = l->line, .s = l->p};
	if (l->failed || l->p >= l->end)
		return;
	char c = *l->p;
	if (isdigit((unsigned char)c)) {
		number(l);
	} else if (name_char(c)) {
		while (l->p < l->end && name_char(*l->p))
			l->p++;
		l->t.kind = TK_NAME;
	} else if (c == '.' && l->end - l->p > 1 && isdigit((unsigned char)l->p[1])) {
		decimal(l);
	} else if (c == '.') {
		l->t.s = ++l->p;
		while (l->p < l->end &&
			(name_char(*l->p) || (*l->p == ':' && l->end - l->p > 1 && l->p[1] == ':') ||
				(*l->p == ':' && l->p[-1] == ':')))
			l->p++;
		l->t.kind = TK_DOT;
	} else if (c == '"') {
		l->t.s = ++l->p;
		while (l->p < l->end && *l->p != '"')
			l->line += *l->p++ == '\n';
		l->t.kind = TK_STRING;
		l->t.n = (uint32_t)(l->p - l->t.s);
		if (l->p >= l->end)
			lex_fail(l, INVALID_PTX, "string without an end");
		else
			l->p++;
		return;
	} else {
		l->t.kind = TK_PUNCT;
		l->t.punct = c;
		l->p++;
	}
	if (!l->failed)
		l->t.n = (uint32_t)(l->p - l->t.s);
}

void lex_mnemonic(struct lexer *l)
{
	while (l->p < l->end &&
		(name_char(*l->p) || *l->p == '.' || (*l->p == ':' && l->end - l->p > 1 && l->p[1] == ':') ||
			(*l->p == ':' && l->p[-1] == ':')))
		l->p++;
	l->t.n = (uint32_t)(l->p - l->t.s);
}

bool lex_accept(struct lexer *l, char c)
{
	if (!lex_is(l, c))
		return false;
	lex_next(l);
	return true;
}

void lex_expect(struct lexer *l, char c)
{
	if (lex_accept(l, c) || l->failed)
		return;
	int n = l->t.n < 40 ? (int)l->t.n : 40;
	if (l->t.kind == TK_END)
		lex_fail(l, INVALID_PTX, "'%c' expected before the end of the text", c);
	else
		lex_fail(l, INVALID_PTX, "'%c' expected before \"%.*s\"", c, n, l->t.s);
}

bool lex_word(const struct lexer *l, enum token_kind k, const char *s)
{
	return l->t.kind == k && strlen(s) == l->t.n && !memcmp(l->t.s, s, l->t.n);
}

void lex_init(struct lexer *l, const char *text, size_t n, struct engine_error *error)
{
	*l = (struct lexer){.p = text, .end = text + n, .line = 1, .error = error};
	lex_next(l);
}
