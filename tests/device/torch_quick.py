# SPDX-License-Identifier: Apache-2.0
# A quick look at PyTorch, for the step `torch` of run.sh, which compares what it prints natively and through
# a mount, but for what follows a "~". The programs in frameworks/ look closer.
import time
import torch

t = time.time()
print("available", torch.cuda.is_available(), torch.cuda.device_count(),
      f"~{time.time() - t:.2f} s")
p = torch.cuda.get_device_properties(0)
print("properties", p.name, p.major, p.minor, p.multi_processor_count, p.total_memory)
torch.backends.cuda.matmul.allow_tf32 = False
torch.manual_seed(1)
a, b = torch.randn(777, 555), torch.randn(555, 888)
d = (a.cuda() @ b.cuda()).cpu()
print("matmul", float((d - a @ b).abs().max()) < 1e-3)
h = (a.cuda().half() @ b.cuda().half()).float().cpu()
print("half matmul", float((h - a @ b).abs().max()) < 0.5)
c = torch.nn.Conv2d(3, 16, 3).cuda()
x = torch.randn(2, 3, 32, 32)
print("convolution", float((c(x.cuda()).cpu() - c.cpu()(x)).abs().max()) < 1e-2)
w = torch.randn(100, 100, device="cuda", requires_grad=True)
(w @ w).sum().backward()
print("backward", bool(torch.isfinite(w.grad).all()))
s = torch.cuda.Stream()
with torch.cuda.stream(s):
    y = torch.arange(1000000, device="cuda").sum()
s.synchronize()
print("stream", int(y) == 499999500000)
all_of_them = torch.arange(100000, device="cuda")
sorted_ = torch.randperm(100000, device="cuda").sort().values
print("sort", bool((sorted_ == all_of_them).all()))
