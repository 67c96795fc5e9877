# SPDX-License-Identifier: Apache-2.0
# group: models
# limit: 80
# native runs: 2
# ResNet-50, trained with mixed precision as people do: its losses are those of native runs, to the tolerance
# that two of these have. And with deterministic algorithms, where they are equal to the last bit.
import os

os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
from checks import *

try:
    import torch
    import torchvision
except ImportError as e:
    skip(e)

batch, size, steps = (32, 224, 10) if gpu else (2, 64, 3)
half = torch.float16 if gpu else torch.bfloat16


def train(steps, channels_last=False):
    torch.manual_seed(1)
    model = torchvision.models.resnet50()
    x = torch.randn(batch, 3, size, size)
    y = torch.arange(batch) * 31 % 1000
    layout = torch.channels_last if channels_last else torch.contiguous_format
    model = model.to(device, memory_format=layout)
    x = x.to(device, memory_format=layout)
    y = y.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    scaler = torch.amp.GradScaler(device, enabled=gpu)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, dtype=half):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(float(loss.detach()))
    return model, losses, scaler.get_scale()


@section()
def amp():
    _, losses, scale = train(steps)
    for i, loss in enumerate(losses):
        spread(f"loss {i}", loss)
    say("scale", scale)
    holds("the loss falls", losses[-1] < losses[0], losses)


@section()
def channels_last():
    _, losses, _ = train(3, channels_last=True)
    for i, loss in enumerate(losses):
        spread(f"channels last loss {i}", loss)


@section(needs_gpu=True)
def deterministic():
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    model, losses, _ = train(3)
    for i, loss in enumerate(losses):
        say(f"deterministic loss {i}", loss.hex())
    bits("first weights", model.conv1.weight)
    bits("running mean", model.bn1.running_mean)
    torch.use_deterministic_algorithms(False)


done()
