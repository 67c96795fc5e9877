# SPDX-License-Identifier: Apache-2.0
# numba-cuda: a kernel in Python. Its linker makes machine code; here it is asked for the linked PTX instead.
import warnings

warnings.simplefilter("ignore")
import numba_cuda
import numpy
from numba import cuda
from numba.cuda.cudadrv import driver


def linked_ptx(linker):
    linker.linker = driver.Linker(*linker._object_codes, options=linker._get_linker_options(ptx=True))
    result = linker.linker.link("ptx")
    linker.close()
    linker._complete = True
    return result


driver._Linker.complete = linked_ptx


@cuda.jit
def add(a, b, c):
    i = cuda.grid(1)
    if i < c.size:
        c[i] = a[i] + b[i]


@cuda.jit
def total(a, out):
    i = cuda.grid(1)
    part = cuda.shared.array(128, "i4")
    part[cuda.threadIdx.x] = a[i] if i < a.size else 0
    cuda.syncthreads()
    step = 64
    while step:
        if cuda.threadIdx.x < step:
            part[cuda.threadIdx.x] += part[cuda.threadIdx.x + step]
        cuda.syncthreads()
        step //= 2
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(out, 0, part[0])


print(cuda.get_current_device().name, "numba-cuda", numba_cuda.__version__)
n = 10000
a = numpy.random.default_rng(1).random(n, dtype="f4")
b = numpy.random.default_rng(2).random(n, dtype="f4")
c = cuda.device_array(n, "f4")
add[(n + 255) // 256, 256](cuda.to_device(a), cuda.to_device(b), c)
assert (c.copy_to_host() == a + b).all(), "add"
v = numpy.arange(n, dtype="i4")
out = cuda.to_device(numpy.zeros(1, "i4"))
total[(n + 127) // 128, 128](cuda.to_device(v), out)
assert out.copy_to_host()[0] == v.sum(), "sum in shared memory"
print("PASS numba")
