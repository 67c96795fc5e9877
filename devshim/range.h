/* SPDX-License-Identifier: Apache-2.0 */
/* What the shim knows about addresses: every allocation that an application can name, device and host, by
 * start and size. Validation, the direction of unified copies and the pointer attributes are answered from
 * here without asking the server.
 *
 * Thread rule: all functions may be called from any thread; a range is copied out, so that nobody holds a
 * pointer into the table. */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "wire/cuda_types.h"

enum range_kind {
	RANGE_NONE,
	RANGE_DEVICE, /* cuMemAlloc, cuMemAllocPitch */
	RANGE_POOL, /* stream-ordered allocation */
	RANGE_GLOBAL, /* a variable of a module: lives as long as it */
	/* a reserved address range (cuMemAddressReserve): device memory where it is mapped */
	RANGE_VIRTUAL,
	RANGE_MAPPED, /* cuMemMap: another may follow without a gap */
	RANGE_IPC, /* memory of another program (cuIpcOpenMemHandle) */
	RANGE_MANAGED, /* both sides use it in place */
	RANGE_HOST, /* cuMemHostAlloc, cuMemAllocHost: our mapping */
	RANGE_REGISTERED, /* cuMemHostRegister: the application's memory */
};

struct range {
	uint64_t base;
	size_t size; /* what was asked for */
	enum range_kind kind;
	bool sync_memops; /* CU_POINTER_ATTRIBUTE_SYNC_MEMOPS */
	bool graph; /* RANGE_POOL: memory of a graph, which every launch makes anew at its address */
	bool mirrored; /* kernels use it in place (mirror.h): the server has it, too */
	unsigned types; /* of handles by which it may be exported */
	unsigned opens; /* RANGE_IPC: how often */
	unsigned flags; /* host kinds: flags of the call that made it */
	int device; /* the application's ordinal */
	uint64_t id; /* CU_POINTER_ATTRIBUTE_BUFFER_ID, never used twice */
	size_t mapped; /* RANGE_HOST: bytes of the mapping */
	uint64_t arena; /* RANGE_HOST: where that lies in the memory shared with the mount; 0: not there */
	bool shared; /* RANGE_HOST: with forked children */
	unsigned forks; /* see arena_alloc */
	CUcontext ctx; /* RANGE_GLOBAL: the module or library handle that owns it */
	CUmemoryPool pool; /* RANGE_POOL: NULL for the device's default pool */
};

static inline bool range_is_host(const struct range *r)
{
	return r->kind == RANGE_HOST || r->kind == RANGE_REGISTERED;
}
static inline bool range_is_device(const struct range *r)
{
	return r->kind == RANGE_DEVICE || r->kind == RANGE_POOL || r->kind == RANGE_GLOBAL ||
	       r->kind == RANGE_VIRTUAL || r->kind == RANGE_MAPPED || r->kind == RANGE_IPC ||
	       r->kind == RANGE_MANAGED;
}
/* Pinned memory that the server does not have: copies take it from here and put it here. */
static inline bool range_is_here(const struct range *r)
{
	return range_is_host(r) && !r->mirrored;
}
/* Device memory of which the table knows the end: what goes past it is wrong. */
static inline bool range_is_whole(const struct range *r)
{
	return r->kind == RANGE_DEVICE || r->kind == RANGE_POOL || r->kind == RANGE_GLOBAL ||
	       r->kind == RANGE_IPC || r->mirrored;
}
/* n bytes from p on are known to be there. */
static inline bool range_has(const struct range *r, uint64_t p, size_t n)
{
	return r->kind != RANGE_VIRTUAL && n <= r->size - (p - r->base);
}

/* Notes a range and gives it its id. A range of the same start is replaced. Returns false without memory. */
bool range_add(struct range *r);
/* The range that holds p (a range of size 0 holds its start). */
bool range_find(uint64_t p, struct range *out);
/* A range that shares bytes with the n from p on. */
bool range_overlap(uint64_t p, size_t n, struct range *out);
/* Where n bytes of pinned memory from p on lie in the arena (arena.h); 0: not there. */
uint64_t range_arena(uint64_t p, size_t n);
/* Takes the range that starts at base out of the table, when its kind is `kind`. Of several threads
 * exactly one succeeds. */
bool range_take(uint64_t base, enum range_kind kind, struct range *out);
/* One open more, or less, of a RANGE_IPC that starts at base. False when there is none, or none is left. */
bool range_open(uint64_t base);
bool range_close(uint64_t base);
void range_set_sync_memops(uint64_t p, bool on);
void range_set_mirrored(uint64_t base, bool on);
/* Forgets all ranges of a context (its kind: RANGE_NONE stands for all kinds but the host ones), of a
 * module, or of a pool. */
void range_drop_owner(enum range_kind kind, CUcontext owner);
/* Keeps the application's own mappings out of an address range that the server gave. Where something lies
 * already the range stays as it is. */
void range_reserve(uint64_t base, size_t size);
/* Memory of the program's at whole pages of the server's address range; false where something lies
 * already. */
bool range_map(uint64_t base, size_t size);
void range_unmap(uint64_t base, size_t size);

/* Between which addresses all host ranges lie that there have been. */
extern _Atomic uint64_t range_host_low, range_host_high;
static inline bool range_any_host(void)
{
	return __builtin_expect(atomic_load_explicit(&range_host_high, memory_order_relaxed) != 0, 0);
}
static inline bool range_may_be_host(uint64_t p)
{
	return p >= atomic_load_explicit(&range_host_low, memory_order_relaxed) &&
	       p < atomic_load_explicit(&range_host_high, memory_order_relaxed);
}
