# SPDX-License-Identifier: Apache-2.0
# group: processes
# limit: 60
# DataLoader with worker processes, forked from a process that uses the GPU and spawned, with pinned memory
# and without: the batches are right and reach the GPU; the parent's session survives its children.
from checks import *
import torch
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self):
        return 512

    def __getitem__(self, i):
        return torch.full((16, 16), float(i)), i * i


class Refuses(Dataset):
    """What the worker sees of CUDA: a forked child has none."""

    def __len__(self):
        return 4

    def __getitem__(self, i):
        try:
            torch.zeros(1, device="cuda")
            return 0
        except RuntimeError as e:
            return 1 if "forked subprocess" in str(e) else 2


def total(**how):
    loader = DataLoader(Squares(), batch_size=32, **how)
    weights = torch.ones(16, 16, device=device)
    sums = []
    for epoch in range(2):
        for x, y in loader:
            if how.get("pin_memory") and gpu and not (x.is_pinned() and y.is_pinned()):
                raise ValueError("the batch is not in pinned memory")
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            sums.append(((x * weights).mean((1, 2)) ** 2 - y).abs().sum() + y.sum())
    return int(torch.stack(sums).double().sum())


if __name__ == "__main__":
    want = 2 * sum(i * i for i in range(512))

    @section()
    def warm():
        torch.ones(10, device=device).sum().item()

    @section()
    def no_workers():
        say("no workers", total() == want)

    @section()
    def forked():
        say("forked", total(num_workers=2, multiprocessing_context="fork") == want)
        say("forked, pinned",
            total(num_workers=2, multiprocessing_context="fork", pin_memory=gpu,
                  persistent_workers=True) == want)

    @section()
    def spawned():
        say("spawned, pinned",
            total(num_workers=2, multiprocessing_context="spawn", pin_memory=gpu,
                  persistent_workers=True) == want)

    @section(needs_gpu=True)
    def cuda_in_a_forked_worker():
        seen = [int(v) for batch in DataLoader(Refuses(), num_workers=2, multiprocessing_context="fork")
                for v in batch]
        say("CUDA in a forked worker is refused in words", seen == [1, 1, 1, 1])

    @section()
    def afterwards():
        same("afterwards", torch.arange(100, device=device) * 2, torch.arange(100) * 2)

    done()
