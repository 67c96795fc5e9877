#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What PyTorch programs take on whatever GPU libcuda shows. Prints `name value` lines as micro does: times,
and beside each the round trips that the mount counted for one iteration (SCUDAFS_MOUNT; nothing natively).
Data is on the GPU unless a name says otherwise.

    framework.py [SECTION...]       start resnet gpt2 train replay compile copies; all but copies unless named
    framework.py --quick SECTION... a few iterations, as on a slow network

copies needs no kernel: the part that runs on the software device, too. Exit status 1 when a section failed;
the others go on. """
import os
import sys
import time
import traceback

start = time.perf_counter()
import torch

imported = time.perf_counter()
quick = "--quick" in sys.argv
stats = os.path.join(os.environ["SCUDAFS_MOUNT"], "stats", "waits") if "SCUDAFS_MOUNT" in os.environ else None


def round_trips():
    with open(stats) as f:
        return int(f.read())


def tell(name, value):
    print(f"{name} {value:.6g}", flush=True)


def measure(name, step, scale, n, warm=3, per=1):
    """Time of one of n steps, in 1/scale seconds, and its round trips; a step counts for `per` of what is
    named. Device work is included."""
    n = max(n // 2, 2) if quick else n
    for _ in range(warm):
        step()
    torch.cuda.synchronize()
    before = round_trips() if stats else 0
    t = time.perf_counter()
    for _ in range(n):
        step()
    waits = (round_trips() - before) / n / per if stats else 0
    torch.cuda.synchronize()
    tell(name, (time.perf_counter() - t) * scale / n / per)
    if stats:
        tell("waits_" + name.rsplit("_", 1)[0], waits)


def section_start():
    before = round_trips() if stats else 0
    tell("torch_import_s", imported - start)
    t = time.perf_counter()
    assert torch.cuda.is_available() and torch.cuda.device_count() > 0
    tell("torch_available_s", time.perf_counter() - t)
    x = torch.ones(512, 512, device="cuda")
    y = (x @ x).sum().item()
    assert y == 512.0**3, y
    tell("torch_first_result_s", time.perf_counter() - imported)
    if stats:
        tell("waits_torch_first_result", round_trips() - before)


def section_resnet():
    import torchvision
    model = torchvision.models.resnet50().cuda().eval()
    with torch.inference_mode():
        for batch in (1, 64):
            x = torch.randn(batch, 3, 224, 224, device="cuda")
            measure(f"resnet50_b{batch}_ms", lambda: model(x), 1e3, 20)
        measure("resnet50_b64_read_ms", lambda: model(x).argmax(1).cpu(), 1e3, 20)
        if not quick:
            host = torch.randn(64, 3, 224, 224).pin_memory()
            measure("resnet50_b64_hostio_ms", lambda: model(host.cuda(non_blocking=True)).argmax(1).cpu(),
                    1e3, 10)


def section_train():
    import torchvision
    model = torchvision.models.resnet50().cuda().train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    scaler = torch.amp.GradScaler("cuda")
    images = torch.randn(32, 3, 224, 224, device="cuda")
    labels = torch.randint(0, 1000, (32,), device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(model(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    measure("resnet50_train_b32_ms", step, 1e3, 10)


def section_gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel
    tokens = 32
    model = GPT2LMHeadModel(GPT2Config()).cuda().half().eval()
    prompt = torch.randint(0, 50000, (1, 32), device="cuda")
    with torch.inference_mode():
        measure("gpt2_token_ms",
                lambda: model.generate(prompt, max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False,
                pad_token_id=0), 1e3, 3, 1, tokens)


def section_replay():
    x, w = torch.randn(64, 1024, device="cuda"), torch.randn(1024, 1024, device="cuda")
    x @ w
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        z = x
        for _ in range(20):
            z = torch.relu(z @ w)
    measure("graph_replay_us", graph.replay, 1e6, 500)


def section_compile():
    x = torch.randn(64, 1024, device="cuda")
    kernel = torch.compile(lambda a: torch.softmax(a * a + a.sin(), -1).sum(-1))
    measure("compiled_kernel_us", lambda: kernel(x), 1e6, 500, 10)


def section_copies():
    there = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
    here = torch.arange(1 << 20, dtype=torch.int32).to(torch.uint8)

    def step():
        for i in range(8):
            there[i << 16:(i + 1) << 16].copy_(here[i << 16:(i + 1) << 16], non_blocking=True)
        assert torch.equal(there[:1 << 16].cpu(), here[:1 << 16])

    measure("copies_read_us", step, 1e6, 40)


failed = False
for name in [a for a in sys.argv[1:] if not a.startswith("-")] or ["start", "resnet", "gpt2", "train",
    "replay", "compile"]:
    try:
        globals()["section_" + name]()
    except Exception as e:  # one that fails must not hide the others
        failed = True
        traceback.print_exc()
        print(f"# {name} failed: {type(e).__name__}: {e}", file=sys.stderr)
sys.exit(failed)
