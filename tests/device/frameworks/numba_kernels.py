# SPDX-License-Identifier: Apache-2.0
# group: numba
# limit: 90
# numba-cuda: kernels in Python, with shared and local memory, atomics, warps, grids that synchronise, random
# numbers, streams, events, pinned, mapped and managed arrays, ufuncs, reductions, and errors.
import warnings

warnings.simplefilter("ignore")
from checks import *

if not gpu:
    skip("kernels for a GPU")
try:
    import numpy as np

    np.row_stack = getattr(np, "row_stack", np.vstack)  # numba-cuda asks for it, NumPy 2.5 has it no more
    from numba import cuda, float32, int32, types, vectorize
except ImportError as e:
    skip(e)
R = np.random.default_rng(25)


@section()
def vectors():
    @cuda.jit
    def axpy(a, x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] += a * x[i]

    x, y = R.random(10001).astype("f4"), R.random(10001).astype("f4")
    d = cuda.to_device(y)
    axpy[40, 256](np.float32(2), cuda.to_device(x), d)
    same("axpy", d.copy_to_host(), (y.astype("f8") + 2 * x.astype("f8")).astype("f4"))
    own = y.copy()
    axpy[40, 256](np.float32(2), x, own)
    same("with arrays of the host", own, d.copy_to_host())


@section()
def shared_memory():
    @cuda.jit
    def product(a, b, c):
        s, t = cuda.shared.array((16, 16), float32), cuda.shared.array((16, 16), float32)
        i, j = cuda.grid(2)
        total = float32(0)
        for k in range(a.shape[1] // 16):
            s[cuda.threadIdx.x, cuda.threadIdx.y] = a[i, k * 16 + cuda.threadIdx.y]
            t[cuda.threadIdx.x, cuda.threadIdx.y] = b[k * 16 + cuda.threadIdx.x, j]
            cuda.syncthreads()
            for l in range(16):
                total += s[cuda.threadIdx.x, l] * t[l, cuda.threadIdx.y]
            cuda.syncthreads()
        c[i, j] = total

    a, b = R.random((64, 96)).astype("f4"), R.random((96, 48)).astype("f4")
    c = cuda.device_array((64, 48), "f4")
    product[(4, 3), (16, 16)](cuda.to_device(a), cuda.to_device(b), c)
    close("product", c.copy_to_host(), a.astype("f8") @ b, 1e-5)

    @cuda.jit
    def reverse(x):
        s = cuda.shared.array(0, int32)
        s[cuda.threadIdx.x] = x[cuda.threadIdx.x]
        cuda.syncthreads()
        x[cuda.threadIdx.x] = s[cuda.blockDim.x - 1 - cuda.threadIdx.x]

    v = cuda.to_device(np.arange(128, dtype="i4"))
    reverse[1, 128, 0, 512](v)
    same("dynamic shared memory", v.copy_to_host(), np.arange(128)[::-1])


@section()
def atomics_and_warps():
    @cuda.jit
    def histogram(x, out):
        i = cuda.grid(1)
        if i < x.size:
            cuda.atomic.add(out, x[i], 1)

    x = R.integers(0, 50, 20000).astype("i4")
    out = cuda.to_device(np.zeros(50, "i4"))
    histogram[80, 256](cuda.to_device(x), out)
    same("histogram", out.copy_to_host(), np.bincount(x, minlength=50))

    @cuda.jit
    def warp_sum(x, out):
        v = x[cuda.threadIdx.x]
        step = 16
        while step:
            v += cuda.shfl_down_sync(0xFFFFFFFF, v, step)
            step //= 2
        if cuda.threadIdx.x == 0:
            out[0] = v
        cuda.atomic.max(out, 1, x[cuda.threadIdx.x])

    o = cuda.to_device(np.zeros(2, "i4"))
    warp_sum[1, 32](cuda.to_device(np.arange(32, dtype="i4")), o)
    same("warp", o.copy_to_host(), np.array([496, 31]))


@section()
def cooperative():
    @cuda.jit
    def rows(m):
        g = cuda.cg.this_grid()
        c = cuda.grid(1)
        for r in range(1, m.shape[0]):
            o = m.shape[1] - c - 1
            m[r, c] = m[r - 1, o] + 1
            g.sync()

    m = cuda.to_device(np.zeros((64, 512), "i4"))
    rows[4, 128](m)
    same("a grid that synchronises", m.copy_to_host(), np.tile(np.arange(64)[:, None], 512))


@section()
def random_numbers():
    from numba.cuda.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float32

    @cuda.jit
    def pi(states, n, out):
        i = cuda.grid(1)
        inside = 0
        for _ in range(n):
            x, y = xoroshiro128p_uniform_float32(states, i), xoroshiro128p_uniform_float32(states, i)
            if x * x + y * y <= 1:
                inside += 1
        out[i] = inside

    out = cuda.device_array(64 * 24, "i4")
    pi[24, 64](create_xoroshiro128p_states(64 * 24, seed=1), 1000, out)
    bits("xoroshiro", out.copy_to_host())
    number("pi", 4 * out.copy_to_host().mean() / 1000, 1e-9)


@section()
def streams_and_memory():
    @cuda.jit
    def plus(x, v):
        i = cuda.grid(1)
        if i < x.size:
            x[i] += v

    s = cuda.stream()
    h = cuda.pinned_array(5000, "i4")
    h[:] = np.arange(5000)
    a, b = cuda.event(), cuda.event()
    a.record(s)
    d = cuda.to_device(h, stream=s)
    for _ in range(4):
        plus[20, 256, s](d, 1)
    d.copy_to_host(h, stream=s)
    b.record(s)
    s.synchronize()
    same("a stream with pinned memory", h, np.arange(5000) + 4)
    holds("a time", cuda.event_elapsed_time(a, b) > 0)
    m = cuda.managed_array(1000, "i4")
    m[:] = np.arange(1000)
    plus[4, 256](m, 5)
    cuda.synchronize()
    same("managed array", m, np.arange(1000) + 5)
    p = cuda.mapped_array(1000, "i4")
    p[:] = 3
    plus[4, 256](p, 5)
    cuda.synchronize()
    same("mapped array", p, np.full(1000, 8))
    with cuda.defer_cleanup():
        for _ in range(50):
            cuda.to_device(np.zeros(1000))
    info = cuda.current_context().get_memory_info()
    say("total", info.total)


@section()
def functions():
    @vectorize(["float32(float32, float32)"], target="cuda")
    def distance(x, y):
        return (x * x + y * y) ** float32(0.5)

    x, y = R.random(3000).astype("f4"), R.random(3000).astype("f4")
    close("ufunc", distance(x, y), np.sqrt(x * x + y * y), 1e-5)
    total = cuda.reduce(lambda a, b: a + b)
    say("reduction", int(total(np.arange(100000, dtype="i8"))))

    @cuda.jit(device=True)
    def square(v):
        return v * v

    @cuda.jit
    def use(x):
        i = cuda.grid(1)
        local = cuda.local.array(4, types.int64)
        for k in range(4):
            local[k] = square(x[i] + k)
        x[i] = local[0] + local[1] + local[2] + local[3]

    v = cuda.to_device(np.arange(64, dtype="i8"))
    use[1, 64](v)
    n = np.arange(64)
    same("device function and local memory", v.copy_to_host(), sum((n + k) ** 2 for k in range(4)))


@section()
def errors():
    @cuda.jit(debug=True, opt=False)
    def raises(x):
        if x[cuda.threadIdx.x] == 3:
            raise ValueError("three")

    try:
        raises[1, 8](cuda.to_device(np.arange(8)))
        fault("an exception in a kernel", "was not raised")
    except ValueError as e:
        say("an exception in a kernel", str(e).split(":")[-1].strip())
    try:
        cuda.device_array(1 << 42, "u1")
        fault("out of memory", "did not raise")
    except Exception as e:
        say("out of memory", "OUT_OF_MEMORY" in str(e).upper() or type(e).__name__)


done()
