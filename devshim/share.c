/* SPDX-License-Identifier: Apache-2.0 */
/* Sharing memory and pools between processes of one mount: descriptors, which are open files of the mount
 * (wire/ctl.h), other handles, and which types an allocation may have. Those of cuIpc are in share_ipc.c.
 *
 * System calls are raw, since libc's are cancellation points and the application's API calls must not be.
 *
 * Thread rule: any thread; `lock` guards the list of types. */
#include "devshim/share.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "devshim/call.h"
#include "devshim/context.h"
#include "devshim/handle.h"
#include "devshim/node.h"
#include "devshim/process.h"
#include "devshim/range.h"
#include "devshim/work.h"
#include "wire/ctl.h"
#include "wire/cuda.h"
#include "wire/log.h"
#include "cuda.calls.h"
#include "cuda.remote.h"

#define SHARE_BYTES 64 /* of any handle that is no descriptor */
_Static_assert(sizeof(CUipcMemHandle) == SHARE_BYTES && sizeof(CUipcEventHandle) == SHARE_BYTES &&
		       sizeof(CUmemFabricHandle) == SHARE_BYTES && sizeof(struct ctl_handle) == SHARE_BYTES,
	"one size");

CUdeviceptr share_get_memory(struct call *c, struct range *range)
{
	struct context *ctx = context_current();
	CUdeviceptr p = get_u64(&c->in);

	range->base = get_u64(&c->in);
	range->size = get_u64(&c->in);
	range->device = get_device(c);
	range->ctx = ctx ? ctx->handle : NULL;
	return p;
}

/* ---- handle types, which pointers tell */

/* Allocations with handle types, until their handle is given to something else. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct typed {
	struct typed *next;
	CUmemGenericAllocationHandle handle;
	unsigned types;
} *typed;

void share_note_types(CUmemGenericAllocationHandle h, unsigned types)
{
	struct typed *t, **at = &typed;

	pthread_mutex_lock(&lock);
	while ((t = *at) && t->handle != h)
		at = &t->next;
	if (t && !types) {
		__atomic_store_n(at, t->next, __ATOMIC_RELAXED);
		free(t);
	} else if (types) {
		if (!t && (t = calloc(1, sizeof *t))) {
			t->next = typed;
			__atomic_store_n(&typed, t, __ATOMIC_RELAXED);
		}
		if (t)
			*t = (struct typed){t->next, h, types};
	}
	pthread_mutex_unlock(&lock);
}

unsigned share_types(CUmemGenericAllocationHandle h)
{
	unsigned types = 0;

	if (!__atomic_load_n(&typed, __ATOMIC_RELAXED))
		return 0;
	pthread_mutex_lock(&lock);
	for (const struct typed *t = typed; t && !types; t = t->next)
		types = t->handle == h ? t->types : 0;
	pthread_mutex_unlock(&lock);
	return types;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop,
	unsigned long long flags)
{
	CUresult r = remote_cuMemCreate(handle, size, prop, flags);

	if (!r)
		share_note_types(*handle, prop->requestedHandleTypes);
	return r;
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
	CUresult r = remote_cuMemPoolCreate(pool, poolProps);

	if (!r)
		handle_set_data(HANDLE_CUmemoryPool, *pool, (void *)(uintptr_t)poolProps->handleTypes);
	return r;
}

/* ---- descriptors */

static CUresult code_of(int error)
{
	switch (error) {
	case ENOMEM:
	case ENOSPC:
	case EMFILE:
	case ENFILE: return CUDA_ERROR_OUT_OF_MEMORY;
	default: return CUDA_ERROR_OPERATING_SYSTEM;
	}
}

static bool read_handle(int fd, struct ctl_handle *h)
{
	return syscall(SYS_pread64, fd, h, sizeof *h, (off_t)0) == sizeof *h &&
	       !memcmp(h->magic, CTL_HANDLE_MAGIC, sizeof h->magic);
}

/* A fresh file of the mount for a handle of this session's server. */
static CUresult open_file(int *fd, struct ctl_handle *h)
{
	char path[PATH_MAX];
	struct stat st;
	int saved = errno, n = 0, e;

	*fd = -1;
	e = node_stat(&st);
	if (!e)
		n = snprintf(path, sizeof path, "%s/" CTL_HANDLE "%llx", process_directory(),
			(unsigned long long)st.st_ino);
	if (!e && (size_t)n >= sizeof path)
		e = ENAMETOOLONG;
	if (!e) {
		*fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
		e = *fd < 0 ? errno : 0;
	}
	if (!e && !read_handle(*fd, h)) {
		e = EPROTO;
		syscall(SYS_close, *fd);
		*fd = -1;
	}
	if (e)
		log_errno(-e, "a file for a shared handle: %m");
	errno = saved;
	return e ? code_of(e) : CUDA_SUCCESS;
}

/* A descriptor that another process got that way, in this mount. */
static bool know_file(int fd, struct ctl_handle *h)
{
	struct stat ours, st;
	int saved = errno;
	bool known = !node_stat(&ours) && !fstat(fd, &st) && st.st_dev == ours.st_dev && read_handle(fd, h);

	errno = saved;
	return known;
}

/* A descriptor is written to *out when the type is that, else 64 bytes. */
static CUresult export_handle(unsigned id, void *out, CUmemGenericAllocationHandle memory, CUmemoryPool pool,
	CUmemAllocationHandleType type, unsigned long long flags)
{
	bool file = type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	struct ctl_handle h = {.zero = {0}};
	uint8_t bytes[SHARE_BYTES];
	struct call c;
	int fd = -1;
	CUresult r = process_check();

	if (!r && !out)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r && pool && !handle_live(HANDLE_CUmemoryPool, pool))
		r = handle_error(HANDLE_CUmemoryPool);
	if (!r && file)
		r = open_file(&fd, &h);
	if (!r)
		r = call_begin(&c, id);
	if (!r) {
		work_seen_outside();
		put_u64(&c.out, type);
		put_u64(&c.out, flags);
		put_bytes(&c.out, &h.token, sizeof h.token);
		put_u64(&c.out, pool ? (uintptr_t)pool : memory);
		r = call_wait(&c);
		if (!r && !file)
			get_bytes(&c.in, bytes, sizeof bytes);
		r = call_end(&c, r);
	}
	if (r && fd >= 0)
		syscall(SYS_close, fd);
	if (!r && file)
		*(int *)out = fd;
	else if (!r)
		memcpy(out, bytes, sizeof bytes);
	return r;
}

CUresult cuMemExportToShareableHandle(void *shareableHandle, CUmemGenericAllocationHandle handle,
	CUmemAllocationHandleType handleType, unsigned long long flags)
{
	return export_handle(
		CALL_cuMemExportToShareableHandle, shareableHandle, handle, NULL, handleType, flags);
}

CUresult cuMemPoolExportToShareableHandle(
	void *handle_out, CUmemoryPool pool, CUmemAllocationHandleType handleType, unsigned long long flags)
{
	if (!pool)
		return process_check() ? process_check() : CUDA_ERROR_INVALID_VALUE;
	return export_handle(CALL_cuMemPoolExportToShareableHandle, handle_out, 0, pool, handleType, flags);
}

/* Puts what names the handle. */
static CUresult put_import(struct call *c, void *os, CUmemAllocationHandleType type, unsigned long long flags)
{
	struct ctl_handle h;
	uint8_t bytes[SHARE_BYTES] = {0};

	if (type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
		if (!know_file((int)(intptr_t)os, &h))
			return CUDA_ERROR_UNKNOWN;
		memcpy(bytes, &h.token, sizeof h.token);
	} else if (type == CU_MEM_HANDLE_TYPE_FABRIC) {
		if (!os)
			return CUDA_ERROR_INVALID_VALUE;
		memcpy(bytes, os, sizeof bytes);
	}
	work_seen_outside();
	put_u64(&c->out, type);
	put_u64(&c->out, flags);
	put_bytes(&c->out, bytes, sizeof bytes);
	return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(
	CUmemGenericAllocationHandle *handle, void *osHandle, CUmemAllocationHandleType shHandleType)
{
	struct call c;
	CUresult r = call_begin(&c, CALL_cuMemImportFromShareableHandle);

	if (!r && !handle)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = put_import(&c, osHandle, shHandleType, 0);
	if (r)
		return r;
	r = call_wait(&c);
	if (!r) {
		*handle = get_u64(&c.in);
		share_note_types(*handle, 0); /* what was imported is not exported again */
	}
	return call_end(&c, r);
}

CUresult cuMemPoolImportFromShareableHandle(
	CUmemoryPool *pool_out, void *handle, CUmemAllocationHandleType handleType, unsigned long long flags)
{
	struct call c;
	CUresult r = call_begin(&c, CALL_cuMemPoolImportFromShareableHandle);

	if (!r && !pool_out)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = put_import(&c, handle, handleType, flags);
	if (r)
		return r;
	r = call_wait(&c);
	if (!r)
		*pool_out = get_handle(&c, HANDLE_CUmemoryPool);
	return call_end(&c, r);
}

CUresult cuMemPoolImportPointer(CUdeviceptr *ptr_out, CUmemoryPool pool, CUmemPoolPtrExportData *shareData)
{
	struct range range = {.kind = RANGE_POOL, .pool = pool};
	CUdeviceptr p = 0;
	struct call c;
	CUresult r = call_begin(&c, CALL_cuMemPoolImportPointer);

	if (!r && (!ptr_out || !shareData))
		r = CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	if (!put_handle(&c, HANDLE_CUmemoryPool, pool))
		return handle_error(HANDLE_CUmemoryPool);
	put_bytes(&c.out, shareData, sizeof *shareData);
	r = call_wait(&c);
	if (!r)
		p = share_get_memory(&c, &range);
	r = call_end(&c, r);
	if (r)
		return r;
	range_reserve(range.base, range.size);
	if (!range_add(&range)) {
		remote_cuMemFree_v2(p);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ptr_out = p;
	return CUDA_SUCCESS;
}
