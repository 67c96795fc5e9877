/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of graphs whose parameters hold arrays or graphs: memory, values, conditions. Thread rule: as
 * exec.h; no state. */
#include "server/serve.h"
#include "server/state.h"
#include "wire/limits.h"
#include "cuda.calls.h"

void put_child(struct exec *x, unsigned type, void *real, uint64_t parent)
{
	uint64_t id = real ? handle_add(x->session->handles, type, real, parent) : 0;

	if (real && !id)
		x->out.bad = true;
	put_u64(&x->out, id);
}

/* ---- memory */

/* [graph, dependencies, properties, access: location and flags in turn, bytes] -> [node, address] */
CUresult serve_cuGraphAddMemAllocNode(struct exec *x)
{
	CUgraph g = exec_handle(x, HANDLE_CUgraph);
	CUDA_MEM_ALLOC_NODE_PARAMS p = {0};
	CUmemAccessDesc *access;
	CUgraphNode *nodes, node = NULL;
	size_t n;

	if (!get_nodes(x, &nodes, &n))
		return SERVE_BAD;
	get_bytes(&x->in, &p.poolProps, sizeof p.poolProps);
	p.poolProps.win32SecurityAttributes = NULL;
	p.accessDescCount = get_array(&x->in, LIMIT_DEVICES);
	access = exec_alloc(x, (p.accessDescCount + 1) * sizeof *access);
	for (size_t i = 0; access && i < p.accessDescCount; i++) {
		get_bytes(&x->in, &access[i].location, sizeof access[i].location);
		access[i].flags = (CUmemAccess_flags)get_i64(&x->in);
	}
	p.accessDescs = p.accessDescCount ? access : NULL;
	p.bytesize = get_u64(&x->in);
	if (!access || !get_end(&x->in))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	CUresult r = drv.cuGraphAddMemAllocNode(&node, g, n ? nodes : NULL, n, &p);

	if (!r) {
		exec_put_handle(x, HANDLE_CUgraphNode, node);
		put_u64(&x->out, p.dptr);
	}
	return r;
}

/* [properties, access, bytes, address] */
void exec_put_alloc_node(struct exec *x, const CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
	CUmemPoolProps props = p->poolProps;
	size_t n = p->accessDescs ? p->accessDescCount : 0;

	props.win32SecurityAttributes = NULL;
	put_bytes(&x->out, &props, sizeof props);
	put_array(&x->out, n);
	for (size_t i = 0; i < n; i++) {
		put_bytes(&x->out, &p->accessDescs[i].location, sizeof p->accessDescs[i].location);
		put_i64(&x->out, p->accessDescs[i].flags);
	}
	put_u64(&x->out, p->bytesize);
	put_u64(&x->out, p->dptr);
}

/* ---- values written and waited for: [context, an array of operations, flags] */

void exec_get_memop_node(struct exec *x, CUDA_BATCH_MEM_OP_NODE_PARAMS *p)
{
	p->ctx = exec_handle(x, HANDLE_CUcontext);
	p->count = (unsigned)get_array(&x->in, LIMIT_ARRAY);
	p->paramArray = exec_alloc(x, ((size_t)p->count + 1) * sizeof *p->paramArray);
	if (!p->paramArray)
		x->in.bad = true;
	for (unsigned i = 0; p->paramArray && i < p->count; i++)
		get_bytes(&x->in, &p->paramArray[i], sizeof *p->paramArray);
	p->flags = (unsigned)get_u64(&x->in);
}

void exec_put_memop_node(struct exec *x, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p)
{
	exec_put_handle(x, HANDLE_CUcontext, p->ctx);
	put_array(&x->out, p->count);
	for (unsigned i = 0; i < p->count; i++)
		put_bytes(&x->out, &p->paramArray[i], sizeof *p->paramArray);
	put_u64(&x->out, p->flags);
}

/* ---- conditions, and child graphs that are moved */

static void get_conditional(struct exec *x, CUDA_CONDITIONAL_NODE_PARAMS *p)
{
	p->handle = get_u64(&x->in);
	p->type = (CUgraphConditionalNodeType)get_i64(&x->in);
	p->size = (unsigned)get_u64(&x->in);
	p->ctx = exec_handle(x, HANDLE_CUcontext);
}

/* [graph, dependencies, type, then for a condition: handle, kind, size, context; for a graph: it, ownership]
 * -> [node, for a condition: an array of graphs] */
CUresult serve_cuGraphAddNode_v2(struct exec *x)
{
	CUgraph g = exec_handle(x, HANDLE_CUgraph);
	CUgraphNode *nodes, node = NULL;
	CUgraphNodeParams p = {0};
	size_t n;

	if (!get_nodes(x, &nodes, &n))
		return SERVE_BAD;
	p.type = (CUgraphNodeType)get_i64(&x->in);
	if (p.type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
		get_conditional(x, &p.conditional);
	} else if (p.type == CU_GRAPH_NODE_TYPE_GRAPH) {
		p.graph.graph = exec_handle(x, HANDLE_CUgraph);
		p.graph.ownership = (CUgraphChildGraphNodeOwnership)get_i64(&x->in);
	} else {
		return SERVE_BAD;
	}
	if (!get_end(&x->in))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	if (p.type == CU_GRAPH_NODE_TYPE_CONDITIONAL && p.conditional.size > LIMIT_BODIES)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult r = drv.cuGraphAddNode_v2(&node, g, n ? nodes : NULL, NULL, n, &p);

	if (r)
		return r;
	exec_put_handle(x, HANDLE_CUgraphNode, node);
	if (p.type == CU_GRAPH_NODE_TYPE_GRAPH)
		return r;
	put_array(&x->out, p.conditional.phGraph_out ? p.conditional.size : 0);
	for (unsigned i = 0; p.conditional.phGraph_out && i < p.conditional.size; i++)
		put_child(x, HANDLE_CUgraph, p.conditional.phGraph_out[i],
			exec_id_of(x, HANDLE_CUgraphNode, node));
	return r;
}
