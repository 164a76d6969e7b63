"""Rows of a hardware GPU, for one module: python benches/gpu.py MODULE [PARTS..] prints {row: seconds}.

rustgrad's device is `gpu` (wgpu), PyTorch's `cuda` or `mps`. Work is asynchronous: a row's time is that of many calls, of
which the last is waited for, divided by their number; the median of several such stretches. No row reads anything back.
"""

import importlib
import json
import sys
import time
from functools import partial

import programs
from timing import timed

MILLION = 1_000_000


class Device:
    """Where a module's tensors go, how its device is waited for, and how long calls take."""

    def __init__(self, torch):
        self.torch = torch
        if torch.__name__ == "rustgrad":
            self.name, self.wait = "gpu", torch.gpu.synchronize
            self.title = torch.gpu.get_device_name()
        elif torch.cuda.is_available():
            self.name, self.wait = "cuda", torch.cuda.synchronize
            self.title = torch.cuda.get_device_name()
        else:
            self.name, self.wait, self.title = "mps", torch.mps.synchronize, "MPS"

    def rand(self, *shape):
        return self.torch.rand(*shape, device=self.name)

    def randn(self, *shape):
        return self.torch.randn(*shape, device=self.name)

    def randint(self, high, shape):
        return self.torch.randint(0, high, shape, device=self.name)

    def timed(self, function, stretch=0.04, repeats=5) -> float:
        """Seconds per call."""
        return timed(function, stretch, repeats, self.wait)

    def both(self, function, *leaves) -> float:
        """Forward and backward, by leaves whose gradients are dropped before."""
        for leaf in leaves:
            leaf.requires_grad_()
        ones = self.torch.ones_like(function())

        def step():
            for leaf in leaves:
                leaf.grad = None
            function().backward(ones)

        return self.timed(step)


def calls(d) -> dict:
    a, b, w = d.rand(4), d.rand(4), d.rand(4).requires_grad_()
    m = d.rand(64, 64)
    return {
        "a + b, 4 floats": d.timed(lambda: a + b),
        "a + b, 4 floats, recorded": d.timed(lambda: w + b),
        "matmul, 64": d.timed(lambda: m @ m),
        "sum, 4,096 floats": d.timed(lambda: m.sum()),
    }


def elementwise(d) -> dict:
    torch, found = d.torch, {}
    for name, n in (("1M", MILLION), ("64M", 64 * MILLION)):
        a, b = d.rand(n), d.rand(n)
        h = a.half()
        found |= {
            f"a + b, {name}": d.timed(lambda a=a, b=b: a + b),
            f"exp, {name}": d.timed(lambda a=a: a.exp()),
            f"gelu, {name}": d.timed(lambda a=a: torch.nn.functional.gelu(a)),
            f"a + b, float16, {name}": d.timed(lambda h=h: h + h),
            f"float to int32, {name}": d.timed(lambda a=a: a.to(torch.int32)),
            f"fill, {name}": d.timed(lambda a=a: a.fill_(1.0)),
        }
    m = d.rand(8000, 8000)
    found["t().contiguous(), 8000 x 8000"] = d.timed(lambda: m.t().contiguous())
    found["a + row, 8000 x 8000"] = d.timed(lambda: m + m[0])
    return found


def reductions(d) -> dict:
    torch = d.torch
    x, m = d.rand(64 * MILLION), d.rand(8192, 8192)
    short = d.rand(1 << 20, 32)
    return {
        "sum, 64M": d.timed(lambda: x.sum()),
        "sum(0), 8192 x 8192": d.timed(lambda: m.sum(0)),
        "sum(1), 8192 x 8192": d.timed(lambda: m.sum(1)),
        "max(1), 8192 x 8192": d.timed(lambda: m.max(1)),
        "var(1), 8192 x 8192": d.timed(lambda: m.var(1)),
        "softmax(1), 8192 x 8192": d.timed(lambda: torch.softmax(m, 1)),
        "softmax(1), 1M x 32": d.timed(lambda: torch.softmax(short, 1)),
        "cumsum(1), 8192 x 8192": d.timed(lambda: m.cumsum(1)),
        "cumsum, 64M": d.timed(lambda: x.cumsum(0)),
    }


def matrices(d) -> dict:
    found = {}
    for n in (256, 512, 1024, 2048, 4096, 8192):
        a, b = d.rand(n, n), d.rand(n, n)
        found[f"matmul, {n}"] = d.timed(lambda a=a, b=b: a @ b)
        if n in (1024, 4096):
            found[f"matmul a @ b.T, {n}"] = d.timed(lambda a=a, b=b: a @ b.t())
            found[f"matmul a.T @ b, {n}"] = d.timed(lambda a=a, b=b: a.t() @ b)
            h = a.half()
            found[f"matmul, float16, {n}"] = d.timed(lambda h=h: h @ h)
    a, b = d.rand(256, 128, 128), d.rand(256, 128, 128)
    x, w = d.rand(64, 4096), d.rand(4096, 4096)
    v = d.rand(1, 4096)
    return found | {
        "bmm, 256 of 128": d.timed(lambda: a @ b),
        "linear, 64 x 4096 x 4096": d.timed(lambda: d.torch.nn.functional.linear(x, w)),
        "linear, 1 x 4096 x 4096": d.timed(lambda: d.torch.nn.functional.linear(v, w)),
        "weight gradient, 4096 x 64 x 4096": d.timed(lambda: x.t() @ x),
    }


def layers(d) -> dict:
    nn = d.torch.nn
    x, image = d.randn(4096, 1024), d.randn(64, 64, 56, 56)
    norm, batch, group = nn.LayerNorm(1024), nn.BatchNorm2d(64), nn.GroupNorm(8, 64)
    table, words = d.rand(50_000, 512), d.randint(50_000, (64, 256))
    scores, target = d.randn(8192, 1024), d.randint(1024, (8192,))
    for layer in (norm, batch, group):
        layer.to(d.name)
    return {
        "layer_norm, 4096 x 1024": d.timed(lambda: norm(x)),
        "layer_norm and backward, 4096 x 1024": d.both(lambda: norm(x), x),
        "batch_norm and backward, 64 x 64 x 56 x 56": d.both(lambda: batch(image), image),
        "group_norm(8) and backward, 64 x 64 x 56 x 56": d.both(lambda: group(image), image),
        "max_pool2d(2) and backward, 64 x 64 x 56 x 56": d.both(lambda: nn.functional.max_pool2d(image, 2), image),
        "avg_pool2d(2) and backward, 64 x 64 x 56 x 56": d.both(lambda: nn.functional.avg_pool2d(image, 2), image),
        "embedding and backward, 16,384 of 512": d.both(lambda: nn.functional.embedding(words, table), table),
        "cross_entropy and backward, 8192 x 1024": d.both(lambda: nn.functional.cross_entropy(scores, target), scores),
        "dropout, 64 x 64 x 56 x 56": d.timed(lambda: nn.functional.dropout(image.detach(), 0.5)),
    }


def sequences(d) -> dict:
    torch, found = d.torch, {}
    for length in (256, 1024, 4096):
        operands = [d.randn(2, 16, length, 64) for _ in range(3)]
        leaves = [t.clone() for t in operands]
        for causal in (False, True):
            attend = partial(torch.nn.functional.scaled_dot_product_attention, is_causal=causal)
            name = f"attention, 32 heads, {length} x 64" + (", causal" if causal else "")
            found[name] = d.timed(partial(attend, *operands))
            found[f"{name}, and backward"] = d.both(partial(attend, *leaves), *leaves)
    x = d.randn(64, 32, 256)
    for kind in ("LSTM", "GRU"):
        net = getattr(torch.nn, kind)(256, 256).to(d.name)
        found[f"{kind} 256-256, 64 steps of 32"] = d.timed(lambda net=net: net(x))
        found[f"{kind} 256-256, 64 steps of 32, and backward"] = d.both(lambda net=net: net(x)[0], x)
    return found


# Batch, input and output channels, side, kernel, stride, padding, groups.
CONVOLUTIONS = {
    "3 x 3, 64 to 64 at 56 x 56, batch 64": (64, 64, 64, 56, 3, 1, 1, 1),
    "3 x 3, 256 to 256 at 14 x 14, batch 64": (64, 256, 256, 14, 3, 1, 1, 1),
    "3 x 3, stride 2, 64 to 128 at 56 x 56, batch 64": (64, 64, 128, 56, 3, 2, 1, 1),
    "1 x 1, 64 to 256 at 56 x 56, batch 64": (64, 64, 256, 56, 1, 1, 0, 1),
    "7 x 7, stride 2, 3 to 64 at 224 x 224, batch 16": (16, 3, 64, 224, 7, 2, 3, 1),
    "3 x 3, depthwise 128 at 28 x 28, batch 64": (64, 128, 128, 28, 3, 1, 1, 128),
}


def convolutions(d) -> dict:
    found = {}
    for name, (batch, channels, filters, side, kernel, stride, padding, groups) in CONVOLUTIONS.items():
        x, w = d.rand(batch, channels, side, side), d.rand(filters, channels // groups, kernel, kernel)
        call = partial(d.torch.nn.functional.conv2d, x, w, stride=stride, padding=padding, groups=groups)
        found[f"conv {name}"] = d.timed(call)
        found[f"conv {name}, with backward"] = d.both(call, x, w)
    return found


def moving(d) -> dict:
    x, k = d.rand(10 * MILLION), d.rand(4096, 4096)
    at, columns = d.randint(10 * MILLION, (10 * MILLION,)), d.randint(4096, (4096, 4096))
    host = d.torch.rand(16 * MILLION)
    there = host.to(d.name)
    return {
        "x[idx], 10M": d.timed(lambda: x[at]),
        "gather(1), 4096 x 4096": d.timed(lambda: k.gather(1, columns)),
        "index_add, 10M": d.timed(lambda: x.index_add(0, at, x)),
        "cat(1), 2 of 4096 x 4096": d.timed(lambda: d.torch.cat([k, k], 1)),
        "where, 4096 x 4096": d.timed(lambda: d.torch.where(k > 0.5, k, 0.0)),
        "sort, 10M": d.timed(lambda: d.torch.sort(x)),
        "sort(-1), 4096 x 4096": d.timed(lambda: d.torch.sort(k, dim=-1)),
        "topk 10, rows of 4096 x 4096": d.timed(lambda: d.torch.topk(k, 10, dim=-1)),
        "randn, 10M": d.timed(lambda: d.randn(10 * MILLION)),
        "to the GPU, 64 MB": d.timed(lambda: host.to(d.name)),
        "from the GPU, 64 MB": d.timed(lambda: there.cpu()),
    }


MODELS = {
    **programs.MODELS,
    "char-GPT, 4 layers of 512, 64 x 64, AdamW": (
        lambda torch: (programs.gpt(torch, 512)[0], torch.randint(0, 65, (64, 64)), torch.randint(0, 65, (4096,))),
        "AdamW",
    ),
}


def training(d) -> dict:
    """Whole training steps, as a program writes them, and with rustgrad compiled."""
    found = {}
    for name, (make, kind) in MODELS.items():
        d.torch.manual_seed(0)
        net, x, y = make(d.torch)
        step, _ = programs.stepping(d.torch, (net.to(d.name), x.to(d.name), y.to(d.name)), kind)
        found[f"{name}, a step"] = d.timed(step, stretch=0.2)
        if d.torch.__name__ == "rustgrad":
            found[f"{name}, a step, compiled"] = d.timed(d.torch.compile(step), stretch=0.2)
    return found


PARTS = (calls, elementwise, reductions, matrices, layers, sequences, convolutions, moving, training)


def main():
    torch = importlib.import_module(sys.argv[1])
    start = time.perf_counter()
    device = Device(torch)
    device.rand(1)
    device.wait()
    found = {"the first tensor, waited for": time.perf_counter() - start}
    for part in [p for p in PARTS if p.__name__ in sys.argv[2:] or not sys.argv[2:]]:
        start = time.perf_counter()
        try:
            found |= part(device)
        except Exception as error:  # a row that cannot run is reported, not hidden
            found[f"{part.__name__}: {type(error).__name__}: {str(error)[:200]}"] = None
        print(f"{part.__name__}: {time.perf_counter() - start:.1f} s", file=sys.stderr)
    print(json.dumps({"version": torch.__version__, "device": device.title, "rows": found}))


if __name__ == "__main__":
    main()
