/* SPDX-License-Identifier: Apache-2.0 */
/* The context of a green context, which ends with it. Thread rule: as exec.h; no state. */
#include "server/serve.h"
#include "cuda.calls.h"

/* [green context] -> [context] */
CUresult serve_cuCtxFromGreenCtx(struct exec *x)
{
	CUgreenCtx green = exec_handle(x, HANDLE_CUgreenCtx);
	CUcontext ctx = NULL;

	if (!get_end(&x->in))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	CUresult r = drv.cuCtxFromGreenCtx(&ctx, green);

	if (!r)
		put_child(x, HANDLE_CUcontext, ctx, exec_id_of(x, HANDLE_CUgreenCtx, green));
	return r;
}
