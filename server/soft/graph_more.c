/* SPDX-License-Identifier: Apache-2.0 */
/* The rest of graphs: attributes of kernel nodes, user objects, the memory that graphs hold.
 *
 * Thread rule: see state.h; destructors of user objects run on a thread of their own. */
#include <stdlib.h>
#include <string.h>
#include "server/soft/context.h"
#include "server/soft/graph.h"
#include "wire/log.h"

/* ---- attributes of kernel nodes */

static struct node *kernel_node(CUgraphNode h, CUkernelNodeAttrID a)
{
	struct node *n = object_find(h, KIND_NODE);
	return n && n->type == CU_GRAPH_NODE_TYPE_KERNEL && a > 0 && a < CU_LAUNCH_ATTRIBUTE_MAX ? n : NULL;
}

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode h, CUkernelNodeAttrID a, CUkernelNodeAttrValue *out)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	const struct node *n = kernel_node(h, a);
	if (!n || !out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = n->attributes[a];
	if (a == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
		out->cooperative = n->work.kernel.cooperative;
	if (a == CU_LAUNCH_ATTRIBUTE_PRIORITY)
		out->priority = n->work.kernel.priority;
	return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeSetAttribute(
	CUgraphNode h, CUkernelNodeAttrID a, const CUkernelNodeAttrValue *value)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct node *n = kernel_node(h, a);
	if (!n || !value)
		return CUDA_ERROR_INVALID_VALUE;
	if (a == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION && soft.major < 9 &&
		(value->clusterDim.x > 1 || value->clusterDim.y > 1 || value->clusterDim.z > 1))
		return CUDA_ERROR_NOT_SUPPORTED;
	n->attributes[a] = *value;
	n->has_attribute[a] = true;
	if (a == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
		const unsigned c[3] = {value->clusterDim.x, value->clusterDim.y, value->clusterDim.z};
		for (int i = 0; i < 3; i++)
			n->work.kernel.cluster[i] = c[i] ? c[i] : 1;
	}
	if (a == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
		n->work.kernel.cooperative = value->cooperative != 0;
	if (a == CU_LAUNCH_ATTRIBUTE_PRIORITY)
		n->work.kernel.priority = value->priority;
	return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct node *a = kernel_node(to, CU_LAUNCH_ATTRIBUTE_PRIORITY);
	const struct node *b = kernel_node(from, CU_LAUNCH_ATTRIBUTE_PRIORITY);
	if (!a || !b)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(a->attributes, b->attributes, sizeof a->attributes);
	memcpy(a->has_attribute, b->has_attribute, sizeof a->has_attribute);
	a->work.kernel.cooperative = b->work.kernel.cooperative;
	a->work.kernel.priority = b->work.kernel.priority;
	return CUDA_SUCCESS;
}

/* ---- user objects */

struct user_object {
	struct object object;
	unsigned count; /* the program's references and the graphs' */
	CUhostFn destroy;
	void *data;
};

static void user_finish(struct object *o)
{
	free(o);
}

static void *destructor(void *p)
{
	struct user_object *u = p;
	thread_self()->callback = true;
	u->destroy(u->data);
	free(u);
	return NULL;
}

static void user_drop(struct user_object *u, unsigned n)
{
	u->count -= n;
	if (u->count)
		return;
	struct user_object *job = malloc(sizeof *job);
	pthread_t t;
	if (job)
		*job = *u;
	if (job && !pthread_create(&t, NULL, destructor, job)) {
		pthread_detach(t);
	} else {
		free(job);
		log_error("a user object's destructor could not be run: no thread");
	}
	object_close(&u->object);
}

CUresult cuUserObjectCreate(CUuserObject *out, void *data, CUhostFn destroy, unsigned count, unsigned flags)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	if (!out || !destroy || !count || count > 0x7fffffffu || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
		return CUDA_ERROR_INVALID_VALUE;
	struct user_object *u = calloc(1, sizeof *u);
	if (!u || !object_open(&u->object, KIND_USER, NULL, user_finish)) {
		free(u);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	u->count = count;
	u->destroy = destroy;
	u->data = data;
	*out = HANDLE(u);
	return CUDA_SUCCESS;
}

CUresult cuUserObjectRetain(CUuserObject h, unsigned n)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct user_object *u = object_find(h, KIND_USER);
	if (!u || !n || n > 0x7fffffffu - u->count)
		return CUDA_ERROR_INVALID_VALUE;
	u->count += n;
	return CUDA_SUCCESS;
}

CUresult cuUserObjectRelease(CUuserObject h, unsigned n)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct user_object *u = object_find(h, KIND_USER);
	if (!u || !n || n > u->count)
		return CUDA_ERROR_INVALID_VALUE;
	user_drop(u, n);
	return CUDA_SUCCESS;
}

static bool graph_keeps(struct graph *g, struct user_object *u, unsigned n)
{
	for (unsigned i = 0; i < g->nusers; i++)
		if (g->users[i].object == u) {
			g->users[i].count += n;
			return true;
		}
	struct graph_user *more = realloc(g->users, (g->nusers + 1) * sizeof *more);
	if (!more)
		return false;
	g->users = more;
	g->users[g->nusers++] = (struct graph_user){u, n};
	return true;
}

CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject h, unsigned n, unsigned flags)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct graph *to = object_find(graph, KIND_GRAPH);
	struct user_object *u = object_find(h, KIND_USER);
	if (!to || !u || !n || flags & ~(unsigned)CU_GRAPH_USER_OBJECT_MOVE)
		return CUDA_ERROR_INVALID_VALUE;
	bool move = flags & CU_GRAPH_USER_OBJECT_MOVE;
	if (move ? n > u->count : n > 0x7fffffffu - u->count)
		return CUDA_ERROR_INVALID_VALUE;
	if (!graph_keeps(to, u, n))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!move)
		u->count += n;
	return CUDA_SUCCESS;
}

CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject h, unsigned n)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	struct graph *from = object_find(graph, KIND_GRAPH);
	struct user_object *u = object_find(h, KIND_USER);
	if (!from || !u || !n)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < from->nusers; i++) {
		struct graph_user *k = &from->users[i];
		if (k->object != u || n > k->count)
			continue;
		k->count -= n;
		if (!k->count)
			*k = from->users[--from->nusers];
		user_drop(u, n);
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

/* A clone holds references of its own. */
void user_objects_move(struct graph *to, const struct graph *from)
{
	for (unsigned i = 0; i < from->nusers; i++)
		if (graph_keeps(to, from->users[i].object, 1))
			from->users[i].object->count++;
}

void user_objects_drop(struct graph *g)
{
	for (unsigned i = 0; i < g->nusers; i++)
		user_drop(g->users[i].object, g->users[i].count);
	free(g->users);
	g->users = NULL;
	g->nusers = 0;
}

/* ---- memory of graphs */

CUresult cuDeviceGraphMemTrim(CUdevice device)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	return context_primary(device)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_DEVICE; /* nothing is held beside what graphs use */
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute a, void *value)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	if (!value || (unsigned)a > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
		return CUDA_ERROR_INVALID_VALUE;
	if (!context_primary(device))
		return CUDA_ERROR_INVALID_DEVICE;
	bool high = a == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH || a == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH;
	*(cuuint64_t *)value = graph_memory_bytes(device, high);
	return CUDA_SUCCESS;
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute a, void *value)
{
	guarded g = enter();
	if (g.error)
		return g.error;
	if (!value || *(const cuuint64_t *)value ||
		(a != CU_GRAPH_MEM_ATTR_USED_MEM_HIGH && a != CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH))
		return CUDA_ERROR_INVALID_VALUE;
	if (!context_primary(device))
		return CUDA_ERROR_INVALID_DEVICE;
	graph_memory_reset(device);
	return CUDA_SUCCESS;
}
