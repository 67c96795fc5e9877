/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of kernels that point to pinned memory: from the launch on that memory is used in place.
 *
 * Thread rule: any thread. */
#include <string.h>
#include "devshim/function.h"
#include "devshim/mirror.h"
#include "devshim/process.h"
#include "wire/log.h"

/* Not every number that looks like a pointer is one for the kernel to follow: a range that the server cannot
 * have is no reason to refuse the launch. */
CUresult mirror_look_at(const uint8_t *p, size_t offset, size_t n)
{
	CUresult r = CUDA_SUCCESS;
	uint64_t v;

	for (size_t i = (8 - offset % 8) % 8; !r && n >= 8 && i <= n - 8; i += 8) {
		memcpy(&v, p + i, sizeof v);
		if (!range_may_be_host(v) || !mirror_use(v))
			continue;
		log_warning("kernels cannot use the pinned memory at %#llx that a parameter names",
			(unsigned long long)v);
		r = process_check();
	}
	return r;
}

CUresult mirror_look(const struct function *f, void **params, void **extra)
{
	const uint8_t *p = NULL;
	CUresult r = CUDA_SUCCESS;
	size_t n = 0;

	if (extra && !params) {
		for (void **e = extra; *e != CU_LAUNCH_PARAM_END; e += 2) {
			if (*e == CU_LAUNCH_PARAM_BUFFER_POINTER)
				p = e[1];
			else if (*e == CU_LAUNCH_PARAM_BUFFER_SIZE && e[1])
				n = *(const size_t *)e[1];
			else
				return r;
		}
		return p ? mirror_look_at(p, 0, n) : r;
	}
	for (unsigned i = 0; params && f->laid_out && i < f->nparams && !r; i++)
		if (params[i])
			r = mirror_look_at(params[i], f->offset[i], f->size[i]);
	return r;
}
