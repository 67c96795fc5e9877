/* SPDX-License-Identifier: Apache-2.0 */
/* Sharing between processes by handles of 64 bytes, and of pools by descriptors. What is shared lies in a
 * file without a name; a handle says in which process it is open, and its inode number shows whether it still
 * is.
 *
 * Thread rule: see state.h. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "server/soft/allocation.h"
#include "server/soft/capture.h"
#include "server/soft/event.h"
#include "server/soft/file.h"
#include "server/soft/pool.h"
#include "server/soft/shadow.h"
#include "wire/log.h"

#define DRAIN_ROUNDS 100 /* other threads may queue work while one waits for the device */

struct handle {
	char magic[8];
	int32_t pid, fd, device;
	uint32_t kind;
	uint64_t inode, bytes;
	uint8_t zero[24];
};
_Static_assert(sizeof(struct handle) == CU_IPC_HANDLE_SIZE &&
		sizeof(struct handle) == sizeof(CUmemPoolPtrExportData),
	"a handle's size");
#define MAGIC "SOFTIPC"

/* ---- files of other processes */

static bool make_handle(struct handle *h, enum kind kind, int fd, int device, size_t bytes)
{
	struct stat st;
	if (fstat(fd, &st))
		return false;
	*h = (struct handle){.magic = MAGIC,
		.pid = getpid(),
		.fd = fd,
		.device = soft.place[device],
		.kind = kind,
		.inode = st.st_ino,
		.bytes = bytes};
	return true;
}

/* The file, open in this process; what it holds cannot shrink any more. */
static CUresult open_handle(const struct handle *h, enum kind kind, int *fd)
{
	char path[64];
	struct stat st;
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW;
	const CUresult wrong = kind == KIND_EVENT ? CUDA_ERROR_MAP_FAILED : CUDA_ERROR_INVALID_VALUE;
	if (memcmp(h->magic, MAGIC, sizeof MAGIC) || h->kind != kind || h->pid <= 0 || h->fd < 0)
		return wrong;
	if (h->pid == getpid())
		return CUDA_ERROR_INVALID_CONTEXT;
	snprintf(path, sizeof path, "/proc/%d/fd/%d", h->pid, h->fd);
	*fd = open(path, O_RDWR | O_CLOEXEC);
	if (*fd < 0) {
		log_info("a handle of process %d: %m", h->pid);
		return kill(h->pid, 0) && errno == ESRCH && kind == KIND_MEMORY ? CUDA_ERROR_INVALID_HANDLE :
				wrong;
	}
	if (!fstat(*fd, &st) && st.st_ino == h->inode && (uint64_t)st.st_size >= h->bytes &&
		(fcntl(*fd, F_GET_SEALS) & seals) == seals)
		return CUDA_SUCCESS;
	close(*fd);
	return wrong;
}

/* ---- memory */

/* Waits until nothing runs, so that memory can be moved. */
static CUresult quiet(void)
{
	for (int round = 0; round < DRAIN_ROUNDS; round++) {
		const struct object *o;
		struct context *busy = NULL;
		uint32_t i = 0;
		while (!busy && (o = object_next(KIND_STREAM, &i)))
			if (!stream_idle((const struct stream *)o))
				busy = o->context;
		for (int d = 0; !busy && d < soft.devices; d++)
			for (const struct stream *s = context_primary(d)->streams; s && !busy; s = s->next)
				if (!stream_idle(s))
					busy = s->object.context;
		if (!busy)
			return CUDA_SUCCESS;
		context_drain(busy);
	}
	return CUDA_ERROR_NOT_READY;
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *out, CUdeviceptr p)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	struct allocation a;
	if (!out || !allocation_find(p, &a) || a.kind != ALLOCATION_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult r = capture_unsafe();
	if (!r)
		r = quiet();
	if (r)
		return r;
	int fd = allocation_share(a.base);
	if (fd < 0) {
		log_errno(fd, "device memory to be shared: %m");
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	shadow_written(a.base, a.bytes); /* from now on others may write it unseen */
	bool made = make_handle((struct handle *)out, KIND_MEMORY, fd, a.device, a.bytes);
	return made ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *out, CUipcMemHandle handle, unsigned flags)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	struct handle h;
	struct allocation a;
	int fd;
	memcpy(&h, &handle, sizeof h);
	if (!out || flags & ~(unsigned)CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult r = open_handle(&h, KIND_MEMORY, &fd);
	if (r)
		return r;
	h.device = device_at(h.device);
	if (h.device < 0) {
		r = CUDA_ERROR_INVALID_DEVICE;
	} else if (h.device != g.context->device) {
		r = CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	} else if (allocation_imported(g.context, h.inode, &a)) {
		a.opens++;
		allocation_update(&a);
		*out = a.base;
	} else {
		a = (struct allocation){.kind = ALLOCATION_IPC,
			.device = h.device,
			.owner = g.context,
			.inode = h.inode,
			.opens = 1};
		*out = allocation_import(&a, fd, h.bytes);
		r = *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	}
	close(fd);
	return r;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr p)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	struct allocation a;
	if (!allocation_find(p, &a) || a.base != p || a.kind != ALLOCATION_IPC)
		return CUDA_ERROR_INVALID_VALUE;
	if (a.opens > 1) {
		a.opens--;
		allocation_update(&a);
		return CUDA_SUCCESS;
	}
	CUresult r = capture_unsafe();
	if (r)
		return r;
	context_drain(g.context);
	allocation_remove(p);
	return g.context->error;
}

/* ---- events */

CUresult cuIpcGetEventHandle(CUipcEventHandle *out, CUevent event)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	const struct event *e = object_find(event, KIND_EVENT);
	if (!e)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!e->page)
		return CUDA_ERROR_INVALID_HANDLE;
	return make_handle((struct handle *)out, KIND_EVENT, e->page_fd, g.context->device, sizeof *e->page)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_OPERATING_SYSTEM;
}

CUresult cuIpcOpenEventHandle(CUevent *out, CUipcEventHandle handle)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	struct handle h;
	int fd;
	memcpy(&h, &handle, sizeof h);
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult r = open_handle(&h, KIND_EVENT, &fd);
	if (r)
		return r;
	struct event *e = event_new(g.context, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING, fd);
	if (!e)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*out = HANDLE(e);
	return CUDA_SUCCESS;
}

/* ---- pools: a descriptor says that there is one, its allocations have handles */

CUresult cuMemPoolExportToShareableHandle(
	void *out, CUmemoryPool pool, CUmemAllocationHandleType type, unsigned long long flags)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct pool *p = object_find(pool, KIND_POOL);
	if (!out || !p || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
			!(p->props.handleTypes & type))
		return CUDA_ERROR_INVALID_VALUE;
	struct handle h = {.magic = MAGIC, .pid = getpid(), .device = soft.place[p->device],
			.kind = KIND_POOL};
	int fd = file_create(sizeof h);
	if (fd < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	if (pwrite(fd, &h, sizeof h, 0) != sizeof h) {
		close(fd);
		return CUDA_ERROR_OPERATING_SYSTEM;
	}
	p->exported = true;
	*(int *)out = fd;
	return CUDA_SUCCESS;
}

CUresult cuMemPoolImportFromShareableHandle(
	CUmemoryPool *out, void *handle, CUmemAllocationHandleType type, unsigned long long flags)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct handle h;
	if (!out || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	if (pread((int)(intptr_t)handle, &h, sizeof h, 0) != sizeof h ||
			memcmp(h.magic, MAGIC, sizeof MAGIC) ||
		h.kind != KIND_POOL)
		return CUDA_ERROR_UNKNOWN;
	int device = device_at(h.device);
	struct pool *p = device < 0 ? NULL : pool_create(device, NULL);
	if (!p)
		return device < 0 ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_OUT_OF_MEMORY;
	p->imported = true;
	*out = HANDLE(p);
	return CUDA_SUCCESS;
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *out, CUdeviceptr p)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct allocation a;
	const struct pool *pool = allocation_find(p, &a) && a.base == p &&
			a.kind == ALLOCATION_POOL ? a.pool : NULL;
	if (!out || !pool || !pool->exported)
		return CUDA_ERROR_INVALID_VALUE;
	int fd = allocation_share(p);
	return fd >= 0 && make_handle((struct handle *)out, KIND_POOL, fd, a.device, a.bytes)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_OPERATING_SYSTEM;
}

CUresult cuMemPoolImportPointer(CUdeviceptr *out, CUmemoryPool pool, CUmemPoolPtrExportData *data)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	struct pool *p = object_find(pool, KIND_POOL);
	struct handle h;
	int fd;
	if (!out || !p || !data || !p->imported)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&h, data, sizeof h);
	CUresult r = open_handle(&h, KIND_POOL, &fd);
	if (r)
		return r;
	struct allocation a = {.kind = ALLOCATION_POOL,
		.device = p->device,
		.owner = g.context,
		.pool = p,
		.inode = h.inode};
	*out = allocation_import(&a, fd, h.bytes);
	close(fd);
	if (!*out)
		return CUDA_ERROR_OUT_OF_MEMORY;
	object_ref(p);
	p->used += h.bytes;
	return CUDA_SUCCESS;
}
