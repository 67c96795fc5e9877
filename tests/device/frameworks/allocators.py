# SPDX-License-Identifier: Apache-2.0
# group: memory
# limit: 100
# PyTorch's other allocators, each in a process of its own: segments that grow (virtual memory management),
# CUDA's stream-ordered pool, pinned memory by registration, and no caching at all. The same work in each:
# growing tensors, a matrix product, a graph, out of memory.
import os
import subprocess
from checks import *

configurations = {
    "expandable segments": {"PYTORCH_ALLOC_CONF": "expandable_segments:True"},
    "stream-ordered": {"PYTORCH_ALLOC_CONF": "backend:cudaMallocAsync"},
    "registered host memory": {"PYTORCH_ALLOC_CONF":
                               "pinned_use_cuda_host_register:True,pinned_num_register_threads:4"},
    "small splits": {"PYTORCH_ALLOC_CONF":
                     "max_split_size_mb:32,garbage_collection_threshold:0.6,roundup_power2_divisions:4"},
    "no caching": {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"},
}


def work(label):
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    MiB = 1 << 20
    say("backend", torch.cuda.get_allocator_backend())
    kept = []
    for k in range(1, 40):
        t = torch.full((k * MiB // 4,), float(k), device="cuda")
        if k % 3:
            kept.append(t)
    holds("tensors keep their values",
          all(float(t[0]) == float(t[-1]) == t.float().mean().round() for t in kept))
    del kept[::2]
    big = torch.zeros(300 * MiB, dtype=torch.uint8, device="cuda")
    say("a large one between them", int(big.sum()))
    del big, kept[:]
    a = torch.randn(300, 200, generator=torch.Generator().manual_seed(1))
    close("product", a.cuda() @ a.cuda().T, a @ a.T, 1e-4)
    p = torch.arange(MiB).pin_memory()
    same("pinned", p.cuda(non_blocking=True), p)
    s = torch.cuda.Stream()
    with torch.cuda.stream(s):
        y = torch.full((MiB,), 2.0, device="cuda")
    s.synchronize()
    say("another stream", float(y.sum()))
    try:
        torch.empty(1 << 42, dtype=torch.uint8, device="cuda")
        fault("out of memory", "did not raise")
    except RuntimeError as e:
        say("out of memory", type(e).__name__)
    torch.cuda.empty_cache()
    same("afterwards", torch.arange(10, device="cuda") * 3, torch.arange(10) * 3)
    if label != "no caching":
        x = torch.ones(1000, device="cuda")
        g = torch.cuda.CUDAGraph()
        with torch.cuda.graph(g):
            z = (x * 2).cumsum(0)
        x.fill_(3)
        g.replay()
        same("graph", z, torch.full((1000,), 6.0).cumsum(0))
    note(f"reserved {torch.cuda.memory_reserved()}")


if len(sys.argv) > 2 and sys.argv[1] == "--as":
    section()(lambda: work(sys.argv[2]))
    done()
if not gpu:
    skip("allocators of the GPU")


children = {label: subprocess.Popen([sys.executable, __file__, "--as", label], env=os.environ | environment,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for label, environment in configurations.items()}


def child(label):
    try:
        out, err = children[label].communicate(timeout=80)
    except subprocess.TimeoutExpired:
        children[label].kill()
        out, err = children[label].communicate()
    for line in out.splitlines():
        if not line.startswith("PASS"):
            print(line if line.startswith("~") else f"{label}: {line}")
    if children[label].returncode:
        fault(label, f"status {children[label].returncode}: {' '.join(err.split())[-300:]}")


for label in configurations:
    section()(lambda: child(label))
import torch

torch.zeros(1, device="cuda")
done()
