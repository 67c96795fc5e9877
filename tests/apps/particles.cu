// SPDX-License-Identifier: Apache-2.0
// Particles that push each other away, found by sorting them into cells with thrust; pictures compared by
// byte-wide instructions (stereo disparity); and a window of the second-level cache that is asked for by a
// stream's attributes. Against the host.
#include "app.h"
#include <thrust/execution_policy.h>
#include <thrust/sort.h>
#include <vector>

enum { COUNT = 2000, CELLS = 16, STEPS = 4 };

__device__ static int cell_of(float2 p)
{
	int x = (int)(p.x * CELLS), y = (int)(p.y * CELLS);

	return (y < 0 ? 0 : y < CELLS ? y : CELLS - 1) * CELLS + (x < 0 ? 0 : x < CELLS ? x : CELLS - 1);
}

__host__ __device__ static float2 moved(float2 p, float2 force)
{
	float x = p.x + force.x * 0.01f, y = p.y + force.y * 0.01f;

	return make_float2(x < 0 ? 0 : x > 1 ? 1 : x, y < 0 ? 0 : y > 1 ? 1 : y);
}

__host__ __device__ static void push(float2 p, float2 q, float2 &force)
{
	float dx = p.x - q.x, dy = p.y - q.y, d = dx * dx + dy * dy, reach = 0.5f / CELLS;

	if (d > 0 && d < reach * reach) {
		force.x += dx / reach;
		force.y += dy / reach;
	}
}

__global__ void hash(const float2 *p, int *cell, int *index)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < COUNT) {
		cell[i] = cell_of(p[i]);
		index[i] = i;
	}
}

__global__ void bounds(const int *cell, int *first, int *end)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < COUNT) {
		if (!i || cell[i] != cell[i - 1])
			first[cell[i]] = i;
		if (i == COUNT - 1 || cell[i] != cell[i + 1])
			end[cell[i]] = i + 1;
	}
}

__global__ void move(const float2 *p, const int *index, const int *first, const int *end, float2 *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x, c;
	float2 force = make_float2(0, 0);

	if (i >= COUNT)
		return;
	c = cell_of(p[i]);
	for (int y = c / CELLS - 1; y <= c / CELLS + 1; y++)
		for (int x = c % CELLS - 1; x <= c % CELLS + 1; x++)
			if (x >= 0 && y >= 0 && x < CELLS && y < CELLS)
				for (int k = first[y * CELLS + x]; k < end[y * CELLS + x]; k++)
					push(p[i], p[index[k]], force);
	out[i] = moved(p[i], force);
}

static void particles(cudaStream_t s)
{
	std::vector<float2> p(COUNT), next(COUNT), got(COUNT);
	float2 *d[2];
	int *cell, *index, *first, *end;
	uint32_t seed = 18;

	for (float2 &v : p) {
		v.x = noise_float(&seed);
		v.y = noise_float(&seed);
	}
	for (float2 *&v : d)
		CK(cudaMalloc(&v, COUNT * 8));
	CK(cudaMalloc(&cell, COUNT * 4));
	CK(cudaMalloc(&index, COUNT * 4));
	CK(cudaMalloc(&first, CELLS * CELLS * 4));
	CK(cudaMalloc(&end, CELLS * CELLS * 4));
	CK(cudaMemcpy(d[0], p.data(), COUNT * 8, cudaMemcpyHostToDevice));
	for (int k = 0; k < STEPS; k++) {
		hash<<<(COUNT + 127) / 128, 128, 0, s>>>(d[k % 2], cell, index);
		thrust::sort_by_key(thrust::cuda::par.on(s), cell, cell + COUNT, index);
		CK(cudaMemsetAsync(first, 0, CELLS * CELLS * 4, s));
		CK(cudaMemsetAsync(end, 0, CELLS * CELLS * 4, s));
		bounds<<<(COUNT + 127) / 128, 128, 0, s>>>(cell, first, end);
		move<<<(COUNT + 127) / 128, 128, 0, s>>>(d[k % 2], index, first, end, d[(k + 1) % 2]);
		for (int i = 0; i < COUNT; i++) {
			float2 force = make_float2(0, 0);

			for (int j = 0; j < COUNT; j++)
				push(p[i], p[j], force);
			next[i] = moved(p[i], force);
		}
		p.swap(next);
	}
	CK(cudaStreamSynchronize(s));
	CK(cudaMemcpy(got.data(), d[STEPS % 2], COUNT * 8, cudaMemcpyDeviceToHost));
	for (int i = 0; i < COUNT; i++) {
		close_to("x", (size_t)i, got[i].x, p[i].x, 1e-4);
		close_to("y", (size_t)i, got[i].y, p[i].y, 1e-4);
	}
	puts("particles");
	for (void *v : {(void *)d[0], (void *)d[1], (void *)cell, (void *)index, (void *)first, (void *)end})
		CK(cudaFree(v));
}

enum { W = 96, H = 40, REACH = 12 };

__global__ void disparity(const unsigned *left, const unsigned *right, int *out)
{
	int x = threadIdx.x, y = blockIdx.x, best = -1;
	unsigned least = ~0u;

	for (int d = 0; d <= REACH && d <= x; d++) {
		unsigned cost = 0;

		for (int j = -2; j <= 2; j++)
			for (int i = -2; i <= 2; i++) {
				int u = min(max(x + i, 0), W - 1), v = min(max(y + j, 0), H - 1),
				    w = max(u - d, 0);

				cost += __vsadu4(left[v * W + u], right[v * W + w]);
			}
		if (cost < least) {
			least = cost;
			best = d;
		}
	}
	out[y * W + x] = best;
}

__global__ void dots(const int *a, const int *b, int *out)
{
	out[threadIdx.x] = __dp4a(a[threadIdx.x], b[threadIdx.x], (int)threadIdx.x);
}

static void stereo(void)
{
	unsigned *left, *right;
	int *out, wrong = 0;
	uint32_t seed = 19;

	CK(cudaMallocManaged(&left, W * H * 4));
	CK(cudaMallocManaged(&right, W * H * 4));
	CK(cudaMallocManaged(&out, W * H * 4));
	for (int i = 0; i < W * H; i++)
		right[i] = noise(&seed);
	/* The upper half is moved by 3, the lower by 9. */
	for (int y = 0; y < H; y++)
		for (int x = 0; x < W; x++)
			left[y * W + x] =
				right[y * W + (x > (y < H / 2 ? 3 : 9) ? x - (y < H / 2 ? 3 : 9) : 0)];
	disparity<<<H, W>>>(left, right, out);
	CK(cudaDeviceSynchronize());
	for (int y = 0; y < H; y++)
		for (int x = REACH + 2; x < W; x++)
			wrong += abs(y - H / 2) > 3 && out[y * W + x] != (y < H / 2 ? 3 : 9);
	if (wrong)
		fail("%d places of the pictures are matched wrongly", wrong);
	puts("disparity");
	dots<<<1, 64>>>((int *)left, (int *)right, out);
	CK(cudaDeviceSynchronize());
	for (int i = 0; i < 64; i++) {
		int want = i;

		for (int k = 0; k < 32; k += 8)
			want += (signed char)(left[i] >> k) * (signed char)(right[i] >> k);
		if (out[i] != want)
			fail("dot product %d is %d, expected %d", i, out[i], want);
	}
	puts("dot products of bytes");
	CK(cudaFree(left));
	CK(cudaFree(right));
	CK(cudaFree(out));
}

int main(void)
{
	cudaStreamAttrValue a = {}, b = {};
	cudaDeviceProp p;
	cudaStream_t s;
	void *window;

	CK(cudaGetDeviceProperties(&p, 0));
	CK(cudaStreamCreate(&s));
	CK(cudaMalloc(&window, 1 << 20));
	if (p.accessPolicyMaxWindowSize > 0) {
		CK(cudaDeviceSetLimit(
			cudaLimitPersistingL2CacheSize, (size_t)p.persistingL2CacheMaxSize / 2));
		a.accessPolicyWindow.base_ptr = window;
		a.accessPolicyWindow.num_bytes = 1 << 20;
		a.accessPolicyWindow.hitRatio = 0.5f;
		a.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
		a.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
		CK(cudaStreamSetAttribute(s, cudaStreamAttributeAccessPolicyWindow, &a));
		CK(cudaStreamGetAttribute(s, cudaStreamAttributeAccessPolicyWindow, &b));
		if (b.accessPolicyWindow.base_ptr != window || b.accessPolicyWindow.num_bytes != 1 << 20)
			fail("the window is not what was set");
		printf("~ a window of the cache of at most %d bytes\n", p.accessPolicyMaxWindowSize);
	}
	particles(s);
	stereo();
	if (p.accessPolicyMaxWindowSize > 0)
		CK(cudaCtxResetPersistingL2Cache());
	CK(cudaFree(window));
	CK(cudaStreamDestroy(s));
	return pass();
}
