/* SPDX-License-Identifier: Apache-2.0 */
/* What the reader makes of PTX text: variables, functions and instructions with resolved names. Nothing here
 * is executable yet; decode.h turns functions into operations. All of it lives in the arena of its unit.
 *
 * Thread rule: a unit is built by one thread and constant afterwards. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "server/soft/engine.h"

enum {
	PTX_MAX_TEXT = 256 << 20, /* bytes of one text */
	PTX_MAX_REGS = 1 << 20, /* registers of one function */
	PTX_MAX_INSNS = 4 << 20, /* instructions of one function */
	PTX_MAX_DEPTH = 64, /* nested scopes, lists and expressions */
	PTX_MAX_OPERANDS = 64, /* of one instruction */
	PTX_MAX_LIST = 65536, /* elements of a list: arguments, jump tables */
	PTX_MAX_MODS = 20,
	PTX_MAX_PARAM = 1 << 20, /* bytes of one function's parameters */
	PTX_MAX_VERSION = 99, /* 10 * major + minor */
};
#define PTX_MAX_VAR (1ull << 34) /* bytes of one variable */

enum ptx_type {
	T_NONE,
	T_PRED,
	T_B8,
	T_B16,
	T_B32,
	T_B64,
	T_B128,
	T_U8,
	T_U16,
	T_U32,
	T_U64,
	T_S8,
	T_S16,
	T_S32,
	T_S64,
	T_F16,
	T_F16X2,
	T_BF16,
	T_BF16X2,
	T_F32,
	T_F32X2,
	T_F64,
	T_TF32,
	T_E4M3X2,
	T_E5M2X2,
	T_B1,
	T_U4,
	T_S4,
	T_U16X2,
	T_S16X2,
	T_UE8M0X2,
	T_TEXREF,
	T_SAMPLERREF,
	T_SURFREF,
	T_E4M3,
	T_E5M2,
	T_E2M3X2,
	T_E3M2X2,
	T_E2M1X2,
	T_E2M3,
	T_E3M2,
	T_E2M1,
	T_U2,
	T_S2,
	T_COUNT
};
enum ptx_space { SP_GENERIC, SP_REG, SP_PARAM, SP_LOCAL, SP_SHARED, SP_GLOBAL, SP_CONST, SP_CLUSTER };

enum ptx_mod {
	MOD_NONE,
#define M(e, s) MOD_##e,
#include "server/soft/ptx_mods.inc"
#undef M
	MOD_COUNT
};

/* A mnemonic with all its modifiers, shared by every instruction that is spelled alike. */
struct ptx_mnem {
	const char *text; /* ld.global.nc.v4.f32 */
	const char *opcode; /* ld */
	uint64_t set[(MOD_COUNT + 63) / 64];
	uint8_t mods[PTX_MAX_MODS]; /* in order, types and spaces left out */
	uint8_t nmods;
	uint8_t types[4], ntypes;
	uint8_t space[2], nspaces;
	uint8_t vec; /* 1, 2, 4, 8 */
	bool unknown; /* a modifier outside ptx_mods.inc */
	struct ptx_mnem *next;
};
static inline bool ptx_has(const struct ptx_mnem *m, enum ptx_mod x)
{
	return m->set[x >> 6] >> (x & 63) & 1;
}

/* `size` bytes at `offset` of a variable become (address of name + addend) >> shift. */
struct ptx_reloc {
	uint64_t offset;
	const char *name;
	int64_t addend;
	uint8_t size, shift;
	struct ptx_reloc *next;
};

struct ptx_var {
	const char *name;
	struct ptx_var *next;
	uint64_t bytes; /* 0: unsized extern array */
	uint32_t align, line;
	uint8_t type, space;
	bool is_extern, visible, weak, managed, common;
	bool addressed; /* parameters: its address is taken */
	bool formal; /* a parameter or result of its function, not a call's argument */
	bool placed, spilled; /* .param in functions: has slots; has a copy in the stack, at `spill` */
	uint32_t spill;
	uint8_t *init; /* NULL: zeros */
	struct ptx_reloc *relocs;
	struct ptx_var *def; /* after linking: the definition */
	uint64_t address; /* global, const: device address; shared, local, param: offset */
	struct ptx_func *owner; /* declared inside this function; NULL: module scope */
	uint32_t mark; /* scratch of the shared layout */
};

enum ptx_operand_kind {
	OP_NONE,
	OP_REG,
	OP_INT,
	OP_FLT32,
	OP_FLT64,
	OP_VAR,
	OP_FUNC,
	OP_LABEL,
	OP_SREG,
	OP_VEC,
	OP_SINK,
	OP_NAME,
	OP_TABLE
};
/* Parts of a register that a video instruction names: .b2, .h10, .b7531. */
struct ptx_field {
	uint8_t bits, n; /* of each, how many; 0: it names none */
	uint8_t at[4]; /* in the order of the text */
};

struct ptx_operand {
	uint8_t kind;
	bool addr; /* in brackets */
	bool neg; /* !p */
	bool dual; /* joined to the next operand by a bar: p|q */
	uint8_t part; /* .x .y .z .w of a register: 1..4 */
	bool minus; /* -a, of a register */
	struct ptx_field field;
	uint32_t n; /* OP_VEC: elements */
	union {
		uint32_t reg; /* OP_REG; OP_LABEL: label number; OP_SREG: enum ptx_sreg */
		struct ptx_operand *vec; /* OP_VEC */
		struct ptx_var *var;
		struct ptx_func *func;
		const char *name;
		struct ptx_table *table;
		uint64_t bits; /* OP_FLT32, OP_FLT64 */
	};
	int64_t off; /* OP_INT: the value; else what is added */
};

struct ptx_insn {
	const struct ptx_mnem *m;
	struct ptx_operand *op;
	uint32_t line;
	uint32_t pred; /* register + 1; 0: none */
	uint16_t nop;
	bool pred_neg;
};

struct ptx_table {
	const char *name;
	uint32_t n;
	uint32_t *label;
	struct ptx_table *next;
};

struct ptx_func {
	const char *name;
	struct ptx_func *next;
	bool entry, body, visible, weak;
	bool scanned; /* scratch of link */
	uint32_t line;
	struct ptx_var *params, *rets; /* in order; address is the offset */
	unsigned nparams, nrets;
	uint32_t param_bytes;
	struct ptx_var *vars; /* all declared inside: local, shared, param, global */
	uint8_t *regs; /* enum ptx_type of each register */
	uint32_t nregs, cregs;
	struct ptx_insn *insns;
	uint32_t ninsns, cinsns;
	uint32_t *labels; /* label number -> index of instruction */
	uint32_t nlabels, clabels;
	struct ptx_table *tables;
	uint32_t maxntid, reqntid[3];
	uint32_t cluster[3]; /* .reqnctapercluster; 0: none */
	struct ptx_func *def; /* after linking: the one with a body */
	struct ptx_unit *unit;
	unsigned index; /* in the module's table of functions */
	struct code *code;
};

enum ptx_sreg {
	SR_NONE,
	SR_TID_X,
	SR_TID_Y,
	SR_TID_Z,
	SR_NTID_X,
	SR_NTID_Y,
	SR_NTID_Z,
	SR_CTAID_X,
	SR_CTAID_Y,
	SR_CTAID_Z,
	SR_NCTAID_X,
	SR_NCTAID_Y,
	SR_NCTAID_Z,
	SR_LANEID,
	SR_WARPID,
	SR_NWARPID,
	SR_SMID,
	SR_NSMID,
	SR_GRIDID,
	SR_LANEMASK_EQ,
	SR_LANEMASK_LE,
	SR_LANEMASK_LT,
	SR_LANEMASK_GE,
	SR_LANEMASK_GT,
	SR_CLOCK,
	SR_CLOCK_HI,
	SR_CLOCK64,
	SR_GLOBALTIMER,
	SR_GLOBALTIMER_LO,
	SR_GLOBALTIMER_HI,
	SR_PM,
	SR_TOTAL_SMEM,
	SR_AGGR_SMEM,
	SR_DYNAMIC_SMEM,
	SR_ENVREG,
	/* + n, 32 of them */ SR_ENVREG_END = SR_ENVREG + 32,
	SR_ZERO, /* what this device does not have */
	SR_CLUSTERID_X,
	SR_CLUSTERID_Y,
	SR_CLUSTERID_Z,
	SR_CLUSTER_CTAID_X,
	SR_CLUSTER_CTAID_Y,
	SR_CLUSTER_CTAID_Z,
	SR_CLUSTER_CTARANK,
	SR_NCLUSTERID_X,
	SR_NCLUSTERID_Y,
	SR_NCLUSTERID_Z,
	SR_CLUSTER_NCTAID_X,
	SR_CLUSTER_NCTAID_Y,
	SR_CLUSTER_NCTAID_Z,
	SR_CLUSTER_NCTARANK,
	SR_CLUSTER_EXPLICIT,
	SR_RESERVED_SMEM,
	SR_DYNAMIC_BASE,
	SR_SHARED_BASE,
	SR_PARAM_BASE,
	SR_LOCAL_BASE
};

/* From this line of the text on, code is of that line of a source file. */
struct ptx_loc {
	uint32_t at, file, line;
};
struct ptx_file {
	uint32_t number;
	const char *name;
	struct ptx_file *next;
};

struct ptx_unit {
	struct arena *arena;
	const char *text;
	size_t len;
	int version;
	int target; /* sm_NN */
	struct ptx_var *vars;
	struct ptx_func *funcs;
	struct ptx_mnem *mnems[256];
	struct ptx_loc *locs; /* by rising line of the text */
	uint32_t nlocs, clocs;
	struct ptx_file *files;
};

/* Memory that lives as long as its module; zero-filled. Returns NULL when memory is short. */
struct arena *arena_create(size_t limit);
void arena_destroy(struct arena *a);
void *arena_alloc(struct arena *a, size_t n);
char *arena_text(struct arena *a, const char *s, size_t n);

unsigned ptx_type_bytes(enum ptx_type t);
const char *ptx_type_name(enum ptx_type t);
enum ptx_type ptx_type_find(const char *s, size_t n);
enum ptx_sreg ptx_sreg_find(const char *s, size_t n);

/* The source line that a line of f's text comes from; the file's name without its folder. False: none is
 * known. */
bool ptx_source(const struct ptx_func *f, uint32_t line, const char **file, uint32_t *source);

/* Reads one text. Returns NULL and fills *error. */
struct ptx_unit *ptx_read(struct arena *a, const char *text, size_t n, struct engine_error *error);
