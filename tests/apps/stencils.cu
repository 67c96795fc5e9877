// SPDX-License-Identifier: Apache-2.0
// Grids: a finite-difference wave in three dimensions with a radius of four, planes kept in registers and a
// slice in shared memory; optical flow after Horn and Schunck between two pictures, one of which is the other
// moved; and lines of sight over a terrain by a scan of maxima. Against the host.
#include "app.h"
#include <vector>

enum { X = 48, Y = 24, Z = 20, R = 4, STEPS = 3 };

__constant__ float coefficient[R + 1];

__global__ void wave(const float *in, float *out)
{
	__shared__ float tile[8 + 2 * R][16 + 2 * R];
	int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, tx = threadIdx.x + R,
	    ty = threadIdx.y + R;
	float column[2 * R + 1];

	auto at = [&](int i, int j, int k) {
		return i < 0 || j < 0 || k < 0 || i >= X || j >= Y || k >= Z ? 0.0f : in[(k * Y + j) * X + i];
	};
	for (int k = 0; k < 2 * R; k++)
		column[k + 1] = at(x, y, k - R);
	for (int z = 0; z < Z; z++) {
		for (int k = 0; k < 2 * R; k++)
			column[k] = column[k + 1];
		column[2 * R] = at(x, y, z + R);
		__syncthreads();
		tile[ty][tx] = column[R];
		if (threadIdx.x < R) {
			tile[ty][threadIdx.x] = at(x - R, y, z);
			tile[ty][threadIdx.x + 16 + R] = at(x + 16, y, z);
		}
		if (threadIdx.y < R) {
			tile[threadIdx.y][tx] = at(x, y - R, z);
			tile[threadIdx.y + 8 + R][tx] = at(x, y + 8, z);
		}
		__syncthreads();
		float v = coefficient[0] * column[R];
		for (int k = 1; k <= R; k++)
			v += coefficient[k] * (column[R - k] + column[R + k] + tile[ty][tx - k] +
						      tile[ty][tx + k] + tile[ty - k][tx] + tile[ty + k][tx]);
		out[(z * Y + y) * X + x] = v;
	}
}

static void waves(void)
{
	const float c[R + 1] = {0.4f, 0.05f, 0.03f, 0.015f, 0.005f};
	std::vector<float> grid(X * Y * Z), got(grid.size());
	std::vector<double> a, b(grid.size());
	uint32_t seed = 3;
	float *d[2];

	for (float &v : grid)
		v = noise_float(&seed);
	a.assign(grid.begin(), grid.end());
	for (float *&p : d)
		CK(cudaMalloc(&p, grid.size() * 4));
	CK(cudaMemcpyToSymbol(coefficient, c, sizeof(c)));
	CK(cudaMemcpy(d[0], grid.data(), grid.size() * 4, cudaMemcpyHostToDevice));
	for (int s = 0; s < STEPS; s++) {
		wave<<<dim3(X / 16, Y / 8), dim3(16, 8)>>>(d[s % 2], d[(s + 1) % 2]);
		auto at = [&](int i, int j, int k) {
			return i < 0 || j < 0 || k < 0 || i >= X || j >= Y || k >= Z ? 0.0
										     : a[(k * Y + j) * X + i];
		};
		for (int z = 0; z < Z; z++)
			for (int y = 0; y < Y; y++)
				for (int x = 0; x < X; x++) {
					double v = c[0] * at(x, y, z);

					for (int k = 1; k <= R; k++)
						v += c[k] * (at(x - k, y, z) + at(x + k, y, z) +
								    at(x, y - k, z) + at(x, y + k, z) +
								    at(x, y, z - k) + at(x, y, z + k));
					b[(z * Y + y) * X + x] = v;
				}
		a.swap(b);
	}
	CK(cudaGetLastError());
	CK(cudaMemcpy(got.data(), d[STEPS % 2], got.size() * 4, cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < got.size(); i++)
		close_to("wave", i, got[i], a[i], 1e-5);
	puts("waves in three dimensions");
	CK(cudaFree(d[0]));
	CK(cudaFree(d[1]));
}

enum { SIDE = 64, ROUNDS = 100 };

__host__ __device__ static int clamp(int v)
{
	return v < 0 ? 0 : v < SIDE ? v : SIDE - 1;
}

__host__ __device__ static float2 flow_at(const float *a, const float *b, const float2 *f, int x, int y)
{
	auto p = [](const float *image, int i, int j) { return image[clamp(j) * SIDE + clamp(i)]; };
	auto near = [&](int i, int j) { return f[clamp(j) * SIDE + clamp(i)]; };
	float dx = (p(a, x + 1, y) - p(a, x - 1, y) + p(b, x + 1, y) - p(b, x - 1, y)) / 4;
	float dy = (p(a, x, y + 1) - p(a, x, y - 1) + p(b, x, y + 1) - p(b, x, y - 1)) / 4;
	float dt = p(b, x, y) - p(a, x, y);
	float2 l = near(x - 1, y), r = near(x + 1, y), u = near(x, y - 1), d = near(x, y + 1);
	float mx = (l.x + r.x + u.x + d.x) / 4, my = (l.y + r.y + u.y + d.y) / 4;
	float k = (dx * mx + dy * my + dt) / (0.01f + dx * dx + dy * dy);

	return make_float2(mx - k * dx, my - k * dy);
}

__global__ void flow(const float *a, const float *b, const float2 *in, float2 *out)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;

	out[y * SIDE + x] = flow_at(a, b, in, x, y);
}

static void optical_flow(void)
{
	std::vector<float> a(SIDE * SIDE), b(a.size());
	std::vector<float2> got(a.size()), want(a.size()), next(a.size());
	float *da, *db;
	float2 *f[2];
	double sx = 0, sy = 0;

	for (int y = 0; y < SIDE; y++)
		for (int x = 0; x < SIDE; x++) {
			auto picture = [](float u, float v) {
				return sinf(u * 0.2f) * cosf(v * 0.15f) + 0.5f * sinf((u + v) * 0.1f);
			};
			a[y * SIDE + x] = picture((float)x, (float)y);
			b[y * SIDE + x] = picture(x - 0.5f, y - 0.25f);
		}
	CK(cudaMalloc(&da, a.size() * 4));
	CK(cudaMalloc(&db, a.size() * 4));
	for (float2 *&p : f) {
		CK(cudaMalloc(&p, a.size() * 8));
		CK(cudaMemset(p, 0, a.size() * 8));
	}
	CK(cudaMemcpy(da, a.data(), a.size() * 4, cudaMemcpyHostToDevice));
	CK(cudaMemcpy(db, b.data(), a.size() * 4, cudaMemcpyHostToDevice));
	for (int i = 0; i < ROUNDS; i++) {
		flow<<<dim3(SIDE / 16, SIDE / 16), dim3(16, 16)>>>(da, db, f[i % 2], f[(i + 1) % 2]);
		for (int y = 0; y < SIDE; y++)
			for (int x = 0; x < SIDE; x++)
				next[y * SIDE + x] = flow_at(a.data(), b.data(), want.data(), x, y);
		want.swap(next);
	}
	CK(cudaMemcpy(got.data(), f[ROUNDS % 2], a.size() * 8, cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < a.size(); i++) {
		close_to("flow x", i, got[i].x, want[i].x, 1e-3);
		close_to("flow y", i, got[i].y, want[i].y, 1e-3);
		sx += got[i].x / SIDE / SIDE;
		sy += got[i].y / SIDE / SIDE;
	}
	close_to("mean movement x", 0, sx, 0.5, 0.1);
	close_to("mean movement y", 0, sy, 0.25, 0.1);
	puts("optical flow");
	for (void *p : {(void *)da, (void *)db, (void *)f[0], (void *)f[1]})
		CK(cudaFree(p));
}

__global__ void sight(const float *height, int *visible, int n)
{
	extern __shared__ float angle[];
	int t = threadIdx.x;
	float mine = t ? atan2f(height[t] - height[0], (float)t) : -2, best;

	angle[t] = mine;
	__syncthreads();
	for (int step = 1; step < n; step *= 2) {
		best = t >= step ? fmaxf(angle[t], angle[t - step]) : angle[t];
		__syncthreads();
		angle[t] = best;
		__syncthreads();
	}
	visible[t] = !t || mine > angle[t - 1];
}

static void lines_of_sight(void)
{
	enum { N = 1024 };
	std::vector<float> height(N);
	std::vector<int> got(N);
	uint32_t seed = 14;
	float *h, v = 10;
	int *out, seen = 0;

	for (float &x : height)
		x = v += noise_float(&seed) - 0.48f;
	CK(cudaMalloc(&h, N * 4));
	CK(cudaMalloc(&out, N * 4));
	CK(cudaMemcpy(h, height.data(), N * 4, cudaMemcpyHostToDevice));
	sight<<<1, N, N * 4>>>(h, out, N);
	CK(cudaMemcpy(got.data(), out, N * 4, cudaMemcpyDeviceToHost));
	double best = -2;
	for (int i = 1; i < N; i++) {
		double angle = atan2((double)height[i] - height[0], i);

		/* What is equal but for rounding may be seen or not. */
		if (fabs(angle - best) > 1e-6 && got[i] != (angle > best))
			fail("point %d is %s", i, got[i] ? "seen" : "hidden");
		seen += got[i];
		best = fmax(best, angle);
	}
	if (!seen)
		fail("nothing is seen");
	puts("lines of sight");
	CK(cudaFree(h));
	CK(cudaFree(out));
}

int main(void)
{
	waves();
	optical_flow();
	lines_of_sight();
	return pass();
}
