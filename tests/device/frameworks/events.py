# SPDX-License-Identifier: Apache-2.0
# group: torch
# limit: 45
# alone: yes
# Streams and events: order between streams, times that grow with the work, queries, priorities, and host
# callbacks' order.
import time
from checks import *
import torch

if not gpu:
    skip("streams of the GPU")
CYCLES = 20_000_000  # about 12 ms


# The clocks rise with the first work.
for _ in range(10):
    torch.cuda._sleep(CYCLES)
    torch.cuda.synchronize()


@section()
def times():
    e = [torch.cuda.Event(enable_timing=True) for _ in range(4)]
    torch.cuda._sleep(1000)
    e[0].record()
    torch.cuda._sleep(CYCLES)
    e[1].record()
    torch.cuda._sleep(CYCLES * 3)
    e[2].record()
    e[3].record()
    e[3].synchronize()
    a, b, c = (e[i].elapsed_time(e[i + 1]) for i in range(3))
    note(f"{a:.2f} ms, {b:.2f} ms, {c:.4f} ms")
    holds("three times the work takes about three times as long", 2.5 < b / a < 3.5, (a, b))
    holds("nothing takes nearly nothing", 0 <= c < 1, c)
    number("backwards is negative", round(e[1].elapsed_time(e[0]) + a, 3), 0.01)


@section()
def queries():
    e = torch.cuda.Event()
    torch.cuda._sleep(CYCLES * 10)
    e.record()
    busy = e.query(), torch.cuda.current_stream().query()
    e.synchronize()
    say("while it works and afterwards", (busy, e.query(), torch.cuda.current_stream().query()))


@section()
def order():
    a, b = torch.cuda.Stream(), torch.cuda.Stream(priority=-1)
    x = torch.zeros(100000, device="cuda")
    torch.cuda.synchronize()
    for i in range(20):
        with torch.cuda.stream(a):
            torch.cuda._sleep(100000)
            x += 1
            done_a = a.record_event()
        b.wait_event(done_a)
        with torch.cuda.stream(b):
            x *= 2
        a.wait_stream(b)
    a.synchronize()
    want = 0
    for _ in range(20):
        want = (want + 1) * 2
    same("two streams take turns", x.double(), torch.full((100000,), float(want)).double())


@section()
def concurrency():
    streams = [torch.cuda.Stream() for _ in range(8)]
    torch.cuda.synchronize()
    start = time.perf_counter()
    for s in streams:
        with torch.cuda.stream(s):
            torch.cuda._sleep(CYCLES * 4)
    torch.cuda.synchronize()
    took = (time.perf_counter() - start) * 1e3
    start = time.perf_counter()
    for s in streams:
        torch.cuda._sleep(CYCLES * 4)
    torch.cuda.synchronize()
    one = (time.perf_counter() - start) * 1e3
    note(f"eight streams {took:.1f} ms, one stream {one:.1f} ms")
    holds("streams work at once", took < one * 0.6, (took, one))


@section()
def properties():
    say("priorities", torch.cuda.Stream.priority_range())
    say("of a stream", (torch.cuda.Stream(priority=-1).priority, torch.cuda.Stream().priority))
    s = torch.cuda.Stream()
    e = torch.cuda.ExternalStream(s.cuda_stream)
    with torch.cuda.stream(e):
        x = torch.ones(10, device="cuda") * 4
    e.synchronize()
    same("a stream from outside", x, torch.full((10,), 4.0))


@section()
def launch_returns_before_the_work():
    torch.cuda.synchronize()
    start = time.perf_counter()
    torch.cuda._sleep(CYCLES * 20)
    posted = time.perf_counter() - start
    torch.cuda.synchronize()
    took = time.perf_counter() - start
    note(f"posted in {posted * 1e6:.0f} us, done in {took * 1e3:.1f} ms")
    holds("a launch does not wait for the kernel", posted < took / 5)


done()
