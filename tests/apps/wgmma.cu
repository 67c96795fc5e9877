// SPDX-License-Identifier: Apache-2.0
// A matrix product as Hopper's libraries make it: one warp brings boxes of the operands by tensor maps into a
// ring of shared memory, two groups of four warps multiply them there (wgmma), barrier objects go between,
// and the result leaves by a tensor map, too. Operands of half and bfloat16, in both orders, against the
// host. For capability 9.0 alone (PTX of compute_90a), and the software device.
#include "app.h"
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <vector>

enum {
	ROWS = 128,
	COLUMNS = 64,
	DEPTH = 64,
	STAGES = 2,
	GROUPS = 2,
	THREADS = 128 * (GROUPS + 1),
	SUMS = COLUMNS / 2
};
enum { A_BYTES = ROWS * DEPTH * 2, B_BYTES = COLUMNS * DEPTH * 2, STAGE_BYTES = A_BYTES + B_BYTES };
enum { SHARED = STAGES * STAGE_BYTES + 1024 };

static __device__ uint32_t at(const void *p)
{
	return (uint32_t)__cvta_generic_to_shared(p);
}

static __device__ void wait(uint64_t *barrier, uint32_t phase)
{
	asm volatile("{\n .reg .pred p;\nAGAIN: mbarrier.try_wait.parity.shared::cta.b64 p,[%0],%1;\n @p bra "
		     "DONE;\n bra AGAIN;\nDONE:\n}" ::"r"(at(barrier)),
		     "r"(phase)
		     : "memory");
}

static __device__ void bring(void *to, const CUtensorMap *map, int x, int y, uint64_t *barrier)
{
	asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
		     "[%0],[%1,{%2,%3}],[%4];" ::"r"(at(to)),
		     "l"(map), "r"(x), "r"(y), "r"(at(barrier))
		     : "memory");
}

static __device__ bool elected(void)
{
	uint32_t yes;
	asm volatile("{\n .reg .pred p;\n elect.sync _|p,0xffffffff;\n selp.u32 %0,1,0,p;\n}" : "=r"(yes));
	return yes;
}

/* Lines of 128 bytes that are swizzled, of 64 elements along k, or, across, of as many columns of B. */
static __device__ uint64_t descriptor(const char *p, bool across)
{
	uint64_t leading = across ? DEPTH * 128 : 16, stride = 1024;
	return 1ull << 62 | (stride >> 4) << 32 | (leading >> 4) << 16 | (at(p) & 0x3ffff) >> 4;
}

#define TEN(k) "%" #k "0,%" #k "1,%" #k "2,%" #k "3,%" #k "4,%" #k "5,%" #k "6,%" #k "7,%" #k "8,%" #k "9,"
#define D4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define D16(i) D4(i), D4(i + 4), D4(i + 8), D4(i + 12)
#define PRODUCT(type, across_b)                                                                              \
	asm volatile("{\n .reg .pred p;\n setp.ne.b32 p,%34,0;\n "                                           \
		     "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type                             \
		     " {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9," TEN(1) TEN(2) "%30,%31},%32,%33,p,1,1,0," across_b   \
								      ";\n}"                                 \
		     : D16(0), D16(16)                                                                       \
		     : "l"(a), "l"(b), "r"(add))

template <typename T, bool ACROSS>
static __device__ void product(float (&d)[SUMS], uint64_t a, uint64_t b, int add)
{
	if (ACROSS && std::is_same<T, __half>::value)
		PRODUCT("f16", "1");
	else if (std::is_same<T, __half>::value)
		PRODUCT("f16", "0");
	else if (ACROSS)
		PRODUCT("bf16", "1");
	else
		PRODUCT("bf16", "0");
}

/* One block: ROWS by COLUMNS of C = A B. ACROSS: B is stored row by row of k, else column by column. */
template <typename T, bool ACROSS>
__global__ void __launch_bounds__(THREADS) multiply(const __grid_constant__ CUtensorMap map_a,
	const __grid_constant__ CUtensorMap map_b, const __grid_constant__ CUtensorMap map_c, int k)
{
	extern __shared__ char dynamic[];
	__shared__ uint64_t full[STAGES], empty[STAGES];
	char *ring = dynamic + ((0 - at(dynamic)) & 1023);
	int steps = k / DEPTH, group = threadIdx.x / 128, row = blockIdx.y * ROWS,
	    column = blockIdx.x * COLUMNS;

	if (!threadIdx.x) {
		for (int s = 0; s < STAGES; s++) {
			asm volatile("mbarrier.init.shared::cta.b64 [%0],1;" ::"r"(at(&full[s])));
			asm volatile(
				"mbarrier.init.shared::cta.b64 [%0],%1;" ::"r"(at(&empty[s])), "r"(GROUPS));
		}
		asm volatile("fence.mbarrier_init.release.cluster;");
	}
	__syncthreads();
	if (group == GROUPS) {
		asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
		if (threadIdx.x / 32 != GROUPS * 4 || !elected())
			return;
		for (int i = 0; i < steps; i++) {
			int s = i % STAGES;
			char *a = ring + s * STAGE_BYTES, *b = a + A_BYTES;
			if (i >= STAGES)
				wait(&empty[s], (i / STAGES - 1) & 1);
			asm volatile(
				"mbarrier.arrive.expect_tx.shared::cta.b64 _,[%0],%1;" ::"r"(at(&full[s])),
				"r"(STAGE_BYTES)
				: "memory");
			bring(a, &map_a, i * DEPTH, row, &full[s]);
			bring(b, &map_b, ACROSS ? column : i * DEPTH, ACROSS ? i * DEPTH : column, &full[s]);
		}
		return;
	}
	asm volatile("setmaxnreg.inc.sync.aligned.u32 160;");
	float d[SUMS];
	for (int i = 0; i < steps; i++) {
		int s = i % STAGES;
		const char *a = ring + s * STAGE_BYTES + group * A_BYTES / GROUPS,
			   *b = ring + s * STAGE_BYTES + A_BYTES;
		wait(&full[s], i / STAGES & 1);
		asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
		for (int j = 0; j < DEPTH / 16; j++)
			product<T, ACROSS>(d, descriptor(a + j * 32, false),
				descriptor(b + j * (ACROSS ? 16 * 128 : 32), ACROSS), i + j);
		asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
		asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
		if (threadIdx.x % 128 == 0) /* one thread tells for all four warps */
			asm volatile("mbarrier.arrive.shared::cta.b64 _,[%0];" ::"r"(at(&empty[s]))
				     : "memory");
	}
	/* Both groups have read everything: the ring takes the result, 64 rows of each. */
	asm volatile("bar.sync 1,%0;" ::"n"(128 * GROUPS));
	float *out = (float *)ring + group * 64 * COLUMNS;
	int lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32;
#pragma unroll
	for (int i = 0; i < SUMS; i++)
		out[(warp * 16 + lane / 4 + i / 2 % 2 * 8) * COLUMNS + i / 4 * 8 + lane % 4 * 2 + i % 2] =
			d[i];
	asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
	asm volatile("bar.sync %0,128;" ::"r"(2 + group));
	if (threadIdx.x % 128 == 0) {
		asm volatile(
			"cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0,{%1,%2}],[%3];" ::"l"(
				&map_c),
			"r"(column), "r"(row + group * 64), "r"(at(out))
			: "memory");
		asm volatile("cp.async.bulk.commit_group;");
		asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
	}
}

typedef CUresult encode(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
	const cuuint64_t *, const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
	CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

static CUtensorMap map_of(encode *make, CUtensorMapDataType type, void *p, int columns, int rows,
	int box_columns, int box_rows, bool swizzle)
{
	CUtensorMap m;
	cuuint64_t sizes[2] = {(cuuint64_t)columns, (cuuint64_t)rows},
		   pitch[1] = {(cuuint64_t)columns * (type == CU_TENSOR_MAP_DATA_TYPE_FLOAT32 ? 4 : 2)};
	cuuint32_t box[2] = {(cuuint32_t)box_columns, (cuuint32_t)box_rows}, steps[2] = {1, 1};
	CUresult r = make(&m, type, 2, p, sizes, pitch, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
		swizzle ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE,
		CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
	if (r)
		fail("cuTensorMapEncodeTiled: %d", r);
	return m;
}

template <typename T, bool ACROSS>
static void check(encode *make, const char *name, CUtensorMapDataType type, int m, int n, int k)
{
	std::vector<T> a(m * k), b(n * k);
	std::vector<float> c(m * n);
	uint32_t state = 7;
	for (T &v : a)
		v = (T)(float)((int)(noise(&state) % 9) - 4);
	for (T &v : b)
		v = (T)(float)((int)(noise(&state) % 9) - 4);
	T *da, *db;
	float *dc;
	CK(cudaMalloc(&da, a.size() * sizeof(T)));
	CK(cudaMalloc(&db, b.size() * sizeof(T)));
	CK(cudaMalloc(&dc, c.size() * sizeof(float)));
	CK(cudaMemcpy(da, a.data(), a.size() * sizeof(T), cudaMemcpyHostToDevice));
	CK(cudaMemcpy(db, b.data(), b.size() * sizeof(T), cudaMemcpyHostToDevice));
	CK(cudaMemset(dc, 0xff, c.size() * sizeof(float)));
	CUtensorMap ma = map_of(make, type, da, k, m, DEPTH, ROWS, true),
		    mb = ACROSS ? map_of(make, type, db, n, k, COLUMNS, DEPTH, true)
				: map_of(make, type, db, k, n, DEPTH, COLUMNS, true),
		    mc = map_of(make, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, dc, n, m, COLUMNS, 64, false);
	CK(cudaFuncSetAttribute(multiply<T, ACROSS>, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED));
	multiply<T, ACROSS><<<dim3((n + COLUMNS - 1) / COLUMNS, (m + ROWS - 1) / ROWS), THREADS, SHARED>>>(
		ma, mb, mc, k);
	CK(cudaGetLastError());
	CK(cudaDeviceSynchronize());
	CK(cudaMemcpy(c.data(), dc, c.size() * sizeof(float), cudaMemcpyDeviceToHost));
	for (int i = 0; i < m; i++)
		for (int j = 0; j < n; j++) {
			float sum = 0; /* of small whole numbers: exact */
			for (int l = 0; l < k; l++)
				sum += (float)a[i * k + l] * (float)(ACROSS ? b[l * n + j] : b[j * k + l]);
			if (c[i * n + j] != sum)
				fail("%s: %d,%d is %g, not %g", name, i, j, c[i * n + j], sum);
		}
	printf("%s: %d by %d by %d\n", name, m, n, k);
	CK(cudaFree(da));
	CK(cudaFree(db));
	CK(cudaFree(dc));
}

int main(void)
{
	cudaDeviceProp p;
	CK(cudaGetDeviceProperties(&p, 0));
	if (p.major != 9 && !strstr(p.name, "software device"))
		skip("wgmma is capability 9.0's alone");
	if (p.sharedMemPerBlockOptin < SHARED)
		skip("%d bytes of shared memory wanted, %zu there", SHARED, p.sharedMemPerBlockOptin);
	void *make;
	cudaDriverEntryPointQueryResult found;
	CK(cudaGetDriverEntryPointByVersion(
		"cuTensorMapEncodeTiled", &make, 12000, cudaEnableDefault, &found));
	if (!make)
		fail("the driver has no cuTensorMapEncodeTiled");
	encode *e = (encode *)make;
	check<__half, false>(e, "half, B by columns", CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 256, 256, 512);
	check<__half, true>(e, "half, B by rows", CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 256, 128, 256);
	check<__nv_bfloat16, false>(
		e, "bfloat16, B by columns", CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 128, 256, 320);
	check<__nv_bfloat16, true>(e, "bfloat16, B by rows", CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 200, 264, 192);
	return pass();
}
