# SPDX-License-Identifier: Apache-2.0
# group: triton
# limit: 100
# Triton: a sum of vectors, softmax, a matrix product found by autotuning, attention that never holds the
# whole matrix, atomics, and a function in a library of the compiler. Compiled anew in every run.
import os
import tempfile

cache = tempfile.TemporaryDirectory()
os.environ["TRITON_CACHE_DIR"] = cache.name
from checks import *

if not gpu:
    skip("Triton compiles for a GPU")
try:
    import torch
    import triton
    import triton.language as tl
    from triton.language.extra import libdevice
except ImportError as e:
    skip(e)

torch.backends.cuda.matmul.allow_tf32 = False
G = torch.Generator().manual_seed(21)
rand = lambda *s: torch.randn(*s, generator=G)


@triton.jit
def add(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def softmax(o, x, n, B: tl.constexpr):
    r, c = tl.program_id(0), tl.arange(0, B)
    v = tl.load(x + r * n + c, mask=c < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(o + r * n + c, e / tl.sum(e, axis=0), mask=c < n)


@triton.autotune([triton.Config({"M": m, "N": n, "K": 32}, num_warps=w, num_stages=s) for m, n, w,
                  s in ((64, 64, 4, 2), (128, 64, 4, 3), (64, 128, 8, 3))],
                 key=["m", "n", "k"])
@triton.jit
def matmul(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i = tl.program_id(0) * M + tl.arange(0, M)
    j = tl.program_id(1) * N + tl.arange(0, N)
    s = tl.arange(0, K)
    acc = tl.zeros((M, N), tl.float32)
    for t in range(0, k, K):
        x = tl.load(a + i[:, None] * k + t + s[None, :], mask=(i[:, None] < m) & (t + s[None, :] < k),
                    other=0.0)
        y = tl.load(b + (t + s)[:, None] * n + j[None, :], mask=(t + s[:, None] < k) & (j[None, :] < n),
                    other=0.0)
        acc = tl.dot(x, y, acc)
    tl.store(c + i[:, None] * n + j[None, :], acc.to(tl.float16), mask=(i[:, None] < m) & (j[None, :] < n))


@triton.jit
def attention(q, k, v, o, n, scale, D: tl.constexpr, B: tl.constexpr):
    head = tl.program_id(1) * n * D
    i, d = tl.program_id(0) * B + tl.arange(0, B), tl.arange(0, D)
    query = tl.load(q + head + i[:, None] * D + d[None, :])
    top = tl.full((B,), -float("inf"), tl.float32)
    total = tl.zeros((B,), tl.float32)
    acc = tl.zeros((B, D), tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * B, B):
        j = start + tl.arange(0, B)
        key = tl.load(k + head + j[None, :] * D + d[:, None])
        s = tl.where(i[:, None] >= j[None, :], tl.dot(query, key) * scale, -float("inf"))
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp(s - new[:, None])
        shrink = tl.exp(top - new)
        total = total * shrink + tl.sum(p, 1)
        value = tl.load(v + head + j[:, None] * D + d[None, :])
        acc = acc * shrink[:, None] + tl.dot(p.to(tl.float16), value)
        top = new
    tl.store(o + head + i[:, None] * D + d[None, :], (acc / total[:, None]).to(tl.float16))


@triton.jit
def count(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.atomic_add(out + tl.load(x + i, mask=i < n, other=0), 1, mask=i < n)


@triton.jit
def inverse_error(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, libdevice.erfinv(tl.load(x + i, mask=i < n)), mask=i < n)


@section()
def vectors():
    x, y = rand(100003), rand(100003)
    o = torch.empty(100003, device="cuda")
    add[(triton.cdiv(100003, 1024),)](x.cuda(), y.cuda(), o, 100003, B=1024)
    same("sum", o, x + y)


@section()
def rows():
    x = rand(100, 700)
    o = torch.empty(100, 700, device="cuda")
    softmax[(100,)](o, x.cuda(), 700, B=1024)
    close("softmax", o, x.softmax(1), 1e-6)
    bits("softmax", o)


@section()
def products():
    for m, n, k in ((256, 256, 256), (300, 200, 170)):
        a, b = rand(m, k).half(), rand(k, n).half()
        c = torch.empty(m, n, device="cuda", dtype=torch.float16)
        matmul[lambda p: (triton.cdiv(m, p["M"]), triton.cdiv(n, p["N"]))](a.cuda(), b.cuda(), c, m, n, k)
        close(f"product {m} {n} {k}", c, a.double() @ b.double(), 3e-3)
    note(f"best: {matmul.best_config}")


@section()
def attention_in_blocks():
    q, k, v = (rand(6, 256, 64).half() for _ in range(3))
    o = torch.empty(6, 256, 64, device="cuda", dtype=torch.float16)
    attention[(256 // 64, 6)](q.cuda(), k.cuda(), v.cuda(), o, 256, 0.125, D=64, B=64)
    close("attention", o,
          torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), v.double(),
                                                           is_causal=True), 5e-3)
    bits("attention", o)


@section()
def atomics_and_library():
    x = torch.randint(0, 20, (5000,), generator=G, dtype=torch.int32)
    out = torch.zeros(20, device="cuda", dtype=torch.int32)
    count[(5,)](x.cuda(), out, 5000, B=1024)
    same("atomics", out, x.bincount(minlength=20))
    y = torch.rand(1000, generator=G) * 1.9 - 0.95
    o = torch.empty(1000, device="cuda")
    inverse_error[(1,)](y.cuda(), o, 1000, B=1024)
    close("libdevice", o, torch.erfinv(y.double()), 1e-5)


@section()
def benchmark():
    x = torch.ones(1 << 20, device="cuda")
    ms = triton.testing.do_bench(lambda: x.add_(1), warmup=5, rep=20)
    holds("do_bench finds a time", 0 < ms < 100, ms)
    note(f"{ms:.4f} ms")


cache.cleanup()
done()
