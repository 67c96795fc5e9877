/* SPDX-License-Identifier: Apache-2.0 */
/* Clusters of blocks: which shapes are taken and which refused, with which code, shapes that the code fixes,
 * and their occupancy. */
#include "check.h"

/* rank: p[ctaid] = rank in the cluster + 256 x its size. fixed: p[ctaid] = the size of its cluster, which is
 * two. */
static const char hopper[] =
	".version 8.1\n.target sm_90\n.address_size 64\n"
	".visible .entry rank(.param .u64 p) {\n"
	" .reg .b64 %p<3>; .reg .b32 %r<5>; ld.param.u64 %p0, [p]; mov.u32 %r0, %ctaid.x; mov.u32 %r1, "
	"%cluster_ctarank;\n"
	" mov.u32 %r2, %cluster_nctarank; mad.lo.u32 %r3, %r2, 256, %r1; mul.wide.u32 %p1, %r0, 4; "
	"add.u64 %p2, %p0, %p1;\n"
	" st.global.u32 [%p2], %r3; ret; }\n"
	".visible .entry fixed(.param .u64 p) .reqnctapercluster 2, 1, 1 {\n"
	" .reg .b64 %p<3>; .reg .b32 %r<5>; ld.param.u64 %p0, [p]; mov.u32 %r0, %ctaid.x;\n"
	" mov.u32 %r2, %cluster_nctarank; mul.wide.u32 %p1, %r0, 4; add.u64 %p2, %p0, %p1;\n"
	" st.global.u32 [%p2], %r2; ret; }\n";

static CUlaunchAttribute cluster(unsigned x, unsigned y, unsigned z)
{
	CUlaunchAttribute a = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};

	a.value.clusterDim.x = x;
	a.value.clusterDim.y = y;
	a.value.clusterDim.z = z;
	return a;
}

static void clusters(void)
{
	CUmodule m;
	CUfunction rank, fixed;
	CUdeviceptr p;
	CUstream s;
	CUlaunchAttribute a[2];
	CUlaunchConfig c;
	int v = 99;

	NEED(cuModuleLoadData(&m, hopper));
	NEED(cuModuleGetFunction(&rank, m, "rank"));
	NEED(cuModuleGetFunction(&fixed, m, "fixed"));
	NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	p = zeroed(64);
	void *params[] = {&p};
	static const unsigned shapes[][2] = {{1, 8}, {2, 8}, {4, 8}, {8, 8}, {3, 8}, {0, 8}, {16, 16},
			{32, 32}};
	for (unsigned i = 0; i < COUNT(shapes); i++) {
		a[0] = cluster(shapes[i][0], 1, 1);
		c = config(shapes[i][1], s, a, 1);
		CUresult r = cuLaunchKernelEx(&c, rank, params, NULL);
		SAY("cluster of %u of %u -> %s", shapes[i][0], shapes[i][1], name_of(r));
		SAY("wait %s", name_of(cuStreamSynchronize(s)));
		if (!r && shapes[i][1] == 8)
			SAY("%x %x %x", word(p), word(p + 4), word(p + 28));
	}
	a[0] = cluster(2, 2, 1);
	c = config(4, s, a, 1);
	ASK(cuLaunchKernelEx(&c, rank, params, NULL));
	c.gridDimY = 2;
	ASK(cuLaunchKernelEx(&c, rank, params, NULL));
	ASK(cuStreamSynchronize(s));
	a[0] = cluster(2, 1, 1);
	a[1] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE};
	a[1].value.clusterSchedulingPolicyPreference = CU_CLUSTER_SCHEDULING_POLICY_SPREAD;
	c = config(8, s, a, 2);
	ASK(cuLaunchKernelEx(&c, rank, params, NULL));
	a[1].value.clusterSchedulingPolicyPreference = 77;
	ASK(cuLaunchKernelEx(&c, rank, params, NULL));
	c = config(8, s, NULL, 0);
	ASK(cuLaunchKernelEx(&c, fixed, params, NULL));
	ASK(cuStreamSynchronize(s));
	SAY("%u %u", word(p), word(p + 28));
	ASK(cuLaunchKernel(fixed, 8, 1, 1, 1, 1, 1, 0, s, params, NULL));
	ASK(cuLaunchKernel(fixed, 7, 1, 1, 1, 1, 1, 0, s, params, NULL));
	a[0] = cluster(4, 1, 1);
	c = config(8, s, a, 1);
	ASK(cuLaunchKernelEx(&c, fixed, params, NULL));
	a[0] = cluster(2, 1, 1);
	ASK(cuLaunchKernelEx(&c, fixed, params, NULL));
	ASK(cuStreamSynchronize(s));
	ASK(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, fixed));
	SAY("width %d", v);
	ASK(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, fixed));
	SAY("must %d", v);
	ASK(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, rank));
	SAY("allowed %d", v);
	ASK(cuFuncSetAttribute(rank, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
	a[0] = cluster(16, 1, 1);
	c = config(16, s, a, 1);
	ASK(cuLaunchKernelEx(&c, rank, params, NULL));
	ASK(cuStreamSynchronize(s));
	VARY(cuFuncSetAttribute(rank, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 2));
	a[0] = cluster(2, 1, 1);
	c = config(8, s, a, 1);
	ASK(cuOccupancyMaxPotentialClusterSize(&v, rank, &c));
	SAY("at most %d", v);
	ASK(cuOccupancyMaxPotentialClusterSize(&v, fixed, &c));
	SAY("at most %d", v);
	ASK(cuOccupancyMaxPotentialClusterSize(NULL, rank, &c));
	ASK(cuOccupancyMaxPotentialClusterSize(&v, NULL, &c));
	ASK(cuOccupancyMaxActiveClusters(&v, rank, &c));
	printf("~ active %d\n", v);
	SAY("some %d", v > 0);
	c.attrs = NULL;
	c.numAttrs = 0;
	VARY(cuOccupancyMaxActiveClusters(&v, rank, &c));
	ASK(cuOccupancyMaxActiveClusters(&v, rank, NULL));
}

static void start(void)
{
	begin();
	if (attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) < 9)
		SAY("not supported by this device");
	else
		clusters();
}

SECTIONS({"clusters", start})
