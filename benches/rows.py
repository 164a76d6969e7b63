"""The rows of benches/RESULTS.md, for one module: python benches/rows.py MODULE [THREADS] prints {row: seconds}.

The same program times rustgrad and PyTorch, each in a separate process; run.py alternates them. A row's time is
the median over several stretches, each long enough for the clock.
"""

import importlib
import json
import sys
import time

import collectives
import programs
from timing import timed

MILLION = 1_000_000


def calls(torch) -> dict:
    """Call overhead, with next to nothing to compute."""
    a, b = torch.rand(4), torch.rand(4)
    w = torch.rand(4).requires_grad_()
    m = torch.rand(4, 4)

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    return {
        "a + b, 4 floats": timed(lambda: a + b),
        "a + b, 4 floats, recorded": timed(lambda: w + b),
        "a * 2, 4 floats": timed(lambda: a * 2),
        "view: x[0]": timed(lambda: m[0]),
        "view: x.view(16)": timed(lambda: m.view(16)),
        "view: x.transpose(0, 1)": timed(lambda: m.transpose(0, 1)),
        "sum, 4 floats": timed(lambda: a.sum()),
        "Function.apply, 4 floats": timed(lambda: Square.apply(w)),
        "Function.apply and backward": timed(lambda: torch.autograd.grad(Square.apply(w), w, a)),
    }


def chain(torch) -> dict:
    """Backward through a chain of 1,000 small ops, per node."""
    x = torch.ones(4).requires_grad_()

    def forward():
        y = x
        for _ in range(500):
            y = (y * 1.0001) + 0.5
        return y.sum()

    def both():
        x.grad = None
        forward().backward()

    whole, front = timed(both), timed(forward)
    return {
        "backward, chain of 1,000 ops, a node": (whole - front) / 1000,
        "forward and backward, a node": whole / 1000,
    }


def training(torch) -> dict:
    """A step of a small MLP with Adam."""
    torch.manual_seed(0)
    step, _ = programs.stepping(torch, programs.mlp(torch), "Adam")
    return {"MLP 64-32-10, batch 32, Adam, a step": timed(step)}


def large(torch) -> dict:
    """Out-of-place elementwise work on 10 million floats, and reductions over them."""
    n = 10_000_000
    a, b = torch.rand(n), torch.rand(n)
    m = torch.rand(3200, 3200)
    slow = {"stretch": 0.2, "repeats": 5}
    return {
        "a + b, 10M floats": timed(lambda: a + b, **slow),
        "tanh, 10M floats": timed(lambda: torch.tanh(a), **slow),
        "exp, 10M floats": timed(lambda: torch.exp(a), **slow),
        "relu, 10M floats": timed(lambda: torch.relu(a), **slow),
        "a + m.t(), 10M floats": timed(lambda: m + m.t(), **slow),
        "sum, 10M floats": timed(lambda: a.sum(), **slow),
        "sum(0), 3200 x 3200": timed(lambda: m.sum(0), **slow),
        "softmax(1), 3200 x 3200": timed(lambda: torch.softmax(m, 1), **slow),
        "float to int32, 10M": timed(lambda: a.to(torch.int32), **slow),
    }


def matrices(torch) -> dict:
    found = {}
    for n in (64, 128, 256, 512, 1024, 2048):
        a, b = torch.rand(n, n), torch.rand(n, n)
        stretch = {"stretch": 0.05 if n < 1024 else 0.3, "repeats": 7 if n < 1024 else 5}
        found[f"matmul f32, {n}"] = timed(lambda a=a, b=b: a @ b, **stretch)
    return found


def small_matrices(torch) -> dict:
    found = {}
    for n in (8, 16, 32):
        a = torch.rand(n, n)
        found[f"matmul f32, {n}"] = timed(lambda a=a: a @ a)
    a, b = torch.rand(64, 32, 64), torch.rand(64, 64, 32)
    q = torch.rand(8, 8, 64, 32)
    x, w, bias = torch.rand(32, 256), torch.rand(256, 256), torch.rand(256)
    return found | {
        "bmm, 64 of 32 x 64 x 32": timed(lambda: a @ b),
        "einsum bhid,bhjd->bhij": timed(lambda: torch.einsum("bhid,bhjd->bhij", q, q)),
        "linear 32 x 256 x 256": timed(lambda: torch.nn.functional.linear(x, w, bias)),
    }


def linear_layers(torch) -> dict:
    """A linear layer and the gradients of its weight and bias, which are dropped before each step."""
    found = {}
    for rows, inputs, outputs in ((64, 512, 512), (8, 1024, 1024)):
        layer, x = torch.nn.Linear(inputs, outputs), torch.rand(rows, inputs)

        def both(layer=layer, x=x):
            layer.zero_grad()
            layer(x).sum().backward()

        found[f"Linear({inputs}, {outputs}) and backward, {rows} rows"] = timed(both)
    return found


def channels(torch) -> dict:
    """Batch and group normalisation and pooling of images, forward and backward."""
    nn, functional = torch.nn, torch.nn.functional

    def both(function, *shape):
        x = torch.randn(*shape).requires_grad_()
        g = torch.randn(*function(x).shape)

        def step():
            x.grad = None
            function(x).backward(g)

        return timed(step)

    image = (32, 64, 28, 28)
    return {
        "batch_norm and backward, 32 x 64 x 28 x 28": both(nn.BatchNorm2d(64), *image),
        "batch_norm and backward, 64 x 512": both(nn.BatchNorm1d(512), 64, 512),
        "group_norm(8) and backward, 32 x 64 x 28 x 28": both(nn.GroupNorm(8, 64), *image),
        "layer_norm and backward, 64 x 512": both(nn.LayerNorm(512), 64, 512),
        "rms_norm and backward, 64 x 512": both(nn.RMSNorm(512), 64, 512),
        "max_pool2d(2) and backward, 32 x 64 x 28 x 28": both(nn.MaxPool2d(2), *image),
        "max_pool2d(3, 2, 1) and backward, 32 x 64 x 28 x 28": both(nn.MaxPool2d(3, 2, 1), *image),
        "avg_pool2d(2) and backward, 32 x 64 x 28 x 28": both(nn.AvgPool2d(2), *image),
        "adaptive_avg_pool2d(7) and backward, 32 x 64 x 28 x 28": both(
            lambda x: functional.adaptive_avg_pool2d(x, 7), *image
        ),
    }


def pointwise(torch) -> dict:
    """Elementwise work on a million elements."""
    x, y, z = torch.rand(MILLION), torch.rand(MILLION), torch.randn(MILLION)
    points, square = torch.complex(x, y), z.view(1000, 1000)
    whole, divisors = torch.randint(0, 1 << 40, (MILLION,)), torch.randint(1, 1000, (MILLION,))
    return {
        "exp, 1M": timed(lambda: torch.exp(z)),
        "tanh, 1M": timed(lambda: torch.tanh(z)),
        "sigmoid, 1M": timed(lambda: torch.sigmoid(z)),
        "log, 1M": timed(lambda: torch.log(x)),
        "clamp, 1M": timed(lambda: x.clamp(0.2, 0.8)),
        "pow 2.5, 1M": timed(lambda: x**2.5),
        "gelu, 1M": timed(lambda: torch.nn.functional.gelu(z)),
        "x > y, 1M": timed(lambda: x > y),
        "abs of complex64, 1M": timed(lambda: points.abs()),
        "int64 // 7, 1M": timed(lambda: whole // 7),
        "int64 % int64, 1M": timed(lambda: whole % divisors),
        "arange, 1M": timed(lambda: torch.arange(MILLION)),
        "erfc, 1M": timed(lambda: torch.erfc(z)),
        "x - a column, 1000 x 1000": timed(lambda: square - square[:, :1]),
        "outer, 1000 x 1000": timed(lambda: torch.outer(square[0], square[1])),
    }


def reductions(torch) -> dict:
    big, k, x = torch.rand(4096, 4096), torch.rand(1000, 1000), torch.rand(MILLION)
    mask = x > 0.5
    return {
        "sum(0), 4096 x 4096": timed(lambda: big.sum(0)),
        "sum(1), 4096 x 4096": timed(lambda: big.sum(1)),
        "var, 1M": timed(lambda: x.var()),
        "var(1), 1000 x 1000": timed(lambda: k.var(1)),
        "argmax, 1M": timed(lambda: x.argmax()),
        "dot, 1M": timed(lambda: x.dot(x)),
        "nansum, 1M": timed(lambda: x.nansum()),
        "max(1), 1000 x 1000": timed(lambda: k.max(1)),
        "any, 1M": timed(lambda: mask.any()),
        "all, 1M": timed(lambda: mask.all()),
        "cumsum, 1M": timed(lambda: x.cumsum(0)),
        "cumsum(0), 1000 x 1000": timed(lambda: k.cumsum(0)),
    }


def indexing(torch) -> dict:
    x, y, k = torch.rand(MILLION), torch.rand(MILLION), torch.rand(1000, 1000)
    at, mask = torch.randint(0, MILLION, (MILLION,)), torch.randn(MILLION) > 0
    columns, rows = torch.randint(0, 1000, (1000, 1000)), torch.randint(0, 1000, (1000,))
    w, zeros = torch.rand(MILLION), torch.zeros(1000, 1000)

    def put():
        w[at] = y

    def put_mask():
        w[mask] = 1.0

    return {
        "x[idx], 1M": timed(lambda: x[at]),
        "x[mask], 1M": timed(lambda: x[mask]),
        "x[idx] = v, 1M": timed(put),
        "x[mask] = 1, 1M": timed(put_mask),
        "gather(1), 1000 x 1000": timed(lambda: k.gather(1, columns)),
        "gather(0), 1000 x 1000": timed(lambda: k.gather(0, columns)),
        "scatter(1), 1000 x 1000": timed(lambda: zeros.scatter(1, columns, k)),
        "scatter_add(0), 1000 x 1000": timed(lambda: zeros.scatter_add(0, columns, k)),
        "index_select(0), 1000 x 1000": timed(lambda: k.index_select(0, rows)),
        "index_select(1), 1000 x 1000": timed(lambda: k.index_select(1, rows)),
        "masked_fill, 1M": timed(lambda: x.masked_fill(mask, 1.0)),
        "masked_select, 1M": timed(lambda: x.masked_select(mask)),
        "where, 1M": timed(lambda: torch.where(mask, x, y)),
        "index_add, 1M": timed(lambda: x.index_add(0, at, y)),
        "take, 1M": timed(lambda: torch.take(x, at)),
        "nonzero, 1M": timed(lambda: torch.nonzero(mask)),
    }


def ordering(torch) -> dict:
    x, whole, k = torch.rand(MILLION), torch.randint(0, 1 << 40, (MILLION,)), torch.rand(1000, 1000)
    few = torch.randint(0, 1000, (MILLION,))
    slow = {"repeats": 3}
    return {
        "sort, 1M float32": timed(lambda: torch.sort(x), **slow),
        "sort, 1M int64": timed(lambda: torch.sort(whole), **slow),
        "argsort, 1M": timed(lambda: torch.argsort(x), **slow),
        "sort(-1), 1000 x 1000": timed(lambda: torch.sort(k, dim=-1), **slow),
        "topk 10, 1M": timed(lambda: torch.topk(x, 10)),
        "topk 1000, 1M": timed(lambda: torch.topk(x, 1000)),
        "topk 5, rows of 1000 x 1000": timed(lambda: torch.topk(k, 5, dim=-1)),
        "bincount, 1M": timed(lambda: torch.bincount(few)),
    }


def sets(torch) -> dict:
    few = torch.randint(0, 1000, (MILLION,))
    return {"unique, 1M of 1,000": timed(lambda: torch.unique(few), repeats=3)}


def sparse(torch) -> dict:
    """A matrix of 100,000 elements, and the step of a table of words by sparse gradients."""
    n, count = 10_000, 100_000
    index, values = torch.randint(0, n, (2, count)), torch.randn(count)
    matrix = torch.sparse_coo_tensor(index, values, (n, n)).coalesce()
    compressed, dense, vector = matrix.to_sparse_csr(), torch.randn(n, 64), torch.randn(n)
    learned = torch.sparse_coo_tensor(matrix.indices(), matrix.values(), (n, n)).requires_grad_()
    table = torch.nn.Embedding(50_000, 64, sparse=True)
    optimizer = torch.optim.SparseAdam(table.parameters())
    words = torch.randint(0, 50_000, (512,))

    def both():
        learned.grad = None
        torch.sparse.mm(learned, dense.requires_grad_()).sum().backward()

    def step():
        optimizer.zero_grad()
        table(words).pow(2).sum().backward()
        optimizer.step()

    name = "sparse 10,000 x 10,000 of 100,000"
    return {
        f"{name}, coo @ 64 columns": timed(lambda: matrix @ dense.detach()),
        f"{name}, csr @ 64 columns": timed(lambda: compressed @ dense.detach()),
        f"{name}, coo @ vector": timed(lambda: matrix @ vector),
        f"{name}, coo @ 64 columns, both gradients": timed(both, repeats=3),
        f"{name}, coalesce": timed(lambda: torch.sparse_coo_tensor(index, values, (n, n)).coalesce()),
        "table 50,000 x 64, 512 words, SparseAdam, a step": timed(step),
    }


def moving(torch) -> dict:
    k, image, target = torch.rand(1000, 1000), torch.rand(8, 32, 64, 64), torch.rand(1000, 1000)
    small, large = torch.rand(16, 16), torch.rand(4000, 4000)
    slow = {"stretch": 0.2, "repeats": 5}
    return {
        "clone, 1M": timed(lambda: k.clone()),
        "clone, 16M": timed(lambda: large.clone(), **slow),
        "cat(1), 2 of 16 x 16": timed(lambda: torch.cat([small, small], 1)),
        "stack(-1), 2 of 16 x 16": timed(lambda: torch.stack([small, small], -1)),
        "cat(0), 2 of 16M": timed(lambda: torch.cat([large, large], 0), **slow),
        "cat(0), 2 of 1M": timed(lambda: torch.cat([k, k], 0)),
        "cat(1), 2 of 1M": timed(lambda: torch.cat([k, k], 1)),
        "stack, 2 of 1M": timed(lambda: torch.stack([k, k])),
        "stack(-1), 2 of 1M": timed(lambda: torch.stack([k, k], -1)),
        "t().contiguous(), 1000 x 1000": timed(lambda: k.t().contiguous()),
        "NCHW to NHWC, 1M": timed(lambda: image.permute(0, 2, 3, 1).contiguous()),
        "flip(1), 1000 x 1000": timed(lambda: k.flip(1)),
        "roll(3, 1), 1000 x 1000": timed(lambda: k.roll(3, 1)),
        "y[:, 3:] = x[:, :-3], 1000 x 1000": timed(lambda: target[:, 3:].copy_(k[:, :-3])),
        "repeat(2, 2), 1000 x 1000": timed(lambda: k.repeat(2, 2)),
        "tril, 1000 x 1000": timed(lambda: torch.tril(k)),
    }


def layers(torch) -> dict:
    functional = torch.nn.functional
    k, w, b = torch.rand(1000, 1000), torch.rand(1000), torch.rand(1000)
    table, words = torch.rand(5000, 256), torch.randint(0, 5000, (64, 64))
    scores, target = torch.rand(1000, 1000).requires_grad_(), torch.randint(0, 1000, (1000,))

    def cross_entropy():
        scores.grad = None
        functional.cross_entropy(scores, target).backward()

    return {
        "softmax(1), 1000 x 1000": timed(lambda: torch.softmax(k, 1)),
        "layer_norm, 1000 x 1000": timed(lambda: functional.layer_norm(k, (1000,), w, b)),
        "embedding, 4096 of 256": timed(lambda: functional.embedding(words, table)),
        "cross_entropy and backward, 1000 x 1000": timed(cross_entropy),
    }


def sequences(torch) -> dict:
    """Attention and recurrent layers, forward and with backward."""
    nn, found = torch.nn, {}
    for length, width in ((64, 32), (256, 64), (1024, 64), (2048, 32)):
        q, k, v = (torch.randn(2, 8, length, width).requires_grad_() for _ in range(3))
        for causal in (False, True):

            def forward(q=q, k=k, v=v, causal=causal):
                return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

            name = f"attention, 16 heads, {length} x {width}" + (", causal" if causal else "")
            found[name] = timed(forward)
            found[f"{name}, and backward"] = timed(lambda forward=forward: forward().sum().backward(), repeats=3)
    x = torch.randn(64, 32, 128)
    for kind in ("LSTM", "GRU", "RNN"):
        net = getattr(nn, kind)(128, 128)
        found[f"{kind} 128-128, 64 steps of 32"] = timed(lambda net=net: net(x))
        found[f"{kind} 128-128, 64 steps of 32, and backward"] = timed(lambda net=net: net(x)[0].sum().backward())
    return found


# Batch, input and output channels, side, kernel, stride, padding, groups.
CONVOLUTIONS = {
    "LeNet's first, batch 32": (32, 1, 6, 28, 5, 1, 2, 1),
    "LeNet's second, batch 32": (32, 6, 16, 14, 5, 1, 0, 1),
    "3 x 3, 3 to 32 at 32 x 32, batch 32": (32, 3, 32, 32, 3, 1, 1, 1),
    "3 x 3, 64 to 64 at 56 x 56, batch 1": (1, 64, 64, 56, 3, 1, 1, 1),
    "3 x 3, 64 to 64 at 56 x 56, batch 32": (32, 64, 64, 56, 3, 1, 1, 1),
    "3 x 3, stride 2, 64 to 128 at 56 x 56, batch 8": (8, 64, 128, 56, 3, 2, 1, 1),
    "1 x 1, 64 to 256 at 56 x 56, batch 8": (8, 64, 256, 56, 1, 1, 0, 1),
    "7 x 7, stride 2, 3 to 64 at 224 x 224, batch 1": (1, 3, 64, 224, 7, 2, 3, 1),
    "3 x 3, depthwise 128 at 28 x 28, batch 8": (8, 128, 128, 28, 3, 1, 1, 128),
    "3 x 3, 4 groups of 128 at 28 x 28, batch 8": (8, 128, 128, 28, 3, 1, 1, 4),
}


def spectra(torch) -> dict:
    """Fourier transforms."""
    image = torch.complex(torch.randn(512, 512), torch.randn(512, 512))
    signals = torch.randn(1000, 1000)
    return {
        "fft2, 512 x 512": timed(lambda: torch.fft.fft2(image)),
        "rfft, 1000 x 1000": timed(lambda: torch.fft.rfft(signals)),
        "rfft2, 512 x 512": timed(lambda: torch.fft.rfft2(image.real)),
    }


def distances(torch) -> dict:
    """Distances of rows, and their gradients."""
    few, many = torch.randn(1000, 3), torch.randn(500, 128)
    trained = torch.randn(500, 128, requires_grad=True)

    def both():
        torch.cdist(trained, many, 1.0).sum().backward()
        trained.grad = None

    return {
        "pdist, 1000 of 3": timed(lambda: torch.pdist(few)),
        "pdist, 500 of 128": timed(lambda: torch.pdist(many)),
        "cdist, 500 x 500 of 128": timed(lambda: torch.cdist(many, many)),
        "cdist of order 1, 500 x 500 of 128": timed(lambda: torch.cdist(many, many, 1.0)),
        "cdist of order 1 and backward, 500 x 500 of 128": timed(both),
    }


def decompositions(torch) -> dict:
    """Decompositions and solutions of linear systems."""
    linalg, a, b = torch.linalg, torch.randn(256, 256), torch.randn(256, 16)
    spd, tall, stack = a @ a.T + 256 * torch.eye(256), torch.randn(1000, 100), torch.randn(1000, 4, 4)
    return {
        "cholesky, 256": timed(lambda: linalg.cholesky(spd)),
        "solve, 256, 16 right sides": timed(lambda: linalg.solve(a, b)),
        "inv, 256": timed(lambda: linalg.inv(a)),
        "det, 1000 of 4 x 4": timed(lambda: linalg.det(stack)),
        "solve, 1000 of 4 x 4": timed(lambda: linalg.solve(stack, stack)),
        "qr, 1000 x 100": timed(lambda: linalg.qr(tall)),
        "lstsq, 1000 x 100": timed(lambda: linalg.lstsq(tall, tall[:, :1])),
        "eigh, 256": timed(lambda: linalg.eigh(spd)),
        "svd, 256": timed(lambda: linalg.svd(a)),
        "svdvals, 256": timed(lambda: linalg.svdvals(a)),
        "eig, 256": timed(lambda: linalg.eig(a), repeats=3),
        "matrix_exp, 256": timed(lambda: linalg.matrix_exp(a / 16)),
    }


def convolutions(torch) -> dict:
    """Forward, and forward with backward by input and weight."""
    functional, found = torch.nn.functional, {}
    slow = {"stretch": 0.1, "repeats": 5}

    def step(call, x, w):
        x.grad = w.grad = None
        y = call(x, w)
        y.backward(y.detach())

    def rows(name, call, x, w):
        found[f"conv {name}"] = timed(lambda: call(x, w), **slow)
        x.requires_grad_(), w.requires_grad_()
        found[f"conv {name}, with backward"] = timed(lambda: step(call, x, w), **slow)

    for name, (batch, channels, filters, side, kernel, stride, padding, groups) in CONVOLUTIONS.items():
        x, w = torch.rand(batch, channels, side, side), torch.rand(filters, channels // groups, kernel, kernel)
        settings = {"stride": stride, "padding": padding, "groups": groups}
        rows(name, lambda x, w, settings=settings: functional.conv2d(x, w, **settings), x, w)
    x, w = torch.rand(8, 64, 14, 14), torch.rand(64, 32, 4, 4)
    rows(
        "transposed 4 x 4, stride 2, 64 to 32",
        lambda x, w: functional.conv_transpose2d(x, w, stride=2, padding=1),
        x,
        w,
    )
    x, w = torch.rand(32, 64, 32, 32), torch.rand(64, 3, 4, 4)
    rows(
        "transposed 4 x 4, stride 2, 64 to 3 at 32 x 32, batch 32",
        lambda x, w: functional.conv_transpose2d(x, w, stride=2, padding=1),
        x,
        w,
    )
    x, w = torch.rand(8, 64, 1000), torch.rand(64, 64, 5)
    rows("1d, 64 to 64, kernel 5, 1,000 long", lambda x, w: functional.conv1d(x, w, padding=2), x, w)
    return found


def images(torch) -> dict:
    """Eight images of 3 x 256 x 256, and one of a wide layer."""
    functional = torch.nn.functional
    x, wide = torch.rand(8, 3, 256, 256), torch.rand(1, 64, 64, 64)
    pixels = torch.randint(0, 256, (8, 3, 256, 256), dtype=torch.uint8)
    grid = torch.rand(8, 224, 224, 2) * 2 - 1
    leaf, small = torch.rand(8, 3, 256, 256).requires_grad_(), {"size": (224, 224), "mode": "bilinear"}

    def bilinear():
        leaf.grad = None
        functional.interpolate(leaf, **small).sum().backward()

    return {
        "interpolate, bilinear, 8 x 3 x 256 to 224": timed(lambda: functional.interpolate(x, **small)),
        "interpolate, bilinear, and backward": timed(bilinear),
        "interpolate, antialias, 8 x 3 x 256 to 224": timed(lambda: functional.interpolate(x, **small, antialias=True)),
        "interpolate, bilinear, bytes": timed(lambda: functional.interpolate(pixels, **small)),
        "interpolate, nearest, 64 x 64 x 64 times 2": timed(lambda: functional.interpolate(wide, scale_factor=2)),
        "grid_sample, 8 x 3 x 256 to 224": timed(lambda: functional.grid_sample(x, grid, align_corners=False)),
        "unfold 3 x 3, 64 x 64 x 64": timed(lambda: functional.unfold(wide, 3, padding=1)),
        "pad, reflect, 8 x 3 x 256": timed(lambda: functional.pad(x, (3, 3, 3, 3), "reflect")),
    }


def draws(torch) -> dict:
    x, weights = torch.rand(MILLION), torch.rand(1000, 1000)
    return {
        "rand, 16": timed(lambda: torch.rand(16)),
        "randn, 16": timed(lambda: torch.randn(16)),
        "rand, 1M": timed(lambda: torch.rand(MILLION)),
        "randint(10), 1M": timed(lambda: torch.randint(0, 10, (MILLION,))),
        "exponential_, 1M": timed(lambda: x.exponential_()),
        "multinomial, 1 of each row, 1000 x 1000": timed(lambda: torch.multinomial(weights, 1)),
        "randn, 1M": timed(lambda: torch.randn(MILLION)),
        "randperm, 1M": timed(lambda: torch.randperm(MILLION)),
        "dropout, 1M": timed(lambda: torch.nn.functional.dropout(x, 0.5)),
    }


def texts(torch) -> dict:
    x = torch.rand(1000, 1000)
    return {
        "repr, 1000 x 1000": timed(lambda: repr(x)),
        "repr, 10": timed(lambda: repr(x[0, :10])),
        "tolist, 1M": timed(lambda: x.tolist(), repeats=3),
    }


def transforms(torch) -> dict:
    """Transforms of functions: gradients of each of 64 samples, a Hessian, a product with a Jacobian."""
    func, nn = torch.func, torch.nn
    model, _, _ = programs.mlp(torch)
    state = {name: p.detach() for name, p in model.named_parameters()}
    x, y = torch.rand(64, 64), torch.randint(0, 10, (64,))

    def loss(state, x, y):
        return nn.functional.cross_entropy(func.functional_call(model, state, (x[None],)), y[None])

    def norms(v):
        return (v.sin() * v.roll(1)).sum()

    each = func.vmap(func.grad(loss), in_dims=(None, 0, 0))
    second, v = func.hessian(norms), torch.rand(50)
    return {
        "vmap of grad, MLP 64-32-10, 64 samples": timed(lambda: each(state, x, y)),
        "hessian of 50 variables": timed(lambda: second(v)),
        "jvp of an MLP, 64 samples": timed(lambda: func.jvp(model, (x,), (x,))),
    }


def quantised(torch) -> dict:
    """Products and sums of quantised tensors, and the two conversions, beside float32."""
    torch.manual_seed(0)
    linear, conv = torch.nn.Linear(1024, 1024), torch.nn.Conv2d(64, 64, 3, padding=1)
    rows, image = torch.randn(64, 1024), torch.randn(8, 64, 56, 56)
    to = lambda t: torch.quantize_per_tensor(t, 0.05, 128, torch.quint8)  # noqa: E731
    weights = lambda t: torch.quantize_per_tensor(t.detach(), 0.01, 0, torch.qint8)  # noqa: E731
    quantized = torch.ops.quantized
    packed = quantized.linear_prepack(weights(linear.weight), linear.bias.detach())
    kernel = quantized.conv2d_prepack(weights(conv.weight), conv.bias.detach(), [1, 1], [1, 1], [1, 1], 1)
    q_rows, q_image = to(rows), to(image)
    back = q_image.dequantize
    integers = torch.randint(-128, 128, (512, 512), dtype=torch.int8)
    with torch.no_grad():
        return {
            "linear 64 x 1024 x 1024, float32": timed(lambda: linear(rows)),
            "linear 64 x 1024 x 1024, quantised": timed(lambda: quantized.linear(q_rows, packed, 0.1, 128)),
            "linear 64 x 1024 x 1024, dynamic": timed(lambda: quantized.linear_dynamic(rows, packed)),
            "_int_mm, 512": timed(lambda: torch._int_mm(integers, integers)),
            "conv 3 x 3, 8 x 64 x 56 x 56, float32": timed(lambda: conv(image)),
            "conv 3 x 3, 8 x 64 x 56 x 56, quantised": timed(lambda: quantized.conv2d(q_image, kernel, 0.1, 128)),
            "quantised sum, 1.6M": timed(lambda: quantized.add(q_image, q_image, 0.1, 128)),
            "quantize_per_tensor, 1.6M": timed(lambda: to(image)),
            "dequantize, 1.6M": timed(back),
        }


def compiled(torch) -> dict:
    """Compiled functions beside themselves; PyTorch's need a C++ compiler, and without one have no row."""
    torch.manual_seed(0)
    step, _ = programs.stepping(torch, programs.mlp(torch), "Adam")

    def ten(x):
        y = (x * 2 + 1).tanh()
        return ((y - x) * 0.5 + y * y) * x - y + 3

    def watched(function, *args):
        start = time.perf_counter()
        fast = torch.compile(function)
        for _ in range(4):
            fast(*args)
        return fast, time.perf_counter() - start

    try:
        fast, cold = watched(step)
    except Exception as error:  # no C++ compiler
        print(f"compile: {error}", file=sys.stderr)
        return {}
    rows = {"MLP step, Adam, not compiled": timed(step), "MLP step, Adam, compiled": timed(fast)}
    rows["MLP step, Adam, the first four calls"] = cold
    for name, n in (("1K", 1 << 10), ("32K", 1 << 15), ("1M", 1 << 20)):
        values = torch.rand(n)
        fast, _ = watched(ten, values)
        rows[f"ten elementwise ops, {name}, not compiled"] = timed(lambda values=values: ten(values))
        rows[f"ten elementwise ops, {name}, compiled"] = timed(lambda fast=fast, values=values: fast(values))
    eight = [torch.rand(4) for _ in range(8)]
    fast, _ = watched(lambda a, b, c, d, e, f, g, h, i, j, k, m: a, *eight, 1, 2.0, 3, "a")
    rows["guards: 8 tensors, 4 numbers"] = timed(lambda: fast(*eight, 1, 2.0, 3, "a"))
    return rows


PARTS = (
    calls,
    chain,
    training,
    transforms,
    quantised,
    compiled,
    large,
    matrices,
    small_matrices,
    linear_layers,
    pointwise,
    reductions,
    indexing,
    ordering,
    sets,
    sparse,
    moving,
    layers,
    sequences,
    spectra,
    distances,
    decompositions,
    convolutions,
    images,
    channels,
    draws,
    texts,
    *programs.PARTS,
    collectives.collectives,
)


def main():
    torch = importlib.import_module(sys.argv[1])
    threads, parts = int(sys.argv[2]) if len(sys.argv) > 2 else 0, sys.argv[3:]
    if threads:
        torch.set_num_threads(threads)
    found = {}
    for part in PARTS if not parts else [p for p in PARTS if p.__name__ in parts]:
        try:
            found |= part(torch)
        except Exception as error:  # a row that cannot run yet is reported, not hidden
            found[f"{part.__name__}: {type(error).__name__}: {str(error)[:80]}"] = None
    print(json.dumps({"version": torch.__version__, "rows": found}))


if __name__ == "__main__":
    main()
