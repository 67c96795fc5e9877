// SPDX-License-Identifier: Apache-2.0
// N bodies under gravity, positions staged through shared memory; ten steps against the same sums in double
// on the host, and the momentum that must stay.
#include "app.h"

enum { N = 512, BLOCK = 128, STEPS = 10 };
static const float softening = 0.01f, dt = 0.001f;

__global__ void step(const float4 *p, float4 *q, float4 *v)
{
	__shared__ float4 tile[BLOCK];
	int i = blockIdx.x * BLOCK + threadIdx.x;
	float4 me = p[i], vel = v[i];
	float ax = 0, ay = 0, az = 0;

	for (int t = 0; t < N; t += BLOCK) {
		tile[threadIdx.x] = p[t + threadIdx.x];
		__syncthreads();
		for (int k = 0; k < BLOCK; k++) {
			float dx = tile[k].x - me.x, dy = tile[k].y - me.y, dz = tile[k].z - me.z;
			float r = rsqrtf(dx * dx + dy * dy + dz * dz + softening), s = tile[k].w * r * r * r;

			ax += dx * s;
			ay += dy * s;
			az += dz * s;
		}
		__syncthreads();
	}
	vel.x += ax * dt;
	vel.y += ay * dt;
	vel.z += az * dt;
	v[i] = vel;
	q[i] = make_float4(me.x + vel.x * dt, me.y + vel.y * dt, me.z + vel.z * dt, me.w);
}

int main(void)
{
	static float4 p[N], v[N];
	static double x[N][3], u[N][3];
	float4 *dp, *dq, *dv, *t;
	uint32_t seed = 12;
	double momentum = 0;

	for (int i = 0; i < N; i++) {
		p[i] = make_float4(noise_float(&seed), noise_float(&seed), noise_float(&seed),
				noise_float(&seed) + 0.5f);
		v[i] = make_float4(0, 0, 0, 0);
		x[i][0] = p[i].x;
		x[i][1] = p[i].y;
		x[i][2] = p[i].z;
	}
	CK(cudaMalloc(&dp, sizeof(p)));
	CK(cudaMalloc(&dq, sizeof(p)));
	CK(cudaMalloc(&dv, sizeof(v)));
	CK(cudaMemcpy(dp, p, sizeof(p), cudaMemcpyHostToDevice));
	CK(cudaMemcpy(dv, v, sizeof(v), cudaMemcpyHostToDevice));
	for (int s = 0; s < STEPS; s++) {
		step<<<N / BLOCK, BLOCK>>>(dp, dq, dv);
		t = dp;
		dp = dq;
		dq = t;
	}
	CK(cudaGetLastError());
	for (int s = 0; s < STEPS; s++) {
		static double a[N][3];

		for (int i = 0; i < N; i++) {
			a[i][0] = a[i][1] = a[i][2] = 0;
			for (int k = 0; k < N; k++) {
				double d[3] = {x[k][0] - x[i][0], x[k][1] - x[i][1], x[k][2] - x[i][2]};
				double r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + softening,
						f = p[k].w / (r2 * sqrt(r2));

				for (int c = 0; c < 3; c++)
					a[i][c] += d[c] * f;
			}
		}
		for (int i = 0; i < N; i++)
			for (int c = 0; c < 3; c++) {
				u[i][c] += a[i][c] * dt;
				x[i][c] += u[i][c] * dt;
			}
	}
	CK(cudaMemcpy(p, dp, sizeof(p), cudaMemcpyDeviceToHost));
	CK(cudaMemcpy(v, dv, sizeof(v), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++) {
		close_to("x", i, p[i].x, x[i][0], 1e-5);
		close_to("vy", i, v[i].y, u[i][1], 1e-3);
		close_to("vz", i, v[i].z, u[i][2], 1e-3);
		momentum += p[i].w * v[i].x;
	}
	if (fabs(momentum) > 0.05)
		fail("momentum is %g, expected about 0", momentum);
	CK(cudaFree(dp));
	CK(cudaFree(dq));
	CK(cudaFree(dv));
	return pass();
}
