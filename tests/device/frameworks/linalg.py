# SPDX-License-Identifier: Apache-2.0
# group: math
# limit: 60
# torch.linalg: each decomposition multiplied out again, and solutions put back into their equations, alone
# and in batches.
from checks import *
import torch

torch.backends.cuda.matmul.allow_tf32 = False
L = torch.linalg


def matrix(*shape, dtype=torch.float32, seed=13):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def definite(n, batch=(), dtype=torch.float32):
    a = matrix(*batch, n, n, dtype=torch.float64)
    return (a @ a.mT / n + torch.eye(n, dtype=torch.float64)).to(dtype)


def each(name, make, check):
    for dtype, tolerance in ((torch.float32, 2e-3), (torch.float64, 1e-9)):
        for shape in ((), (5,)):
            a = make(shape, dtype)
            label = f"{name} {str(dtype)[6:]}{' batch' if shape else ''}"
            try:
                for part, got, want in check(a.to(device)):
                    close(f"{label} {part}", got, a if want is None else want, tolerance)
            except RuntimeError as e:
                fault(label, str(e).splitlines()[0])


square = lambda shape, dtype: matrix(*shape, 60, 60, dtype=dtype)
tall = lambda shape, dtype: matrix(*shape, 70, 40, dtype=dtype)
positive = lambda shape, dtype: definite(60, shape, dtype)
symmetric = lambda shape, dtype: (lambda a: (a + a.mT) / 2)(square(shape, dtype))


@section()
def svd():
    def check(a):
        u, s, v = L.svd(a, full_matrices=False)
        yield "product", (u * s.unsqueeze(-2)) @ v, None
        yield "values", L.svdvals(a), L.svdvals(a.cpu().double())

    each("svd", tall, check)


@section(needs_gpu=True)
def svd_drivers():
    a = matrix(64, 48)
    for driver in ("gesvd", "gesvdj", "gesvda"):
        u, s, v = L.svd(a.cuda(), full_matrices=False, driver=driver)
        close(f"svd {driver}", (u * s) @ v, a, 1e-3)


@section()
def eigen():
    def hermitian(a):
        w, v = L.eigh(a)
        yield "product", (v * w.unsqueeze(-2)) @ v.mT, None
        yield "values", w, L.eigvalsh(a.cpu().double())

    each("eigh", symmetric, hermitian)
    a = matrix(30, 30, dtype=torch.float64)
    w, v = L.eig(a.to(device))
    close("eig", (v * w) @ L.inv(v), a.to(torch.complex128), 1e-8)


@section()
def factors():
    each("cholesky", positive, lambda a: iter([("product", (lambda l: l @ l.mT)(L.cholesky(a)), None)]))
    each("qr", tall, lambda a: iter([("product", (lambda q: q[0] @ q[1])(L.qr(a)), None)]))
    each("lu", square, lambda a: iter([("product", (lambda p: p[0] @ p[1] @ p[2])(L.lu(a)), None)]))
    each("ldl", symmetric, lambda a: iter([("solve", a @ L.ldl_solve(*L.ldl_factor(a), a), None)]))


@section()
def equations():
    each("solve", positive, lambda a: iter([("residue", a @ L.solve(a, a[..., :7]), a[..., :7].cpu())]))
    each("inverse", positive,
         lambda a: iter([("product", a @ L.inv(a), torch.eye(60).expand(a.shape).double())]))
    each("triangular", positive,
         lambda a: iter([("residue", a.tril() @ L.solve_triangular(a.tril(), a, upper=False), None)]))
    each("least squares", tall,
         lambda a: iter([("solution",
                          L.lstsq(a,
                                  a @ torch.ones(a.shape[:-2] + (40, 2), dtype=a.dtype,
                                                 device=a.device)).solution,
                                                 torch.ones(a.shape[:-2] + (40, 2)).double())]))
    each("determinant", positive,
         lambda a: iter([("logarithm", L.slogdet(a).logabsdet, L.slogdet(a.cpu().double()).logabsdet)]))
    each("pseudo-inverse", tall, lambda a: iter([("product", a @ L.pinv(a) @ a, None)]))


@section()
def functions():
    a = matrix(40, 40, dtype=torch.float64) / 10
    close("matrix exponential", L.matrix_exp(a.to(device)), L.matrix_exp(a), 1e-10)
    close("power", L.matrix_power(a.to(device), 5), L.matrix_power(a, 5), 1e-10)
    close("norm", L.matrix_norm(a.to(device), 2), L.matrix_norm(a, 2), 1e-10)
    c = torch.complex(matrix(30, 30, seed=1), matrix(30, 30, seed=2))
    u, s, v = L.svd(c.to(device))
    close("complex svd", (u * s) @ v, c, 1e-3)


@section()
def singular():
    try:
        L.inv(torch.zeros(4, 4, device=device))
        fault("inverse of a singular matrix", "did not raise")
    except L.LinAlgError:
        say("inverse of a singular matrix", "raises")


@section()
def gradients():
    a = definite(20, dtype=torch.float64)
    x = a.to(device, copy=True).requires_grad_()
    y = a.clone().requires_grad_()
    for t in (x, y):
        (L.eigvalsh(t).sum() + L.cholesky(t).sum() + L.svdvals(t).max()).backward()
    close("gradient", x.grad, y.grad, 1e-8)


done()
