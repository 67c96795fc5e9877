/* SPDX-License-Identifier: Apache-2.0 */
/* Handles by which programs share memory and events. What the driver gives goes to the listener (share.h),
 * the program gets a token; so a program can only open what another of the same key has exported. Only fabric
 * handles are the program's own bytes.
 *
 * Thread rule: as exec.h; one question to the listener at a time, under a lock. */
#include "server/share.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/serve.h"
#include "server/session.h"
#include "server/state.h"
#include "wire/limits.h"
#include "wire/log.h"
#include "cuda.calls.h"

#define TIME_LISTENER 5             /* seconds that the listener may take */

/* What a program finds in its 64 bytes. */
struct ticket {
	char magic[8];
	struct share_token token;
	uint8_t zero[CU_IPC_HANDLE_SIZE - 24];
};
_Static_assert(sizeof(struct ticket) == CU_IPC_HANDLE_SIZE && sizeof(struct ticket) == SHARE_BYTES &&
	sizeof(struct ticket) == sizeof(CUmemPoolPtrExportData), "tickets replace handles");
#define TICKET_MAGIC "SCUDAIPC"

/* Asks; *fd goes along (-1: none), and is what came back (-1: none). 0 or -errno. */
static int ask(struct share_message *m, int *fd)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	int socket = session_self()->start->share, r;
	struct timeval t = {TIME_LISTENER, 0};
	static bool lost;

	pthread_mutex_lock(&lock);
	if (lost || socket < 0)
		r = -ENOTCONN;
	else if (setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t))
		r = -errno;
	else
		r = share_send(socket, m, *fd);
	*fd = -1;
	if (!r) {
		r = share_receive(socket, m, fd, 0);
		/* A late answer would be taken for that of the next question. */
		lost = r != 0;
	}
	pthread_mutex_unlock(&lock);
	if (r)
		log_warning("the listener does not answer: %s", strerror(-r));
	return r ? r : m->result;
}

int share_expect_second(int fd, struct share_token *token)
{
	struct share_message m = {.op = SHARE_PUT, .kind = SHARE_SECOND};
	int r = ask(&m, &fd);

	*token = m.token;
	/* A listener that answers with a descriptor is none of ours. */
	if (fd >= 0)
		close(fd);
	return r;
}

static CUresult code_of(int r)
{
	switch (r) {
	case 0: return CUDA_SUCCESS;
	case -ENOENT: return CUDA_ERROR_INVALID_VALUE;
	case -ENOSPC:
	case -EMFILE: return CUDA_ERROR_OUT_OF_MEMORY;
	default: return CUDA_ERROR_OPERATING_SYSTEM;
	}
}

/* Bytes of the driver's become a ticket, in place. */
static CUresult put_ticket(void *bytes, enum share_kind kind)
{
	struct share_message m = {.op = SHARE_PUT, .kind = kind};
	struct ticket t = {.magic = TICKET_MAGIC};
	int fd = -1, r;

	memcpy(m.bytes, bytes, sizeof m.bytes);
	r = ask(&m, &fd);
	t.token = m.token;
	memcpy(bytes, &t, sizeof t);
	return code_of(r);
}

/* The driver's answer to a handle that names nothing. */
static CUresult nonsense(enum share_kind kind)
{
	return kind == SHARE_MEMORY || kind == SHARE_POINTER ? CUDA_ERROR_INVALID_VALUE :
			kind == SHARE_EVENT ? CUDA_ERROR_MAP_FAILED : CUDA_ERROR_UNKNOWN;
}

static CUresult get_ticket(void *bytes, enum share_kind kind)
{
	struct share_message m = {.op = SHARE_GET, .kind = kind};
	struct ticket t;
	int fd = -1, r;

	memcpy(&t, bytes, sizeof t);
	if (memcmp(t.magic, TICKET_MAGIC, sizeof t.magic))
		return nonsense(kind);
	m.token = t.token;
	r = ask(&m, &fd);
	if (fd >= 0)
		close(fd);
	memcpy(bytes, m.bytes, sizeof m.bytes);
	return r == -ENOENT ? nonsense(kind) : code_of(r);
}

/* ---- handles of 64 bytes ---- */

CUresult serve_cuIpcGetMemHandle(struct exec *x)
{
	CUdeviceptr p = get_u64(&x->in);
	CUipcMemHandle h = {0};

	if (!get_end(&x->in))
		return SERVE_BAD;
	CUresult r = drv.cuIpcGetMemHandle(&h, p);

	if (!r)
		r = put_ticket(&h, SHARE_MEMORY);
	if (!r)
		put_bytes(&x->out, &h, sizeof h);
	return r;
}

/* What the program must know of memory that it did not allocate: [address, start, bytes, device]. */
static void put_memory(struct exec *x, CUdeviceptr p)
{
	CUdeviceptr base = p;
	size_t size = 0;
	int device = 0;

	if (drv.cuMemGetAddressRange_v2(&base, &size, p))
		log_warning("%s: the driver does not know the extent of what it gave", x->name);
	if (drv.cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p))
		device = 0;
	put_u64(&x->out, p);
	put_u64(&x->out, base);
	put_u64(&x->out, size);
	put_i64(&x->out, device);
}

CUresult serve_cuIpcOpenMemHandle_v2(struct exec *x)
{
	CUipcMemHandle h;
	CUdeviceptr p = 0;

	get_bytes(&x->in, &h, sizeof h);
	unsigned flags = get_u64(&x->in);

	if (!get_end(&x->in))
		return SERVE_BAD;
	CUresult r = get_ticket(&h, SHARE_MEMORY);

	if (!r)
		r = drv.cuIpcOpenMemHandle_v2(&p, h, flags);
	if (!r)
		put_memory(x, p);
	return r;
}

CUresult serve_cuIpcGetEventHandle(struct exec *x)
{
	CUevent e = exec_handle(x, HANDLE_CUevent);
	CUipcEventHandle h = {0};

	if (!get_end(&x->in))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	CUresult r = drv.cuIpcGetEventHandle(&h, e);

	if (!r)
		r = put_ticket(&h, SHARE_EVENT);
	if (!r)
		put_bytes(&x->out, &h, sizeof h);
	return r;
}

CUresult serve_cuIpcOpenEventHandle(struct exec *x)
{
	CUipcEventHandle h;
	CUevent e = NULL;

	get_bytes(&x->in, &h, sizeof h);
	if (!get_end(&x->in))
		return SERVE_BAD;
	CUresult r = get_ticket(&h, SHARE_EVENT);

	if (!r)
		r = drv.cuIpcOpenEventHandle(&e, h);
	if (!r)
		exec_put_handle(x, HANDLE_CUevent, e);
	return r;
}

/* ---- descriptors ---- */

/* Gives a descriptor of the driver's to the listener, for the file that the program opened, and closes it
 * here. */
static CUresult put_file(const struct share_token *t, enum share_kind kind, int fd)
{
	struct share_message m = {.op = SHARE_PUT, .kind = kind, .token = *t};
	int given = fd, r = ask(&m, &given);

	close(fd);
	if (given >= 0)
		close(given);
	/* The listener had no room for the file, or its mount is gone. */
	return code_of(r == -ENOENT ? -ENOSPC : r);
}

static CUresult get_file(const struct share_token *t, enum share_kind kind, int *fd)
{
	struct share_message m = {.op = SHARE_GET, .kind = kind, .token = *t};

	*fd = -1;
	int found = ask(&m, fd);
	CUresult r = found == -ENOENT ? nonsense(kind) : code_of(found);

	if (!r && *fd < 0)
		r = CUDA_ERROR_OPERATING_SYSTEM;
	return r;
}

/* [type, flags, token, handle of memory or of a pool]; answered by 64 bytes unless the type is a
 * descriptor. */
static CUresult export_handle(struct exec *x, enum share_kind kind)
{
	CUmemAllocationHandleType type = (CUmemAllocationHandleType)get_u64(&x->in);
	unsigned long long flags = get_u64(&x->in);
	struct share_token token;
	CUmemGenericAllocationHandle memory = 0;
	CUmemoryPool pool = NULL;
	union { int fd; uint8_t bytes[SHARE_BYTES]; } h = {.bytes = {0}};

	get_bytes(&x->in, &token, sizeof token);
	if (kind == SHARE_POOL)
		pool = exec_handle(x, HANDLE_CUmemoryPool);
	else
		memory = get_u64(&x->in);
	if (!get_end(&x->in))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	CUresult r = kind == SHARE_POOL ? drv.cuMemPoolExportToShareableHandle(&h, pool, type, flags) :
			drv.cuMemExportToShareableHandle(&h, memory, type, flags);

	if (!r && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		r = put_file(&token, kind, h.fd);
	else if (!r)
		put_bytes(&x->out, h.bytes, sizeof h.bytes);
	return r;
}

CUresult serve_cuMemExportToShareableHandle(struct exec *x) { return export_handle(x, SHARE_ALLOCATION); }
CUresult serve_cuMemPoolExportToShareableHandle(struct exec *x) { return export_handle(x, SHARE_POOL); }

/* [type, flags, 64 bytes: a fabric handle, or the token of a descriptor's file] */
static CUresult import_handle(struct exec *x, enum share_kind kind)
{
	CUmemAllocationHandleType type = (CUmemAllocationHandleType)get_u64(&x->in);
	unsigned long long flags = get_u64(&x->in);
	uint8_t bytes[SHARE_BYTES];
	struct share_token token;
	void *os = bytes;
	CUmemGenericAllocationHandle memory = 0;
	CUmemoryPool pool = NULL;
	CUresult r = CUDA_SUCCESS;
	int fd = -1;

	get_bytes(&x->in, bytes, sizeof bytes);
	if (!get_end(&x->in))
		return SERVE_BAD;
	if (type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
		memcpy(&token, bytes, sizeof token);
		r = get_file(&token, kind, &fd);
		os = (void *)(intptr_t)fd;
	} else if (type != CU_MEM_HANDLE_TYPE_FABRIC) {
		r = CUDA_ERROR_INVALID_VALUE;   /* of another system, or none */
	}
	if (!r)
		r = kind == SHARE_POOL ? drv.cuMemPoolImportFromShareableHandle(&pool, os, type, flags) :
				drv.cuMemImportFromShareableHandle(&memory, os, type);
	if (fd >= 0)
		close(fd);
	if (!r && kind == SHARE_POOL)
		exec_put_handle(x, HANDLE_CUmemoryPool, pool);
	else if (!r)
		put_u64(&x->out, memory);
	return r;
}

CUresult serve_cuMemImportFromShareableHandle(struct exec *x) { return import_handle(x, SHARE_ALLOCATION); }
CUresult serve_cuMemPoolImportFromShareableHandle(struct exec *x) { return import_handle(x, SHARE_POOL); }

/* [address] -> [data] */
CUresult serve_cuMemPoolExportPointer(struct exec *x)
{
	CUdeviceptr p = get_u64(&x->in);
	CUmemPoolPtrExportData data = {0};

	if (!get_end(&x->in))
		return SERVE_BAD;
	CUresult r = drv.cuMemPoolExportPointer(&data, p);

	if (!r)
		r = put_ticket(&data, SHARE_POINTER);
	if (!r)
		put_bytes(&x->out, &data, sizeof data);
	return r;
}

/* [pool, data] */
CUresult serve_cuMemPoolImportPointer(struct exec *x)
{
	CUmemoryPool pool = exec_handle(x, HANDLE_CUmemoryPool);
	CUmemPoolPtrExportData data;
	CUdeviceptr p = 0;

	get_bytes(&x->in, &data, sizeof data);
	if (!get_end(&x->in))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	CUresult r = get_ticket(&data, SHARE_POINTER);

	if (!r)
		r = drv.cuMemPoolImportPointer(&p, pool, &data);
	if (!r)
		put_memory(x, p);
	return r;
}
