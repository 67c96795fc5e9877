/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of a graph's nodes, and those that are host functions of the program's; copies to and from its
 * memory become such, too (graph_copy.c).
 *
 * Thread rule: any thread; a node is used by one thread at a time, as the driver demands. What a graph may
 * run again is kept to the end of the process: no call tells when the last executable graph with it is
 * gone. */
#include "devshim/graph_node.h"
#include <stdlib.h>
#include "devshim/copy.h"
#include "devshim/graph.h"
#include "devshim/handle.h"
#include "devshim/upcall.h"
#include "devshim/work.h"
#include "wire/cuda.h"
#include "cuda.calls.h"
#include "cuda.remote.h"

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

struct node *graph_node_of(CUgraphNode h)
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

CUresult graph_node_know(CUgraphNode h, struct node **out)
{
	CUresult r = process_check();
	struct node *n = r ? NULL : graph_node_of(h);

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
	r = graph_node_know(hNode, &n);
	if (!r && n->copy_is_host)
		*type = CU_GRAPH_NODE_TYPE_MEMCPY;
	return r;
}

bool node_keep(CUgraphNode h, void *given)
{
	struct node *n = graph_node_of(h);

	if (!n)
		return false;
	free(n->given);
	n->given = given;
	return true;
}

/* The event may be recorded behind a host function. */
CUresult cuGraphAddEventWaitNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
	size_t numDependencies, CUevent event)
{
	atomic_store(&work_graphs_gate, true);
	return remote_cuGraphAddEventWaitNode(phGraphNode, hGraph, dependencies, numDependencies, event);
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

CUresult graph_node_add_upcall(
	CUgraphNode *node, CUgraph g, const CUgraphNode *before, size_t count, uint64_t id, struct node **n)
{
	CUDA_HOST_NODE_PARAMS p = {.userData = (void *)(uintptr_t)id};
	CUresult r = remote_cuGraphAddHostNode(node, g, before, count, &p);

	*n = r ? NULL : graph_node_of(*node);
	return r || *n ? r : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult graph_node_set_upcall(CUgraphExec e, CUgraphNode node, uint64_t id)
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
	r = call_wait(&c);
	return call_end(&c, r);
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
	r = graph_node_add_upcall(phGraphNode, hGraph, dependencies, numDependencies, id, &n);
	if (!r)
		n->host = *nodeParams;
	return r;
}

CUresult cuGraphHostNodeGetParams(CUgraphNode hNode, CUDA_HOST_NODE_PARAMS *nodeParams)
{
	struct node *n;
	CUresult r = graph_node_know(hNode, &n);

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
	CUresult r = graph_node_know(hNode, &n);
	uint64_t id;

	if (r)
		return r;
	if (!n->host.fn || !p || !p->fn)
		return CUDA_ERROR_INVALID_VALUE;
	id = host_function_note(p->fn, p->userData);
	if (!id)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = graph_node_set_upcall(e, hNode, id);
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
