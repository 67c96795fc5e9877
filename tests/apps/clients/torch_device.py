# SPDX-License-Identifier: Apache-2.0
# A stock PyTorch: the device is there, memory and copies work; its kernels are machine code, and the error
# says so.
import torch

assert torch.cuda.is_available(), "no device"
p = torch.cuda.get_device_properties(0)
print(p.name, "torch", torch.__version__)
assert torch.cuda.device_count() >= 1 and p.multi_processor_count >= 1 and p.total_memory > 0
a = torch.randn(1000, 100)
x = a.pin_memory().to("cuda", non_blocking=True)
torch.cuda.synchronize()
assert torch.equal(x.clone().cpu(), a), "copies"
free, total = torch.cuda.mem_get_info()
assert 0 < free <= total == p.total_memory
s, e = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
s.record()
x.copy_(a)
e.record()
e.synchronize()
assert s.elapsed_time(e) >= 0
if "software" in p.name:
    try:
        x + x
        torch.cuda.synchronize()
        raise SystemExit("a kernel without PTX ran?")
    except RuntimeError as error:
        assert "no kernel image" in str(error), error
    try:
        x @ x.t()
        torch.cuda.synchronize()
        raise SystemExit("cuBLAS ran without machine code?")
    except RuntimeError as error:
        assert "CUBLAS_STATUS" in str(error), error
else:
    assert torch.equal((x + x).cpu(), a + a), "add"
print("PASS torch")
