# SPDX-License-Identifier: Apache-2.0
# group: torch
# limit: 45
# Random numbers: every stream is the native one, to the last bit; states can be kept and put back; the
# Philox offset moves as natively.
from checks import *
import torch


@section()
def distributions():
    torch.manual_seed(123)
    d = {"device": device}
    bits("rand", torch.rand(10007, **d))
    bits("randn", torch.randn(10007, **d))
    bits("randn half", torch.randn(1001, dtype=torch.float16, **d))
    bits("randn double", torch.randn(1001, dtype=torch.float64, **d))
    bits("randint", torch.randint(-5, 1000, (10007,), **d))
    bits("randint 64", torch.randint(0, 1 << 60, (1001,), **d))
    bits("randperm", torch.randperm(5000, **d))
    bits("randperm of many", torch.randperm(100000, **d))
    bits("bernoulli", torch.bernoulli(torch.full((1000,), 0.3, **d)))
    bits("multinomial", torch.multinomial(torch.arange(1.0, 101, **d), 50))
    bits("multinomial with replacement",
         torch.multinomial(torch.arange(1.0, 101, **d), 500, replacement=True))
    bits("poisson", torch.poisson(torch.full((1000,), 4.0, **d)))
    for name in ("normal_", "uniform_", "exponential_", "cauchy_", "log_normal_"):
        bits(name, getattr(torch.empty(1000, **d), name)())
    bits("geometric_", torch.empty(1000, **d).geometric_(0.2))
    bits("gamma", torch._standard_gamma(torch.full((1000,), 2.5, **d)))
    bits("dropout", torch.nn.functional.dropout(torch.ones(3000, **d), 0.3))
    bits("truncated normal", torch.nn.init.trunc_normal_(torch.empty(500, **d)))


@section()
def quality():
    torch.manual_seed(5)
    x = torch.randn(1_000_000, device=device)
    number("mean", x.mean(), 1e-5)
    number("deviation", x.std(), 1e-5)
    holds("mean near 0", abs(float(x.mean())) < 5e-3)
    holds("deviation near 1", abs(float(x.std()) - 1) < 5e-3)


@section(needs_gpu=True)
def states():
    torch.cuda.manual_seed_all(77)
    torch.rand(10, device="cuda")
    state = torch.cuda.get_rng_state()
    bits("state", state)
    a = torch.randn(100, device="cuda")
    torch.cuda.set_rng_state(state)
    same("the same again", torch.randn(100, device="cuda"), a)
    with torch.random.fork_rng(devices=[0]):
        torch.rand(99, device="cuda")
    b = torch.randn(100, device="cuda")
    torch.cuda.set_rng_state(state)
    torch.randn(100, device="cuda")
    same("after a fork of the streams", torch.randn(100, device="cuda"), b)
    say("seed", torch.cuda.initial_seed())


@section(needs_gpu=True)
def generators():
    g, h = torch.Generator("cuda").manual_seed(1), torch.Generator("cuda").manual_seed(1)
    a = torch.rand(1000, device="cuda", generator=g)
    torch.rand(1000, device="cuda")
    same("own generators", torch.rand(1000, device="cuda", generator=h), a)
    for n in (1, 100, 100000, 3):
        torch.rand(n, device="cuda", generator=g)
        say(f"philox offset after {n} more", g.get_offset()
            if hasattr(g, "get_offset") else digest(g.get_state()))
    same("the two differ now",
        (torch.rand(4, device="cuda", generator=g) == torch.rand(4, device="cuda", generator=h)).any(),
        torch.tensor(False))


@section(needs_gpu=True)
def attention_dropout():
    torch.manual_seed(9)
    q = torch.randn(1, 2, 128, 64, device="cuda", dtype=torch.float16)
    bits("attention with dropout", torch.nn.functional.scaled_dot_product_attention(q, q, q, dropout_p=0.2))
    lstm = torch.nn.LSTM(16, 16, 2, dropout=0.5).cuda()
    bits("LSTM with dropout", lstm(torch.randn(5, 2, 16, device="cuda"))[0])


done()
