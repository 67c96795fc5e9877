# SPDX-License-Identifier: Apache-2.0
# cuda.core and cuda.bindings, NVIDIA's own way to CUDA from Python: a program compiled and launched,
# stream-ordered and pinned memory, events, a captured graph, and what a device of PTX refuses.
import warnings

import numpy
from cuda.bindings import driver

warnings.simplefilter("ignore")  # that the compiler is newer than the driver
import cuda.core as cc

device = cc.Device(0)
device.set_current()
stream = device.create_stream()
print(device.name, "cuda.core", cc.__version__)

SOURCE = """
template <typename T> __global__ void saxpy(T a, const T *x, const T *y, T *out, size_t n)
{
	for (size_t i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x)
		out[i] = a * x[i] + y[i];
}
"""
program = cc.Program(SOURCE, code_type="c++", options=cc.ProgramOptions(std="c++17", arch="compute_75"))
module = program.compile("ptx", name_expressions=("saxpy<float>", "saxpy<double>"))


def check(result):
    assert result[0] == driver.CUresult.CUDA_SUCCESS, result
    return result[1:]


def array(buffer, kind, n):
    return numpy.from_dlpack(buffer).view(kind)[:n]


n = 10000
config = cc.LaunchConfig(grid=16, block=256)
host = cc.LegacyPinnedMemoryResource()
for name, kind in ("saxpy<float>", numpy.float32), ("saxpy<double>", numpy.float64):
    bytes_ = n * numpy.dtype(kind).itemsize
    x, y, out = (device.allocate(bytes_, stream=stream) for _ in range(3))
    pinned = host.allocate(bytes_, stream=stream)
    stream.sync()
    values = array(pinned, kind, n)
    values[:] = numpy.arange(n)
    x.copy_from(pinned, stream=stream)
    y.copy_from(pinned, stream=stream)
    begin = stream.record()
    cc.launch(stream, config, module.get_kernel(name), kind(3), x, y, out, numpy.uint64(n))
    end = stream.record()
    out.copy_to(pinned, stream=stream)
    stream.sync()
    assert (values == 4 * numpy.arange(n)).all(), name
    assert begin.is_done and end.is_done
    builder = device.create_graph_builder()
    builder.begin_building()
    for _ in range(3):
        cc.launch(builder, config, module.get_kernel(name), kind(2), x, out, out, numpy.uint64(n))
    graph = builder.end_building().complete()
    graph.launch(stream)
    graph.launch(stream)
    out.copy_to(pinned, stream=stream)
    stream.sync()
    assert (values == 16 * numpy.arange(n)).all(), "graph"
    for b in x, y, out, pinned:
        b.close(stream)

free, total = check(driver.cuMemGetInfo())
assert 0 < free <= total
assert driver.cuMemFree(4096)[0] == driver.CUresult.CUDA_ERROR_INVALID_VALUE
assert driver.cuEventQuery(driver.CUevent(12345))[0] == driver.CUresult.CUDA_ERROR_INVALID_HANDLE
if "software" in device.name:
    try:
        cc.Program(SOURCE, code_type="c++", options=cc.ProgramOptions(std="c++17", arch="sm_75")).compile(
            "cubin", name_expressions=("saxpy<float>",)
        ).get_kernel("saxpy<float>")
    except Exception as e:
        assert "CUDA_ERROR_NO_BINARY_FOR_GPU" in str(e), e
    else:
        raise AssertionError("machine code was taken")
print("PASS core")
