# SPDX-License-Identifier: Apache-2.0
# group: cupy
# limit: 100
# CuPy itself: elementwise and reduction kernels, raw kernels and modules (with constants, templates, shared
# memory), fusion, its memory pools, pinned and managed memory, streams, events, graphs, textures, and values
# out to NumPy and PyTorch.
import os
import tempfile

cache = tempfile.TemporaryDirectory()
os.environ["CUPY_CACHE_DIR"] = cache.name
from checks import *

if not gpu:
    skip("CuPy has no CPU")
try:
    import cupy as cp
    import numpy as np
except ImportError as e:
    skip(e)
R = np.random.default_rng(23)
note(f"cupy {cp.__version__}")


@section()
def device():
    p = cp.cuda.runtime.getDeviceProperties(0)
    say("name", p["name"].decode())
    say("multiprocessors", p["multiProcessorCount"])
    say("compute capability", cp.cuda.Device(0).compute_capability)
    say("driver", cp.cuda.runtime.driverGetVersion())


@section()
def arrays():
    a = R.standard_normal((200, 300)).astype("f4")
    x = cp.asarray(a)
    close("arithmetic", cp.sin(x) * 2 + cp.exp(-x * x), np.sin(a) * 2 + np.exp(-a * a), 1e-5)
    close("sum", x.sum(1), a.sum(1, dtype="f8"), 1e-4)
    close("mean, deviation", cp.stack([x.mean(), x.std()]), np.stack([a.mean(dtype="f8"), a.std(dtype="f8")]),
          1e-5)
    same("maximum", x.max(0), a.max(0))
    same("sort", cp.sort(x, 1), np.sort(a, 1))
    same("argsort", cp.argsort(x[0]), np.argsort(a[0]))
    same("where", cp.where(x > 0, x, 0), np.where(a > 0, a, 0))
    same("by mask", x[x > 1], a[a > 1])
    i = R.integers(0, 200, 500)
    same("by index", x[cp.asarray(i)], a[i])
    same("unique", cp.unique(cp.asarray(i)), np.unique(i))
    same("bincount", cp.bincount(cp.asarray(i)), np.bincount(i))
    close("cumsum", cp.cumsum(x, 1), np.cumsum(a, 1, dtype="f8"), 1e-4)
    same("transposed copy", cp.ascontiguousarray(x.T), a.T)
    s = cp.zeros(200, "i8")
    cp.add.at(s, cp.asarray(i), 1)
    same("scatter", s, np.bincount(i, minlength=200))


@section()
def kernels():
    a, b = R.random(5000).astype("f4"), R.random(5000).astype("f4")
    x, y = cp.asarray(a), cp.asarray(b)
    f = cp.ElementwiseKernel("T x, T y", "T z", "z = (x - y) * (x - y)", "squared_difference")
    close("elementwise", f(x, y), (a - b) ** 2, 1e-6)
    f = cp.ReductionKernel("T x, T y", "T z", "x * y", "a + b", "z = a", "0", "dot")
    close("reduction", f(x, y), (a.astype("f8") * b).sum(), 1e-5)

    @cp.fuse()
    def fused(u, v):
        return cp.sqrt(u * u + v * v) + 1

    close("fused", fused(x, y), np.sqrt(a * a + b * b) + 1, 1e-6)
    vectorized = cp.vectorize(lambda u, v: u * v + 2)
    close("vectorized", vectorized(x, y), a * b + 2, 1e-6)


@section()
def raw():
    source = r"""
    __constant__ float factors[4];
    extern "C" __global__ void scale(const float *x, float *y, int n)
    {
        __shared__ float tile[128];
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        tile[threadIdx.x] = i < n ? x[i] : 0;
        __syncthreads();
        if (i < n)
            y[i] = tile[threadIdx.x] * factors[i % 4];
    }
    template <typename T> __global__ void twice(T *x, int n)
    {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n)
            x[i] += x[i];
    }
    """
    a = R.random(1000).astype("f4")
    for backend in ("nvrtc", "nvcc"):
        if backend == "nvcc" and not cp.cuda.get_nvcc_path():
            continue
        names = ("twice<int>", "twice<double>") if backend == "nvrtc" else None
        module = cp.RawModule(code=source, backend=backend, options=("-std=c++17",), name_expressions=names)
        y = cp.zeros(1000, "f4")
        f = module.get_function("scale")
        factors = cp.ndarray((4,), "f4", module.get_global("factors"))
        factors[:] = cp.asarray([1, 2, 3, 4], "f4")
        f((8,), (128,), (cp.asarray(a), y, np.int32(1000)))
        same(f"raw module by {backend}", y, a * np.tile(np.array([1, 2, 3, 4], "f4"), 250))
        if not names:
            continue
        i = cp.arange(1000, dtype="i4")
        module.get_function("twice<int>")((8,), (128,), (i, np.int32(1000)))
        same(f"template by {backend}", i, np.arange(1000) * 2)
    try:
        cp.RawKernel("extern \"C\" __global__ void bad() { nothing; }", "bad").compile()
        fault("a kernel that does not compile", "was accepted")
    except cp.cuda.compiler.CompileException:
        say("a kernel that does not compile", "raises")


@section()
def memory():
    pool = cp.get_default_memory_pool()
    x = cp.zeros(1 << 20, "u1")
    used = pool.used_bytes()
    del x
    say("freed to the pool", used - pool.used_bytes())
    pool.free_all_blocks()
    say("kept", pool.total_bytes() >= pool.used_bytes())
    with cp.cuda.using_allocator(cp.cuda.MemoryAsyncPool().malloc):
        same("stream-ordered pool", cp.arange(1000) * 2, np.arange(1000) * 2)
    with cp.cuda.using_allocator(cp.cuda.malloc_managed):
        m = cp.arange(1000, dtype="i8")
        m *= 3
        cp.cuda.Device().synchronize()
        same("managed memory", m, np.arange(1000) * 3)
    try:
        cp.empty(1 << 42, "u1")
        fault("out of memory", "did not raise")
    except cp.cuda.memory.OutOfMemoryError:
        say("out of memory", "raises")
    p = cp.cuda.alloc_pinned_memory(8000)
    h = np.frombuffer(p, "f8", 1000)
    h[:] = np.arange(1000)
    d = cp.empty(1000)
    d.set(h)
    same("pinned memory", d, h)
    free, total = cp.cuda.runtime.memGetInfo()
    say("total", total)


@section()
def streams_and_graphs():
    s, t = cp.cuda.Stream(non_blocking=True), cp.cuda.Stream(non_blocking=True)
    with s:
        x = cp.arange(100000, dtype="f8")
        for _ in range(10):
            x = x * 2
        e = s.record()
    t.wait_event(e)
    with t:
        y = x + 1
    t.synchronize()
    same("two streams", y, np.arange(100000.0) * 1024 + 1)
    a, b = cp.cuda.Event(), cp.cuda.Event()
    a.record(s)
    with s:
        cp.sin(x)
    b.record(s)
    b.synchronize()
    holds("a time", cp.cuda.get_elapsed_time(a, b) >= 0)
    called = []
    s.launch_host_func(lambda v: called.append(v), 7)
    s.synchronize()
    say("host function", called)
    x = cp.zeros(1000)
    f = cp.ElementwiseKernel("float64 v", "float64 w", "w = v + 1", "plus_one")
    with s:
        f(x, x)
        s.synchronize()
        s.begin_capture()
        f(x, x)
        f(x, x)
        g = s.end_capture()
        for _ in range(5):
            g.launch(s)
    s.synchronize()
    same("graph", x, np.full(1000, 11.0))


@section()
def texture():
    a = R.random((16, 16)).astype("f4")
    channel = cp.cuda.texture.ChannelFormatDescriptor(32, 0, 0, 0, cp.cuda.runtime.cudaChannelFormatKindFloat)
    array = cp.cuda.texture.CUDAarray(channel, 16, 16)
    array.copy_from(cp.asarray(a))
    resource = cp.cuda.texture.ResourceDescriptor(cp.cuda.runtime.cudaResourceTypeArray, cuArr=array)
    clamp = cp.cuda.runtime.cudaAddressModeClamp
    how = cp.cuda.texture.TextureDescriptor((clamp, clamp), cp.cuda.runtime.cudaFilterModePoint,
                                            cp.cuda.runtime.cudaReadModeElementType)
    texture = cp.cuda.texture.TextureObject(resource, how)
    k = cp.RawKernel(r"""extern "C" __global__ void fetch(cudaTextureObject_t t, float *o)
    {
        o[threadIdx.y * 16 + threadIdx.x] = tex2D<float>(t, threadIdx.x + 0.5f, threadIdx.y + 0.5f);
    }""", "fetch")
    o = cp.zeros((16, 16), "f4")
    k((1,), (16, 16), (texture, o))
    same("texture", o, a)


@section()
def exchange():
    try:
        import torch
    except ImportError:
        return note("no torch")
    t = torch.arange(1000.0, device="cuda")
    x = cp.from_dlpack(t)
    x *= 2
    cp.cuda.Device().synchronize()
    same("one memory for CuPy and PyTorch", t.cpu().numpy(), np.arange(1000.0) * 2)
    same("the other way", torch.from_dlpack(cp.arange(10)).cpu().numpy(), np.arange(10))


cache.cleanup()
done()
