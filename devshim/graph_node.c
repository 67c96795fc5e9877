/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes with something of the program's in them: host functions, copies to and from its memory (which
 * become host functions that move the bytes at each replay), and the answers to questions about nodes,
 * which point into memory that lives with the node.
 *
 * Thread rule: any thread; a node is used by one thread at a time, as the driver demands. What a graph may
 * run again is kept to the end of the process: no call tells when the last executable graph with it is
 * gone. */
#include <stdlib.h>
#include <string.h>
#include "devshim/copy.h"
#include "devshim/function.h"
#include "devshim/graph.h"
#include "devshim/handle.h"
#include "devshim/upcall.h"
#include "devshim/work.h"
#include "wire/cuda.h"
#include "wire/limits.h"
#include "cuda.calls.h"
#include "cuda.remote.h"

#define LIMIT_PARAMS (64u << 10)

struct node {
	CUDA_HOST_NODE_PARAMS host; /* fn NULL: not a host node of the application's */
	CUDA_MEMCPY3D copy; /* Depth 0: not a copy node */
	bool copy_is_host; /* one that is a host function for the driver */
	bool asked; /* the server: what a captured or cloned host node runs is known */
	void *given; /* what the last question about the node gave out */
};

static void node_dropped(const void *h, void *data)
{
	struct node *n = data;

	(void)h;
	free(n->given);
	free(n);
}

__attribute__((constructor)) static void watch_nodes(void)
{
	handle_on_drop(HANDLE_CUgraphNode, node_dropped);
}

/* What is kept of a node; made when there is nothing yet. */
static struct node *node_of(CUgraphNode h)
{
	struct node *n = handle_data(HANDLE_CUgraphNode, h);

	if (n || !handle_live(HANDLE_CUgraphNode, h))
		return n;
	n = calloc(1, sizeof *n);
	if (n && !handle_set_data(HANDLE_CUgraphNode, h, n)) {
		free(n);
		n = NULL;
	}
	return n;
}

/* What the server's driver knows of a host node is the upcall: whose it is says whether it is a function of
 * the program's or a copy. Of other nodes it knows all, and the answer is no. */
static CUresult ask_upcall(CUgraphNode h, struct node *n)
{
	void (*run)(void *);
	void *arg;
	CUDA_HOST_NODE_PARAMS known = {0};
	CUresult r = remote_cuGraphHostNodeGetParams(h, &known);

	if (r && r != CUDA_ERROR_INVALID_VALUE)
		return r;
	n->asked = true;
	if (!r && upcall_find((uintptr_t)known.userData, &run, &arg) && !host_function_of(run, arg, &n->host))
		n->copy_is_host = copy_of_upcall(run, arg, &n->copy);
	return CUDA_SUCCESS;
}

/* All that is known of a node of the program's side, captured and cloned ones included. */
static CUresult know(CUgraphNode h, struct node **out)
{
	CUresult r = process_check();
	struct node *n = r ? NULL : node_of(h);

	*out = n;
	if (r)
		return r;
	if (!n)
		return handle_live(HANDLE_CUgraphNode, h) ? CUDA_ERROR_OUT_OF_MEMORY :
			CUDA_ERROR_INVALID_VALUE;
	return n->asked || n->host.fn || n->copy.Depth ? CUDA_SUCCESS : ask_upcall(h, n);
}

CUresult cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType *type)
{
	struct node *n;
	CUresult r = remote_cuGraphNodeGetType(hNode, type);

	if (r || *type != CU_GRAPH_NODE_TYPE_HOST)
		return r;
	r = know(hNode, &n);
	if (!r && n->copy_is_host)
		*type = CU_GRAPH_NODE_TYPE_MEMCPY;
	return r;
}

bool node_keep(CUgraphNode h, void *given)
{
	struct node *n = node_of(h);

	if (!n)
		return false;
	free(n->given);
	n->given = given;
	return true;
}

static CUresult added(struct call *c, CUgraphNode *node, struct node **n)
{
	CUresult r = call_wait(c);

	if (!r)
		*node = get_handle(c, HANDLE_CUgraphNode);
	r = call_end(c, r);
	*n = r ? NULL : node_of(*node);
	return r || *n ? r : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult done(struct call *c)
{
	CUresult r = call_wait(c);

	return call_end(c, r);
}

/* ---- host functions */

/* What travels of a host node is the upcall's id, in place of the data. */
CUresult put_host_node(struct call *c, const CUDA_HOST_NODE_PARAMS *p)
{
	put_u64(&c->out, (uintptr_t)p->userData);
	return CUDA_SUCCESS;
}

void get_host_node(struct call *c, CUDA_HOST_NODE_PARAMS *p)
{
	p->userData = (void *)(uintptr_t)get_u64(&c->in);
}

static CUresult add_upcall(
	CUgraphNode *node, CUgraph g, const CUgraphNode *before, size_t count, uint64_t id, struct node **n)
{
	CUDA_HOST_NODE_PARAMS p = {.userData = (void *)(uintptr_t)id};
	CUresult r = remote_cuGraphAddHostNode(node, g, before, count, &p);

	*n = r ? NULL : node_of(*node);
	return r || *n ? r : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult set_upcall(CUgraphExec e, CUgraphNode node, uint64_t id)
{
	CUDA_HOST_NODE_PARAMS p = {.userData = (void *)(uintptr_t)id};
	struct call c;

	if (e)
		return remote_cuGraphExecHostNodeSetParams(e, node, &p);
	CUresult r = call_begin(&c, CALL_cuGraphHostNodeSetParams);
	if (r)
		return r;
	if (!put_handle(&c, HANDLE_CUgraphNode, node))
		return CUDA_ERROR_INVALID_VALUE;
	put_u64(&c.out, id);
	return done(&c);
}

CUresult cuGraphAddHostNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
	size_t numDependencies, const CUDA_HOST_NODE_PARAMS *nodeParams)
{
	CUresult r = process_check();
	struct node *n = NULL;
	uint64_t id;

	if (r)
		return r;
	if (!phGraphNode || !nodeParams || !nodeParams->fn || !handle_live(HANDLE_CUgraph, hGraph))
		return CUDA_ERROR_INVALID_VALUE;
	id = host_function_note(nodeParams->fn, nodeParams->userData);
	if (!id)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = add_upcall(phGraphNode, hGraph, dependencies, numDependencies, id, &n);
	if (!r)
		n->host = *nodeParams;
	return r;
}

CUresult cuGraphHostNodeGetParams(CUgraphNode hNode, CUDA_HOST_NODE_PARAMS *nodeParams)
{
	struct node *n;
	CUresult r = know(hNode, &n);

	if (r)
		return r;
	if (!n->host.fn || !nodeParams)
		return CUDA_ERROR_INVALID_VALUE;
	*nodeParams = n->host;
	return CUDA_SUCCESS;
}

static CUresult host_set(CUgraphExec e, CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS *p)
{
	struct node *n;
	CUresult r = know(hNode, &n);
	uint64_t id;

	if (r)
		return r;
	if (!n->host.fn || !p || !p->fn)
		return CUDA_ERROR_INVALID_VALUE;
	id = host_function_note(p->fn, p->userData);
	if (!id)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = set_upcall(e, hNode, id);
	if (!r && !e)
		n->host = *p;
	return r;
}

CUresult cuGraphHostNodeSetParams(CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS *nodeParams)
{
	return host_set(NULL, hNode, nodeParams);
}

CUresult cuGraphExecHostNodeSetParams(
	CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS *nodeParams)
{
	return hGraphExec ? host_set(hGraphExec, hNode, nodeParams) : CUDA_ERROR_INVALID_VALUE;
}

/* ---- copies */

static CUresult read_copy(const CUDA_MEMCPY3D *p, struct copy *k)
{
	CUresult r = process_check();

	if (r)
		return r;
	return p ? copy_of_3d(p, k) : CUDA_ERROR_INVALID_VALUE;
}

/* The context in which a copy node runs: NULL means the current one. */
static CUresult find_context(CUcontext h, struct context **c)
{
	*c = h ? context_find(h) : context_current();
	return *c ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
	size_t numDependencies, const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
	struct context *context;
	struct node *n = NULL;
	struct copy k;
	struct call c;
	CUresult r = read_copy(copyParams, &k);

	if (!r && (!phGraphNode || !handle_live(HANDLE_CUgraph, hGraph)))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = find_context(ctx, &context);
	if (r)
		return r;
	if (copy_is_host(&k)) {
		uint64_t id = copy_note(&k, context);

		r = id ? add_upcall(phGraphNode, hGraph, dependencies, numDependencies, id, &n)
		       : CUDA_ERROR_OUT_OF_MEMORY;
	} else {
		r = call_begin(&c, CALL_cuGraphAddMemcpyNode);
		if (r)
			return r;
		put_handle(&c, HANDLE_CUgraph, hGraph);
		r = put_nodes(&c, dependencies, numDependencies);
		if (!r)
			r = copy_put(&c, &k);
		if (!r && !put_handle(&c, HANDLE_CUcontext, context->handle))
			r = CUDA_ERROR_INVALID_CONTEXT;
		if (!r)
			r = added(&c, phGraphNode, &n);
	}
	if (!r) {
		n->copy = *copyParams;
		n->copy_is_host = copy_is_host(&k);
	}
	return r;
}

/* [node] -> [the struct's bytes, arrays of both sides] */
static CUresult ask_copy(CUgraphNode h, CUDA_MEMCPY3D *p)
{
	struct call c;
	CUresult r = call_begin(&c, CALL_cuGraphMemcpyNodeGetParams);

	if (r)
		return r;
	if (!put_handle(&c, HANDLE_CUgraphNode, h))
		return handle_error(HANDLE_CUgraphNode);
	r = call_wait(&c);
	if (!r) {
		get_bytes(&c.in, p, sizeof *p);
		p->srcArray = get_handle(&c, HANDLE_CUarray);
		p->dstArray = get_handle(&c, HANDLE_CUarray);
	}
	return call_end(&c, r);
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D *nodeParams)
{
	struct node *n;
	CUresult r = know(hNode, &n);

	if (r)
		return r;
	if (!nodeParams)
		return CUDA_ERROR_INVALID_VALUE;
	if (!n->copy.Depth)
		return ask_copy(hNode, nodeParams);
	*nodeParams = n->copy;
	return CUDA_SUCCESS;
}

CUresult node_set_copy(CUgraphExec e, CUgraphNode hNode, const CUDA_MEMCPY3D *p, CUcontext ctx)
{
	struct node *n;
	struct context *context;
	struct copy k;
	struct call c;
	CUresult r = read_copy(p, &k);

	if (!r)
		r = find_context(ctx, &context);
	if (!r)
		r = know(hNode, &n);
	if (r)
		return r;
	/* In what was made of a graph a copy keeps its direction, as natively; in the graph it becomes
	 * another kind of node. */
	if (n->host.fn || (e && n->copy_is_host != copy_is_host(&k)))
		return CUDA_ERROR_INVALID_VALUE;
	if (copy_is_host(&k)) {
		uint64_t id = copy_note(&k, context);

		r = id ? set_upcall(e, hNode, id) : CUDA_ERROR_OUT_OF_MEMORY;
	} else {
		r = call_begin(&c, e ? CALL_cuGraphExecMemcpyNodeSetParams : CALL_cuGraphMemcpyNodeSetParams);
		if (r)
			return r;
		if ((e && !put_handle(&c, HANDLE_CUgraphExec, e)) ||
			!put_handle(&c, HANDLE_CUgraphNode, hNode))
			return CUDA_ERROR_INVALID_VALUE;
		r = copy_put(&c, &k);
		if (!r && !put_handle(&c, HANDLE_CUcontext, context->handle))
			r = CUDA_ERROR_INVALID_CONTEXT;
		if (!r)
			r = done(&c);
	}
	if (!r && !e) {
		n->copy = *p;
		n->copy_is_host = copy_is_host(&k);
	}
	return r;
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode hNode, const CUDA_MEMCPY3D *nodeParams)
{
	return node_set_copy(NULL, hNode, nodeParams, NULL);
}

CUresult cuGraphExecMemcpyNodeSetParams(
	CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
	return hGraphExec ? node_set_copy(hGraphExec, hNode, copyParams, ctx) : CUDA_ERROR_INVALID_VALUE;
}

/* ---- what a kernel node launches */

/* The event may be recorded behind a host function. */
CUresult cuGraphAddEventWaitNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
	size_t numDependencies, CUevent event)
{
	atomic_store(&work_graphs_gate, true);
	return remote_cuGraphAddEventWaitNode(phGraphNode, hGraph, dependencies, numDependencies, event);
}

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
	struct node *n = r ? NULL : node_of(hNode);

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

/* ---- the first version of the kernel structs ends before the kernel */

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
