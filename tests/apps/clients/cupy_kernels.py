# SPDX-License-Identifier: Apache-2.0
# CuPy: a raw kernel and an elementwise kernel through NVRTC, and sums by CuPy's own CUB.
import os

os.environ["CUPY_COMPILE_WITH_PTX"] = "1"  # NVRTC gives PTX instead of machine code
os.environ["CUPY_CACHE_DIR"] = os.path.join(os.environ["CLIENT_DIR"], "cupy")
import cupy
import numpy

print(cupy.cuda.runtime.getDeviceProperties(0)["name"].decode(), "cupy", cupy.__version__)
source = r"""
extern "C" __global__ void add(const float *a, const float *b, float *c, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		c[i] = a[i] + b[i];
}"""
n = 10000
a = numpy.random.default_rng(1).random(n, dtype="f4")
b = numpy.random.default_rng(2).random(n, dtype="f4")
x, y = cupy.asarray(a), cupy.asarray(b)
z = cupy.empty(n, "f4")
cupy.RawKernel(source, "add")(((n + 255) // 256,), (256,), (x, y, z, numpy.int32(n)))
assert (cupy.asnumpy(z) == a + b).all(), "raw kernel"
square = cupy.ElementwiseKernel("float32 x, float32 y", "float32 z", "z = (x - y) * (x - y)", "square")
assert numpy.allclose(cupy.asnumpy(square(x, y)), (a - b) ** 2), "elementwise kernel"
assert numpy.allclose(float(x.sum()), a.sum(dtype="f8"), rtol=1e-5), "sum"
assert int(cupy.arange(n, dtype="i8").sum()) == n * (n - 1) // 2, "sum of integers"
assert numpy.array_equal(cupy.asnumpy(cupy.sort(x)), numpy.sort(a)), "sort"
print("PASS cupy")
