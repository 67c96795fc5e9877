/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory management: reserved addresses, memory without an address, mappings of one onto the other.
 *
 * Memory is a file without a name, so that several addresses can show the same pages, and other processes,
 * too: its descriptor is the shareable handle, and a page behind the bytes says what they are. A mapping that
 * no device may touch has no pages: it enters the table of allocations when access is given. Thread rule: see
 * state.h. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "server/soft/allocation.h"
#include "server/soft/context.h"
#include "server/soft/device.h"
#include "server/soft/file.h"
#include "server/soft/reserved.h"
#include "server/soft/stream.h"
#include "wire/log.h"

struct memory {
	struct object object;
	CUmemAllocationProp prop;
	size_t bytes;
	bool imported; /* another process made it, and has it counted */
	unsigned retained; /* further holds on the handle (cuMemRetainAllocationHandle) */
	int fd;
};

/* In the page behind the bytes. */
struct trailer {
	char magic[16];
	uint64_t bytes;
	CUmemAllocationProp prop;
};
#define TRAILER 4096u
#define MAGIC "scuda-soft-mem"

struct mapping {
	struct mapping *next;
	uint64_t p;
	size_t bytes, offset;
	struct memory *memory; /* a reference */
	CUmemAccess_flags access;
};
static struct mapping *mappings;

static void memory_finish(struct object *o)
{
	struct memory *m = (struct memory *)o;
	if (!m->imported)
		memory_uncharge(m->prop.location.id, m->bytes);
	close(m->fd);
	free(m);
}

static CUresult prop_check(const CUmemAllocationProp *p)
{
	if (!p || p->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (p->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
		p->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	return context_primary(p->location.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuMemGetAllocationGranularity(
	size_t *out, const CUmemAllocationProp *p, CUmemAllocationGranularity_flags option)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	if (!out || (unsigned)option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult r = prop_check(p);
	if (!r)
		*out = GRANULARITY;
	return r;
}

CUresult cuMemCreate(
	CUmemGenericAllocationHandle *out, size_t n, const CUmemAllocationProp *p, unsigned long long flags)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	CUresult r = prop_check(p);
	if (r)
		return r;
	if (!out || !n || n % GRANULARITY || flags)
		return CUDA_ERROR_INVALID_VALUE;
	struct memory *m = calloc(1, sizeof *m);
	if (!m || !memory_charge(p->location.id, n)) {
		free(m);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	m->prop = *p;
	m->bytes = n;
	m->fd = file_create(n + TRAILER);
	struct trailer t = {MAGIC, n, *p};
	t.prop.location.id = soft.place[p->location.id];
	if (m->fd < 0 || pwrite(m->fd, &t, sizeof t, (off_t)n) != sizeof t ||
		!object_open(&m->object, KIND_MEMORY, NULL, memory_finish)) {
		log_error("device memory of %zu bytes: %m", n);
		if (m->fd >= 0)
			close(m->fd);
		memory_uncharge(p->location.id, n);
		free(m);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*out = m->object.handle;
	return CUDA_SUCCESS;
}

static bool is_trailer(int fd, struct trailer *t)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW;
	struct stat st;
	if (fstat(fd, &st) || st.st_size <= TRAILER || (fcntl(fd, F_GET_SEALS) & seals) != seals ||
		pread(fd, t, sizeof *t, st.st_size - TRAILER) != sizeof *t ||
		memcmp(t->magic, MAGIC, sizeof MAGIC) || t->bytes != (uint64_t)st.st_size - TRAILER)
		return false;
	t->prop.location.id = device_at(t->prop.location.id);
	return !prop_check(&t->prop);
}

static struct memory *memory_named(CUmemGenericAllocationHandle h)
{
	return object_find((void *)(uintptr_t)h, KIND_MEMORY);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle h)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct memory *m = memory_named(h);
	if (!m)
		return CUDA_ERROR_INVALID_VALUE;
	/* a handle that was retained is released as often: the last release takes it away, mappings keep the
	 * memory */
	if (m->retained) {
		m->retained--;
		return CUDA_SUCCESS;
	}
	object_close(&m->object);
	return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(
	CUdeviceptr *out, size_t n, size_t align, CUdeviceptr wish, unsigned long long flags)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	if (!out || !n || n % GRANULARITY || flags || align & (align - 1))
		return CUDA_ERROR_INVALID_VALUE;
	*out = range_reserve(n, align > GRANULARITY ? align : GRANULARITY, wish);
	return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static bool overlaps(uint64_t p, size_t n)
{
	for (const struct mapping *m = mappings; m; m = m->next)
		if (p < m->p + m->bytes && m->p < p + n)
			return true;
	return false;
}

CUresult cuMemAddressFree(CUdeviceptr p, size_t n)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	if (!p || !n || overlaps(p, n) || !range_release(p, n))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult cuMemMap(
	CUdeviceptr p, size_t n, size_t offset, CUmemGenericAllocationHandle h, unsigned long long flags)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct memory *m = memory_named(h);
	if (!m || !p || !n || n % GRANULARITY || p % GRANULARITY || offset % GRANULARITY || flags ||
		offset > m->bytes || n > m->bytes - offset || !range_reserved(p, n) || overlaps(p, n))
		return CUDA_ERROR_INVALID_VALUE;
	struct mapping *map = calloc(1, sizeof *map);
	if (!map)
		return CUDA_ERROR_OUT_OF_MEMORY;
	int r = range_map(p, n, m->fd, offset);
	if (r) {
		log_errno(r, "map device memory: %m");
		free(map);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*map = (struct mapping){mappings, p, n, offset, object_ref(m), CU_MEM_ACCESS_FLAGS_PROT_NONE};
	mappings = map;
	return CUDA_SUCCESS;
}

/* Do whole mappings, without holes, make up the range? */
static bool tiled(uint64_t p, size_t n)
{
	size_t found = 0;
	for (const struct mapping *m = mappings; m; m = m->next)
		if (m->p >= p && m->p < p + n) {
			if (m->bytes > p + n - m->p)
				return false;
			found += m->bytes;
		}
	return n && found == n;
}

CUresult cuMemUnmap(CUdeviceptr p, size_t n)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	if (!tiled(p, n))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult r = context_allowed();
	if (r)
		return r;
	for (int d = 0; d < soft.devices; d++)
		if (context_primary(d)->active)
			context_drain(context_primary(d));
	if (!tiled(p, n))
		return CUDA_ERROR_INVALID_VALUE;
	for (struct mapping **at = &mappings; *at;) {
		struct mapping *m = *at;
		if (m->p < p || m->p >= p + n) {
			at = &m->next;
			continue;
		}
		if (m->access)
			allocation_remove(m->p);
		int e = range_map(m->p, m->bytes, -1, 0);
		if (e)
			log_errno(e, "unmap device memory: %m");
		*at = m->next;
		object_unref(m->memory);
		free(m);
	}
	return CUDA_SUCCESS;
}

static CUresult access_set(struct mapping *m, CUmemAccess_flags flags)
{
	int prot = flags == CU_MEM_ACCESS_FLAGS_PROT_NONE   ? PROT_NONE
		   : flags == CU_MEM_ACCESS_FLAGS_PROT_READ ? PROT_READ
							    : PROT_READ | PROT_WRITE;
	if (mprotect((void *)(uintptr_t)m->p, m->bytes, prot)) {
		log_error("access to device memory: %m");
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	struct allocation a = {.base = m->p,
		.bytes = m->bytes,
		.kind = ALLOCATION_MAPPED,
		.flags = m->memory->prop.requestedHandleTypes,
		.device = m->memory->prop.location.id};
	if (m->access && !flags)
		allocation_remove(m->p);
	if (!m->access && flags && !allocation_enter(&a))
		return CUDA_ERROR_OUT_OF_MEMORY;
	m->access = flags;
	return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr p, size_t n, const CUmemAccessDesc *desc, size_t count)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	if (!desc || !count || !tiled(p, n))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
			!context_primary(desc[i].location.id))
			return CUDA_ERROR_INVALID_DEVICE;
		if (desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
			desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
			desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			return CUDA_ERROR_INVALID_VALUE;
	}
	CUresult r = CUDA_SUCCESS;
	for (struct mapping *m = mappings; m && !r; m = m->next)
		if (m->p >= p && m->p < p + n)
			r = access_set(m, desc[count - 1].flags);
	return r;
}

static struct mapping *mapping_at(uint64_t p)
{
	for (struct mapping *m = mappings; m; m = m->next)
		if (p >= m->p && p - m->p < m->bytes)
			return m;
	return NULL;
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr p)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	const struct mapping *m = mapping_at(p);
	if (!flags || !location || !m || location->type != CU_MEM_LOCATION_TYPE_DEVICE ||
		!context_primary(location->id))
		return CUDA_ERROR_INVALID_VALUE;
	*flags = m->access;
	return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *p, CUmemGenericAllocationHandle h)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	const struct memory *m = memory_named(h);
	if (!p || !m)
		return CUDA_ERROR_INVALID_VALUE;
	*p = m->prop;
	return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *out, void *address)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct mapping *m = mapping_at((uintptr_t)address);
	if (!out || !m || !m->memory->object.handle)
		return CUDA_ERROR_INVALID_VALUE;
	m->memory->retained++;
	*out = m->memory->object.handle;
	return CUDA_SUCCESS;
}

/* ---- other processes */

CUresult cuMemExportToShareableHandle(
	void *out, CUmemGenericAllocationHandle h, CUmemAllocationHandleType type, unsigned long long flags)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	const struct memory *m = memory_named(h);
	if (!out || !m || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
		!(m->prop.requestedHandleTypes & type))
		return CUDA_ERROR_INVALID_VALUE;
	int fd = fcntl(m->fd, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	*(int *)out = fd;
	return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(
	CUmemGenericAllocationHandle *out, void *handle, CUmemAllocationHandleType type)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	int fd = (int)(intptr_t)handle;
	struct trailer t;
	if (!out || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	if (!is_trailer(fd, &t))
		return CUDA_ERROR_UNKNOWN;
	t.prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE; /* what is imported is not exported again */
	struct memory *m = calloc(1, sizeof *m);
	if (!m)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*m = (struct memory){
		.prop = t.prop, .bytes = t.bytes, .imported = true, .fd = fcntl(fd, F_DUPFD_CLOEXEC, 3)};
	if (m->fd < 0 || !object_open(&m->object, KIND_MEMORY, NULL, memory_finish)) {
		if (m->fd >= 0)
			close(m->fd);
		free(m);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*out = m->object.handle;
	return CUDA_SUCCESS;
}
