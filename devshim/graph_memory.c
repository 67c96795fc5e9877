/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of graphs that allocate memory, and such that write and wait for values: their parameters hold
 * arrays. What a question about a node answers points into memory that lives with the node.
 *
 * Thread rule: any thread; a node is used by one thread at a time, as the driver demands. */
#include <stdlib.h>
#include "devshim/device.h"
#include "devshim/graph.h"
#include "devshim/handle.h"
#include "devshim/mirror.h"
#include "devshim/range.h"
#include "devshim/work.h"
#include "wire/cuda.h"
#include "wire/limits.h"
#include "cuda.calls.h"
#include "cuda.remote.h"

/* ---- memory */

static void put_location(struct call *c, CUmemLocation location)
{
	location_to_server(&location);
	put_bytes(&c->out, &location, sizeof location);
}

static CUmemLocation get_location(struct call *c)
{
	CUmemLocation location = {0};

	get_bytes(&c->in, &location, sizeof location);
	if (location.type == CU_MEM_LOCATION_TYPE_DEVICE)
		location.id = device_from_server(location.id);
	return location;
}

/* Every launch of the graph makes it anew at this address, whatever frees it. */
static CUresult note(CUdeviceptr p, size_t size, int device)
{
	struct context *c = context_current();
	struct range r = {.base = p, .size = size, .kind = RANGE_POOL, .graph = true, .device = device};

	r.ctx = c ? c->handle : NULL;
	graph_has_memory();
	range_reserve(p, size);
	return range_add(&r) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuGraphAddMemAllocNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
	size_t numDependencies, CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
	struct call c;
	CUresult r = call_begin(&c, CALL_cuGraphAddMemAllocNode);

	if (r)
		return r;
	if (!put_handle(&c, HANDLE_CUgraph, hGraph))
		return handle_error(HANDLE_CUgraph);
	r = put_nodes(&c, dependencies, numDependencies);
	if (r)
		return r;
	if (!phGraphNode || !p || (p->accessDescCount && !p->accessDescs) ||
		p->accessDescCount > LIMIT_DEVICES)
		return CUDA_ERROR_INVALID_VALUE;
	CUmemPoolProps props = p->poolProps;

	location_to_server(&props.location);
	put_bytes(&c.out, &props, sizeof props);
	put_array(&c.out, p->accessDescCount);
	for (size_t i = 0; i < p->accessDescCount; i++) {
		put_location(&c, p->accessDescs[i].location);
		put_i64(&c.out, p->accessDescs[i].flags);
	}
	put_u64(&c.out, p->bytesize);
	r = call_wait(&c);
	if (!r) {
		*phGraphNode = get_handle(&c, HANDLE_CUgraphNode);
		p->dptr = get_u64(&c.in);
	}
	r = call_end(&c, r);
	return r ? r : note(p->dptr, p->bytesize, p->poolProps.location.id);
}

/* The descriptions of the accesses are the caller's; NULL with a count: memory was short. */
void get_alloc_node(struct call *c, CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
	get_bytes(&c->in, &p->poolProps, sizeof p->poolProps);
	if (p->poolProps.location.type == CU_MEM_LOCATION_TYPE_DEVICE)
		p->poolProps.location.id = device_from_server(p->poolProps.location.id);
	p->accessDescCount = get_array(&c->in, LIMIT_DEVICES);
	CUmemAccessDesc *access = p->accessDescCount ? calloc(p->accessDescCount, sizeof *access) : NULL;
	for (size_t i = 0; i < p->accessDescCount; i++) {
		CUmemAccessDesc a = {.location = get_location(c)};

		a.flags = (CUmemAccess_flags)get_i64(&c->in);
		if (access)
			access[i] = a;
	}
	p->accessDescs = access;
	p->bytesize = get_u64(&c->in);
	p->dptr = get_u64(&c->in);
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode hNode, CUDA_MEM_ALLOC_NODE_PARAMS *params_out)
{
	CUDA_MEM_ALLOC_NODE_PARAMS p = {0};
	CUresult r = remote_cuGraphMemAllocNodeGetParams(hNode, params_out ? &p : NULL);
	void *access = (void *)p.accessDescs;

	if (!r && p.accessDescCount && (!access || !node_keep(hNode, access)))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	if (r)
		free(access);
	else
		*params_out = p;
	return r;
}

/* ---- values written and waited for */

/* Pinned memory among the addresses is in use in place from now on. */
static CUresult use(const CUDA_BATCH_MEM_OP_NODE_PARAMS *p)
{
	CUresult r = process_check();

	if (r)
		return r;
	if (!p || !p->paramArray || p->count > LIMIT_ARRAY)
		return CUDA_ERROR_INVALID_VALUE;
	atomic_store(&work_graphs_gate, true);
	for (unsigned i = 0; !r && i < p->count; i++)
		if (p->paramArray[i].operation != CU_STREAM_MEM_OP_BARRIER &&
			p->paramArray[i].operation != CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES)
			r = mirror_use(p->paramArray[i].writeValue.address);
	return r;
}

CUresult put_memop_node(struct call *c, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p)
{
	struct context *current = context_current();
	CUcontext ctx = p->ctx ? p->ctx : current ? current->handle : NULL;

	if (!ctx || !put_handle(c, HANDLE_CUcontext, ctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	put_array(&c->out, p->count);
	for (unsigned i = 0; i < p->count; i++)
		put_bytes(&c->out, &p->paramArray[i], sizeof *p->paramArray);
	put_u64(&c->out, p->flags);
	return CUDA_SUCCESS;
}

/* The operations are the caller's; NULL: memory was short. */
void get_memop_node(struct call *c, CUDA_BATCH_MEM_OP_NODE_PARAMS *p)
{
	p->ctx = get_handle(c, HANDLE_CUcontext);
	p->count = (unsigned)get_array(&c->in, LIMIT_ARRAY);
	p->paramArray = calloc((size_t)p->count + 1, sizeof *p->paramArray);
	for (unsigned i = 0; i < p->count; i++) {
		CUstreamBatchMemOpParams one = {0};

		get_bytes(&c->in, &one, sizeof one);
		if (p->paramArray)
			p->paramArray[i] = one;
	}
	p->flags = (unsigned)get_u64(&c->in);
}

CUresult cuGraphAddBatchMemOpNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
	size_t numDependencies, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p)
{
	CUresult r = use(p);

	return r ? r : remote_cuGraphAddBatchMemOpNode(phGraphNode, hGraph, dependencies, numDependencies, p);
}

CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode hNode, CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams_out)
{
	CUDA_BATCH_MEM_OP_NODE_PARAMS p = {0};
	CUresult r = remote_cuGraphBatchMemOpNodeGetParams(hNode, nodeParams_out ? &p : NULL);

	if (!r && (!p.paramArray || !node_keep(hNode, p.paramArray)))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	if (r)
		free(p.paramArray);
	else
		*nodeParams_out = p;
	return r;
}

CUresult cuGraphBatchMemOpNodeSetParams(CUgraphNode hNode, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p)
{
	CUresult r = use(p);

	return r ? r : remote_cuGraphBatchMemOpNodeSetParams(hNode, p);
}

CUresult cuGraphExecBatchMemOpNodeSetParams(
	CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p)
{
	CUresult r = use(p);

	return r ? r : remote_cuGraphExecBatchMemOpNodeSetParams(hGraphExec, hNode, p);
}
