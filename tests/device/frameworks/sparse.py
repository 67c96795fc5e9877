# SPDX-License-Identifier: Apache-2.0
# group: math
# limit: 45
# Sparse matrices: coordinates, compressed rows and columns, blocks; products with vectors, matrices and each
# other (SpGEMM), sampled products, triangular solutions, and the two-of-four structure that tensor cores
# read.
import warnings
from checks import *
import torch

warnings.simplefilter("ignore")
torch.backends.cuda.matmul.allow_tf32 = False
G = torch.Generator().manual_seed(15)


def dense(n, m, fill=0.1, dtype=torch.float32):
    a = torch.randn(n, m, generator=G, dtype=torch.float64)
    return (a * (torch.rand(n, m, generator=G) < fill)).to(dtype)


@section()
def formats():
    a = dense(60, 40)
    for name, to in (("coo", lambda t: t.to_sparse_coo()), ("csr", lambda t: t.to_sparse_csr()),
                     ("csc", lambda t: t.to_sparse_csc()),
                     ("bsr", lambda t: t.to_sparse_bsr((4, 4)))):
        same(f"{name} there and back", to(a.to(device)).to_dense(), a)
    c = torch.sparse_coo_tensor([[0, 0, 2], [1, 1, 0]], [1.0, 2.0, 3.0], (3, 3), device=device).coalesce()
    say("coalesced", (c.indices().tolist(), c.values().tolist()))


@section()
def products():
    for dtype, tolerance in ((torch.float32, 1e-4), (torch.float64, 1e-10)):
        a, b, x = dense(300, 200, dtype=dtype), dense(200, 100, 1.0, dtype), torch.randn(200, generator=G,
            dtype=torch.float64).to(dtype)
        for name, s in (("coo", a.to(device).to_sparse_coo()), ("csr", a.to(device).to_sparse_csr())):
            label = f"{name} {str(dtype)[6:]}"
            close(f"{label} matrix", s @ b.to(device), a.double() @ b.double(), tolerance)
            close(f"{label} vector", s @ x.to(device), a.double() @ x.double(), tolerance)
        other = dense(200, 150, dtype=dtype)
        close(f"csr times csr {str(dtype)[6:]}",
              (a.to(device).to_sparse_csr() @ other.to(device).to_sparse_csr()).to_dense(),
              a.double() @ other.double(), tolerance)
        close(f"coo times coo {str(dtype)[6:]}",
              torch.sparse.mm(a.to(device).to_sparse_coo(), other.to(device).to_sparse_coo()).to_dense(),
              a.double() @ other.double(), tolerance)


@section(needs_gpu=True)
def sampled_and_triangular():
    mask = dense(64, 64)
    a, b = dense(64, 32, 1.0), dense(32, 64, 1.0)
    got = torch.sparse.sampled_addmm(mask.cuda().to_sparse_csr(), a.cuda(), b.cuda())
    close("sampled product", got.to_dense(), mask + (a @ b) * (mask != 0), 1e-4)
    t = (dense(50, 50, 0.2, torch.float64).tril(-1) + torch.eye(50, dtype=torch.float64) * 3)
    x = torch.randn(50, 3, generator=G, dtype=torch.float64)
    close("triangular solution",
        torch.triangular_solve(x.cuda(), t.cuda().to_sparse_csr(), upper=False).solution,
        torch.linalg.solve(t, x), 1e-9)


@section()
def arithmetic_and_gradients():
    a, b = dense(50, 30), dense(50, 30)
    s, t = a.to(device).to_sparse_coo(), b.to(device).to_sparse_coo()
    close("sum", (s + t).to_dense(), a + b, 1e-6)
    close("product by element", (s * t).to_dense(), a * b, 1e-6)
    close("sum of rows", torch.sparse.sum(s, 1).to_dense(), a.sum(1), 1e-4)
    close("softmax", torch.sparse.softmax(s, 1).to_dense(),
          torch.sparse.softmax(a.to_sparse_coo(), 1).to_dense(), 1e-5)
    x = dense(30, 8, 1.0).to(device).requires_grad_()
    torch.sparse.mm(s, x).sum().backward()
    close("gradient", x.grad, a.sum(0)[:, None].expand(30, 8), 1e-4)


@section(needs_gpu=True)
def two_of_four():
    from torch.sparse import to_sparse_semi_structured

    w = torch.randn(128, 128, generator=G).half()
    w = w * torch.tensor([1, 0, 0, 1]).repeat(128, 32)
    x = torch.randn(128, 64, generator=G).half()
    close("two of four", to_sparse_semi_structured(w.cuda()) @ x.cuda(), w.double() @ x.double(), 1e-2)


done()
