# SPDX-License-Identifier: Apache-2.0
# group: cupy
# limit: 100
# NVIDIA's libraries by way of CuPy: cuBLAS, cuSOLVER, cuFFT, cuSPARSE (SpGEMM too), cuRAND, CUB, and the
# parts of SciPy that stand on them.
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
R = np.random.default_rng(24)
put = cp.asarray


@section()
def products():
    for dtype, tolerance in (("f4", 1e-4), ("f8", 1e-12), ("f2", 5e-3), ("c16", 1e-12)):
        a, b = R.standard_normal((120, 80)).astype(dtype), R.standard_normal((80, 100)).astype(dtype)
        wide = "c16" if dtype == "c16" else "f8"
        close(f"product {dtype}", (put(a) @ put(b)).astype(wide), a.astype(wide) @ b.astype(wide), tolerance)
    a = R.standard_normal((5, 30, 20))
    close("batched", put(a) @ put(a).transpose(0, 2, 1), a @ a.transpose(0, 2, 1), 1e-12)
    close("einsum", cp.einsum("bij,bkj->bik", put(a), put(a)), np.einsum("bij,bkj->bik", a, a), 1e-12)
    close("tensordot", cp.tensordot(put(a), put(a), 2 * [[0, 2]]), np.tensordot(a, a, 2 * [[0, 2]]), 1e-12)


@section()
def linear_algebra():
    a = R.standard_normal((60, 60))
    s = a @ a.T / 60 + np.eye(60)
    u, w, v = cp.linalg.svd(put(a))
    close("svd", (u * w) @ v, a, 1e-9)
    w, v = cp.linalg.eigh(put(s))
    close("eigh", (v * w) @ v.T, s, 1e-9)
    l = cp.linalg.cholesky(put(s))
    close("cholesky", l @ l.T, s, 1e-9)
    q, r = cp.linalg.qr(put(a))
    close("qr", q @ r, a, 1e-9)
    close("solve", put(a) @ cp.linalg.solve(put(a), put(a[:, :3])), a[:, :3], 1e-8)
    close("inverse", put(a) @ cp.linalg.inv(put(a)), np.eye(60), 1e-8)
    close("determinant", cp.linalg.slogdet(put(s))[1], np.linalg.slogdet(s)[1], 1e-9)
    close("least squares", cp.linalg.lstsq(put(a[:, :20]), put(a[:, 0]), rcond=None)[0], np.eye(20)[0], 1e-8)


@section()
def fourier():
    for shape in ((1000,), (997,), (40, 50), (8, 20, 12)):
        x = R.standard_normal(shape)
        close(f"fft {shape}", cp.fft.fftn(put(x)), np.fft.fftn(x), 1e-10)
        close(f"rfft {shape}", cp.fft.irfftn(cp.fft.rfftn(put(x)), shape), x, 1e-10)
    x = R.standard_normal((16, 64)).astype("c8")
    plan_of = __import__("cupyx.scipy.fft", fromlist=["get_fft_plan"])
    with plan_of.get_fft_plan(put(x), axes=1):
        close("with a plan of one's own", cp.fft.fft(put(x), axis=1), np.fft.fft(x), 1e-4)


@section()
def sparse():
    import scipy.sparse as ss
    from scipy.sparse.linalg import spsolve as reference
    from cupyx.scipy import sparse as cs
    from cupyx.scipy.sparse.linalg import cg, spsolve

    a = ss.random(200, 150, 0.05, format="csr", random_state=1)
    b = ss.random(150, 120, 0.05, format="csr", random_state=2)
    x = R.standard_normal(150)
    g = cs.csr_matrix(a)
    close("times a vector", g @ put(x), a @ x, 1e-12)
    close("times a matrix", g @ put(b.toarray()), a @ b.toarray(), 1e-12)
    close("times a sparse matrix", (g @ cs.csr_matrix(b)).toarray(), (a @ b).toarray(), 1e-12)
    close("sum", (g + g.multiply(2)).toarray(), (a * 3).toarray(), 1e-12)
    same("transposed", g.T.tocsr().toarray(), a.T.toarray())
    same("to coordinates and back", g.tocoo().tocsr().toarray(), a.toarray())
    d = (ss.random(100, 100, 0.05, format="csr", random_state=3) + 10 * ss.eye(100)).tocsr()
    y = R.standard_normal(100)
    close("direct solution", spsolve(cs.csr_matrix(d), put(y)), reference(d.tocsc(), y), 1e-8)
    s = (d + d.T).tocsr()
    solution, code = cg(cs.csr_matrix(s), put(y), rtol=1e-12)
    close("conjugate gradients", s @ solution.get(), y, 1e-6)


@section()
def random_numbers():
    cp.random.seed(7)
    bits("rand", cp.random.rand(1000))
    bits("normal", cp.random.standard_normal(1000))
    bits("integers", cp.random.randint(0, 1000, 1000))
    bits("permutation", cp.random.permutation(1000))
    g = cp.random.default_rng(8)
    bits("XORWOW", g.random(1000))
    bits("integers of a generator", g.integers(0, 1000, 1000))
    g = cp.random.Generator(cp.random.Philox4x3210(9))
    bits("Philox", g.standard_normal(1000))
    bits("exponential", g.exponential(size=1000))
    bits("gamma", g.gamma(2.0, size=1000))


@section()
def science():
    try:
        import scipy.ndimage as sn
        import scipy.signal as ssig
    except ImportError:
        return note("no scipy")
    import cupyx.scipy.ndimage as cn
    import cupyx.scipy.signal as csig
    import cupyx.scipy.special as csp

    a = R.standard_normal((60, 70))
    close("Gaussian filter", cn.gaussian_filter(put(a), 2), sn.gaussian_filter(a, 2), 1e-10)
    close("median filter", cn.median_filter(put(a), 3), sn.median_filter(a, 3), 1e-12)
    k = R.standard_normal((5, 5))
    close("convolution", csig.fftconvolve(put(a), put(k)), ssig.fftconvolve(a, k), 1e-10)
    close("gamma function", csp.gammaln(put(np.abs(a) + 1)),
          __import__("scipy.special", fromlist=["gammaln"]).gammaln(np.abs(a) + 1), 1e-10)
    close("interpolation", cn.map_coordinates(put(a), put(np.array([[3.3, 10.7], [5.5, 60.2]])), order=1),
          sn.map_coordinates(a, np.array([[3.3, 10.7], [5.5, 60.2]]), order=1), 1e-9)


@section()
def profiling():
    from cupyx.profiler import benchmark

    r = benchmark(lambda: put(np.zeros(100)) + 1, n_repeat=5, n_warmup=1)
    holds("times of CPU and GPU", float(r.gpu_times.mean()) > 0 and float(r.cpu_times.mean()) > 0)


cache.cleanup()
done()
