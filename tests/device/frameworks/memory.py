# SPDX-License-Identifier: Apache-2.0
# group: memory
# limit: 60
# PyTorch's view of memory: how much there is, what its allocator keeps, being out of it (the device's, and a
# limit of one's own) and going on afterwards.
import gc
from checks import *
import torch

MiB = 1 << 20
if not gpu:
    skip("memory of the GPU")


@section()
def information():
    free, total = torch.cuda.mem_get_info()
    say("total", total)
    say("total of the properties", torch.cuda.get_device_properties(0).total_memory)
    holds("free is between 0 and total", 0 < free <= total, (free, total))
    x = torch.empty(2048 * MiB, dtype=torch.uint8, device="cuda")
    less = torch.cuda.mem_get_info()[0]
    note(f"free {free}, with 2 GiB allocated {less}")
    holds("an allocation is seen", torch.cuda.memory_reserved() >= 2048 * MiB)
    del x
    torch.cuda.empty_cache()
    say("allocated after it is freed", torch.cuda.memory_allocated())


@section()
def statistics():
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_stats()
    tensors = [torch.empty(k * MiB, dtype=torch.uint8, device="cuda") for k in (1, 3, 20, 50)]
    del tensors[1]
    after = torch.cuda.memory_stats()
    for key in ("allocated_bytes.all.current", "allocated_bytes.all.peak", "reserved_bytes.all.current",
                "segment.all.current", "active.all.current",
                "inactive_split_bytes.all.current"):
        say(key, after[key] - (0 if "peak" in key else before[key]))
    say("summary", "Allocated memory" in torch.cuda.memory_summary())
    say("blocks", sum(len(s["blocks"]) for s in torch.cuda.memory_snapshot()) >= 3)


@section()
def out_of_memory():
    kept = torch.arange(1000, device="cuda")
    for i, n in enumerate((1 << 38, 1 << 42)):
        try:
            torch.empty(n, dtype=torch.uint8, device="cuda")
            fault("out of memory", "did not raise")
        except torch.cuda.OutOfMemoryError as e:
            say(f"out of memory {i}", str(e).split(" GiB")[0].split(" TiB")[0])
        same(f"what was there {i}", kept, torch.arange(1000))
        same(f"work after it {i}", kept * 2 + 1, torch.arange(1000) * 2 + 1)
    say("retries", torch.cuda.memory_stats()["num_ooms"])


@section()
def own_limit():
    torch.cuda.set_per_process_memory_fraction(0.02)
    blocks = []
    try:
        while len(blocks) < 100:
            blocks.append(torch.empty(256 * MiB, dtype=torch.uint8, device="cuda"))
        fault("the limit", "was not kept")
    except torch.cuda.OutOfMemoryError:
        say("blocks within the limit", len(blocks))
    blocks.clear()
    gc.collect()
    x = torch.ones(64 * MiB, device="cuda")
    say("after freeing", float(x.sum()))
    torch.cuda.set_per_process_memory_fraction(1.0)


@section()
def filled():
    """The device's own refusal, near the end of what is free: 4 GiB pieces until none is left, but at most
    12."""
    blocks = []
    try:
        for _ in range(12):
            blocks.append(torch.empty(4096 * MiB, dtype=torch.uint8, device="cuda"))
    except torch.cuda.OutOfMemoryError:
        pass
    note(f"{len(blocks)} blocks of 4 GiB")
    for i, b in enumerate(blocks):
        b[::4096] = i
    holds("each block is its own", all(int(b[0]) == i and int(b[-4096]) == i for i, b in enumerate(blocks)))
    blocks.clear()
    torch.cuda.empty_cache()
    say("reserved in the end", torch.cuda.memory_reserved() < 1024 * MiB)


@section()
def pools_and_streams():
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        x = torch.ones(1000, device="cuda")
    same("a pool of one's own", x, torch.ones(1000))
    s = torch.cuda.Stream()
    with torch.cuda.stream(s):
        y = torch.full((MiB,), 3.0, device="cuda")
    y.record_stream(torch.cuda.current_stream())
    torch.cuda.current_stream().wait_stream(s)
    total = y.sum()
    del y
    torch.cuda.empty_cache()
    say("a tensor of another stream", float(total))


@section()
def host_memory():
    p = torch.arange(MiB).pin_memory()
    say("pinned", p.is_pinned())
    d = p.to("cuda", non_blocking=True)
    back = torch.empty_like(p).pin_memory()
    back.copy_(d, non_blocking=True)
    torch.cuda.synchronize()
    same("there and back", back, p)
    plain = torch.arange(MiB)
    say("registered", int(torch.cuda.cudart().cudaHostRegister(plain.data_ptr(), plain.numel() * 8, 0)))
    same("through registered memory", plain.to("cuda", non_blocking=True), plain)
    say("unregistered", int(torch.cuda.cudart().cudaHostUnregister(plain.data_ptr())))


done()
