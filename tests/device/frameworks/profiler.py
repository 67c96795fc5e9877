# SPDX-License-Identifier: Apache-2.0
# group: tools
# limit: 60
# torch.profiler: the profiled work is right and ends; natively it has the kernels' times, through a mount
# those of the CPU side at least, without a crash or a hang. Also NVTX ranges, event timing and the memory
# history.
import os
import tempfile
from checks import *
import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if gpu else [])


def work():
    with record_function("work"):
        a = torch.arange(250000.0, device=device).reshape(500, 500) / 250000
        return (a @ a).relu().sum()


@section()
def profiled():
    want = float(work())
    with profile(activities=activities, record_shapes=True, profile_memory=True, with_stack=True) as p:
        got = float(work())
    holds("the profiled work is right", got == want, (got, want))
    events = p.key_averages()
    names = {e.key for e in events}
    holds("CPU operators are seen", "aten::mm" in names and "work" in names, sorted(names)[:20])
    kernels = sum(1 for e in p.events() if str(e.device_type).endswith("CUDA"))
    total = sum(getattr(e, "self_device_time_total", 0) for e in events)
    note(f"{kernels} device events; device time {total:.0f} us")
    note("kernels are seen" if kernels else "no kernels are seen: the profiler had the CPU side only")
    holds("a table can be printed", len(events.table(sort_by="self_cpu_time_total", row_limit=5)) > 100)
    with tempfile.TemporaryDirectory() as d:
        p.export_chrome_trace(os.path.join(d, "trace.json"))
        holds("the trace can be written", os.path.getsize(os.path.join(d, "trace.json")) > 1000)


@section()
def scheduled():
    seen = []
    with profile(activities=activities, schedule=schedule(wait=1, warmup=1, active=2),
                 on_trace_ready=lambda p: seen.append(len(p.events()) > 0)) as p:
        for _ in range(5):
            work()
            p.step()
    say("traces ready", seen)


@section()
def old_profiler():
    with torch.autograd.profiler.profile(use_device="cuda" if gpu else None) as p:
        work()
    holds("torch.autograd.profiler has events", len(p.function_events) > 0)


@section(needs_gpu=True)
def ranges():
    torch.cuda.nvtx.range_push("outer")
    with torch.cuda.nvtx.range("inner"):
        work()
    torch.cuda.nvtx.mark("mark")
    torch.cuda.nvtx.range_pop()
    with torch.autograd.profiler.emit_nvtx():
        work()
    torch.cuda.profiler.start()
    work()
    torch.cuda.profiler.stop()
    say("ranges and the profiler's start and stop", "no error")


@section(needs_gpu=True)
def memory_history():
    torch.cuda.memory._record_memory_history()
    x = torch.empty(1 << 20, device="cuda")
    s = torch.cuda.memory._snapshot()
    torch.cuda.memory._record_memory_history(enabled=None)
    holds("the history has the allocation",
          any(t["action"] == "alloc" and t["size"] == x.numel() * 4 for d in s["device_traces"] for t in d))


@section()
def afterwards():
    same("afterwards", torch.arange(100, device=device) + 1, torch.arange(100) + 1)


done()
