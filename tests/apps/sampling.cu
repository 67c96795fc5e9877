/* SPDX-License-Identifier: Apache-2.0 */
// What a filter makes of texels: between the levels of a mipmap, by a level and by gradients, with a bias and
// limits; on a cube's faces and around their edges; of a window on an array, as other numbers; from colours
// on the curve of sRGB. The right values are computed on the CPU.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>
#include "app.h"

enum { W = 16, LEVELS = 5, N = 64 };

static cudaTextureDesc usual(cudaTextureFilterMode filter)
{
	cudaTextureDesc d = {};

	for (int i = 0; i < 3; i++)
		d.addressMode[i] = cudaAddressModeClamp;
	d.filterMode = d.mipmapFilterMode = filter;
	d.normalizedCoords = 1;
	d.maxMipmapLevelClamp = 100;
	return d;
}

__global__ void by_level(cudaTextureObject_t t, float *out)
{
	out[threadIdx.x] = tex2DLod<float>(t, 0.3f, 0.7f, threadIdx.x / 8.0f - 1);
}

__global__ void by_gradient(cudaTextureObject_t t, float *out)
{
	float g = exp2f(threadIdx.x / 8.0f - 5);

	out[threadIdx.x] = tex2DGrad<float>(t, 0.3f, 0.7f, make_float2(g, 0), make_float2(0, g / 4));
}

__global__ void plain(cudaTextureObject_t t, float *out)
{
	out[threadIdx.x] = tex2D<float>(t, 0.3f, 0.7f);
}

/* Level l of the mipmap has the value 10 * l + 1 everywhere. */
static double level_value(double l, bool blend)
{
	l = l < 0 ? 0 : l > LEVELS - 1 ? LEVELS - 1 : l;
	return 10 * (blend ? l : floor(l + 0.5)) + 1;
}

static void mipmap(cudaTextureFilterMode filter, float bias, float least, float most)
{
	cudaChannelFormatDesc f = cudaCreateChannelDesc<float>();
	cudaMipmappedArray_t m;
	cudaResourceDesc r = {};
	cudaTextureDesc d = usual(filter);
	cudaTextureObject_t t;
	float *out, got[N];
	bool blend = filter == cudaFilterModeLinear;

	CK(cudaMallocMipmappedArray(&m, &f, make_cudaExtent(W, W, 0), LEVELS, 0));
	for (int l = 0; l < LEVELS; l++) {
		cudaArray_t a;
		std::vector<float> v((size_t)(W >> l) * (W >> l), 10.0f * l + 1);

		CK(cudaGetMipmappedArrayLevel(&a, m, (unsigned)l));
		CK(cudaMemcpy2DToArray(
			a, 0, 0, v.data(), (W >> l) * 4, (W >> l) * 4, W >> l, cudaMemcpyHostToDevice));
	}
	r.resType = cudaResourceTypeMipmappedArray;
	r.res.mipmap.mipmap = m;
	d.mipmapLevelBias = bias;
	d.minMipmapLevelClamp = least;
	d.maxMipmapLevelClamp = most;
	CK(cudaCreateTextureObject(&t, &r, &d, NULL));
	CK(cudaMalloc(&out, sizeof(got)));
	by_level<<<1, N>>>(t, out);
	CK(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++) {
		double l = fmin(fmax(i / 8.0 - 1 + bias, least), most);

		if (blend || fabs(l - floor(l) - 0.5) > 0.01) /* a tie may go either way */
			close_to("level", (size_t)i, got[i], level_value(l, blend), 0.02);
	}
	by_gradient<<<1, N>>>(t, out);
	CK(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++) {
		double l = fmin(fmax(i / 8.0 - 5 + log2((double)W) + bias, least), most);

		if (blend || fabs(l - floor(l) - 0.5) > 0.01)
			close_to("gradient", (size_t)i, got[i], level_value(l, blend), 0.03);
	}
	plain<<<1, N>>>(t, out);
	CK(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	printf("~ plain fetch: %g\n", (double)got[0]);
	CK(cudaDestroyTextureObject(t));
	CK(cudaFreeMipmappedArray(m));
	CK(cudaFree(out));
}

__global__ void directions(cudaTextureObject_t t, const float3 *at, float *out)
{
	float3 p = at[threadIdx.x];

	out[threadIdx.x] = texCubemap<float>(t, p.x, p.y, p.z);
}

__global__ void directions_layered(cudaTextureObject_t t, const float3 *at, float *out)
{
	float3 p = at[threadIdx.x];

	out[threadIdx.x] = texCubemapLayered<float>(t, p.x, p.y, p.z, 1);
}

/* Texels of a cube whose value is a smooth function of the direction: what a seamless filter gives is near it
 * everywhere. */
static float smooth(double x, double y, double z)
{
	double n = sqrt(x * x + y * y + z * z);

	return (float)(3 * x / n + 5 * y / n - 2 * z / n);
}

static void cube(bool layered)
{
	cudaChannelFormatDesc f = cudaCreateChannelDesc<float>();
	int layers = layered ? 12 : 6, side = 64;
	std::vector<float> v((size_t)layers * side * side);
	std::vector<float3> at(N);
	cudaArray_t a;
	cudaMemcpy3DParms c = {};
	cudaResourceDesc r = {};
	cudaTextureDesc d = usual(cudaFilterModeLinear);
	cudaTextureObject_t t;
	float3 *where;
	float *out, got[N];

	for (int l = 0; l < layers; l++)
		for (int j = 0; j < side; j++)
			for (int i = 0; i < side; i++) {
				double p = 2 * (i + 0.5) / side - 1, q = 2 * (j + 0.5) / side - 1;
				double x[6][3] = {{1, -q, -p}, {-1, -q, p}, {p, 1, q}, {p, -1, -q},
					{p, -q, 1}, {-p, -q, -1}},
				       *e = x[l % 6];

				v[((size_t)l * side + j) * side + i] =
					smooth(e[0], e[1], e[2]) + (l < 6 ? 0 : 100);
			}
	for (int i = 0; i < N; i++) /* some on edges and in corners */
		at[i] = make_float3(sinf((i + 1) * 1.7f),
			i % 5 == 0 ? sinf((i + 1) * 1.7f) * 0.999f : cosf(i * 2.3f),
			i % 10 == 0 ? sinf((i + 1) * 1.7f) * 1.001f : cosf(i * 0.9f));
	CK(cudaMalloc3DArray(&a, &f, make_cudaExtent(side, side, layers),
		cudaArrayCubemap | (layered ? cudaArrayLayered : 0)));
	c.srcPtr = make_cudaPitchedPtr(v.data(), (size_t)side * 4, side, side);
	c.dstArray = a;
	c.extent = make_cudaExtent(side, side, layers);
	c.kind = cudaMemcpyHostToDevice;
	CK(cudaMemcpy3D(&c));
	r.resType = cudaResourceTypeArray;
	r.res.array.array = a;
	d.seamlessCubemap = 1;
	CK(cudaCreateTextureObject(&t, &r, &d, NULL));
	CK(cudaMalloc(&out, sizeof(got)));
	CK(cudaMalloc(&where, N * sizeof(float3)));
	CK(cudaMemcpy(where, at.data(), N * sizeof(float3), cudaMemcpyHostToDevice));
	if (layered)
		directions_layered<<<1, N>>>(t, where, out);
	else
		directions<<<1, N>>>(t, where, out);
	CK(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++)
		if (!(fabs(got[i] - smooth(at[i].x, at[i].y, at[i].z) - (layered ? 100 : 0)) < 0.1))
			fail("direction %d: %g, want about %g", i, (double)got[i],
				(double)smooth(at[i].x, at[i].y, at[i].z));
	CK(cudaDestroyTextureObject(t));
	CK(cudaFreeArray(a));
	CK(cudaFree(out));
	CK(cudaFree(where));
}

__global__ void colours(cudaTextureObject_t t, float4 *out)
{
	out[threadIdx.x] = tex1D<float4>(t, (float)threadIdx.x + 0.5f);
}

__global__ void as_bits(cudaTextureObject_t t, uint2 *out)
{
	out[threadIdx.x] = tex2D<uint2>(t, (float)threadIdx.x + 0.5f, 1.5f);
}

__global__ void as_layer(cudaTextureObject_t t, uint2 *out)
{
	out[threadIdx.x] = tex2DLayered<uint2>(t, (float)threadIdx.x + 0.5f, 0.5f, 0);
}

/* What a number of 0 to 255 on the curve of sRGB stands for. */
static float linear(double v)
{
	double x = v / 255;

	return (float)(x <= 0.04045 ? x / 12.92 : pow((x + 0.055) / 1.055, 2.4));
}

static void formats(void)
{
	cudaChannelFormatDesc f = cudaCreateChannelDesc<uchar4>();
	cudaArray_t a;
	unsigned char v[256][4];
	cudaResourceDesc r = {};
	cudaTextureDesc d = usual(cudaFilterModePoint);
	cudaTextureObject_t t;
	float4 *out, got[256];

	for (int i = 0; i < 256; i++)
		for (int k = 0; k < 4; k++)
			v[i][k] = (unsigned char)(i * (2 * k + 1));
	CK(cudaMallocArray(&a, &f, 256));
	CK(cudaMemcpy2DToArray(a, 0, 0, v, sizeof(v), sizeof(v), 1, cudaMemcpyHostToDevice));
	r.resType = cudaResourceTypeArray;
	r.res.array.array = a;
	d.normalizedCoords = 0;
	d.sRGB = 1;
	d.readMode = cudaReadModeNormalizedFloat;
	CK(cudaCreateTextureObject(&t, &r, &d, NULL));
	CK(cudaMalloc(&out, sizeof(got)));
	colours<<<1, 256>>>(t, out);
	CK(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 256; i++)
		for (int k = 0; k < 4; k++) {
			float seen = (&got[i].x)[k], want = k == 3 ? v[i][k] / 255.0f : linear(v[i][k]);

			/* Devices convert to within half a step of the number that is stored, not of a float.
			 */
			if (k == 3 ? !(fabsf(seen - want) < 1e-3f)
				   : !(seen >= linear(v[i][k] - 0.5) && seen <= linear(v[i][k] + 0.5)))
				fail("colour %d.%d, %d: %g, want %g", i, k, v[i][k], (double)seen,
					(double)want);
		}
	CK(cudaDestroyTextureObject(t));
	CK(cudaFreeArray(a));
	CK(cudaFree(out));
}

/* Floats seen as bits: of a plain array, and the middle one of three layers where the device takes such a
 * window. */
static void windows(void)
{
	cudaChannelFormatDesc f = cudaCreateChannelDesc<float2>();
	cudaArray_t a, b;
	std::vector<float2> w(3 * N * N);
	cudaResourceDesc r = {};
	cudaResourceViewDesc view = {};
	cudaTextureDesc d = usual(cudaFilterModePoint);
	cudaTextureObject_t t;
	cudaMemcpy3DParms c = {};
	uint2 *bits, seen[N];

	for (size_t i = 0; i < w.size(); i++)
		w[i] = make_float2((float)i, -(float)i);
	CK(cudaMalloc(&bits, sizeof(seen)));
	CK(cudaMallocArray(&a, &f, N, N));
	CK(cudaMemcpy2DToArray(a, 0, 0, w.data(), N * 8, N * 8, N, cudaMemcpyHostToDevice));
	r.resType = cudaResourceTypeArray;
	r.res.array.array = a;
	d.normalizedCoords = 0;
	view.format = cudaResViewFormatUnsignedInt2;
	view.width = view.height = N;
	CK(cudaCreateTextureObject(&t, &r, &d, &view));
	as_bits<<<1, N>>>(t, bits);
	CK(cudaMemcpy(seen, bits, sizeof(seen), cudaMemcpyDeviceToHost));
	same_bytes("bits", seen, &w[N], sizeof(seen));
	CK(cudaDestroyTextureObject(t));

	CK(cudaMalloc3DArray(&b, &f, make_cudaExtent(N, N, 3), cudaArrayLayered));
	c.srcPtr = make_cudaPitchedPtr(w.data(), N * 8, N, N);
	c.dstArray = b;
	c.extent = make_cudaExtent(N, N, 3);
	c.kind = cudaMemcpyHostToDevice;
	CK(cudaMemcpy3D(&c));
	r.res.array.array = b;
	view.depth = 3; /* a window has the depth of what it is on, layers or not; an H200 refuses 1 here */
	view.firstLayer = view.lastLayer = 1;
	if (cudaCreateTextureObject(&t, &r, &d, &view) == cudaSuccess) {
		as_layer<<<1, N>>>(t, bits);
		CK(cudaMemcpy(seen, bits, sizeof(seen), cudaMemcpyDeviceToHost));
		same_bytes("window", seen, &w[N * N], sizeof(seen));
		CK(cudaDestroyTextureObject(t));
	} else {
		printf("no window of layers: %s\n", cudaGetErrorName(cudaGetLastError()));
	}
	CK(cudaFreeArray(a));
	CK(cudaFreeArray(b));
	CK(cudaFree(bits));
}

int main(void)
{
	mipmap(cudaFilterModePoint, 0, 0, 100);
	mipmap(cudaFilterModeLinear, 0, 0, 100);
	mipmap(cudaFilterModeLinear, 0.5f, 0.75f, 2.25f);
	puts("mipmaps");
	cube(false);
	puts("cube");
	cube(true);
	puts("layers of cubes");
	formats();
	puts("formats");
	windows();
	puts("windows");
	return pass();
}
