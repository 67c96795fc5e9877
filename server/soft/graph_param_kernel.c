/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of kernel nodes: telling and changing them, in a graph and in its executable form.
 *
 * Thread rule: see state.h. */
#include <stdlib.h>
#include <string.h>
#include "server/soft/engine.h"
#include "server/soft/graph.h"
#include "server/soft/module.h"

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode h, CUDA_KERNEL_NODE_PARAMS *p)
{
	struct node *n;
	guarded g = node_enter(h, CU_GRAPH_NODE_TYPE_KERNEL, p, &n);
	if (g.error)
		return g.error;
	const struct work_kernel *k = &n->work.kernel;
	const struct engine_function_info *info = engine_function_info(k->function->code);
	if (!n->pointers) {
		n->pointers = calloc((size_t)info->nparams + 1, sizeof *n->pointers);
		if (!n->pointers)
			return CUDA_ERROR_OUT_OF_MEMORY;
		for (unsigned i = 0; i < info->nparams; i++)
			n->pointers[i] = (char *)k->params + info->params[i].offset;
	}
	*p = (CUDA_KERNEL_NODE_PARAMS){
		.func = HANDLE(k->function),
		.gridDimX = k->grid[0],
		.gridDimY = k->grid[1],
		.gridDimZ = k->grid[2],
		.blockDimX = k->block[0],
		.blockDimY = k->block[1],
		.blockDimZ = k->block[2],
		.sharedMemBytes = (unsigned)k->shared,
		.kernelParams = n->pointers,
		.kern = k->function->kernel ? HANDLE(k->function->kernel) : NULL,
		.ctx = n->work.context ? HANDLE(n->work.context) : n->context,
	};
	return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode h, CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
	CUDA_KERNEL_NODE_PARAMS q;
	CUresult r = p ? cuGraphKernelNodeGetParams_v2(h, &q) : CUDA_ERROR_INVALID_VALUE;
	if (!r)
		memcpy(p, &q, sizeof *p);
	return r;
}

/* The new parameters may point into the node's own old ones: work is made before the old is dropped. */
static CUresult kernel_change(struct node *n, const CUDA_KERNEL_NODE_PARAMS *p)
{
	CUresult why = CUDA_SUCCESS;
	struct work w;
	struct context *c = n->work.context ? n->work.context : context_current(&why);
	if (!p->func && !p->kern)
		return CUDA_ERROR_INVALID_HANDLE;
	CUresult r = kernel_work(p, c, &w);
	if (r)
		return r;
	w.kernel.cooperative = n->work.kernel.cooperative;
	w.kernel.priority = n->work.kernel.priority;
	node_set(n, &w);
	return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode h, const CUDA_KERNEL_NODE_PARAMS *p)
{
	struct node *n;
	guarded g = node_enter(h, CU_GRAPH_NODE_TYPE_KERNEL, p, &n);
	return g.error ? g.error : kernel_change(n, p);
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec x, CUgraphNode h, const CUDA_KERNEL_NODE_PARAMS *p)
{
	struct node *n;
	struct graph_exec *exec;
	guarded g = exec_enter(x, h, CU_GRAPH_NODE_TYPE_KERNEL, p, &n, &exec);
	if (g.error)
		return g.error;
	exec_changed(exec);
	return kernel_change(n, p);
}

static CUDA_KERNEL_NODE_PARAMS widen(const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
	CUDA_KERNEL_NODE_PARAMS q = {0};
	memcpy(&q, p, sizeof *p);
	return q;
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode h, const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_KERNEL_NODE_PARAMS q = widen(p);
	return cuGraphKernelNodeSetParams_v2(h, &q);
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec x, CUgraphNode h, const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_KERNEL_NODE_PARAMS q = widen(p);
	return cuGraphExecKernelNodeSetParams_v2(x, h, &q);
}
