# SPDX-License-Identifier: Apache-2.0
# Loads NVIDIA's libraries and uses each once, so that tests/device/leaks.sh can see what is left when the
# process has ended.
#
#     leaks.py libraries|frameworks [FILE]
#
# `libraries`: the runtime, cuBLAS, cuFFT, cuSOLVER, cuSPARSE, cuRAND, cuDNN, NCCL, NVRTC and NVML by ctypes.
# `frameworks`: those of PyTorch, Triton's by torch.compile, CuPy and JAX in one process. With FILE it goes
# on using them after the first time, which it tells by making that file, and ends only when it is killed.
import ctypes
import glob
import os
import sys
import time

P = ctypes.c_void_p


def folders():
    yield "/usr/local/cuda/lib64"
    for path in sys.path:
        yield from glob.glob(os.path.join(path, "nvidia", "*", "lib"))


def library(name):
    """By its path, in an order in which what it needs is loaded already; None where it is not installed."""
    for folder in folders():
        for path in sorted(glob.glob(os.path.join(folder, f"lib{name}.so.[0-9]*"))):
            return ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
    return None


def right(name, code):
    if code and not software:
        sys.exit(f"{name} answers {code}")


def libraries():
    used = []

    def use(name):
        lib = library(name)
        if lib:
            used.append(name)
        return lib

    def handle(lib, create, destroy, between=None):
        h = P()
        right(create, getattr(lib, create)(ctypes.byref(h)))
        if h and between:
            between(h)
        if h:
            right(destroy, getattr(lib, destroy)(h))

    runtime = use("cudart")
    memory = P()
    right("cudaMalloc", runtime.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(64 << 20)))
    pinned = P()
    right("cudaMallocHost", runtime.cudaMallocHost(ctypes.byref(pinned), ctypes.c_size_t(4 << 20)))
    right("cudaMemcpy", runtime.cudaMemcpy(memory, pinned, ctypes.c_size_t(4 << 20), 1))
    one, n = ctypes.c_float(1), ctypes.c_int(256)
    use("nvJitLink")
    use("cublasLt")
    if blas := use("cublas"):
        handle(blas, "cublasCreate_v2", "cublasDestroy_v2",
               lambda h: right("cublasSgemm", blas.cublasSgemm_v2(
            h, 0, 0, n, n, n, ctypes.byref(one), memory, n, memory, n, ctypes.byref(one),
            P(memory.value + (32 << 20)), n)))
    if fft := use("cufft"):
        plan = ctypes.c_int()
        right("cufftPlan1d", fft.cufftPlan1d(ctypes.byref(plan), 1000, 0x29, 4))
        right("cufftExecC2C", fft.cufftExecC2C(plan, memory, memory, -1))
        right("cufftDestroy", fft.cufftDestroy(plan))
    if sparse := use("cusparse"):
        handle(sparse, "cusparseCreate", "cusparseDestroy")
    if solver := use("cusolver"):
        handle(solver, "cusolverDnCreate", "cusolverDnDestroy")
    if rand := use("curand"):
        g = P()
        right("curandCreateGenerator", rand.curandCreateGenerator(ctypes.byref(g), 161))
        right("curandGenerateUniform", rand.curandGenerateUniform(g, memory, ctypes.c_size_t(100000)))
        right("curandDestroyGenerator", rand.curandDestroyGenerator(g))
    if dnn := use("cudnn"):
        handle(dnn, "cudnnCreate", "cudnnDestroy")
    if nccl := use("nccl"):
        communicator, device = P(), ctypes.c_int(0)
        code = nccl.ncclCommInitAll(ctypes.byref(communicator), 1, ctypes.byref(device))
        right("ncclCommInitAll", code)
        if not code:
            right("ncclAllReduce",
                  nccl.ncclAllReduce(memory, memory, ctypes.c_size_t(1000), 7, 0, communicator, None))
            right("cudaDeviceSynchronize", runtime.cudaDeviceSynchronize())
            right("ncclCommDestroy", nccl.ncclCommDestroy(communicator))
    if rtc := use("nvrtc"):
        program = P()
        right("nvrtcCreateProgram",
            rtc.nvrtcCreateProgram(ctypes.byref(program), b"__global__ void k() {}", b"k.cu", 0, None, None))
        right("nvrtcCompileProgram", rtc.nvrtcCompileProgram(program, 0, None))
        right("nvrtcDestroyProgram", rtc.nvrtcDestroyProgram(ctypes.byref(program)))
    ml = ctypes.CDLL("libnvidia-ml.so.1")
    used.append("nvml")
    right("nvmlInit", ml.nvmlInit_v2())
    right("nvmlDeviceGetCount", ml.nvmlDeviceGetCount_v2(ctypes.byref(ctypes.c_uint())))
    right("nvmlShutdown", ml.nvmlShutdown())
    right("cudaDeviceSynchronize", runtime.cudaDeviceSynchronize())
    # What is left allocated is for the end of the process to free: this is what is looked at.
    return used


def frameworks():
    used = []
    # Else as many processes as there are processors, each time.
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    import torch

    x = torch.randn(512, 512, device="cuda")
    torch.nn.functional.conv2d(torch.ones(1, 3, 32, 32, device="cuda"), torch.ones(4, 3, 3, 3, device="cuda"))
    torch.linalg.svd(x[:64, :64])
    torch.fft.fft(x.half() @ x.half())
    torch.compile(lambda a: torch.softmax(a * 2 + 1, -1))(x)
    torch.cuda.synchronize()
    used.append("torch")
    try:
        import cupy

        y = cupy.arange(100000, dtype="f4")
        float((y * 2).sum() + cupy.linalg.norm(cupy.fft.fft(y)))
        used.append("cupy")
    except ImportError:
        pass
    try:
        os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
        import jax

        jax.jit(lambda a: (a @ a).sum())(jax.numpy.ones((256, 256))).block_until_ready()
        used.append("jax")
    except ImportError:
        pass
    return used


runtime = library("cudart")
name = ctypes.create_string_buffer(4096)
software = not runtime.cudaGetDeviceProperties(name, 0) and b"software" in name.raw
work = {"libraries": libraries, "frameworks": frameworks}[sys.argv[1]]
print(*work())
while len(sys.argv) > 2:
    open(sys.argv[2], "w").close()
    work()
    time.sleep(0.01)
