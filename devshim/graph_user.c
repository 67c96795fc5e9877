/* SPDX-License-Identifier: Apache-2.0 */
/* What graphs have of the program: user objects, whose destructors run here, and drawings, which are written
 * here.
 *
 * Thread rule: any thread; destructors run on the thread of host functions. */
#include <stdatomic.h>
#include <stdlib.h>
#include "devshim/file.h"
#include "devshim/graph.h"
#include "devshim/handle.h"
#include "devshim/mirror.h"
#include "devshim/upcall.h"
#include "wire/cuda.h"
#include "cuda.calls.h"

struct user_object {
	CUhostFn destroy;
	void *data;
	void *_Atomic handle; /* once known */
};

/* The server's driver has dropped the last reference. */
static void destroy(void *arg)
{
	struct user_object *u = arg;
	struct thread *t = thread_self();

	mirror_fetch_unasked();
	if (t)
		t->host_function = true;
	u->destroy(u->data);
	if (t)
		t->host_function = false;
	handle_drop(HANDLE_CUuserObject, atomic_load(&u->handle));
	free(u);
}

CUresult cuUserObjectCreate(CUuserObject *object_out, void *ptr, CUhostFn destroy_fn,
	unsigned int initialRefcount, unsigned int flags)
{
	struct user_object *u;
	uint64_t id = 0;
	struct call c;
	CUresult r = process_check();

	if (r)
		return r;
	if (!object_out || !destroy_fn)
		return CUDA_ERROR_INVALID_VALUE;
	u = malloc(sizeof *u);
	if (u) {
		*u = (struct user_object){.destroy = destroy_fn, .data = ptr};
		id = upcall_new(destroy, u, true, true);
	}
	r = id ? call_begin(&c, CALL_cuUserObjectCreate) : CUDA_ERROR_OUT_OF_MEMORY;
	if (!r) {
		put_u64(&c.out, id);
		put_u64(&c.out, initialRefcount);
		put_u64(&c.out, flags);
		r = call_wait(&c);
		if (!r) {
			*object_out = get_handle(&c, HANDLE_CUuserObject);
			atomic_store(&u->handle, (void *)*object_out);
		}
		r = call_end(&c, r);
	}
	if (r) {
		if (id)
			upcall_drop(id);
		free(u);
	}
	return r;
}

/* ---- a drawing of a graph, as the driver makes it, in a file of the program's */

CUresult cuGraphDebugDotPrint(CUgraph hGraph, const char *path, unsigned int flags)
{
	struct file f = {.path = path};
	CUresult r = process_check();

	if (r)
		return r;
	if (!path)
		return CUDA_ERROR_INVALID_VALUE;
	do {
		struct call c;

		r = call_begin(&c, CALL_cuGraphDebugDotPrint);
		if (r)
			break;
		if (!put_handle(&c, HANDLE_CUgraph, hGraph)) {
			r = handle_error(HANDLE_CUgraph);
			break;
		}
		put_u64(&c.out, flags);
		put_u64(&c.out, f.written);
		r = file_next(&f, &c);
	} while (!r && f.written < f.size);
	return file_close(&f, r);
}
