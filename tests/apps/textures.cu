// SPDX-License-Identifier: Apache-2.0
// Textures of the other kinds: layers, cubes, mipmaps made level by level through surfaces, many textures by
// an array of their handles in device memory, and one over linear memory with a pitch. Where a device lacks a
// kind it says so in words, and that is told.
#include "app.h"
#include <vector>

enum { W = 16, LAYERS = 3 };

static cudaTextureObject_t texture_of(cudaArray_t a, bool normalized)
{
	cudaResourceDesc r = {};
	cudaTextureDesc t = {};
	cudaTextureObject_t o = 0;

	r.resType = cudaResourceTypeArray;
	r.res.array.array = a;
	t.readMode = cudaReadModeElementType;
	t.filterMode = cudaFilterModePoint;
	t.normalizedCoords = normalized;
	for (cudaTextureAddressMode &m : t.addressMode)
		m = cudaAddressModeClamp;
	CK(cudaCreateTextureObject(&o, &r, &t, NULL));
	return o;
}

static void fill(cudaArray_t a, const std::vector<float> &v, int layers)
{
	cudaMemcpy3DParms c = {};

	c.srcPtr = make_cudaPitchedPtr((void *)v.data(), W * 4, W, W);
	c.dstArray = a;
	c.extent = make_cudaExtent(W, W, (size_t)layers);
	c.kind = cudaMemcpyHostToDevice;
	CK(cudaMemcpy3D(&c));
}

__global__ void layered(cudaTextureObject_t t, float *out)
{
	int x = threadIdx.x, y = threadIdx.y, l = blockIdx.x;

	out[(l * W + y) * W + x] = tex2DLayered<float>(t, x + 0.5f, y + 0.5f, l);
}

__global__ void cube(cudaTextureObject_t t, float *out)
{
	/* The middles of the texels of each face: +x -x +y -y +z -z. */
	int face = blockIdx.x;
	float u = 2 * (threadIdx.x + 0.5f) / W - 1, v = 2 * (threadIdx.y + 0.5f) / W - 1, x, y, z;

	switch (face) {
	case 0: x = 1, y = -v, z = -u; break;
	case 1: x = -1, y = -v, z = u; break;
	case 2: x = u, y = 1, z = v; break;
	case 3: x = u, y = -1, z = -v; break;
	case 4: x = u, y = -v, z = 1; break;
	default: x = -u, y = -v, z = -1;
	}
	out[(face * W + threadIdx.y) * W + threadIdx.x] = texCubemap<float>(t, x, y, z);
}

static void layers(unsigned flags, int count, const char *name)
{
	cudaChannelFormatDesc f = cudaCreateChannelDesc<float>();
	std::vector<float> v((size_t)count * W * W), got(v.size());
	cudaArray_t a;
	float *out;
	cudaError_t e = cudaMalloc3DArray(&a, &f, make_cudaExtent(W, W, (size_t)count), flags);

	if (e == cudaErrorNotSupported || e == cudaErrorInvalidValue) {
		cudaGetLastError();
		printf("~ %s: %s\n", name, cudaGetErrorName(e));
		return;
	}
	CK(e);
	for (size_t i = 0; i < v.size(); i++)
		v[i] = (float)(i * 7 % 1000);
	fill(a, v, count);
	CK(cudaMalloc(&out, v.size() * 4));
	cudaTextureObject_t t = texture_of(a, flags == cudaArrayCubemap);
	if (flags == cudaArrayCubemap)
		cube<<<count, dim3(W, W)>>>(t, out);
	else
		layered<<<count, dim3(W, W)>>>(t, out);
	e = cudaGetLastError();
	if (e == cudaSuccess)
		e = cudaDeviceSynchronize();
	if (e == cudaErrorNotSupported) {
		cudaGetLastError();
		printf("~ %s: %s\n", name, cudaGetErrorName(e));
		return;
	}
	CK(e);
	CK(cudaMemcpy(got.data(), out, v.size() * 4, cudaMemcpyDeviceToHost));
	same_bytes(name, got.data(), v.data(), v.size() * 4);
	puts(name);
	CK(cudaDestroyTextureObject(t));
	CK(cudaFreeArray(a));
	CK(cudaFree(out));
}

__global__ void shrink(cudaSurfaceObject_t from, cudaSurfaceObject_t to, int side)
{
	int x = threadIdx.x, y = threadIdx.y;

	if (x < side && y < side) {
		float s = 0;

		for (int i = 0; i < 4; i++)
			s += surf2Dread<float>(from, (2 * x + i % 2) * 4, 2 * y + i / 2);
		surf2Dwrite(s / 4, to, x * 4, y);
	}
}

__global__ void levels(cudaTextureObject_t t, float *out)
{
	for (int l = 0; l < 4; l++)
		out[l] = tex2DLod<float>(t, 0.5f / (W >> l), 0.5f / (W >> l), (float)l);
}

static void mipmaps(void)
{
	cudaChannelFormatDesc f = cudaCreateChannelDesc<float>();
	cudaMipmappedArray_t m;
	cudaArray_t level[4];
	cudaSurfaceObject_t surface[4];
	cudaResourceDesc r = {};
	cudaTextureDesc d = {};
	cudaTextureObject_t t;
	std::vector<float> v(W * W);
	float *out, got[4];
	cudaError_t e =
		cudaMallocMipmappedArray(&m, &f, make_cudaExtent(W, W, 0), 4, cudaArraySurfaceLoadStore);

	if (e == cudaErrorNotSupported) {
		cudaGetLastError();
		puts("~ mipmaps: cudaErrorNotSupported");
		return;
	}
	CK(e);
	for (int i = 0; i < W * W; i++)
		v[i] = (float)(i * 13 % 256);
	for (int l = 0; l < 4; l++) {
		cudaResourceDesc s = {};

		CK(cudaGetMipmappedArrayLevel(&level[l], m, (unsigned)l));
		s.resType = cudaResourceTypeArray;
		s.res.array.array = level[l];
		CK(cudaCreateSurfaceObject(&surface[l], &s));
	}
	CK(cudaMemcpy2DToArray(level[0], 0, 0, v.data(), W * 4, W * 4, W, cudaMemcpyHostToDevice));
	for (int l = 1; l < 4; l++)
		shrink<<<1, dim3(W, W)>>>(surface[l - 1], surface[l], W >> l);
	r.resType = cudaResourceTypeMipmappedArray;
	r.res.mipmap.mipmap = m;
	d.readMode = cudaReadModeElementType;
	d.normalizedCoords = 1;
	d.maxMipmapLevelClamp = 3;
	e = cudaCreateTextureObject(&t, &r, &d, NULL);
	if (e == cudaErrorNotSupported) {
		cudaGetLastError();
		puts("~ mipmaps: no textures of them, cudaErrorNotSupported");
		return;
	}
	CK(e);
	CK(cudaMalloc(&out, sizeof(got)));
	levels<<<1, 1>>>(t, out);
	CK(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	for (int l = 0; l < 4; l++) {
		double want = 0;

		for (int y = 0; y < 1 << l; y++)
			for (int x = 0; x < 1 << l; x++)
				want += v[y * W + x];
		close_to("level", (size_t)l, got[l], want / (1 << 2 * l), 1e-5);
	}
	puts("mipmaps");
	CK(cudaDestroyTextureObject(t));
	for (cudaSurfaceObject_t s : surface)
		CK(cudaDestroySurfaceObject(s));
	CK(cudaFreeMipmappedArray(m));
	CK(cudaFree(out));
}

__global__ void by_table(const cudaTextureObject_t *table, int count, float *out)
{
	float s = 0;

	for (int i = 0; i < count; i++)
		s += tex2D<float>(table[(i + threadIdx.x) % count], threadIdx.x % W + 0.5f,
			     (float)(threadIdx.x / W % W) + 0.5f) *
		     (i + 1);
	out[threadIdx.x] = s;
}

static void tables(void)
{
	enum { COUNT = 12 };
	cudaChannelFormatDesc f = cudaCreateChannelDesc<float>();
	std::vector<float> v(W * W), got(W * W);
	cudaTextureObject_t o[COUNT], *table;
	cudaArray_t a[COUNT];
	float *out;

	for (int k = 0; k < COUNT; k++) {
		for (int i = 0; i < W * W; i++)
			v[i] = (float)(k * 1000 + i);
		CK(cudaMallocArray(&a[k], &f, W, W));
		CK(cudaMemcpy2DToArray(a[k], 0, 0, v.data(), W * 4, W * 4, W, cudaMemcpyHostToDevice));
		o[k] = texture_of(a[k], false);
	}
	CK(cudaMalloc(&table, sizeof(o)));
	CK(cudaMalloc(&out, W * W * 4));
	CK(cudaMemcpy(table, o, sizeof(o), cudaMemcpyHostToDevice));
	by_table<<<1, W * W>>>(table, COUNT, out);
	CK(cudaMemcpy(got.data(), out, W * W * 4, cudaMemcpyDeviceToHost));
	for (int i = 0; i < W * W; i++) {
		float want = 0;

		for (int k = 0; k < COUNT; k++)
			want += (float)((k + i) % COUNT * 1000 + i) * (float)(k + 1);
		close_to("table", (size_t)i, got[i], want, 1e-6);
	}
	puts("a table of textures");
	for (int k = 0; k < COUNT; k++) {
		CK(cudaDestroyTextureObject(o[k]));
		CK(cudaFreeArray(a[k]));
	}
	CK(cudaFree(table));
	CK(cudaFree(out));
}

__global__ void shifted(cudaTextureObject_t t, float *out, int dx, int dy)
{
	out[threadIdx.y * W + threadIdx.x] =
		tex2D<float>(t, (threadIdx.x + dx + 0.5f) / W, (threadIdx.y + dy + 0.5f) / W);
}

static void linear(void)
{
	std::vector<float> v(W * W), got(W * W);
	cudaResourceDesc r = {};
	cudaTextureDesc d = {};
	cudaTextureObject_t t;
	float *p, *out;
	size_t pitch;

	for (int i = 0; i < W * W; i++)
		v[i] = (float)i;
	CK(cudaMallocPitch(&p, &pitch, W * 4, W));
	CK(cudaMalloc(&out, W * W * 4));
	CK(cudaMemcpy2D(p, pitch, v.data(), W * 4, W * 4, W, cudaMemcpyHostToDevice));
	r.resType = cudaResourceTypePitch2D;
	r.res.pitch2D = {p, cudaCreateChannelDesc<float>(), W, W, pitch};
	d.normalizedCoords = 1;
	d.addressMode[0] = d.addressMode[1] = cudaAddressModeWrap;
	CK(cudaCreateTextureObject(&t, &r, &d, NULL));
	shifted<<<1, dim3(W, W)>>>(t, out, 5, 9);
	CK(cudaMemcpy(got.data(), out, W * W * 4, cudaMemcpyDeviceToHost));
	for (int i = 0; i < W * W; i++)
		if (got[i] != v[(i / W + 9) % W * W + (i % W + 5) % W])
			fail("linear memory, texel %d is %g", i, got[i]);
	puts("linear memory with a pitch");
	CK(cudaDestroyTextureObject(t));
	CK(cudaFree(p));
	CK(cudaFree(out));
}

int main(void)
{
	layers(cudaArrayLayered, LAYERS, "layers");
	layers(cudaArrayCubemap, 6, "cube");
	mipmaps();
	tables();
	linear();
	return pass();
}
