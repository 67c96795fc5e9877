# SPDX-License-Identifier: Apache-2.0
# group: math
# limit: 45
# Matrix products of every precision that the tensor cores have: fp64, fp32, tf32, fp16, bf16, int8 and fp8,
# with scales, biases and epilogues.
from checks import *
import torch

G = torch.Generator().manual_seed(17)
rand = lambda *s: torch.randn(*s, generator=G)


@section()
def plain():
    a, b = rand(300, 200), rand(200, 400)
    want = a.double() @ b.double()
    torch.backends.cuda.matmul.allow_tf32 = False
    close("float32", a.to(device) @ b.to(device), want, 1e-5)
    torch.backends.cuda.matmul.allow_tf32 = True
    close("tf32", a.to(device) @ b.to(device), want, 5e-3)
    torch.backends.cuda.matmul.allow_tf32 = False
    close("float64", a.double().to(device) @ b.double().to(device), want, 1e-12)
    for dtype, tolerance in ((torch.float16, 2e-3), (torch.bfloat16, 1e-2)):
        x, y = a.to(dtype), b.to(dtype)
        got = x.to(device) @ y.to(device)
        close(str(dtype)[6:], got, x.double() @ y.double(), tolerance)
        bits(str(dtype)[6:], got)
    c = torch.complex(a, rand(300, 200))
    close("complex", c.to(device) @ c.mT.to(device), c.to(torch.complex128) @ c.mT.to(torch.complex128), 1e-5)


@section()
def batched_and_fused():
    a, b, bias = rand(6, 64, 32).half(), rand(6, 32, 48).half(), rand(48).half()
    if gpu:
        close("batched", torch.bmm(a.to(device), b.to(device)), a.double() @ b.double(), 3e-3)
        close("with a bias", torch.addmm(bias.cuda(), a[0].cuda(), b[0].cuda()),
              bias.double() + a[0].double() @ b[0].double(), 3e-3)
        close("with a bias and GELU",
              torch._addmm_activation(bias.cuda(), a[0].cuda(), b[0].cuda(), use_gelu=True),
              torch.nn.functional.gelu(bias.double() + a[0].double() @ b[0].double(), approximate="tanh"),
              3e-3)
        close("linear", torch.nn.functional.linear(a.cuda(), b[0].mT.cuda().contiguous(), bias.cuda()),
              a.double() @ b[0].double() + bias.double(), 3e-3)
    close("strided", a.float().to(device).transpose(1, 2) @ a.float().to(device),
          a.double().transpose(1, 2) @ a.double(), 1e-4)
    empty = torch.zeros(5, 0, device=device) @ torch.zeros(0, 7, device=device)
    same("with nothing in between", empty, torch.zeros(5, 7))


@section()
def int8():
    a = torch.randint(-128, 128, (64, 256), generator=G, dtype=torch.int8)
    b = torch.randint(-128, 128, (256, 96), generator=G, dtype=torch.int8)
    same("int8", torch._int_mm(a.to(device), b.to(device)), a.long() @ b.long())


@section(needs_gpu=True)
def fp8():
    a, b = rand(64, 128), rand(128, 96)
    for kind, tolerance in ((torch.float8_e4m3fn, 1e-2), (torch.float8_e5m2, 1e-2)):
        name = str(kind)[6:]
        x = a.to(kind)
        y = b.mT.contiguous().to(torch.float8_e4m3fn).mT
        sx, sy = torch.tensor(0.5), torch.tensor(2.0)
        for out in (torch.bfloat16, torch.float16, torch.float32):
            got = torch._scaled_mm(x.cuda(), y.mT.contiguous().cuda().mT, scale_a=sx.cuda(),
                                   scale_b=sy.cuda(), out_dtype=out)
            close(f"{name} to {str(out)[6:]}", got, x.double() @ y.double(), tolerance)
    x = a.to(torch.float8_e4m3fn)
    y = b.mT.contiguous().to(torch.float8_e4m3fn)
    sa, sb = torch.rand(64, 1, generator=G) + 0.5, torch.rand(1, 96, generator=G) + 0.5
    got = torch._scaled_mm(x.cuda(), y.cuda().mT, scale_a=sa.cuda(), scale_b=sb.cuda(),
                           out_dtype=torch.bfloat16, use_fast_accum=True)
    close("fp8 with scales of rows", got, (x.double() * sa) @ (y.mT.double() * sb), 2e-2)
    bits("fp8 with scales of rows", got)


@section(needs_gpu=True)
def large():
    a = rand(4096, 4096).bfloat16()
    got = a.cuda() @ a.cuda()
    rows = torch.tensor([0, 1, 777, 4095])
    close("4096 in bfloat16", got[rows.cuda()], a[rows].double() @ a.double(), 1e-2)
    close("of ones",
        torch.ones(8192, 8192, device="cuda", dtype=torch.float16)[:100] @ torch.ones(8192, 64, device="cuda",
        dtype=torch.float16),
          torch.full((100, 64), 8192.0), 0)


done()
