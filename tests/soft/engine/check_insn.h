/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the instruction conformance test: a mnemonic, the types of its operands, the model of one
 * lane.
 *
 * Thread rule: one thread. */
#pragma once
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

struct test;
/* Operands as bits in in[0..]; returns the bits of the result. */
typedef uint64_t model(const struct test *t, const uint64_t *in);

struct test {
	char mnemonic[96];
	char before[640]; /* text in front of the instruction */
	char type[8][16]; /* of the result and the operands; #5: a literal */
	unsigned n;
	model *model;
	double ulps; /* 0: exact */
	double absolute; /* an error that is allowed whatever the size of the result */
};

/* types: "u32:u32,u32"; the result's comes first. "u32/.b1": what is written behind the register; "u32/-": in
 * front of it. */
void define(const char *mnemonic, const char *types, model *m, double ulps);
void define_near(const char *mnemonic, const char *types, model *m, double ulps, double absolute);
/* With text in front of the instruction; a type with ! is loaded for that text alone. */
void define_before(const char *before, const char *mnemonic, const char *types, model *m);
unsigned type_bits(const char *t);
void define_integer(void);
void define_float(void);
void define_convert(void);
void define_wide(void);
void define_video(void);
void define_small(void);
void define_extreme(void);
static inline bool starts(const struct test *t, const char *s)
{
	return !__builtin_strncmp(t->mnemonic, s, __builtin_strlen(s));
}
static inline bool holds(const struct test *t, const char *s)
{
	return __builtin_strstr(t->mnemonic, s) != 0;
}
