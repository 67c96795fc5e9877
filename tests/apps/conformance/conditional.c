/* SPDX-License-Identifier: Apache-2.0 */
/* Conditional nodes of graphs: bodies that run if, while or which a kernel says. The kernels' call is in
 * NVIDIA's device runtime, with which they are linked. */
#include "check.h"

#ifndef DEVRT
#define DEVRT "/usr/local/cuda/lib64/libcudadevrt.a"
#endif

/* set: the condition becomes v. count_down: *p is one less; the condition says whether it is more than 0. */
static const char conditions[] =
	".version 8.3\n.target sm_75\n.address_size 64\n"
	".extern .func cudaGraphSetConditional(.param .b64 h, .param .b32 v);\n"
	".visible .entry set(.param .u64 h, .param .u32 v) {\n"
	" .reg .b64 %h; .reg .b32 %v; ld.param.u64 %h, [h]; ld.param.u32 %v, [v];\n"
	" { .param .b64 a; st.param.b64 [a], %h; .param .b32 b; st.param.b32 [b], %v;\n"
	" call.uni cudaGraphSetConditional, (a, b); }\n ret; }\n"
	".visible .entry count_down(.param .u64 h, .param .u64 p) {\n"
	" .reg .b64 %h<2>; .reg .b32 %v<3>; .reg .pred %q; ld.param.u64 %h0, [h]; ld.param.u64 %h1, [p];\n"
	" ld.global.u32 %v0, [%h1]; sub.u32 %v1, %v0, 1; st.global.u32 [%h1], %v1;\n"
	" setp.gt.u32 %q, %v1, 0; selp.u32 %v2, 1, 0, %q;\n"
	" { .param .b64 a; st.param.b64 [a], %h0; .param .b32 b; st.param.b32 [b], %v2;\n"
	" call.uni cudaGraphSetConditional, (a, b); }\n ret; }\n";

static CUstream s;
static CUfunction log_to, set, count_down;
static CUdeviceptr p;

static void ready(void)
{
	CUlinkState l;
	CUmodule m;
	void *image;
	size_t n;

	begin();
	NEED(cuLinkCreate(0, NULL, NULL, &l));
	NEED(cuLinkAddData(l, CU_JIT_INPUT_PTX, (void *)conditions, sizeof(conditions), "conditions", 0, NULL,
			NULL));
	NEED(cuLinkAddFile(l, CU_JIT_INPUT_LIBRARY, DEVRT, 0, NULL, NULL));
	NEED(cuLinkComplete(l, &image, &n));
	NEED(cuModuleLoadData(&m, image));
	NEED(cuLinkDestroy(l));
	NEED(cuModuleGetFunction(&set, m, "set"));
	NEED(cuModuleGetFunction(&count_down, m, "count_down"));
	log_to = kernel("log_to");
	p = zeroed(256);
	NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
}

static CUgraphNode add_kernel(CUgraph g, CUgraphNode after, CUfunction f, void *a, void *b)
{
	CUDA_KERNEL_NODE_PARAMS k = {.func = f, .kernelParams = (void *[]){a, b}};
	CUgraphNode n = NULL;

	k.gridDimX = k.gridDimY = k.gridDimZ = k.blockDimX = k.blockDimY = k.blockDimZ = 1;
	ASK(cuGraphAddKernelNode(&n, g, after ? &after : NULL, after ? 1 : 0, &k));
	return n;
}

static CUgraphNodeParams condition(CUgraphConditionalHandle h, CUgraphConditionalNodeType type, unsigned size)
{
	CUgraphNodeParams n;

	memset(&n, 0, sizeof(n));
	n.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
	n.conditional.handle = h;
	n.conditional.type = type;
	n.conditional.size = size;
	n.conditional.ctx = context;
	return n;
}

static void run(CUgraphExec x)
{
	unsigned w[8];

	ASK(cuGraphLaunch(x, s));
	ASK(cuStreamSynchronize(s));
	NEED(cuMemcpyDtoH(w, p, sizeof(w)));
	SAY("%u entries: %u %u %u", w[0], w[1], w[2], w[3]);
	NEED(cuMemsetD8(p, 0, 128));
}

static void if_else(void)
{
	CUgraph g, in;
	CUgraphExec x;
	CUgraphNode first, c = NULL;
	CUgraphConditionalHandle h = 0;
	CUgraphNodeParams n;
	CUgraphNodeType type = 99;
	CUDA_KERNEL_NODE_PARAMS k;
	size_t count = 9;
	unsigned zero = 0, one = 1, ten = 10, twenty = 20, five = 5;

	ready();
	NEED(cuGraphCreate(&g, 0));
	ASK(cuGraphConditionalHandleCreate(&h, g, context, 0, 0));
	SAY("a handle %d", h != 0);
	ASK(cuGraphConditionalHandleCreate(NULL, g, context, 0, 0));
	ASK(cuGraphConditionalHandleCreate(&h, NULL, context, 0, 0));
	ASK(cuGraphConditionalHandleCreate(&h, g, context, 0, 77));
	first = add_kernel(g, NULL, set, &h, &one);
	n = condition(h, CU_GRAPH_COND_TYPE_IF, 2);
	ASK(cuGraphAddNode(&c, g, &first, NULL, 1, &n));
	SAY("graphs %d %d", n.conditional.phGraph_out && n.conditional.phGraph_out[0],
		n.conditional.phGraph_out && n.conditional.phGraph_out[1]);
	ASK(cuGraphNodeGetType(c, &type));
	SAY("type %d", type);
	in = n.conditional.phGraph_out[0];
	ASK(cuGraphGetNodes(in, NULL, &count));
	SAY("%zu nodes", count);
	add_kernel(in, NULL, log_to, &p, &ten);
	add_kernel(n.conditional.phGraph_out[1], NULL, log_to, &p, &twenty);
	add_kernel(g, c, log_to, &p, &five);
	ASK(cuGraphDestroy(in));
	ASK(cuGraphNodeSetParams(c, &n));
	ASK(cuGraphInstantiate(&x, g, 0));
	run(x);
	memset(&k, 0, sizeof(k));
	k.func = set;
	k.gridDimX = k.gridDimY = k.gridDimZ = k.blockDimX = k.blockDimY = k.blockDimZ = 1;
	k.kernelParams = (void *[]){&h, &zero};
	ASK(cuGraphExecKernelNodeSetParams(x, first, &k));
	run(x);
	ASK(cuGraphExecDestroy(x));
	/* The same condition in a second node, in a graph that is none of its own. */
	n = condition(h, CU_GRAPH_COND_TYPE_IF, 1);
	ASK(cuGraphAddNode(&c, g, NULL, NULL, 0, &n));
	NEED(cuGraphCreate(&in, 0));
	n = condition(h, CU_GRAPH_COND_TYPE_IF, 1);
	ASK(cuGraphAddNode(&c, in, NULL, NULL, 0, &n));
	NEED(cuGraphConditionalHandleCreate(&h, in, context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
	n = condition(h, CU_GRAPH_COND_TYPE_IF, 0);
	ASK(cuGraphAddNode(&c, in, NULL, NULL, 0, &n));
	n = condition(h, CU_GRAPH_COND_TYPE_IF, 3);
	ASK(cuGraphAddNode(&c, in, NULL, NULL, 0, &n));
	n = condition(h, 9, 1);
	ASK(cuGraphAddNode(&c, in, NULL, NULL, 0, &n));
	n = condition(h, CU_GRAPH_COND_TYPE_IF, 1);
	ASK(cuGraphAddNode(&c, in, NULL, NULL, 0, &n));
	add_kernel(n.conditional.phGraph_out[0], NULL, log_to, &p, &ten);
	ASK(cuGraphInstantiate(&x, in, 0));
	run(x);
	ASK(cuGraphDestroy(g));
}

static void while_loop(void)
{
	CUgraph g, in, copy;
	CUgraphExec x;
	CUgraphNode c, k;
	CUgraphConditionalHandle h;
	CUgraphNodeParams n;
	CUdeviceptr left;
	unsigned seven = 7;

	ready();
	left = zeroed(64);
	NEED(cuGraphCreate(&g, 0));
	ASK(cuGraphConditionalHandleCreate(&h, g, context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
	n = condition(h, CU_GRAPH_COND_TYPE_WHILE, 2);
	ASK(cuGraphAddNode(&c, g, NULL, NULL, 0, &n));
	n = condition(h, CU_GRAPH_COND_TYPE_WHILE, 1);
	ASK(cuGraphAddNode(&c, g, NULL, NULL, 0, &n));
	in = n.conditional.phGraph_out[0];
	k = add_kernel(in, NULL, log_to, &p, &seven);
	add_kernel(in, k, count_down, &h, &left);
	ASK(cuGraphInstantiate(&x, g, 0));
	for (unsigned times = 1; times < 4; times++) {
		NEED(cuMemsetD32(left, times, 1));
		run(x);
		SAY("left %u", word(left));
	}
	ASK(cuGraphClone(&copy, g));
	ASK(cuGraphExecDestroy(x));
}

static void which(void)
{
	CUgraph g;
	CUgraphExec x;
	CUgraphNode c, first;
	CUgraphConditionalHandle h;
	CUgraphNodeParams n;
	unsigned value[3] = {100, 101, 102}, choice = 0;
	CUDA_KERNEL_NODE_PARAMS k = {0};

	ready();
	NEED(cuGraphCreate(&g, 0));
	NEED(cuGraphConditionalHandleCreate(&h, g, context, 0, CU_GRAPH_COND_ASSIGN_DEFAULT));
	first = add_kernel(g, NULL, set, &h, &choice);
	n = condition(h, CU_GRAPH_COND_TYPE_SWITCH, 3);
	ASK(cuGraphAddNode(&c, g, &first, NULL, 1, &n));
	for (int i = 0; i < 3; i++)
		add_kernel(n.conditional.phGraph_out[i], NULL, log_to, &p, &value[i]);
	ASK(cuGraphInstantiate(&x, g, 0));
	k.func = set;
	k.gridDimX = k.gridDimY = k.gridDimZ = k.blockDimX = k.blockDimY = k.blockDimZ = 1;
	k.kernelParams = (void *[]){&h, &choice};
	for (choice = 0; choice < 5; choice++) {
		NEED(cuGraphExecKernelNodeSetParams(x, first, &k));
		run(x);
	}
	ASK(cuGraphDestroyNode(c));
	ASK(cuGraphExecDestroy(x));
	ASK(cuGraphDestroy(g));
}

/* A condition that no node has. */
static void unused(void)
{
	CUgraph g;
	CUgraphExec x;
	CUgraphConditionalHandle h;
	CUgraphNode n;
	CUDA_GRAPH_INSTANTIATE_PARAMS p = {0};

	ready();
	NEED(cuGraphCreate(&g, 0));
	NEED(cuGraphAddEmptyNode(&n, g, NULL, 0));
	ASK(cuGraphConditionalHandleCreate(&h, g, context, 0, 0));
	ASK(cuGraphInstantiateWithParams(&x, g, &p));
	SAY("~ result %d", p.result_out);
	ASK(cuGraphInstantiate(&x, g, 0));
}

/* A condition in a condition, and a capture into a body. */
static void nested(void)
{
	CUgraph g, in, captured = NULL;
	CUgraphExec x;
	CUgraphNode c, inner;
	CUgraphConditionalHandle h, h2;
	CUgraphNodeParams n;
	CUdeviceptr left;
	unsigned eight = 8, three = 3;

	ready();
	left = zeroed(64);
	NEED(cuGraphCreate(&g, 0));
	NEED(cuGraphConditionalHandleCreate(&h, g, context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
	ASK(cuGraphConditionalHandleCreate(&h2, g, context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
	n = condition(h, CU_GRAPH_COND_TYPE_IF, 1);
	NEED(cuGraphAddNode(&c, g, NULL, NULL, 0, &n));
	in = n.conditional.phGraph_out[0];
	n = condition(h2, CU_GRAPH_COND_TYPE_WHILE, 1);
	ASK(cuGraphAddNode(&inner, in, NULL, NULL, 0, &n));
	if (!n.conditional.phGraph_out)
		return;
	ASK(cuStreamBeginCaptureToGraph(s, n.conditional.phGraph_out[0], NULL, NULL, 0,
		CU_STREAM_CAPTURE_MODE_RELAXED));
	ASK(LAUNCH(log_to, s, &p, &eight));
	ASK(LAUNCH(count_down, s, &h2, &left));
	ASK(cuStreamEndCapture(s, &captured));
	SAY("the body %d", captured == n.conditional.phGraph_out[0]);
	ASK(cuGraphInstantiate(&x, g, 0));
	NEED(cuMemsetD32(left, three, 1));
	run(x);
}

SECTIONS({"if_else", if_else}, {"while_loop", while_loop}, {"which", which}, {"unused", unused},
		{"nested", nested})
