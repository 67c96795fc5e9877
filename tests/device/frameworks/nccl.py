# SPDX-License-Identifier: Apache-2.0
# group: processes
# limit: 60
# torch.distributed with NCCL and one rank: every collective, asynchronously too, and a network trained under
# DistributedDataParallel.
import os
import tempfile
from checks import *
import torch
import torch.distributed as dist

folder = tempfile.TemporaryDirectory()


@section()
def start():
    dist.init_process_group("nccl" if gpu else "gloo", init_method=f"file://{folder.name}/store", rank=0,
                            world_size=1,
                            **({"device_id": torch.device("cuda:0")} if gpu else {}))
    if gpu:
        say("NCCL", ".".join(map(str, torch.cuda.nccl.version())))


@section()
def collectives():
    x = torch.arange(1000.0, device=device)
    dist.all_reduce(x)
    same("all_reduce", x, torch.arange(1000.0))
    work = dist.all_reduce(x, op=dist.ReduceOp.MAX, async_op=True)
    work.wait()
    same("all_reduce, not waited for at once", x, torch.arange(1000.0))
    dist.broadcast(x, 0)
    same("broadcast", x, torch.arange(1000.0))
    out = [torch.zeros(1000, device=device)]
    dist.all_gather(out, x)
    same("all_gather", out[0], torch.arange(1000.0))
    if gpu:
        y = torch.zeros(1000, device=device)
        dist.reduce_scatter_tensor(y, x)
        same("reduce_scatter", y, torch.arange(1000.0))
        y.zero_()
        dist.all_to_all_single(y, x)
        same("all_to_all", y, torch.arange(1000.0))
        h = torch.ones(100, device=device, dtype=torch.bfloat16)
        dist.all_reduce(h, op=dist.ReduceOp.AVG)
        same("bfloat16", h.float(), torch.ones(100))
    dist.barrier()
    say("barrier", "passed")


@section(needs_gpu=True)
def in_a_graph():
    x = torch.ones(100, device="cuda")
    dist.all_reduce(x)
    torch.cuda.synchronize()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        y = x * 2
        dist.all_reduce(y)
    x.fill_(5)
    g.replay()
    same("all_reduce in a graph", y, torch.full((100,), 10.0))


@section()
def data_parallel():
    torch.manual_seed(16)
    plain = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4))
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4))
    model.load_state_dict(plain.state_dict())
    ddp = torch.nn.parallel.DistributedDataParallel(model.to(device), device_ids=[0] if gpu else None)
    x = torch.randn(16, 32)
    a, b = torch.optim.SGD(ddp.parameters(), 0.1), torch.optim.SGD(plain.parameters(), 0.1)
    for _ in range(5):
        for net, optimizer, v in ((ddp, a, x.to(device)), (plain, b, x)):
            optimizer.zero_grad()
            net(v).square().mean().backward()
            optimizer.step()
    close("weights", model[0].weight, plain[0].weight, 1e-4)


@section()
def end():
    dist.destroy_process_group()
    say("ended", not dist.is_initialized())


folder.cleanup()
done()
