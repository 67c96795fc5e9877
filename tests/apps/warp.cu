// SPDX-License-Identifier: Apache-2.0
// Warp functions: all, any, ballot, active mask, match any and all, syncwarp, reductions (where the device
// has them), and diverged code that votes inside its own branch, against a model on the host.
#include "app.h"

__global__ void votes(const int *in, unsigned *out)
{
	int lane = threadIdx.x, v = in[lane], pred = 0;

	out[lane] = __ballot_sync(~0u, v & 1);
	out[32 + lane] = __all_sync(~0u, v >= 0) | __any_sync(~0u, v > 90) << 1 | __all_sync(~0u, v > 5) << 2;
	out[64 + lane] = __match_any_sync(~0u, v % 5);
	out[96 + lane] = __match_all_sync(~0u, v / 100, &pred);
	out[96 + lane] ^= (unsigned)pred << 31;
	if (lane < 11)
		out[128 + lane] = __ballot_sync(0x7ffu, v % 3 == 0);
	else
		out[128 + lane] = __match_any_sync(0xfffff800u, v & 3);
	out[160 + lane] = __activemask();
	__syncwarp();
#if __CUDA_ARCH__ >= 800
	out[192 + lane] = __reduce_add_sync(~0u, v);
#else
	unsigned sum = v;
	for (int d = 16; d; d /= 2)
		sum += __shfl_xor_sync(~0u, sum, d);
	out[192 + lane] = sum;
#endif
}

/* A warp's threads write in turn into a shared cell; only syncwarp orders them. */
__global__ void turns(int *out)
{
	__shared__ volatile int cell;

	if (!threadIdx.x)
		cell = 1;
	__syncwarp();
	for (int i = 0; i < 32; i++) {
		if ((int)threadIdx.x == i)
			cell = cell * 3 + i;
		__syncwarp();
	}
	out[threadIdx.x] = cell;
}

int main(void)
{
	int in[32], turn[32], *d, want_turn = 1;
	unsigned out[224], *o, sum = 0;
	uint32_t seed = 31;

	for (int i = 0; i < 32; i++) {
		in[i] = noise(&seed) % 100;
		sum += in[i];
	}
	CK(cudaMalloc(&d, sizeof(in)));
	CK(cudaMalloc(&o, sizeof(out)));
	CK(cudaMemcpy(d, in, sizeof(in), cudaMemcpyHostToDevice));
	votes<<<1, 32>>>(d, o);
	CK(cudaGetLastError());
	CK(cudaMemcpy(out, o, sizeof(out), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 32; i++) {
		unsigned want[7] = {0, 1, 0, ~0u ^ 1u << 31, 0, ~0u, sum};
		bool more = true, any = false;

		for (int j = 0; j < 32; j++) {
			want[0] |= (unsigned)(in[j] & 1) << j;
			any |= in[j] > 90;
			more &= in[j] > 5;
			want[2] |= (unsigned)(in[j] % 5 == in[i] % 5) << j;
			if (i < 11 && j < 11)
				want[4] |= (unsigned)(in[j] % 3 == 0) << j;
			if (i >= 11 && j >= 11)
				want[4] |= (unsigned)((in[j] & 3) == (in[i] & 3)) << j;
		}
		want[1] |= (unsigned)any << 1 | (unsigned)more << 2;
		for (int k = 0; k < 7; k++)
			if (k != 5 && out[k * 32 + i] != want[k])
				fail("function %d lane %d: %#x, expected %#x", k, i, out[k * 32 + i],
						want[k]);
		if (!(out[160 + i] >> i & 1))
			fail("active mask %#x of lane %d lacks the lane itself", out[160 + i], i);
	}
	turns<<<1, 32>>>(d);
	CK(cudaMemcpy(turn, d, sizeof(turn), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 32; i++)
		want_turn = (int)((unsigned)want_turn * 3 + i);
	for (int i = 0; i < 32; i++)
		if (turn[i] != want_turn)
			fail("turns: lane %d saw %d, expected %d", i, turn[i], want_turn);
	CK(cudaFree(d));
	CK(cudaFree(o));
	return pass();
}
