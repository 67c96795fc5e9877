# SPDX-License-Identifier: Apache-2.0
# group: math
# limit: 45
# torch.fft and what stands on it, of lengths that are powers of two, composite and prime, in one to three
# dimensions.
from checks import *
import torch

G = torch.Generator().manual_seed(14)
real = lambda *s, dtype=torch.float32: torch.randn(*s, generator=G, dtype=torch.float64).to(dtype)


@section()
def one_dimension():
    for n in (8, 1024, 1000, 997, 65536):
        x = real(4, n)
        y = torch.fft.fft(x.to(device))
        close(f"fft {n}", y, torch.fft.fft(x.double()), 1e-4)
        close(f"ifft {n}", torch.fft.ifft(y).real, x, 1e-4)
        close(f"rfft {n}", torch.fft.rfft(x.to(device)), torch.fft.rfft(x.double()), 1e-4)
        close(f"irfft {n}", torch.fft.irfft(torch.fft.rfft(x.to(device)), n), x, 1e-4)
        bits(f"fft {n}", y)


@section()
def several_dimensions():
    x = real(3, 40, 36, 50)
    for name, f, g in (("fft2", torch.fft.fft2, torch.fft.ifft2), ("fftn", torch.fft.fftn, torch.fft.ifftn)):
        y = f(x.to(device))
        close(name, y, f(x.double()), 1e-4)
        close(f"{name} back", g(y).real, x, 1e-4)
    y = torch.fft.rfftn(x.to(device), dim=(1, 2, 3))
    close("rfftn", y, torch.fft.rfftn(x.double(), dim=(1, 2, 3)), 1e-4)
    d = real(64, 64, dtype=torch.float64)
    close("double", torch.fft.fft2(d.to(device)), torch.fft.fft2(d), 1e-10)
    c = torch.complex(real(100), real(100))
    close("strided", torch.fft.fft(c.to(device)[::2]), torch.fft.fft(c.to(torch.complex128)[::2]), 1e-4)


@section(needs_gpu=True)
def half():
    x = real(4, 256).half()
    close("half", torch.fft.rfft(x.cuda()).to(torch.complex64), torch.fft.rfft(x.double()), 2e-2)


@section()
def applications():
    x = real(2, 4000)
    window = torch.hann_window(256)
    s = torch.stft(x.to(device), 256, window=window.to(device), return_complex=True)
    close("stft", s, torch.stft(x.double(), 256, window=window.double(), return_complex=True), 1e-4)
    close("istft", torch.istft(s, 256, window=window.to(device), length=4000), x, 1e-4)
    a, b = real(500), real(300)
    product = torch.fft.irfft(torch.fft.rfft(a.to(device), 1024) * torch.fft.rfft(b.to(device), 1024),
                              1024)[:799]
    close("convolution", product,
        torch.nn.functional.conv1d(a[None, None].double(), b.flip(0)[None, None].double(), padding=299)[0, 0],
        1e-4)
    x = real(64, dtype=torch.float64).to(device).requires_grad_()
    (torch.fft.fft(x).abs() ** 2).sum().backward()
    close("gradient", x.grad, 128 * x, 1e-10)


@section(needs_gpu=True)
def plans():
    """More plans than the cache holds, and with a cache of none."""
    torch.backends.cuda.cufft_plan_cache.max_size = 4
    for n in range(100, 120):
        x = real(n)
        close(f"plan {n}", torch.fft.fft(x.cuda()), torch.fft.fft(x.double()), 1e-4)
    say("plans kept", torch.backends.cuda.cufft_plan_cache.size)
    torch.backends.cuda.cufft_plan_cache.clear()


done()
