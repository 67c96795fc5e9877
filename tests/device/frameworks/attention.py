# SPDX-License-Identifier: Apache-2.0
# group: torch
# limit: 80
# Scaled dot product attention by each of its backends, forwards and backwards, against the same in double
# precision on the CPU.
import functools
from checks import *
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

backends = {"math": SDPBackend.MATH}
if gpu:
    backends |= {"flash": SDPBackend.FLASH_ATTENTION, "memory-efficient": SDPBackend.EFFICIENT_ATTENTION,
                 "cudnn": SDPBackend.CUDNN_ATTENTION}


def inputs(dtype, shape, kv):
    g = torch.Generator().manual_seed(6)
    make = lambda *s: torch.randn(s, generator=g).to(dtype)
    return make(*shape), make(*kv), make(*kv), make(*shape)


def run(q, k, v, grad, **how):
    q, k, v = (t.clone().requires_grad_() for t in (q, k, v))
    out = F.scaled_dot_product_attention(q, k, v, **how)
    out.backward(grad)
    return out, q.grad, k.grad, v.grad


@functools.cache
def reference(dtype, shape, kv, **how):
    return run(*(t.double() for t in inputs(dtype, shape, kv)), **how)


def compare(name, backend, dtype, shape, kv, tolerance, **how):
    tensors = inputs(dtype, shape, kv)
    want = reference(dtype, shape, kv, **how)
    with sdpa_kernel([backend]):
        got = run(*(t.to(device) for t in tensors), **how)
    for part, a, b in zip(("output", "dq", "dk", "dv"), got, want):
        close(f"{name} {part}", a, b, tolerance)
    bits(f"{name} output", got[0])


@section()
def half_precision():
    for label, backend in backends.items():
        for dtype in (torch.float16, torch.bfloat16):
            for causal in (False, True):
                name = f"{label} {str(dtype)[6:]} {'causal' if causal else 'full'}"
                compare(name, backend, dtype, (2, 4, 256, 64), (2, 4, 256, 64), 3e-2, is_causal=causal)


@section()
def odd_shapes():
    for label, backend in backends.items():
        if label != "cudnn":
            compare(f"{label} odd", backend, torch.float16, (1, 3, 77, 40), (1, 3, 130, 40), 2e-2)


@section()
def single_precision():
    torch.backends.cuda.matmul.allow_tf32 = False
    for label in ("math", "memory-efficient"):
        if label in backends:
            compare(f"{label} float32", backends[label], torch.float32, (2, 4, 200, 64), (2, 4, 200, 64),
                    1e-3)


@section()
def masked():
    q, k, v, _ = inputs(torch.float16, (2, 4, 128, 64), (2, 4, 128, 64))
    mask = torch.rand(128, 128, generator=torch.Generator().manual_seed(7)) < 0.7
    mask[:, 0] = True
    want = F.scaled_dot_product_attention(q.double(), k.double(), v.double(), attn_mask=mask)
    for label in ("math", "memory-efficient"):
        if label in backends:
            with sdpa_kernel([backends[label]]):
                close(f"{label} masked",
                      F.scaled_dot_product_attention(*(t.to(device) for t in (q, k, v)),
                                                     attn_mask=mask.to(device)), want, 1e-2)


@section(needs_gpu=True)
def flexible():
    from torch.nn.attention.flex_attention import flex_attention

    q, k, v, _ = inputs(torch.float16, (1, 2, 128, 64), (1, 2, 128, 64))
    want = F.scaled_dot_product_attention(q.double(), k.double(), v.double(), is_causal=True)
    causal = lambda score, b, h, i, j: torch.where(i >= j, score, -float("inf"))
    close("flex attention", torch.compile(flex_attention)(q.cuda(), k.cuda(), v.cuda(), score_mod=causal),
          want, 1e-2)


done()
