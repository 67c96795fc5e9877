/* SPDX-License-Identifier: Apache-2.0 */
/* Host functions: the driver runs ours when the stream gets there, which asks the program to run its own
 * and holds the stream until it has. The number that the program gave is the driver's user data; nothing
 * is kept here.
 *
 * Thread rule: the serve functions as exec.h; the callback runs on the driver's threads and calls no
 * driver function. */
#include "server/exec.h"
#include "server/serve.h"
#include "server/staging.h"
#include "wire/limits.h"
#include "cuda.calls.h"

void host_upcall(void *id)
{
	session_upcall(session_self(), (uintptr_t)id, true);
}

/* [stream, id] */
CUresult serve_cuLaunchHostFunc(struct exec *x)
{
	CUstream stream = exec_handle(x, HANDLE_CUstream);
	uint64_t id = get_u64(&x->in);

	if (!get_end(&x->in))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	/* What the host function may need is made before the device has to wait for it. */
	if (!stage_get())
		return CUDA_ERROR_OUT_OF_MEMORY;
	return drv.cuLaunchHostFunc(stream, host_upcall, (void *)(uintptr_t)id);
}
