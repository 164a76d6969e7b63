"""Bits do not depend on the number of threads, although work is split differently: values and gradients of layers on the CPU."""

import pytest
import rustgrad as torch
from rustgrad.nn import functional as F

GRID = [(3, 5), (2, 16), (16, 4)]


def attention(heads, width):
    q, k, v = (torch.rand(2, heads, 70, width) for _ in range(3))
    return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), (q, k, v)


CALLS = {
    **{f"attention, {h} heads of {w}": (lambda h=h, w=w: attention(h, w)) for h, w in GRID},
    "group_norm": lambda: (
        lambda x, w, b: F.group_norm(x, 3, w, b),
        (torch.rand(11, 6, 90, 70), torch.rand(6), torch.rand(6)),
    ),
    "group_norm, channels last": lambda: (
        lambda x: F.group_norm(x.to(memory_format=torch.channels_last), 2),
        (torch.rand(9, 4, 90, 100),),
    ),
    "instance_norm": lambda: (F.instance_norm, (torch.rand(10, 5, 100, 70),)),
    "batch_norm": lambda: (lambda x: F.batch_norm(x, None, None, training=True), (torch.rand(10, 5, 40, 30),)),
    "conv2d": lambda: (
        lambda x, w: F.conv2d(x, w, stride=2, padding=1),
        (torch.rand(6, 12, 29, 31), torch.rand(40, 12, 3, 3)),
    ),
    "conv_transpose2d": lambda: (
        lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1),
        (torch.rand(7, 40, 9, 13), torch.rand(40, 12, 4, 4)),
    ),
    "avg_pool2d": lambda: (lambda x: F.avg_pool2d(x, 3, 2, 1), (torch.rand(8, 5, 61, 47),)),
    "max_pool2d": lambda: (lambda x: F.max_pool2d(x, 2), (torch.rand(8, 5, 61, 47),)),
    "dot": lambda: (torch.dot, (torch.rand(200_001), torch.rand(200_001))),
    "x - a column": lambda: (lambda x: x - x[:, :1], (torch.rand(700, 300),)),
    "fft2": lambda: (lambda x: torch.fft.fft2(x).real, (torch.rand(9, 64, 70),)),
    "layer_norm": lambda: (lambda x: F.layer_norm(x, (130,)), (torch.rand(900, 130),)),
    "topk": lambda: (lambda x: x.topk(7).values, (torch.rand(300, 500),)),
}


@pytest.mark.parametrize("name", CALLS)
def test_values_and_gradients(name):
    torch.manual_seed(5)
    function, given = CALLS[name]()
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 7):
            torch.set_num_threads(threads)
            inputs = [x.clone().requires_grad_() for x in given]
            y = function(*inputs)
            grads = torch.autograd.grad(y, inputs, torch.linspace(0.5, 1.5, y.numel()).view(y.shape))
            results.append([y.detach(), *grads])
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            assert torch.equal(a, b)
    assert all(x.isfinite().all() for x in results[0])
