# SPDX-License-Identifier: Apache-2.0
# group: extension
# limit: 200
# A CUDA extension of one's own, compiled by torch.utils.cpp_extension with nvcc and loaded: a kernel with
# shared memory and atomics, on the current stream, and an operator with a gradient that uses it. What is
# compiled is kept in FRAMEWORKS_CACHE, so that a second run finds it.
import os
import shutil
import tempfile
from checks import *

if not gpu or not (shutil.which("nvcc") and shutil.which("ninja")):
    skip("needs a GPU, nvcc and ninja")
os.environ["TORCH_CUDA_ARCH_LIST"] = "9.0"
os.environ["MAX_JOBS"] = "4"
import torch
from torch.utils.cpp_extension import load_inline

folder = os.environ.get("FRAMEWORKS_CACHE") or tempfile.mkdtemp()
CPP = """
#include <torch/types.h>
torch::Tensor squares(torch::Tensor x);
torch::Tensor histogram(torch::Tensor x, int64_t bins);
"""
CUDA = """
#include <torch/types.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

__global__ void squares_kernel(const float *x, float *y, int64_t n)
{
	int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
	if (i < n)
		y[i] = x[i] * x[i];
}

torch::Tensor squares(torch::Tensor x)
{
	auto y = torch::empty_like(x);
	cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
	squares_kernel<<<(x.numel() + 255) / 256, 256, 0, stream>>>(
		x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
	C10_CUDA_KERNEL_LAUNCH_CHECK();
	return y;
}

__global__ void histogram_kernel(const int *x, int *out, int64_t n, int bins)
{
	extern __shared__ int part[];
	for (int i = threadIdx.x; i < bins; i += blockDim.x)
		part[i] = 0;
	__syncthreads();
	int64_t first = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
	for (int64_t i = first; i < n; i += (int64_t)gridDim.x * blockDim.x)
		atomicAdd(&part[x[i]], 1);
	__syncthreads();
	for (int i = threadIdx.x; i < bins; i += blockDim.x)
		atomicAdd(&out[i], part[i]);
}

torch::Tensor histogram(torch::Tensor x, int64_t bins)
{
	auto out = torch::zeros({bins}, x.options());
	cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
	histogram_kernel<<<32, 128, bins * sizeof(int), stream>>>(
		x.data_ptr<int>(), out.data_ptr<int>(), x.numel(), bins);
	C10_CUDA_KERNEL_LAUNCH_CHECK();
	return out;
}
"""


@section()
def extension():
    path = os.path.join(folder, "extension")
    os.makedirs(path, exist_ok=True)
    module = load_inline("frameworks_extension", CPP, CUDA, functions=["squares", "histogram"],
                         build_directory=path)
    x = torch.randn(10007, generator=torch.Generator().manual_seed(1))
    same("squares", module.squares(x.cuda()), x * x)
    i = torch.randint(0, 100, (50000,), generator=torch.Generator().manual_seed(2), dtype=torch.int32)
    same("histogram", module.histogram(i.cuda(), 100), i.bincount(minlength=100))
    s = torch.cuda.Stream()
    with torch.cuda.stream(s):
        y = module.squares(x.cuda())
    s.synchronize()
    same("on a stream", y, x * x)

    class Squares(torch.autograd.Function):
        @staticmethod
        def forward(context, v):
            context.save_for_backward(v)
            return module.squares(v)

        @staticmethod
        def backward(context, g):
            return 2 * g * context.saved_tensors[0]

    v = x.cuda().requires_grad_()
    Squares.apply(v).sum().backward()
    same("gradient", v.grad, 2 * x)
    g = torch.cuda.CUDAGraph()
    u = torch.ones(100, device="cuda")
    with torch.cuda.graph(g):
        w = module.squares(u)
    u.fill_(3)
    g.replay()
    same("in a graph", w, torch.full((100,), 9.0))


done()
