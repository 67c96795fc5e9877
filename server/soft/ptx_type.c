/* SPDX-License-Identifier: Apache-2.0 */
/* The words of PTX: types, special registers, and the arena that holds what is read.
 *
 * Thread rule: an arena belongs to one thread at a time; the tables are constant. */
#include "server/soft/ptx.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARENA_CHUNK = 64 << 10 };

struct chunk {
	struct chunk *next;
	size_t used, size;
	_Alignas(16) char data[];
};
struct arena {
	struct chunk *first;
	size_t total, limit;
};

struct arena *arena_create(size_t limit)
{
	struct arena *a = calloc(1, sizeof *a);
	if (a)
		a->limit = limit;
	return a;
}

void arena_destroy(struct arena *a)
{
	if (!a)
		return;
	for (struct chunk *c = a->first, *next; c; c = next) {
		next = c->next;
		free(c);
	}
	free(a);
}

void *arena_alloc(struct arena *a, size_t n)
{
	if (n > a->limit)
		return NULL;
	n = (n + 15) & ~(size_t)15;
	struct chunk *c = a->first;
	if (!c || c->size - c->used < n) {
		size_t size = n > ARENA_CHUNK / 4 ? n : ARENA_CHUNK;
		if (a->total + size > a->limit)
			return NULL;
		struct chunk *fresh = calloc(1, sizeof *fresh + size);
		if (!fresh)
			return NULL;
		fresh->size = size;
		a->total += size;
		if (c && size == n &&
			size != ARENA_CHUNK) { /* a large piece: the started chunk stays first */
			fresh->next = c->next;
			c->next = fresh;
		} else {
			fresh->next = c;
			a->first = fresh;
		}
		c = fresh;
	}
	void *p = c->data + c->used;
	c->used += n;
	return p;
}

char *arena_text(struct arena *a, const char *s, size_t n)
{
	char *p = arena_alloc(a, n + 1);
	if (p)
		memcpy(p, s, n);
	return p;
}

static const struct {
	const char *name;
	uint8_t bytes;
} types[T_COUNT] = {
	[T_NONE] = {"", 0},
	[T_PRED] = {"pred", 1},
	[T_B8] = {"b8", 1},
	[T_B16] = {"b16", 2},
	[T_B32] = {"b32", 4},
	[T_B64] = {"b64", 8},
	[T_B128] = {"b128", 16},
	[T_U8] = {"u8", 1},
	[T_U16] = {"u16", 2},
	[T_U32] = {"u32", 4},
	[T_U64] = {"u64", 8},
	[T_S8] = {"s8", 1},
	[T_S16] = {"s16", 2},
	[T_S32] = {"s32", 4},
	[T_S64] = {"s64", 8},
	[T_F16] = {"f16", 2},
	[T_F16X2] = {"f16x2", 4},
	[T_BF16] = {"bf16", 2},
	[T_BF16X2] = {"bf16x2", 4},
	[T_F32] = {"f32", 4},
	[T_F32X2] = {"f32x2", 8},
	[T_F64] = {"f64", 8},
	[T_TF32] = {"tf32", 4},
	[T_E4M3X2] = {"e4m3x2", 2},
	[T_E5M2X2] = {"e5m2x2", 2},
	[T_B1] = {"b1", 4},
	[T_U4] = {"u4", 4},
	[T_S4] = {"s4", 4},
	[T_U16X2] = {"u16x2", 4},
	[T_S16X2] = {"s16x2", 4},
	[T_UE8M0X2] = {"ue8m0x2", 2},
	[T_TEXREF] = {"texref", 8},
	[T_SAMPLERREF] = {"samplerref", 8},
	[T_SURFREF] = {"surfref", 8},
	[T_E4M3] = {"e4m3", 1},
	[T_E5M2] = {"e5m2", 1},
	[T_E2M3X2] = {"e2m3x2", 2},
	[T_E3M2X2] = {"e3m2x2", 2},
	[T_E2M1X2] = {"e2m1x2", 1},
	[T_E2M3] = {"e2m3", 1},
	[T_E3M2] = {"e3m2", 1},
	[T_E2M1] = {"e2m1", 1},
	[T_U2] = {"u2", 4},
	[T_S2] = {"s2", 4},
};

unsigned ptx_type_bytes(enum ptx_type t)
{
	return t < T_COUNT ? types[t].bytes : 0;
}

const char *ptx_type_name(enum ptx_type t)
{
	return t < T_COUNT ? types[t].name : "";
}

enum ptx_type ptx_type_find(const char *s, size_t n)
{
	for (unsigned t = 1; t < T_COUNT; t++)
		if (strlen(types[t].name) == n && !memcmp(types[t].name, s, n))
			return t;
	return T_NONE;
}

static const struct {
	const char *name;
	uint8_t sr;
} sregs[] = {
	{"%tid.x", SR_TID_X},
	{"%tid.y", SR_TID_Y},
	{"%tid.z", SR_TID_Z},
	{"%ntid.x", SR_NTID_X},
	{"%ntid.y", SR_NTID_Y},
	{"%ntid.z", SR_NTID_Z},
	{"%ctaid.x", SR_CTAID_X},
	{"%ctaid.y", SR_CTAID_Y},
	{"%ctaid.z", SR_CTAID_Z},
	{"%nctaid.x", SR_NCTAID_X},
	{"%nctaid.y", SR_NCTAID_Y},
	{"%nctaid.z", SR_NCTAID_Z},
	{"%laneid", SR_LANEID},
	{"%warpid", SR_WARPID},
	{"%nwarpid", SR_NWARPID},
	{"%smid", SR_SMID},
	{"%nsmid", SR_NSMID},
	{"%gridid", SR_GRIDID},
	{"%lanemask_eq", SR_LANEMASK_EQ},
	{"%lanemask_le", SR_LANEMASK_LE},
	{"%lanemask_lt", SR_LANEMASK_LT},
	{"%lanemask_ge", SR_LANEMASK_GE},
	{"%lanemask_gt", SR_LANEMASK_GT},
	{"%clock", SR_CLOCK},
	{"%clock_hi", SR_CLOCK_HI},
	{"%clock64", SR_CLOCK64},
	{"%globaltimer", SR_GLOBALTIMER},
	{"%globaltimer_lo", SR_GLOBALTIMER_LO},
	{"%globaltimer_hi", SR_GLOBALTIMER_HI},
	{"%total_smem_size", SR_TOTAL_SMEM},
	{"%aggr_smem_size", SR_AGGR_SMEM},
	{"%dynamic_smem_size", SR_DYNAMIC_SMEM},
	{"%current_graph_exec", SR_ZERO},
	{"%clusterid.x", SR_CLUSTERID_X},
	{"%clusterid.y", SR_CLUSTERID_Y},
	{"%clusterid.z", SR_CLUSTERID_Z},
	{"%nclusterid.x", SR_NCLUSTERID_X},
	{"%nclusterid.y", SR_NCLUSTERID_Y},
	{"%nclusterid.z", SR_NCLUSTERID_Z},
	{"%is_explicit_cluster", SR_CLUSTER_EXPLICIT},
	{"%cluster_ctarank", SR_CLUSTER_CTARANK},
	{"%cluster_nctarank", SR_CLUSTER_NCTARANK},
	{"%cluster_ctaid.x", SR_CLUSTER_CTAID_X},
	{"%cluster_ctaid.y", SR_CLUSTER_CTAID_Y},
	{"%cluster_ctaid.z", SR_CLUSTER_CTAID_Z},
	{"%cluster_nctaid.x", SR_CLUSTER_NCTAID_X},
	{"%cluster_nctaid.y", SR_CLUSTER_NCTAID_Y},
	{"%cluster_nctaid.z", SR_CLUSTER_NCTAID_Z},
	{"%reserved_smem_offset_begin", SR_ZERO},
	{"%reserved_smem_offset_end", SR_ZERO},
	{"%reserved_smem_offset_cap", SR_ZERO},
	{"%reserved_smem_offset_0", SR_ZERO},
	{"%reserved_smem_offset_1", SR_ZERO},
};

enum ptx_sreg ptx_sreg_find(const char *s, size_t n)
{
	for (unsigned i = 0; i < sizeof sregs / sizeof *sregs; i++)
		if (strlen(sregs[i].name) == n && !memcmp(sregs[i].name, s, n))
			return sregs[i].sr;
	unsigned k = 0;
	if (n > 7 && n < 10 && !memcmp(s, "%envreg", 7)) {
		for (size_t i = 7; i < n; i++)
			k = k * 10 + (unsigned)(s[i] - '0');
		if (k < 32)
			return SR_ENVREG + k;
	}
	if (n > 3 && n < 8 && !memcmp(s, "%pm", 3) && s[3] >= '0' && s[3] <= '7')
		return SR_PM;
	return SR_NONE;
}
