# SPDX-License-Identifier: Apache-2.0
# group: math
# limit: 60
# cuDNN: convolutions of one to three dimensions in both layouts, grouped, dilated and transposed, with
# gradients and with the benchmark mode; LSTM, GRU and plain recurrent networks, packed sequences, batch and
# layer norms, pooling, CTC.
from checks import *
import torch
import torch.nn.functional as F

torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
G = torch.Generator().manual_seed(18)
rand = lambda *s: torch.randn(*s, generator=G)


def both(name, f, tensors, tolerance, cast=None, layout=torch.contiguous_format):
    """f of tensors on the device against doubles on the CPU, with gradients of all."""
    want = [t.detach().double().clone().requires_grad_() for t in tensors]
    got = [t.detach().to(device=device, dtype=cast or t.dtype, copy=True)
           .contiguous(memory_format=layout if t.dim() == 4 else torch.contiguous_format)
           .detach().requires_grad_() for t in tensors]
    a, b = f(*got), f(*want)
    close(name, a, b, tolerance)
    a.float().square().sum().backward()
    b.square().sum().backward()
    for i, (g, w) in enumerate(zip(got, want)):
        close(f"{name}, gradient {i}", g.grad, w.grad, tolerance)
    return a


@section()
def convolutions():
    x, w, b = rand(4, 16, 30, 34), rand(24, 16, 3, 3) / 12, rand(24)
    for name, layout in (("planes", torch.contiguous_format), ("channels last", torch.channels_last)):
        y = both(f"{name} float32", lambda x, w, b: F.conv2d(x, w, b, padding=1), [x, w, b], 1e-4,
                 layout=layout)
        if gpu:
            both(f"{name} float16", lambda x, w, b: F.conv2d(x, w, b, padding=1, stride=2), [x, w, b], 1e-2,
                 torch.float16, layout)
            both(f"{name} bfloat16", lambda x, w, b: F.conv2d(x, w, b, padding=1), [x, w, b], 5e-2,
                 torch.bfloat16, layout)
    both("one dimension", lambda x, w: F.conv1d(x, w, padding=2), [rand(3, 8, 100), rand(6, 8, 5) / 6], 1e-4)
    both("three dimensions", lambda x, w: F.conv3d(x, w), [rand(2, 4, 9, 10, 11), rand(5, 4, 3, 3, 3) / 10],
         1e-4)
    both("by channel", lambda x, w: F.conv2d(x, w, groups=16, padding=1), [x, rand(16, 1, 3, 3) / 3], 1e-4)
    both("in groups", lambda x, w: F.conv2d(x, w, groups=4), [x, rand(8, 4, 3, 3) / 6], 1e-4)
    both("dilated", lambda x, w: F.conv2d(x, w, dilation=3), [x, w], 1e-4)
    both("transposed", lambda x, w: F.conv_transpose2d(x, w, stride=2), [x, rand(16, 8, 3, 3) / 12], 1e-4)
    both("one by one", lambda x, w: F.conv2d(x, w), [x, rand(32, 16, 1, 1) / 4], 1e-4)


@section(needs_gpu=True)
def benchmark_mode():
    torch.backends.cudnn.benchmark = True
    x, w = rand(8, 32, 40, 40), rand(64, 32, 3, 3) / 17
    for _ in range(2):
        both("the fastest algorithm", lambda x, w: F.conv2d(x, w, padding=1), [x, w], 1e-3)
    torch.backends.cudnn.benchmark = False


@section(needs_gpu=True)
def deterministic():
    torch.backends.cudnn.deterministic = True
    x, w = rand(8, 32, 40, 40).cuda().requires_grad_(), (rand(64, 32, 3, 3) / 17).cuda().requires_grad_()
    y = F.conv2d(x, w, padding=1)
    y.square().mean().backward()
    bits("convolution", y)
    bits("gradient of the weights", w.grad)
    bits("gradient of the input", x.grad)
    torch.backends.cudnn.deterministic = False


@section()
def recurrent():
    for name, make in (("LSTM", torch.nn.LSTM), ("GRU", torch.nn.GRU), ("RNN", torch.nn.RNN)):
        torch.manual_seed(19)
        net = make(20, 32, num_layers=2, bidirectional=True)
        reference = make(20, 32, num_layers=2, bidirectional=True).double()
        reference.load_state_dict(net.state_dict())
        net.to(device)
        x = rand(15, 6, 20)
        a, b = net(x.to(device))[0], reference(x.double())[0]
        close(name, a, b, 1e-4)
        a.square().sum().backward()
        b.square().sum().backward()
        close(f"{name}, gradient", net.weight_hh_l0.grad, reference.weight_hh_l0.grad, 1e-4)
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, [15, 12, 9, 9, 4, 1])
        a = net(packed.to(device))[0].data
        b = reference(torch.nn.utils.rnn.pack_padded_sequence(x.double(), [15, 12, 9, 9, 4, 1]))[0].data
        close(f"{name}, packed", a, b, 1e-4)
        if gpu:
            net.half()
            close(f"{name}, half", net(x.half().cuda())[0], reference(x.double())[0], 1e-2)


@section()
def other_layers():
    x = rand(8, 12, 20, 22)
    both("batch norm", lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
         [x, rand(12), rand(12)], 1e-4)
    both("layer norm", lambda x, w: F.layer_norm(x, (22,), w), [x, rand(22)], 1e-4)
    both("group norm", lambda x, w: F.group_norm(x, 3, w), [x, rand(12)], 1e-4)
    both("max pool", lambda x: F.max_pool2d(x, 3, 2), [x], 1e-5)
    both("average pool", lambda x: F.adaptive_avg_pool2d(x, (5, 7)), [x], 1e-5)
    both("interpolation", lambda x: F.interpolate(x, scale_factor=1.7, mode="bilinear"), [x], 1e-4)
    both("grid sample", lambda x, g: F.grid_sample(x, torch.tanh(g), align_corners=False),
         [x, rand(8, 9, 9, 2)], 1e-3)
    logits = rand(30, 4, 10)
    targets = torch.randint(1, 10, (4, 8), generator=G)
    lengths = torch.full((4,), 30), torch.full((4,), 8)
    both("CTC", lambda v: F.ctc_loss(v.log_softmax(2), targets.to(v.device), *lengths), [logits], 1e-4)


done()
