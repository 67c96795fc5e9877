/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel node launches: the answer points into memory that lives with the node. And the first version
 * of the structs of kernel nodes, which ends before the kernel.
 *
 * Thread rule: graph_node.c. */
#include <stdlib.h>
#include <string.h>
#include "devshim/function.h"
#include "devshim/graph_node.h"
#include "devshim/handle.h"
#include "wire/cuda.h"
#include "cuda.calls.h"
#include "cuda.remote.h"

#define LIMIT_PARAMS (64u << 10)

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS *p)
{
	uint8_t *packed = malloc(LIMIT_PARAMS);
	struct call c;
	CUresult r = packed ? call_begin(&c, CALL_cuGraphKernelNodeGetParams_v2) : CUDA_ERROR_OUT_OF_MEMORY;

	if (!r && !put_handle(&c, HANDLE_CUgraphNode, hNode))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r && !p)
		r = CUDA_ERROR_INVALID_VALUE;
	if (r) {
		free(packed);
		return r;
	}
	CUDA_KERNEL_NODE_PARAMS got = {0};
	void *h = NULL;

	c.bulk_out = packed;
	c.bulk_out_len = LIMIT_PARAMS;
	r = call_wait(&c);
	if (!r) {
		h = get_handle(&c, HANDLE_CUfunction);
		got.gridDimX = (unsigned)get_u64(&c.in);
		got.gridDimY = (unsigned)get_u64(&c.in);
		got.gridDimZ = (unsigned)get_u64(&c.in);
		got.blockDimX = (unsigned)get_u64(&c.in);
		got.blockDimY = (unsigned)get_u64(&c.in);
		got.blockDimZ = (unsigned)get_u64(&c.in);
		got.sharedMemBytes = (unsigned)get_u64(&c.in);
		got.ctx = get_handle(&c, HANDLE_CUcontext);
	}
	size_t len = c.bulk_out_len;

	r = call_end(&c, r);
	struct function *f = r ? NULL : function_of(h);
	struct node *n = r ? NULL : graph_node_of(hNode);

	if (!r && (!f || !f->laid_out || !n || len < f->bytes))
		r = CUDA_ERROR_NOT_SUPPORTED;
	/* Pointers first, the packed bytes behind them, in one block that lives with the node. */
	void **block = r ? NULL : malloc(f->nparams * sizeof(void *) + f->bytes + 1);

	if (!r && !block)
		r = CUDA_ERROR_OUT_OF_MEMORY;
	if (!r) {
		uint8_t *bytes = (uint8_t *)(block + f->nparams);

		memcpy(bytes, packed, f->bytes);
		for (unsigned i = 0; i < f->nparams; i++)
			block[i] = bytes + f->offset[i];
		free(n->given);
		n->given = block;
		got.kernelParams = block;
		if (handle_type(h) == HANDLE_CUkernel)
			got.kern = h;
		else
			got.func = h;
		*p = got;
	}
	free(packed);
	return r;
}

/* ---- the first version of the structs */

static CUDA_KERNEL_NODE_PARAMS from_v1(const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
	CUDA_KERNEL_NODE_PARAMS k = {0};

	memcpy(&k, p, sizeof *p);
	return k;
}

CUresult cuGraphAddKernelNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
	size_t numDependencies, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
	CUDA_KERNEL_NODE_PARAMS k;

	if (!nodeParams)
		return CUDA_ERROR_INVALID_VALUE;
	k = from_v1(nodeParams);
	return cuGraphAddKernelNode_v2(phGraphNode, hGraph, dependencies, numDependencies, &k);
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
	CUDA_KERNEL_NODE_PARAMS k;
	CUresult r = nodeParams ? cuGraphKernelNodeGetParams_v2(hNode, &k) : CUDA_ERROR_INVALID_VALUE;

	if (!r)
		memcpy(nodeParams, &k, sizeof *nodeParams);
	return r;
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
	CUDA_KERNEL_NODE_PARAMS k;

	if (!nodeParams)
		return CUDA_ERROR_INVALID_VALUE;
	k = from_v1(nodeParams);
	return cuGraphKernelNodeSetParams_v2(hNode, &k);
}

CUresult cuGraphExecKernelNodeSetParams(
	CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
	CUDA_KERNEL_NODE_PARAMS k;

	if (!nodeParams)
		return CUDA_ERROR_INVALID_VALUE;
	k = from_v1(nodeParams);
	return cuGraphExecKernelNodeSetParams_v2(hGraphExec, hNode, &k);
}
