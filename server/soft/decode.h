/* SPDX-License-Identifier: Apache-2.0 */
/* From instructions to operations: slots for registers and constants, a handler for each operation, branches
 * resolved. decode.c emits operations, decode_operand.c finds their slots; the other decode_*.c have one
 * family of instructions each. Private to decode*.c but for decode_function.
 *
 * Thread rule: the caller holds the module's lock. */
#pragma once
#include "server/soft/handlers.h"
#include "server/soft/ir.h"

enum { MAX_SHAPES = 8 };
enum { SLOT32 = 4 * LANES, SLOT64 = 8 * LANES, NO_SLOT = -1, MAX_TEMPS = 96, CONST_BUCKETS = 256 };
#define NONE UINT32_MAX

struct constant {
	uint64_t value;
	uint32_t slot;
	uint8_t width, sreg;
	struct constant *next;
};
struct fixup {
	uint32_t op, label;
};
/* A destination narrower or wider than the register: what to run after the operation. */
struct widen {
	uint32_t temp, reg;
	uint8_t from, to;
	bool sign;
};

/* An address register whose shape an operation has found out; see decode_shape.c. */
struct shape {
	uint32_t slot, op, cell; /* cell 0: nobody has asked for it yet */
	unsigned step;
	bool shared;
};

struct decoder {
	struct engine_module *m;
	struct ptx_func *f;
	struct code *c;
	struct op *ops;
	uint32_t nops, cops;
	uint32_t *reg_slot; /* NONE: not used yet */
	const struct ptx_insn **alias; /* registers that are copies: the instruction that says of what */
	uint32_t *uses; /* how often each register is read */
	uint32_t *insn_op; /* first operation of each instruction */
	struct fixup *fixups;
	uint32_t nfixups, cfixups;
	struct constant *bucket[CONST_BUCKETS];
	uint32_t nconst;
	uint32_t frame; /* bytes of the register file so far */
	uint32_t temps32[MAX_TEMPS], temps64[MAX_TEMPS];
	unsigned ntemps32, ntemps64, used32, used64;
	struct widen widen[16];
	unsigned nwiden;
	uint32_t cc; /* slot of the carry flag */
	uint32_t stack; /* slot of what alloca had taken when the function began */
	const struct ptx_insn *i;
	struct shape shapes[MAX_SHAPES];
	unsigned nshapes, next_shape;
	bool *labelled; /* instructions with a label */
	bool uncovered; /* this instruction */
	bool plain; /* this one: lanes can neither part nor meet at it */
	bool failed; /* out of memory */
	bool indirect; /* the function calls through a register */
	const struct handler_pair *handlers;
};

/* Decodes f and what it calls, once. Returns 0 or error->code. */
int decode_function(struct engine_module *m, struct ptx_func *f, struct engine_error *error);

static inline unsigned lane_bytes(enum ptx_type t)
{
	return ptx_type_bytes(t) == 8 ? 8 : 4;
}
static inline bool is_half(unsigned t)
{
	return t == T_F16 || t == T_BF16 || t == T_F16X2 || t == T_BF16X2;
}
struct op *emit_raw(struct decoder *d);
struct op *emit(struct decoder *d, enum handler_id h);
struct op *emit_name(struct decoder *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
struct op *emit_x(struct decoder *d, handler *fn);
/* In checked mode: what looks at the access that is emitted next. kind: CHECK_* of check.h. */
void emit_check(struct decoder *d, unsigned kind, unsigned bytes, unsigned each);
void emit_branch(struct decoder *d, enum handler_id h, uint32_t pred, uint32_t label);
struct op *emit3(struct decoder *d, const char *name, uint32_t dst, uint32_t a, uint32_t b, uint32_t c);
uint32_t slot_new(struct decoder *d, unsigned width);
/* The slot of a register, or of what it is a copy of. */
uint32_t reg_slot(struct decoder *d, uint32_t r);
/* The slots of the lower and the upper half of a 128-bit register. Returns false when it is none. */
bool pair_slots(struct decoder *d, const struct ptx_operand *o, uint32_t half[2]);
uint32_t temp(struct decoder *d, unsigned width);
uint32_t constant(struct decoder *d, uint64_t value, unsigned width);
uint32_t sreg(struct decoder *d, enum ptx_sreg sr);
/* The slot that holds an operand as lanes of `width` bytes; t says how a literal is to be read. */
uint32_t source(struct decoder *d, const struct ptx_operand *o, enum ptx_type t, unsigned width);
/* The slot to write; a register of another width gets a conversion behind the operation (finish_widen). */
uint32_t target(struct decoder *d, const struct ptx_operand *o, unsigned width, bool sign);
void finish_widen(struct decoder *d);
/* The slot of an address operand in that space as a generic address, its offset included. */
uint32_t generic_address(struct decoder *d, const struct ptx_operand *o, unsigned space);
struct address {
	uint32_t slot;
	int64_t off;
	bool shared;
};
/* The address operand of an access outside the parameter spaces. */
struct address address_of(struct decoder *d, const struct ptx_operand *o, unsigned space);
/* What the order of an access is to emit_check. */
unsigned access_order(const struct decoder *d);
/* The bytes that an asynchronous store or reduction tells a barrier: all is done when it is issued. */
void barrier_tell(struct decoder *d, const struct ptx_operand *barrier, unsigned bytes);
/* A slot that takes (b8 b16 b32 b64) words of a call parameter; the words of v are laid out on first use. */
uint32_t param_slot(struct decoder *d, struct ptx_var *v);
/* The slot of an operand of a float operation, halves flushed by hand where there is .ftz: the processor's
 * own mode does not help them. */
uint32_t flushed(struct decoder *d, uint32_t s, unsigned t);
void uncover(struct decoder *d);
bool only_mods(const struct ptx_mnem *m, const uint8_t *mods, unsigned n);
unsigned handler_width(enum handler_id h, unsigned operand);
/* Opens a wrapper that runs the next operation under MXCSR bits; 0 opens none. */
void emit_mode(struct decoder *d, unsigned csr);
unsigned mode_of(const struct ptx_mnem *m, bool flush);
void *grow(void *p, uint32_t *cap, uint32_t need, size_t each);

/* Each returns false when the opcode is not one of its own. */
bool decode_arith(struct decoder *d);
bool decode_compare(struct decoder *d);
bool decode_move(struct decoder *d);
bool decode_convert(struct decoder *d);
bool decode_memory(struct decoder *d);
bool decode_atomic(struct decoder *d);
bool decode_flow(struct decoder *d);
bool decode_warp(struct decoder *d);
bool decode_matrix(struct decoder *d);
/* The whole warp runs what is emitted next together: lanes that are elsewhere are waited for. */
void all_lanes(struct decoder *d);
bool decode_wgmma(struct decoder *d);
bool decode_video(struct decoder *d);
/* st.bulk; false: not as it is known. */
bool decode_zeros(struct decoder *d);
bool decode_bulk(struct decoder *d);
bool decode_cluster(struct decoder *d);
bool decode_texture(struct decoder *d);
/* decode_shape.c: after the emission of a load or store; after each instruction (plain: lanes can neither
 * part nor meet there). */
void shape_access(struct decoder *d, uint32_t slot, bool shared, unsigned step);
void shape_forget(struct decoder *d, bool plain);
/* The registers of an instruction: uses first, then definitions. */
void insn_registers(const struct ptx_insn *i, void (*visit)(void *arg, uint32_t reg, bool def), void *arg);
/* decode_slots.c: which registers share a slot. */
void decode_slots(struct decoder *d);
static inline bool op_is(const struct decoder *d, const char *s)
{
	return !__builtin_strcmp(d->i->m->opcode, s);
}
static inline bool has(const struct decoder *d, enum ptx_mod x)
{
	return ptx_has(d->i->m, x);
}
