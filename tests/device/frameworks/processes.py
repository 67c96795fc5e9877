# SPDX-License-Identifier: Apache-2.0
# group: processes
# limit: 80
# torch.multiprocessing: spawned processes that use the GPU at once, each with a session of its own; tensors
# travel by way of the CPU. One of them fails and is reported; the others' work is right.
from checks import *
import torch
import torch.multiprocessing as mp


def worker(rank, queue, where):
    torch.backends.cuda.matmul.allow_tf32 = False
    g = torch.Generator().manual_seed(rank)
    a = torch.randn(200, 200, generator=g).to(where)
    for _ in range(20):
        a = torch.tanh(a @ a / 10)
    queue.put((rank, a.cpu().numpy()))


def failing(rank, where):
    torch.zeros(10, device=where)
    if rank == 1:
        raise ValueError("on purpose")


def reference(rank):
    a = torch.randn(200, 200, generator=torch.Generator().manual_seed(rank)).double()
    for _ in range(20):
        a = torch.tanh(a @ a / 10)
    return a


def share(rank, tensor, where):
    tensor[rank] = torch.full((50,), float(rank + 1), device=where).cpu()


if __name__ == "__main__":
    torch.zeros(1, device=device)

    @section()
    def spawned():
        queue = mp.get_context("spawn").SimpleQueue()
        context = mp.spawn(worker, (queue, device), nprocs=3, join=False)
        results = dict(queue.get() for _ in range(3))
        while not context.join():
            pass
        for rank in range(3):
            close(f"process {rank}", results[rank], reference(rank), 1e-3)

    @section()
    def shared_cpu_memory():
        t = torch.zeros(2, 50).share_memory_()
        mp.spawn(share, (t, device), nprocs=2)
        same("memory of the CPU that two processes share", t, torch.tensor([[1.0], [2.0]]).expand(2, 50))

    @section()
    def one_fails():
        try:
            mp.spawn(failing, (device,), nprocs=2)
            fault("a failing process", "was not reported")
        except mp.ProcessRaisedException as e:
            say("a failing process", "is reported" if "on purpose" in str(e) else e)

    @section()
    def afterwards():
        same("afterwards", torch.arange(100, device=device) * 2, torch.arange(100) * 2)

    done()
