// SPDX-License-Identifier: Apache-2.0
// Arrays, textures and surfaces: 1D, 2D and 3D arrays filled and read back by copies, texture objects with
// point and linear filtering and every address mode against a model on the host, a surface written by a
// kernel.
#include "app.h"

enum { W = 37, H = 21, D = 5 };

__global__ void fetch(cudaTextureObject_t t, const float2 *at, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		out[i] = tex2D<float>(t, at[i].x, at[i].y);
}

__global__ void fetch_linear(cudaTextureObject_t t, int *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		out[i] = tex1Dfetch<int>(t, n - 1 - i);
}

__global__ void draw(cudaSurfaceObject_t s)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;

	if (x < W && y < H)
		surf2Dwrite<float>(y * 1000 + x, s, x * 4, y);
}

static int bring_in(int i, int n, cudaTextureAddressMode mode)
{
	switch (mode) {
	case cudaAddressModeClamp: return i < 0 ? 0 : i >= n ? n - 1 : i;
	case cudaAddressModeBorder: return i < 0 || i >= n ? -1 : i;
	case cudaAddressModeWrap: return ((i % n) + n) % n;
	default:
		i = ((i % (2 * n)) + 2 * n) % (2 * n);
		return i < n ? i : 2 * n - 1 - i;
	}
}

static float texel(const float *p, int x, int y, cudaTextureAddressMode mode)
{
	x = bring_in(x, W, mode);
	y = bring_in(y, H, mode);
	return x < 0 || y < 0 ? 0 : p[y * W + x];
}

int main(void)
{
	enum { N = 2000 };
	static float img[H * W], got[H * W], out[N];
	static float2 at[N];
	static unsigned char vol[W * H * D], vback[W * H * D];
	static int line[777], reversed[777];
	cudaChannelFormatDesc format = cudaCreateChannelDesc<float>(),
			bytes = cudaCreateChannelDesc<unsigned char>();
	cudaArray_t array, box;
	cudaResourceDesc res = {};
	cudaTextureDesc desc = {};
	cudaTextureObject_t t;
	cudaSurfaceObject_t s;
	cudaMemcpy3DParms c = {};
	float2 *dat;
	float *dout;
	int *dline;
	uint32_t seed = 23;
	cudaError_t r;

	for (int i = 0; i < W * H; i++)
		img[i] = (float)(noise(&seed) % 1024);
	r = cudaMallocArray(&array, &format, W, H, cudaArraySurfaceLoadStore);
	if (r == cudaErrorNotSupported)
		skip("no arrays");
	CK(r);
	CK(cudaMemcpy2DToArray(array, 0, 0, img, W * 4, W * 4, H, cudaMemcpyHostToDevice));
	CK(cudaMemcpy2DFromArray(got, W * 4, array, 0, 0, W * 4, H, cudaMemcpyDeviceToHost));
	same_bytes("2D array", got, img, sizeof(img));

	CK(cudaMalloc(&dat, sizeof(at)));
	CK(cudaMalloc(&dout, sizeof(out)));
	res.resType = cudaResourceTypeArray;
	res.res.array.array = array;
	for (int mode = 0; mode < 4; mode++)
		for (int linear = 0; linear < 2; linear++) {
			bool unit = mode == cudaAddressModeWrap || mode == cudaAddressModeMirror;

			memset(&desc, 0, sizeof(desc));
			desc.addressMode[0] = desc.addressMode[1] = (cudaTextureAddressMode)mode;
			desc.filterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
			desc.normalizedCoords = unit;
			CK(cudaCreateTextureObject(&t, &res, &desc, NULL));
			for (int i = 0; i < N; i++) {
				/* Eighths away from the borders of texels: no rounding question. */
				float x = (int)(noise(&seed) % (3 * W)) - W;
				float y = (int)(noise(&seed) % (3 * H)) - H;

				x += (float)(1 + 2 * (noise(&seed) % 4)) / 8;
				y += (float)(1 + 2 * (noise(&seed) % 4)) / 8;

				at[i] = unit ? make_float2(x / W, y / H) : make_float2(x, y);
				if (unit && linear)
					at[i] = make_float2((floorf(x) + 0.5f) / W, (floorf(y) + 0.5f) / H);
				got[0] = 0;
				out[i] = 0;
			}
			CK(cudaMemcpy(dat, at, sizeof(at), cudaMemcpyHostToDevice));
			fetch<<<(N + 127) / 128, 128>>>(t, dat, dout, N);
			CK(cudaMemcpy(out, dout, sizeof(out), cudaMemcpyDeviceToHost));
			for (int i = 0; i < N; i++) {
				cudaTextureAddressMode m = (cudaTextureAddressMode)mode;
				float x = unit ? at[i].x * W : at[i].x, y = unit ? at[i].y * H : at[i].y,
						want;
				int xi = (int)floorf(x), yi = (int)floorf(y);

				if (!linear || unit) {
					want = texel(img, xi, yi, m);
				} else {
					int xb = (int)floorf(x - 0.5f), yb = (int)floorf(y - 0.5f);
					float a = x - 0.5f - xb, b = y - 0.5f - yb;

					want = (1 - a) * (1 - b) * texel(img, xb, yb,
							m) + a * (1 - b) * texel(img, xb + 1, yb, m) +
					       (1 - a) * b * texel(img, xb, yb + 1, m) + a * b * texel(img,
							xb + 1, yb + 1, m);
				}
				if (fabsf(out[i] - want) > (linear ? 8.0f : 0.0f)) /* weights have 8 bits */
					fail("mode %d %s at %g,%g: %g, expected %g", mode, linear ? "linear"
							: "point", x, y, out[i], want);
			}
			CK(cudaDestroyTextureObject(t));
		}

	CK(cudaCreateSurfaceObject(&s, &res));
	draw<<<dim3((W + 15) / 16, (H + 15) / 16), dim3(16, 16)>>>(s);
	CK(cudaMemcpy2DFromArray(got, W * 4, array, 0, 0, W * 4, H, cudaMemcpyDeviceToHost));
	for (int i = 0; i < W * H; i++)
		if (got[i] != (float)(i / W * 1000 + i % W))
			fail("surface: %d,%d is %g", i % W, i / W, got[i]);
	CK(cudaDestroySurfaceObject(s));

	for (int i = 0; i < 777; i++)
		line[i] = i * i;
	CK(cudaMalloc(&dline, sizeof(line)));
	CK(cudaMemcpy(dline, line, sizeof(line), cudaMemcpyHostToDevice));
	memset(&res, 0, sizeof(res));
	res.resType = cudaResourceTypeLinear;
	res.res.linear.devPtr = dline;
	res.res.linear.desc = cudaCreateChannelDesc<int>();
	res.res.linear.sizeInBytes = sizeof(line);
	memset(&desc, 0, sizeof(desc));
	desc.readMode = cudaReadModeElementType;
	CK(cudaCreateTextureObject(&t, &res, &desc, NULL));
	fetch_linear<<<7, 128>>>(t, (int *)dout, 777);
	CK(cudaMemcpy(reversed, dout, sizeof(reversed), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 777; i++)
		if (reversed[i] != line[776 - i])
			fail("linear texture: element %d is %d", i, reversed[i]);
	CK(cudaDestroyTextureObject(t));

	noise_fill(vol, sizeof(vol), 3);
	CK(cudaMalloc3DArray(&box, &bytes, make_cudaExtent(W, H, D)));
	c.srcPtr = make_cudaPitchedPtr(vol, W, W, H);
	c.dstArray = box;
	c.extent = make_cudaExtent(W, H, D);
	c.kind = cudaMemcpyHostToDevice;
	CK(cudaMemcpy3D(&c));
	memset(&c, 0, sizeof(c));
	c.srcArray = box;
	c.dstPtr = make_cudaPitchedPtr(vback, W, W, H);
	c.extent = make_cudaExtent(W, H, D);
	c.kind = cudaMemcpyDeviceToHost;
	CK(cudaMemcpy3D(&c));
	same_bytes("3D array", vback, vol, sizeof(vol));
	CK(cudaFreeArray(array));
	CK(cudaFreeArray(box));
	CK(cudaFree(dat));
	CK(cudaFree(dout));
	CK(cudaFree(dline));
	return pass();
}
