# SPDX-License-Identifier: Apache-2.0
# group: torch
# limit: 60
# Several Python threads that train at once, each on a stream of its own; gradients of one model from several
# threads; and autograd's own threads. The results are those of one thread, to the last bit.
import threading
from checks import *
import torch

torch.backends.cuda.matmul.allow_tf32 = False


def on_threads(n, work):
    errors, results = [], [None] * n

    def body(i):
        try:
            if gpu:
                with torch.cuda.stream(torch.cuda.Stream()):
                    results[i] = work(i)
                    torch.cuda.current_stream().synchronize()
            else:
                results[i] = work(i)
        except Exception as e:
            errors.append(e)

    threads = [threading.Thread(target=body, args=(i,)) for i in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]
    return results


def train(i):
    g = torch.Generator().manual_seed(i)
    w = torch.randn(128, 64, generator=g).to(device).requires_grad_()
    x, y = torch.randn(32, 128, generator=g).to(device), torch.randn(32, 64, generator=g).to(device)
    for _ in range(20):
        loss = (torch.tanh(x @ w) - y).square().mean()
        (gradient,) = torch.autograd.grad(loss, w)
        with torch.no_grad():
            w -= 0.5 * gradient
    return w.detach().cpu(), float(loss.detach())


@section()
def independent():
    want = [train(i) for i in range(8)]
    got = on_threads(8, train)
    for i in range(8):
        same(f"thread {i}", got[i][0], want[i][0])
    number("loss of thread 0", got[0][1], 1e-4)


@section()
def shared_model():
    torch.manual_seed(12)
    model = torch.nn.Linear(64, 8).to(device)
    inputs = [torch.randn(16, 64, generator=torch.Generator().manual_seed(i)) for i in range(6)]
    if gpu:
        torch.cuda.synchronize()

    def gradient(i):
        return torch.autograd.grad(model(inputs[i].to(device)).square().sum(), list(model.parameters()))

    got = [torch.cat([p.flatten().cpu() for p in r]) for r in on_threads(6, gradient)]
    want = [torch.cat([p.flatten().cpu() for p in gradient(i)]) for i in range(6)]
    for i in range(6):
        close(f"gradient of thread {i}", got[i], want[i], 1e-5)


@section()
def hooks_and_checkpoints():
    from torch.utils.checkpoint import checkpoint

    x = torch.randn(8, 32, generator=torch.Generator().manual_seed(1)).to(device).requires_grad_()
    seen = []
    block = lambda v: torch.relu(v * 3).sin()
    y = checkpoint(block, x, use_reentrant=False)
    y.register_hook(lambda g: seen.append(g.shape))
    y.sum().backward()
    a = x.grad.clone()
    x.grad = None
    block(x).sum().backward()
    same("checkpointed gradient", a, x.grad)
    say("hook", seen)


done()
