# SPDX-License-Identifier: Apache-2.0
# Taichi: its own compiler (LLVM) writes PTX and asks the driver for it. Arrays of the host, a sparse field,
# shared memory, double precision, a gradient, shuffles and its own sort and scan.
import numpy
import taichi as ti

ti.init(arch=ti.cuda, offline_cache=False, random_seed=1, log_level=ti.ERROR)
assert ti.cfg.arch == ti.cuda, "Taichi fell back to the CPU"
print("Taichi", ".".join(str(v) for v in ti.__version__))
rng = numpy.random.default_rng(1)


@ti.kernel
def multiply(a: ti.types.ndarray(), b: ti.types.ndarray(), c: ti.types.ndarray()):
    for i, j in ti.ndrange(48, 48):
        s = 0.0
        for k in range(48):
            s += a[i, k] * b[k, j]
        c[i, j] = s


a, b = rng.random((2, 48, 48), "f4")
c = numpy.zeros((48, 48), "f4")
multiply(a, b, c)
assert numpy.allclose(c, a @ b, rtol=1e-5), "product"

values = ti.field(ti.i32)
ti.root.pointer(ti.i, 64).dense(ti.i, 16).place(values)
total = ti.field(ti.i32, ())


@ti.kernel
def activate():
    for i in range(1024):
        if i % 100 == 0:
            values[i] = i


@ti.kernel
def add_active():
    for i in values:
        total[None] += values[i]


activate()
add_active()
assert total[None] == sum(range(0, 1024, 100)), "sparse field"

BLOCK = 128


@ti.kernel
def sums(x: ti.types.ndarray(), y: ti.types.ndarray()):
    ti.loop_config(block_dim=BLOCK)
    for i in range(8 * BLOCK):
        there = ti.simt.block.SharedArray((BLOCK,), ti.f32)
        twice = ti.simt.block.SharedArray((BLOCK,), ti.f32)
        there[i % BLOCK] = x[i]
        twice[i % BLOCK] = 2 * x[i]
        ti.simt.block.sync()
        s = 0.0
        for k in range(BLOCK):
            s += there[k] + twice[k]
        y[i] = s


x = numpy.arange(8 * BLOCK, dtype="f4")
y = numpy.zeros_like(x)
sums(x, y)
assert (y == numpy.repeat(3 * x.reshape(-1, BLOCK).sum(1), BLOCK)).all(), "shared memory"


@ti.kernel
def functions(x: ti.types.ndarray(), y: ti.types.ndarray()):
    for i in x:
        y[i] = ti.sin(x[i]) * ti.exp(-x[i]) + ti.sqrt(x[i]) + ti.log(x[i])


x = numpy.linspace(0.1, 5, 500)
y = numpy.zeros_like(x)
functions(x, y)
want = numpy.sin(x) * numpy.exp(-x) + numpy.sqrt(x) + numpy.log(x)
assert numpy.allclose(y, want, rtol=1e-12), "double precision"

place = ti.field(ti.f32, 16, needs_grad=True)
loss = ti.field(ti.f32, (), needs_grad=True)


@ti.kernel
def square():
    for i in place:
        loss[None] += place[i] ** 2


place.from_numpy(numpy.arange(16, dtype="f4"))
with ti.ad.Tape(loss):
    square()
assert (place.grad.to_numpy() == 2 * numpy.arange(16)).all(), "gradient"


@ti.kernel
def shift(x: ti.types.ndarray(), y: ti.types.ndarray()):
    ti.loop_config(block_dim=32)
    for i in range(32):
        y[i] = ti.simt.warp.shfl_down_i32(ti.u32(0xFFFFFFFF), x[i], 1)


x = rng.integers(0, 1000, 32).astype("i4")
y = numpy.zeros_like(x)
shift(x, y)
assert (y[:31] == x[1:]).all(), "shuffle"

keys = ti.field(ti.i32, 500)
keys.from_numpy(rng.permutation(500).astype("i4"))
ti.algorithms.parallel_sort(keys)
assert (keys.to_numpy() == numpy.arange(500)).all(), "sort"
print("PASS taichi")
