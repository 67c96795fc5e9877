/* SPDX-License-Identifier: Apache-2.0 */
/* Managed memory: the driver's, cleared, and entered among the memory that program and GPU use in place
 * (mirror.h).
 *
 * Thread rule: as exec.h; no state. */
#include <string.h>
#include "server/handle.h"
#include "server/mirror.h"
#include "server/serve.h"
#include "server/staging.h"
#include "server/state.h"
#include "wire/limits.h"
#include "wire/log.h"
#include "cuda.calls.h"

#define CLEAR_BY_CPU ((uint64_t)256 << 20)     /* bytes of new managed memory */

/* Where the CPU may not touch managed memory while kernels run, it cannot be kept equal. */
static bool usable(void)
{
	CUdevice device;
	int concurrent = 0;

	if (session_soft(session_self()))
		return true;
	return !drv.cuCtxGetDevice(&device) &&
	       !drv.cuDeviceGetAttribute(&concurrent, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS,
				device) &&
	       concurrent;
}

/* The program's side of new memory is zero, and both must begin equal: a real driver hands out what was there
 * before. The CPU clears what it will likely write first; more than that is the device's. */
static CUresult clear(CUdeviceptr p, uint64_t n)
{
	struct stage *s = n > CLEAR_BY_CPU ? stage_get() : NULL;
	CUstream stream = s ? stage_stream(s) : NULL;
	CUstreamCaptureMode mode;
	CUresult r;

	if (!stream) {
		memset((void *)p, 0, n);
		return CUDA_SUCCESS;
	}
	mode = capture_relax();
	r = drv.cuMemsetD8Async(p, 0, n, stream);
	if (!r)
		r = drv.cuStreamSynchronize(stream);
	capture_restore(mode);
	return r;
}

/* [bytes, flags] */
CUresult serve_cuMemAllocManaged(struct exec *x)
{
	uint64_t n = get_u64(&x->in), flags = get_u64(&x->in);
	CUdeviceptr p = 0;
	CUresult r;

	if (!get_end(&x->in))
		return SERVE_BAD;
	r = drv.cuMemAllocManaged(&p, n, (unsigned)flags);
	if (!r && !p)
		r = CUDA_ERROR_UNKNOWN;
	if (!r && !usable()) {
		log_warning("this device's managed memory may not be touched while kernels run");
		r = CUDA_ERROR_NOT_SUPPORTED;
	}
	if (!r)
		r = clear(p, n);
	if (!r)
		r = mirror_add_managed(p, n, x->frame.ctx);
	if (r && p)
		drv.cuMemFree_v2(p);
	if (!r)
		put_u64(&x->out, p);
	return r;
}

/* [library, name] */
CUresult serve_cuLibraryGetManaged(struct exec *x)
{
	CUlibrary library = exec_handle(x, HANDLE_CUlibrary);
	uint64_t id = x->first_id;
	char *name = exec_alloc(x, LIMIT_STRING + 1);
	CUdeviceptr p = 0;
	size_t n = 0;
	CUresult r;

	if (!name)
		return SERVE_BAD;
	get_text(&x->in, name, LIMIT_STRING + 1);
	if (!get_end(&x->in))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	r = drv.cuLibraryGetManaged(&p, &n, library, name);
	if (!r && p && n && !mirror_holds(p, n))
		r = mirror_add_managed(p, n, id);
	if (!r) {
		put_u64(&x->out, p);
		put_u64(&x->out, n);
	}
	return r;
}
