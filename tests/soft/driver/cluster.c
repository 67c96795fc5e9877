/* SPDX-License-Identifier: Apache-2.0 */
/* What a device of compute capability 9.0 has: clusters, maps of tensors, larger multiprocessors;
 * `cluster 7.5`: what one without them says.
 *
 * Thread rule: one thread. */
#include "tests/soft/driver/test.h"

static const char text[] =
	".version 8.6\n.target sm_90\n.address_size 64\n"
	".visible .entry ranks(.param .u64 out)\n{\n .reg .b32 %r<8>; .reg .b64 %d<4>;\n ld.param.u64 "
	"%d1,[out];\n"
	" mov.u32 %r1,%cluster_ctarank; mov.u32 %r2,%cluster_nctarank; mov.u32 %r3,%ctaid.x;\n"
	" barrier.cluster.arrive; barrier.cluster.wait; mul.wide.u32 %d2,%r3,8; add.u64 %d1,%d1,%d2;\n"
	" st.global.v2.u32 [%d1],{%r1,%r2}; ret;\n}\n"
	".visible .entry fixed(.param .u64 out)\n.reqnctapercluster 2, 1, 1\n{\n .reg .b32 %r<8>; .reg .b64 "
	"%d<4>;\n"
	" ld.param.u64 %d1,[out]; mov.u32 %r1,%cluster_ctarank; mov.u32 %r2,%cluster_nctarank; mov.u32 "
	"%r3,%ctaid.x;\n"
	" mul.wide.u32 %d2,%r3,8; add.u64 %d1,%d1,%d2; st.global.v2.u32 [%d1],{%r1,%r2}; ret;\n}\n"
	".visible .entry tile(.param .align 64 .b8 map[128], .param .u64 out)\n{\n .reg .b64 %d<8>; .reg "
	".pred %p<4>;\n"
	" .shared .align 128 .b8 box[512]; .shared .align 8 .b64 bar;\n ld.param.u64 %d0,[out]; mov.b64 "
	"%d1,map; cvta.param.u64 "
	"%d1,%d1;\n mbarrier.init.shared.b64 [bar],1; mbarrier.arrive.expect_tx.shared.b64 %d2,[bar],512;\n"
	" cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
	"[box],[%d1,{4,2}],[bar];\n"
	"W: mbarrier.try_wait.parity.shared.b64 %p1,[bar],0; @!%p1 bra W;\n"
	" cp.async.bulk.global.shared::cta.bulk_group [%d0],[box],512; cp.async.bulk.commit_group; "
	"cp.async.bulk.wait_group 0; "
	"ret;\n}\n";

static CUresult go(CUfunction f, unsigned blocks, unsigned cluster, CUdeviceptr out)
{
	CUlaunchAttribute a = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
	a.value.clusterDim.x = cluster;
	a.value.clusterDim.y = a.value.clusterDim.z = 1;
	CUlaunchConfig c = {.gridDimX = blocks,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 32,
		.blockDimY = 1,
		.blockDimZ = 1,
		.attrs = &a,
		.numAttrs = cluster ? 1 : 0};
	CUresult r = cuLaunchKernelEx(&c, f, (void *[]){&out}, NULL);
	return r ? r : cuCtxSynchronize();
}

static void ranks(CUdeviceptr out, unsigned blocks, unsigned cluster)
{
	unsigned got[64];
	OK(cuMemcpyDtoH_v2(got, out, blocks * 8));
	for (unsigned i = 0; i < blocks; i++)
		CHECK(got[2 * i] == i % cluster && got[2 * i + 1] == cluster);
}

static void tensor(CUmodule m, CUdeviceptr out)
{
	enum { WIDTH = 40, HEIGHT = 12, BOX = 16, ROWS = 8 };
	static int in[HEIGHT][WIDTH], got[ROWS][BOX];
	CUdeviceptr data;
	CUfunction f;
	CUtensorMap map;
	cuuint64_t size[2] = {WIDTH, HEIGHT}, stride[1] = {WIDTH * 4};
	cuuint32_t box[2] = {BOX, ROWS}, step[2] = {1, 1};
	for (int i = 0; i < WIDTH * HEIGHT; i++)
		in[i / WIDTH][i % WIDTH] = i + 1;
	OK(cuMemAlloc_v2(&data, sizeof in));
	OK(cuMemcpyHtoD_v2(data, in, sizeof in));
	OK(cuTensorMapEncodeTiled(
		&map, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, (void *)data, size, stride, box, step, 0, 0, 0, 0));
	OK(cuModuleGetFunction(&f, m, "tile"));
	OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&map, &out}, NULL));
	OK(cuMemcpyDtoH_v2(got, out, sizeof got));
	for (int y = 0; y < ROWS; y++)
		for (int x = 0; x < BOX; x++)
			CHECK(got[y][x] == in[y + 2][x + 4]);
	IS(cuTensorMapEncodeTiled(
		   &map, CU_TENSOR_MAP_DATA_TYPE_INT32, 6, (void *)data, size, stride, box, step, 0, 0, 0, 0),
		CUDA_ERROR_INVALID_VALUE);
	IS(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, (void *)(data + 4), size, stride,
		   box, step, 0, 0, 0, 0),
		CUDA_ERROR_INVALID_VALUE);
	box[0] = 3; /* 12 bytes */
	IS(cuTensorMapEncodeTiled(
		   &map, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, (void *)data, size, stride, box, step, 0, 0, 0, 0),
		CUDA_ERROR_INVALID_VALUE);
	box[0] = 16;
	stride[0] = 100;
	IS(cuTensorMapEncodeTiled(
		   &map, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, (void *)data, size, stride, box, step, 0, 0, 0, 0),
		CUDA_ERROR_INVALID_VALUE);
	/* of images: what a driver refuses */
	cuuint64_t sizes[4] = {8, 7, 5, 2}, strides[3] = {32, 224, 1120};
	cuuint32_t steps[4] = {1, 1, 1, 1};
	int lower[2] = {-1, 0}, upper[2] = {-2, -1};
	OK(cuTensorMapEncodeIm2col(&map, CU_TENSOR_MAP_DATA_TYPE_INT32, 4, (void *)data, sizes, strides,
			lower, upper, 8, 16, steps,
		0, 0, 0, 0));
	IS(cuTensorMapEncodeIm2col(&map, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, (void *)data, sizes, strides,
			lower, upper, 8, 16, steps,
		   0, 0, 0, 0),
		CUDA_ERROR_INVALID_VALUE);
	IS(cuTensorMapEncodeIm2col(&map, CU_TENSOR_MAP_DATA_TYPE_INT32, 4, (void *)data, sizes, strides,
			lower, upper, 8, 1025, steps,
		   0, 0, 0, 0),
		CUDA_ERROR_INVALID_VALUE);
	lower[0] = -129;
	IS(cuTensorMapEncodeIm2col(&map, CU_TENSOR_MAP_DATA_TYPE_INT32, 4, (void *)data, sizes, strides,
			lower, upper, 8, 16, steps,
		   0, 0, 0, 0),
		CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree_v2(data));
}

/* A multiprocessor as the capability has it, and a block with all of the shared memory that it may ask for.
 */
static void multiprocessor(bool large)
{
	static const char ends[] = PTX_HEAD
		".extern .shared .align 16 .b8 s[];\n"
		".visible .entry ends(.param .u64 out, .param .u32 last) { .reg .b64 %d; .reg .b32 %r<5>;\n"
		" ld.param.u64 %d,[out]; ld.param.u32 %r0,[last]; mov.u32 %r1,s; add.u32 %r2,%r1,%r0;\n"
		" st.shared.u32 [%r2],7; st.shared.u32 [%r1],5; ld.shared.u32 %r3,[%r1]; ld.shared.u32 "
		"%r4,[%r2];\n"
		" add.u32 %r3,%r3,%r4; st.global.u32 [%d],%r3; ret; }\n";
	static const struct {
		int threads, bytes, small, large;
	} rows[] = {{32, 0, 16, 32}, {1024, 0, 1, 2}, {256, 0, 4, 8}, {96, 0, 10, 21}, {32, 16384, 4, 13},
		{32, 49152, 1, 4}};
	CUfunction f = function(ends, "ends");
	CUdeviceptr out;
	int v, most;
	unsigned sum = 0;
	OK(cuMemAlloc_v2(&out, 4));
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(
			&v, f, rows[i].threads, (size_t)rows[i].bytes));
		CHECK(v == (large ? rows[i].large : rows[i].small));
	}
	OK(cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 0));
	CHECK(v == (large ? 2048 : 1024));
	OK(cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 0));
	CHECK(v == (large ? 1024 : 0));
	OK(cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0));
	CHECK(most == (large ? 232448 : 65536));
	IS(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most + 1),
		CUDA_ERROR_INVALID_VALUE);
	OK(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most));
	unsigned last = (unsigned)most - 4;
	OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, (unsigned)most, NULL, (void *[]){&out, &last}, NULL));
	OK(cuMemcpyDtoH_v2(&sum, out, 4));
	CHECK(sum == 12);
	OK(cuMemFree_v2(out));
}

int main(int argc, char **argv)
{
	const char *capability = argc > 1 ? argv[1] : "9.0";
	bool has = *capability == '9';
	setenv("SCUDAFS_SOFT_CAPABILITY", capability, 1);
	CUcontext c;
	CUmodule m;
	CUfunction f, fixed;
	CUdeviceptr out;
	int v, size;
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&c, 0));
	OK(cuCtxSetCurrent(c));
	OK(cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0));
	CHECK(v == has);
	multiprocessor(has);
	OK(cuModuleLoadData(&m, text));
	OK(cuModuleGetFunction(&f, m, "ranks"));
	OK(cuModuleGetFunction(&fixed, m, "fixed"));
	OK(cuMemAlloc_v2(&out, 4096));
	OK(go(f, 6, 1, out));
	ranks(out, 6, 1);
	OK(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, fixed));
	CHECK(v == 2);
	CUlaunchConfig k = {
		.gridDimX = 4, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1};
	if (!has) {
		IS(go(f, 6, 2, out), CUDA_ERROR_INVALID_CLUSTER_SIZE);
		IS(go(fixed, 6, 0, out), CUDA_ERROR_INVALID_CLUSTER_SIZE);
		IS(cuOccupancyMaxPotentialClusterSize(&size, f, &k), CUDA_ERROR_NOT_SUPPORTED);
		return 0;
	}
	OK(go(f, 6, 3, out));
	ranks(out, 6, 3);
	OK(go(f, 24, 8, out));
	ranks(out, 24, 8);
	OK(go(fixed, 6, 0, out));
	ranks(out, 6, 2);
	IS(go(f, 7, 3, out), CUDA_ERROR_INVALID_CLUSTER_SIZE);
	IS(go(f, 16, 16, out), CUDA_ERROR_INVALID_CLUSTER_SIZE);
	OK(cuOccupancyMaxPotentialClusterSize(&size, f, &k));
	CHECK(size == 8);
	OK(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
	OK(go(f, 16, 16, out));
	ranks(out, 16, 16);
	tensor(m, out);
	OK(cuMemFree_v2(out));
	return 0;
}
