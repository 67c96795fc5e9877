# SPDX-License-Identifier: Apache-2.0
# group: processes
# limit: 90
# Two GPUs of one server: selection, copies and access between them, work on both at once, and NCCL between
# two processes, a GPU each.
from checks import *
import tempfile
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

if not gpu or torch.cuda.device_count() < 2:
    skip("two GPUs")


def rank_main(rank, folder, back):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=f"file://{folder}/store", rank=rank, world_size=2,
                            device_id=torch.device("cuda", rank))
    x = torch.full((100000,), rank + 1.0, device="cuda")
    dist.all_reduce(x)
    sums = float(x[0]), float(x.sum())
    y = torch.arange(1000.0, device="cuda") if rank == 0 else torch.zeros(1000, device="cuda")
    dist.broadcast(y, 0)
    parts = [torch.zeros(4, device="cuda") for _ in range(2)]
    dist.all_gather(parts, torch.full((4,), float(rank), device="cuda"))
    if rank == 0:
        dist.send(torch.full((7,), 3.0, device="cuda"), 1)
        got = 0.0
    else:
        z = torch.zeros(7, device="cuda")
        dist.recv(z, 0)
        got = float(z.sum())
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 1, bias=False).cuda(),
                                                    device_ids=[rank])
    with torch.no_grad():
        net.module.weight.fill_(1.0)
    net(torch.full((2, 8), float(rank + 1), device="cuda")).sum().backward()
    grad = float(net.module.weight.grad[0, 0])
    dist.barrier()
    back.put((rank, sums, float(y.sum()), [float(p[0]) for p in parts], got, grad))
    dist.destroy_process_group()


if __name__ == "__main__":

    @section()
    def selection():
        say("devices", torch.cuda.device_count())
        a, b = torch.ones(1000, device="cuda:0"), torch.ones(1000, device="cuda:1")
        say("where they are", (a.device.index, b.device.index))
        with torch.cuda.device(1):
            say("current", torch.cuda.current_device())
            say("new memory", torch.empty(1, device="cuda").device.index)
        say("peer access", torch.cuda.can_device_access_peer(0, 1))

    @section()
    def copies():
        x = torch.arange(1 << 20, device="cuda:0", dtype=torch.float32)
        y = x.to("cuda:1")
        same("from one to the other", y.cpu(), x.cpu())
        z = torch.empty_like(x)
        z.copy_(y * 2)
        same("and back", z.cpu(), x.cpu() * 2)
        s = torch.cuda.Stream(1)
        with torch.cuda.stream(s):
            w = x.to("cuda:1", non_blocking=True) + 1
        s.synchronize()
        same("on a stream of the other", w.cpu(), x.cpu() + 1)

    @section()
    def at_once():
        torch.manual_seed(1)
        m = torch.randn(512, 512, dtype=torch.float64)
        parts = [m.to(f"cuda:{i}") for i in range(2)]
        for _ in range(5):
            parts = [p @ m.to(p.device) / 30 for p in parts]
        same("both the same", parts[0].cpu(), parts[1].cpu())
        net = torch.nn.DataParallel(torch.nn.Linear(16, 4).cuda(), device_ids=[0, 1])
        out = net(torch.ones(8, 16, device="cuda"))
        close("DataParallel", out, net.module(torch.ones(8, 16, device="cuda")), 1e-6)

    @section()
    def processes():
        context = mp.get_context("spawn")
        with tempfile.TemporaryDirectory() as folder:
            back = context.Queue()
            ranks = [context.Process(target=rank_main, args=(r, folder, back), daemon=True) for r in range(2)]
            for p in ranks:
                p.start()
            for r in sorted(back.get(timeout=60) for _ in ranks):
                say(f"rank {r[0]}", r[1:])
            for p in ranks:
                p.join(20)
            say("they ended with", [p.exitcode for p in ranks])

    done()
