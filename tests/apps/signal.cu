// SPDX-License-Identifier: Apache-2.0
// Transforms of signals and images without a library: a separable convolution with its kernel in constant
// memory, the cosine transform of 8x8 blocks and back, a Walsh transform, a Haar wavelet, and an edge filter
// that reads by a texture's rules. Against the host.
#include "app.h"
#include <vector>

enum { W = 96, H = 64, R = 8 };

__constant__ float weights[2 * R + 1];

__global__ void rows(const float *in, float *out)
{
	__shared__ float tile[W + 2 * R];
	int y = blockIdx.x;

	for (int x = threadIdx.x; x < W + 2 * R; x += blockDim.x)
		tile[x] = x < R || x >= W + R ? 0 : in[y * W + x - R];
	__syncthreads();
	for (int x = threadIdx.x; x < W; x += blockDim.x) {
		float s = 0;

		for (int k = 0; k <= 2 * R; k++)
			s += tile[x + k] * weights[k];
		out[y * W + x] = s;
	}
}

__global__ void columns(const float *in, float *out)
{
	__shared__ float tile[H + 2 * R];
	int x = blockIdx.x;

	for (int y = threadIdx.x; y < H + 2 * R; y += blockDim.x)
		tile[y] = y < R || y >= H + R ? 0 : in[(y - R) * W + x];
	__syncthreads();
	for (int y = threadIdx.x; y < H; y += blockDim.x) {
		float s = 0;

		for (int k = 0; k <= 2 * R; k++)
			s += tile[y + k] * weights[k];
		out[y * W + x] = s;
	}
}

static std::vector<float> get(const float *d, size_t n)
{
	std::vector<float> v(n);

	CK(cudaGetLastError());
	CK(cudaMemcpy(v.data(), d, n * 4, cudaMemcpyDeviceToHost));
	return v;
}

static void convolution(const std::vector<float> &image, float *a, float *b)
{
	float w[2 * R + 1];

	for (int k = -R; k <= R; k++)
		w[k + R] = expf(-k * k / 18.0f) / 7.5f;
	CK(cudaMemcpyToSymbol(weights, w, sizeof(w)));
	rows<<<H, 64>>>(a, b);
	columns<<<W, 64>>>(b, b + W * H);
	std::vector<float> got = get(b + W * H, W * H);
	for (int y = 0; y < H; y++)
		for (int x = 0; x < W; x++) {
			double s = 0;

			for (int j = -R; j <= R; j++)
				for (int i = -R; i <= R; i++)
					if (y + j >= 0 && y + j < H && x + i >= 0 && x + i < W)
						s += (double)image[(y + j) * W + x + i] * w[j + R] * w[i + R];
			close_to("convolution", (size_t)(y * W + x), got[y * W + x], s, 1e-5);
		}
	puts("separable convolution");
}

__global__ void cosine(const float *in, float *out, int inverse)
{
	__shared__ float block[8][8], half[8][8];
	int x = threadIdx.x, y = threadIdx.y, at = (blockIdx.y * 8 + y) * W + blockIdx.x * 8 + x;
	float s = 0;

	block[y][x] = in[at];
	__syncthreads();
	for (int k = 0; k < 8; k++) {
		int f = inverse ? k : x, p = inverse ? x : k;

		s += block[y][k] * cospif((2 * p + 1) * f / 16.0f) * (f ? 0.5f : 0.35355339f);
	}
	half[y][x] = s;
	__syncthreads();
	s = 0;
	for (int k = 0; k < 8; k++) {
		int f = inverse ? k : y, p = inverse ? y : k;

		s += half[k][x] * cospif((2 * p + 1) * f / 16.0f) * (f ? 0.5f : 0.35355339f);
	}
	out[at] = s;
}

static void cosines(const std::vector<float> &image, float *a, float *b)
{
	cosine<<<dim3(W / 8, H / 8), dim3(8, 8)>>>(a, b, 0);
	std::vector<float> got = get(b, W * H);
	for (int y = 0; y < H; y++)
		for (int x = 0; x < W; x++) {
			double s = 0;

			for (int j = 0; j < 8; j++)
				for (int i = 0; i < 8; i++)
					s += image[(y / 8 * 8 + j) * W + x / 8 * 8 + i] *
					     cos((2 * i + 1) * (x % 8) * M_PI / 16) *
					     cos((2 * j + 1) * (y % 8) * M_PI / 16);
			s *= (x % 8 ? 0.5 : sqrt(0.125)) * (y % 8 ? 0.5 : sqrt(0.125));
			close_to("cosine transform", (size_t)(y * W + x), got[y * W + x], s, 1e-5);
		}
	cosine<<<dim3(W / 8, H / 8), dim3(8, 8)>>>(b, b + W * H, 1);
	got = get(b + W * H, W * H);
	for (int i = 0; i < W * H; i++)
		close_to("and back", (size_t)i, got[i], image[i], 1e-5);
	puts("cosine transform and back");
}

__global__ void walsh(float *x, int stride)
{
	int t = blockIdx.x * blockDim.x + threadIdx.x, at = t / stride * stride * 2 + t % stride;
	float a = x[at], b = x[at + stride];

	x[at] = a + b;
	x[at + stride] = a - b;
}

static void walshes(const std::vector<float> &signal, float *a)
{
	enum { N = 1024 };

	for (int stride = 1; stride < N; stride *= 2)
		walsh<<<N / 2 / 128, 128>>>(a, stride);
	std::vector<float> got = get(a, N);
	for (int k = 0; k < N; k++) {
		double s = 0;

		for (int i = 0; i < N; i++)
			s += __builtin_parity((unsigned)(i & k)) ? -signal[i] : signal[i];
		close_to("Walsh transform", (size_t)k, got[k], s, 1e-4);
	}
	puts("Walsh transform");
}

__global__ void haar(const float *in, float *out, int n)
{
	extern __shared__ float v[];

	for (int i = threadIdx.x; i < n; i += blockDim.x)
		v[i] = in[i];
	for (int half = n / 2; half; half /= 2) {
		float low = 0, high = 0;

		__syncthreads();
		if (threadIdx.x < half) {
			low = (v[2 * threadIdx.x] + v[2 * threadIdx.x + 1]) * 0.70710678f;
			high = (v[2 * threadIdx.x] - v[2 * threadIdx.x + 1]) * 0.70710678f;
			out[half + threadIdx.x] = high;
		}
		__syncthreads();
		if (threadIdx.x < half)
			v[threadIdx.x] = low;
	}
	__syncthreads();
	if (!threadIdx.x)
		out[0] = v[0];
}

static void wavelets(const std::vector<float> &signal, float *a, float *b)
{
	enum { N = 512 };
	std::vector<double> v(signal.begin(), signal.begin() + N), want(N);

	haar<<<1, N / 2, N * 4>>>(a, b, N);
	for (int half = N / 2; half; half /= 2)
		for (int i = 0; i < half; i++) {
			want[half + i] = (v[2 * i] - v[2 * i + 1]) / sqrt(2);
			v[i] = (v[2 * i] + v[2 * i + 1]) / sqrt(2);
		}
	want[0] = v[0];
	std::vector<float> got = get(b, N);
	for (int i = 0; i < N; i++)
		close_to("wavelet", (size_t)i, got[i], want[i], 1e-5);
	puts("Haar wavelet");
}

__global__ void edges(cudaTextureObject_t t, float *out)
{
	float x = blockIdx.x + 0.5f, y = threadIdx.x + 0.5f;
	float p[9];

	for (int k = 0; k < 9; k++)
		p[k] = tex2D<float>(t, x + k % 3 - 1, y + k / 3 - 1);
	float h = p[2] + 2 * p[5] + p[8] - p[0] - 2 * p[3] - p[6],
	      v = p[6] + 2 * p[7] + p[8] - p[0] - 2 * p[1] - p[2];
	out[threadIdx.x * W + blockIdx.x] = fabsf(h) + fabsf(v);
}

static void filter(const std::vector<float> &image, float *b)
{
	cudaChannelFormatDesc f = cudaCreateChannelDesc<float>();
	cudaResourceDesc r = {};
	cudaTextureDesc d = {};
	cudaTextureObject_t t;
	cudaArray_t array;
	auto at = [&](int x, int y) {
		return image[(y < 0 ? 0 : y < H ? y : H - 1) * W + (x < 0 ? 0 : x < W ? x : W - 1)];
	};

	CK(cudaMallocArray(&array, &f, W, H));
	CK(cudaMemcpy2DToArray(array, 0, 0, image.data(), W * 4, W * 4, H, cudaMemcpyHostToDevice));
	r.resType = cudaResourceTypeArray;
	r.res.array.array = array;
	d.addressMode[0] = d.addressMode[1] = cudaAddressModeClamp;
	CK(cudaCreateTextureObject(&t, &r, &d, NULL));
	edges<<<W, H>>>(t, b);
	std::vector<float> got = get(b, W * H);
	for (int y = 0; y < H; y++)
		for (int x = 0; x < W; x++) {
			double h = at(x + 1, y - 1) + 2 * at(x + 1, y) + at(x + 1, y + 1) - at(x - 1, y - 1) -
				   2 * at(x - 1, y) - at(x - 1, y + 1);
			double v = at(x - 1, y + 1) + 2 * at(x, y + 1) + at(x + 1, y + 1) - at(x - 1, y - 1) -
				   2 * at(x, y - 1) - at(x + 1, y - 1);
			close_to("edges", (size_t)(y * W + x), got[y * W + x], fabs(h) + fabs(v), 1e-5);
		}
	CK(cudaDestroyTextureObject(t));
	CK(cudaFreeArray(array));
	puts("edges");
}

int main(void)
{
	std::vector<float> image(W * H);
	uint32_t seed = 12;
	float *a, *b;

	for (float &v : image)
		v = noise_float(&seed);
	CK(cudaMalloc(&a, W * H * 4));
	CK(cudaMalloc(&b, 2 * W * H * 4));
	CK(cudaMemcpy(a, image.data(), W * H * 4, cudaMemcpyHostToDevice));
	convolution(image, a, b);
	cosines(image, a, b);
	wavelets(image, a, b);
	filter(image, b);
	walshes(image, a);
	CK(cudaFree(a));
	CK(cudaFree(b));
	return pass();
}
