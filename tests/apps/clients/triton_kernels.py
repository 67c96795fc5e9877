# SPDX-License-Identifier: Apache-2.0
# Triton through its own launcher. TRITON_PTXAS_PATH names our ptxas, which leaves PTX as it is.
import os

os.environ["TRITON_CACHE_DIR"] = os.path.join(os.environ["CLIENT_DIR"], "triton")
import torch
import triton
import triton.language as tl


@triton.jit
def add(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(o + i, tl.load(x + i, mask=m) + tl.load(y + i, mask=m), mask=m)


@triton.jit
def softmax(o, x, stride, n, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    v = tl.load(x + r * stride + c, mask=c < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(o + r * stride + c, e / tl.sum(e, axis=0), mask=c < n)


@triton.jit
def matmul(c, a, b, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    j = tl.program_id(1) * B + tl.arange(0, B)
    k = tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
    for s in range(0, n, B):
        acc += tl.dot(tl.load(a + i[:, None] * n + s + k[None, :]),
                      tl.load(b + (s + k)[:, None] * n + j[None, :]))
    tl.store(c + i[:, None] * n + j[None, :], acc)


print(torch.cuda.get_device_name(0), "triton", triton.__version__)
torch.manual_seed(1)
n = 10000
a, b = torch.rand(n), torch.rand(n)
x, y, o = a.cuda(), b.cuda(), torch.empty(n, device="cuda")
add[(triton.cdiv(n, 256),)](x, y, o, n, B=256)
assert torch.equal(o.cpu(), a + b), "add"
a = torch.randn(37, 200)
x = a.cuda()
o = torch.empty_like(x)
softmax[(37,)](o, x, x.stride(0), 200, B=256)
assert torch.allclose(o.cpu(), torch.softmax(a, 1), atol=1e-6), "softmax"
a, b = torch.randn(64, 64).half(), torch.randn(64, 64).half()
o = torch.empty(64, 64, device="cuda")
matmul[(2, 2)](o, a.cuda(), b.cuda(), 64, B=32)
assert torch.allclose(o.cpu(), a.float() @ b.float(), atol=1e-2), "matmul"
print("PASS triton")
