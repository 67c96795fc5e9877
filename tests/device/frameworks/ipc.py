# SPDX-License-Identifier: Apache-2.0
# group: ipc
# limit: 60
# CUDA tensors that travel between processes without a copy: through a queue (CUDA IPC), written by the
# receiver and seen by the sender; and an event that one process records and the other waits for.
from checks import *
import torch
import torch.multiprocessing as mp

if not gpu:
    skip("memory of the GPU that processes share")


def receiver(tensors, back):
    x = tensors.get()
    back.put(float(x.sum()))
    x += 1
    torch.cuda.synchronize()
    back.put("written")
    view = tensors.get()
    view.zero_()
    torch.cuda.synchronize()
    back.put(tuple(view.shape))
    del x, view
    handle = tensors.get()
    event = torch.cuda.Event.from_ipc_handle(torch.device("cuda:0"), handle)
    event.synchronize()
    back.put(event.query())


def producer(tensors, back):
    tensors.put(torch.arange(1000.0, device="cuda"))
    back.get()


if __name__ == "__main__":
    context = mp.get_context("spawn")

    @section()
    def queue():
        tensors, back = context.Queue(), context.Queue()
        p = context.Process(target=receiver, args=(tensors, back), daemon=True)
        p.start()
        x = torch.ones(100000, device="cuda")
        tensors.put(x)
        say("sum seen by the receiver", back.get(timeout=40))
        say("the receiver has", back.get(timeout=40))
        same("what it wrote is seen", x, torch.full((100000,), 2.0))
        y = torch.ones(64, 64, device="cuda")
        tensors.put(y[16:32, :8])
        say("a view's shape", back.get(timeout=40))
        say("outside the view", float(y.sum()))
        event = torch.cuda.Event(interprocess=True)
        torch.cuda._sleep(1000000)
        event.record()
        tensors.put(event.ipc_handle())
        say("an event of another process", back.get(timeout=40))
        p.join(20)
        say("the receiver ended with", p.exitcode)

    @section()
    def from_a_child():
        tensors, back = context.Queue(), context.Queue()
        p = context.Process(target=producer, args=(tensors, back), daemon=True)
        p.start()
        x = tensors.get(timeout=40)
        same("a tensor of a child", x, torch.arange(1000.0))
        del x
        torch.cuda.ipc_collect()
        back.put(0)
        p.join(20)
        say("the child ended with", p.exitcode)

    done()
