# SPDX-License-Identifier: Apache-2.0
# group: torch
# limit: 60
# CUDA graphs as PyTorch makes them: capture and replay with new inputs, several streams, a shared pool, a
# whole training step, random numbers inside, make_graphed_callables, and a capture that fails and leaves
# nothing behind.
from checks import *
import torch

torch.backends.cuda.matmul.allow_tf32 = False
randn = lambda *s: torch.randn(*s, generator=torch.Generator().manual_seed(sum(s)))


@section(needs_gpu=True)
def replay():
    x, w = torch.zeros(64, 256, device="cuda"), randn(256, 256).cuda()
    x @ w
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        y = torch.relu(x @ w).sum(1)
    for i in range(3):
        new = randn(64, 256) + i
        x.copy_(new)
        g.replay()
        close(f"replay {i}", y, torch.relu(new @ w.cpu()).sum(1), 1e-4)


@section(needs_gpu=True)
def several_streams():
    x = randn(1000).cuda()
    side = torch.cuda.Stream()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        a = x * 2
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            b = x + 1
        torch.cuda.current_stream().wait_stream(side)
        c = a * b
    x.copy_(torch.arange(1000.0))
    g.replay()
    same("two branches", c, torch.arange(1000.0) * 2 * (torch.arange(1000.0) + 1))


@section(needs_gpu=True)
def shared_pool():
    pool = torch.cuda.graph_pool_handle()
    graphs, results = [], [randn(500).cuda()]
    for k in range(3):
        g = torch.cuda.CUDAGraph()
        with torch.cuda.graph(g, pool=pool):
            results.append(results[-1] * 0.5 + k)
        graphs.append(g)
    for g in graphs:
        g.replay()
    want = randn(500)
    for k in range(3):
        want = want * 0.5 + k
    close("chain of graphs", results[-1], want, 1e-6)


@section(needs_gpu=True)
def training_step():
    torch.manual_seed(9)
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 8))
    reference = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 8))
    reference.load_state_dict(model.state_dict())
    model.cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.zeros(16, 64, device="cuda"), torch.zeros(16, 8, device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            optimizer.zero_grad(set_to_none=True)
            ((model(x) - y) ** 2).mean().backward()
    torch.cuda.current_stream().wait_stream(stream)
    g = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(g):
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
    sgd = torch.optim.SGD(reference.parameters(), lr=0.1)
    for i in range(4):
        a, b = randn(16, 64) + i, randn(16, 8)
        x.copy_(a)
        y.copy_(b)
        g.replay()
        sgd.zero_grad()
        want = ((reference(a) - b) ** 2).mean()
        want.backward()
        sgd.step()
        close(f"step {i}", loss, want, 1e-4)
    close("weights", model[0].weight, reference[0].weight, 1e-4)


@section(needs_gpu=True)
def random_numbers():
    torch.cuda.manual_seed(10)
    x = torch.ones(1000, device="cuda")
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        y = torch.nn.functional.dropout(x, 0.5)
    seen = []
    for i in range(3):
        g.replay()
        seen.append(y.cpu().clone())
        bits(f"dropout {i}", y)
    holds("every replay draws anew", not torch.equal(seen[0], seen[1]) and not torch.equal(seen[1], seen[2]))
    bits("the generator goes on", torch.randn(100, device="cuda"))


@section(needs_gpu=True)
def graphed_callables():
    torch.manual_seed(11)
    a, b = torch.nn.Linear(32, 64).cuda(), torch.nn.Linear(64, 4).cuda()
    plain = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Linear(64, 4))
    plain[0].load_state_dict(a.state_dict())
    plain[1].load_state_dict(b.state_dict())
    x = randn(8, 32).cuda().requires_grad_()
    ga, gb = torch.cuda.make_graphed_callables((a, b),
                                               ((x,),
                                                (torch.zeros(8, 64, device="cuda", requires_grad=True),)))
    for i in range(3):
        v = randn(8, 32) * (i + 1)
        u = v.clone().cuda().requires_grad_()
        out = gb(ga(u)).square().sum()
        out.backward()
        v.requires_grad_()
        want = plain(v).square().sum()
        want.backward()
        close(f"graphed {i}", out, want, 1e-4)
        close(f"graphed gradient {i}", u.grad, v.grad, 1e-4)


@section(needs_gpu=True)
def many_replays():
    x = torch.zeros(1, device="cuda")
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        x += 1
    for _ in range(2000):
        g.replay()
    say("2000 replays", int(x))


@section(needs_gpu=True)
def failed_capture():
    x = torch.ones(10, device="cuda")
    g = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(g):
            x.sum().item()
        holds("a synchronisation in a capture raises", False)
    except Exception as e:
        say("a synchronisation in a capture raises", type(e).__name__)
    same("afterwards", x + 1, torch.ones(10) * 2)


if not gpu:
    skip("graphs are about the GPU")
done()
