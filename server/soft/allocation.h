/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's view of device memory: who owns an allocation and what kind it is. memory.h is the engine's
 * view of the same table.
 *
 * Thread rule: every function takes the table's own lock; callers may hold the driver's lock (state.h), never
 * the reverse. */
#pragma once
#include "server/soft/memory.h"

enum allocation_kind {
	ALLOCATION_MODULE, /* a variable of a module, made by the engine */
	ALLOCATION_DEVICE,
	ALLOCATION_MANAGED,
	ALLOCATION_PINNED, /* made by cuMemHostAlloc */
	ALLOCATION_REGISTERED, /* the application's own memory, anywhere in its address space */
	ALLOCATION_POOL, /* stream-ordered */
	ALLOCATION_ARRAY,
	ALLOCATION_IPC, /* memory of another process (cuIpcOpenMemHandle) */
	ALLOCATION_MAPPED, /* a piece of a reserved range that has memory (cuMemMap) */
};

struct allocation {
	uint64_t base;
	size_t bytes; /* what was asked for */
	enum allocation_kind kind;
	int device;
	void *owner; /* the context; NULL: none */
	void *pool; /* ALLOCATION_POOL: its pool */
	uint64_t id; /* CU_POINTER_ATTRIBUTE_BUFFER_ID, unique for the process */
	/* as given by the application; ALLOCATION_MAPPED: the types of handles that it may be exported by */
	unsigned flags;
	bool sync_memops;
	uint64_t inode; /* memory of another process: of the file whose pages these are; else 0 */
	unsigned opens; /* ALLOCATION_IPC: how often */
	bool freeing; /* a stream-ordered free is queued */
};

#define ALLOCATION_DEVICES 8 /* devices whose use of memory is counted */

/* Like soft_alloc, for what `wanted` says (base, bytes and id are filled in by the call). */
uint64_t allocation_create(const struct allocation *wanted, size_t bytes, size_t align);
/* Enters memory that is not ours (registered host memory, a mapped range). False when it overlaps a live one.
 */
bool allocation_enter(const struct allocation *a);
/* Forgets an allocation; memory that was ours goes back to the system. False when p is no start of one. */
bool allocation_remove(uint64_t p);
/* Copies the live allocation that holds p. */
bool allocation_find(uint64_t p, struct allocation *out);
/* The live allocation whose end or start is nearest to p. */
bool allocation_near(uint64_t p, struct allocation *out);
/* Are all n bytes at p inside live allocations that touch each other? */
bool allocation_covers(uint64_t p, size_t n);
/* Like allocation_create, with the bytes in a file without a name (file.h) from the start. */
uint64_t allocation_create_shared(const struct allocation *wanted, size_t bytes, size_t align);
/* Puts an allocation's bytes into such a file, in place, so that other processes can map it.
 * Nothing may write there meanwhile. The descriptor, which stays the allocation's, or -errno. */
int allocation_share(uint64_t p);
/* Maps such a file of another process: `wanted` as for allocation_create. 0 when there is no room. */
uint64_t allocation_import(const struct allocation *wanted, int fd, size_t bytes);
/* The import of that file by that owner. */
bool allocation_imported(const void *owner, uint64_t inode, struct allocation *out);
/* Stores the changeable fields (owner, sync_memops, freeing, opens) of the allocation at a->base. */
void allocation_update(const struct allocation *a);
/* The first allocation of that owner; false when none is left. */
bool allocation_owned(const void *owner, struct allocation *out);
void allocation_info(int device, size_t *free_bytes, size_t *total_bytes);
/* From now on the bytes used on each device are counted there (usage.h), where others see them. */
void memory_show(_Atomic uint64_t *where);
/* May another `bytes` be used on that device? Counts them when they may. */
bool memory_charge(int device, size_t bytes);
void memory_uncharge(int device, size_t bytes);
