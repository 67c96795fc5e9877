# SPDX-License-Identifier: Apache-2.0
# group: compile
# limit: 120
# torch.compile with its default backend, which writes Triton kernels: fused pointwise work, reductions, a
# trained network, changing shapes, and the mode that captures graphs. Always compiled anew.
import os
import tempfile

cache = tempfile.TemporaryDirectory()
os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(cache.name, "inductor")
os.environ["TRITON_CACHE_DIR"] = os.path.join(cache.name, "triton")
from checks import *
import torch

torch.backends.cuda.matmul.allow_tf32 = False
randn = lambda *s: torch.randn(*s, generator=torch.Generator().manual_seed(sum(s)))


@section()
def pointwise_and_reduction():
    f = lambda a, b: torch.softmax(a * b + a.sin(), -1).sum(-1) + torch.nn.functional.gelu(b).amax(-1)
    a, b = randn(64, 1000), randn(64, 1000)
    got = torch.compile(f)(a.to(device), b.to(device))
    close("fused", got, f(a, b), 1e-5)
    bits("fused", got)


@section()
def normalisation():
    f = lambda x, w: torch.nn.functional.layer_norm(x, (512,), w) * torch.sigmoid(x).mean(-1, keepdim=True)
    x, w = randn(128, 512), randn(512)
    close("layer norm", torch.compile(f)(x.to(device), w.to(device)), f(x, w), 1e-4)


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(256, 512), torch.nn.Linear(512, 10)

    def forward(self, x):
        return self.b(torch.nn.functional.silu(self.a(x)))


def train(network, where):
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    x, y = randn(64, 256).to(where), (torch.arange(64) % 10).to(where)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(network(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach().cpu())
    return torch.stack(losses)


@section()
def training():
    torch.manual_seed(8)
    eager = Network()
    compiled = Network()
    compiled.load_state_dict(eager.state_dict())
    close("training losses", train(torch.compile(compiled.to(device)), device), train(eager, "cpu"), 1e-3)


@section()
def dynamic_shapes():
    f = torch.compile(lambda x: (x * 2 + 1).cumsum(0).relu(), dynamic=True)
    for n in (7, 100, 1234):
        x = randn(n)
        close(f"length {n}", f(x.to(device)), (x * 2 + 1).cumsum(0).relu(), 1e-4)


@section(needs_gpu=True)
def reduce_overhead():
    w = randn(256, 256)
    f = lambda x: torch.tanh(x @ w.to(x.device)) + x
    w = w.cuda()
    g = torch.compile(f, mode="reduce-overhead")
    for i in range(4):
        x = randn(32, 256) + i
        close(f"replay {i}", g(x.cuda()).clone(), f(x), 1e-3)


cache.cleanup()
done()
