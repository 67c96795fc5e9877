# SPDX-License-Identifier: Apache-2.0
# group: torch
# limit: 45
# Reading and writing by index, sorting, searching, counting: exactly as on the CPU; and with deterministic
# algorithms the same bits each time.
import os

os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
from checks import *
import torch
import torch.nn.functional as F

G = torch.Generator().manual_seed(20)
rand = lambda *s: torch.randn(*s, generator=G)
ints = lambda high, *s: torch.randint(0, high, s, generator=G)


def exact(name, f, *tensors):
    got, want = f(*(t.to(device) for t in tensors)), f(*tensors)
    for i, (a, b) in enumerate(zip(got, want) if isinstance(want, (tuple, list)) else [(got, want)]):
        same(f"{name}{f' {i}' if i else ''}", a, b)


@section()
def reading_and_writing():
    x, i, j = rand(200, 300), ints(200, 500), ints(300, 500)
    exact("rows", lambda x, i: x[i], x, i)
    exact("points", lambda x, i, j: x[i, j], x, i, j)
    exact("index_select", lambda x, j: x.index_select(1, j), x, j)
    exact("gather", lambda x, k: x.gather(1, k), x, ints(300, 200, 50))
    exact("take_along", lambda x: torch.take_along_dim(x, x.argsort(1), 1), x)
    exact("masked", lambda x: x[x > 0.5], x)
    exact("masked_fill", lambda x: x.masked_fill(x < 0, -1), x)
    exact("nonzero", lambda x: (x > 1).nonzero(), x)
    exact("where", lambda x: torch.where(x > 0, x, -x), x)
    exact("roll, flip", lambda x: x.roll((3, -7), (0, 1)).flip(1), x)
    exact("unfold", lambda x: x.unfold(1, 7, 3), x)
    exact("index_put", lambda x, p: x.flatten().index_put((p,), torch.arange(5000.0, device=x.device)), x,
          torch.randperm(60000, generator=G)[:5000])
    exact("accumulated integers",
        lambda i: torch.zeros(200, dtype=torch.long, device=i.device).index_put((i,), i, accumulate=True), i)
    exact("scatter_add of integers",
          lambda i: torch.zeros(200, dtype=torch.long, device=i.device).scatter_add(0, i, i * 3), i)
    exact("scatter_reduce", lambda x,
          i: torch.full((200,), -9.0, device=x.device).scatter_reduce(0, i, x.flatten()[:500], "amax"), x, i)
    close("scatter_add",
          torch.zeros(200, device=device).scatter_add(0, i.to(device), x.flatten()[:500].to(device)),
          torch.zeros(200).double().scatter_add(0, i, x.flatten()[:500].double()), 1e-5)
    try:
        exact("an index outside", lambda x: x[999], x)
        fault("an index outside", "did not raise")
    except IndexError:
        say("an index outside, seen on the CPU", "raises")


@section()
def sorting_and_counting():
    x, i = rand(64, 1000), ints(50, 20000)
    exact("sort", lambda x: x.sort(dim=1, stable=True), x)
    exact("sort, descending and stable", lambda i: i.sort(descending=True, stable=True), i)
    exact("sort of many", lambda x: x.flatten().sort(stable=True), x)
    exact("topk", lambda x: x.topk(17, 1), x)
    exact("kthvalue", lambda x: x.kthvalue(100, 1).values, x)
    exact("median", lambda x: x.median(1).values, x)
    exact("unique", lambda i: i.unique(return_inverse=True, return_counts=True), i)
    exact("unique_consecutive", lambda i: i.unique_consecutive(), i // 10)
    exact("bincount", lambda i: i.bincount(), i)
    exact("searchsorted",
          lambda x: torch.searchsorted(torch.linspace(-3, 3, 100, device=x.device).double(), x.double()), x)
    exact("histogram", lambda i: i.double().histc(50, 0, 50), i)
    exact("argmax, argmin", lambda x: (x.argmax(1), x.argmin(0)), x)
    exact("cummax", lambda x: x.cummax(1), x)
    exact("cumsum of integers", lambda i: i.cumsum(0), i)
    exact("isin", lambda i: torch.isin(i, torch.tensor([3, 5, 49], device=i.device)), i)
    close("cumsum", x.to(device).cumsum(1), x.double().cumsum(1), 1e-4)
    close("logcumsumexp", x.to(device).logcumsumexp(1), x.double().logcumsumexp(1), 1e-4)
    holds("any, all", bool((x.to(device) > -99).all()) and bool((x.to(device) > 2).any()))


@section()
def embeddings():
    table, i = rand(500, 64), ints(500, 32, 20)
    exact("embedding", lambda t, i: F.embedding(i, t), table, i)
    close("bag", F.embedding_bag(i.to(device), table.to(device), mode="mean"), table[i].mean(1), 1e-5)
    w = table.to(device, copy=True).requires_grad_()
    F.embedding(i.to(device), w).square().sum().backward()
    v = table.double().requires_grad_()
    F.embedding(i, v).square().sum().backward()
    close("gradient", w.grad, v.grad, 1e-4)


@section()
def deterministic():
    torch.use_deterministic_algorithms(True)
    x, i = rand(20000).to(device), ints(100, 20000).to(device)
    for name, f in (("scatter_add", lambda: torch.zeros(100, device=device).scatter_add(0, i, x)),
                    ("index_add", lambda: torch.zeros(100, device=device).index_add(0, i, x)),
                    ("index_put",
                    lambda: torch.zeros(100, device=device).index_put((i,), x, accumulate=True))):
        a = f()
        holds(f"{name} the same each time", all(torch.equal(a, f()) for _ in range(5)))
        bits(name, a)
    table = rand(100, 32).to(device).requires_grad_()
    F.embedding(i[:1000], table).square().sum().backward()
    bits("gradient of an embedding", table.grad)
    torch.use_deterministic_algorithms(False)


@section()
def special_functions():
    x = rand(1000).double()
    for name in ("erf", "erfinv", "lgamma", "digamma", "sin", "log1p", "exp", "tan", "atan", "sigmoid",
                 "rsqrt"):
        f = getattr(torch, name)
        v = x.abs() + 0.1 if name in ("lgamma", "digamma", "log1p",
                                      "rsqrt") else torch.tanh(x) * 0.99 if name == "erfinv" else x
        close(name, f(v.to(device)), f(v), 1e-12)
    close("bessel, compiled at run time", torch.special.bessel_j0(x.to(device)), torch.special.bessel_j0(x),
          1e-10)
    close("i0e", torch.special.i0e(x.to(device)), torch.special.i0e(x), 1e-10)
    close("zeta", torch.special.zeta(x.abs().to(device) + 2, x.abs().to(device) + 1),
          torch.special.zeta(x.abs() + 2, x.abs() + 1), 1e-10)


done()
