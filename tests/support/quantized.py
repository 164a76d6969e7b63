"""Cases of quantised tensors, ops and passes, which `golden/record_quantized.py` runs with PyTorch and `test_quantized.py` here.

Numbers are made by integers over a power of two, so they are the same everywhere. Each case gives integers, floats or text.
"""

import itertools
import math


def numbers(torch, *shape, scale=1.0, start=0):
    """Spread numbers, exact in float32."""
    count = math.prod(shape)
    return torch.tensor([((k + start) * 7919 % 2003 - 1001) / 256 for k in range(count)]).reshape(shape) * scale


def given(q):
    """A quantised tensor as lists: dtype, integers, parameters."""
    if q.qscheme() == _torch(q).per_tensor_affine:
        return [str(q.dtype), q.int_repr().tolist(), q.q_scale(), q.q_zero_point()]
    params = (q.q_per_channel_scales().tolist(), q.q_per_channel_zero_points().tolist(), q.q_per_channel_axis())
    return [str(q.dtype), q.int_repr().tolist(), *params]


def _torch(q):
    import importlib

    return importlib.import_module(type(q).__module__.partition(".")[0])


def quantised(torch, *shape, dtype="quint8", scale=0.037, zero=None, start=0):
    """A quantised tensor of spread numbers."""
    zero = {"quint8": 117, "qint8": 5, "qint32": 11}[dtype] if zero is None else zero
    return torch.quantize_per_tensor(numbers(torch, *shape, start=start), scale, zero, getattr(torch, dtype))


def _tensors(torch):
    x = torch.tensor([[-1.0, 0.0, 1.26], [2.0, 3.3, 0.15]])
    q = torch.quantize_per_tensor(x, 0.1, 10, torch.quint8)
    scales, zeros = torch.tensor([0.1, 0.2]), torch.tensor([10, 0])
    c = torch.quantize_per_channel(x, scales, zeros, 0, torch.qint8)
    yield (
        "tensors",
        [q, q.t(), q[:, 1:], q[0], q.reshape(3, 2), q.unsqueeze(1), torch.stack([q, q]), q.flip(0), q.max(), q.mean()],
    )
    yield "channels", [c, c[0], c[:, :2], c[:1], c.clone(), c.unsqueeze(0)]
    yield (
        "dynamic",
        [torch.quantize_per_tensor_dynamic(x, t, r) for t in (torch.quint8, torch.qint8) for r in (False, True)],
    )
    yield "joined", [torch.cat([q, torch.quantize_per_tensor(x, 0.03, 7, torch.quint8)], 1)]
    ties = torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5, 300.0, -300.0, math.nan, math.inf, -math.inf])
    yield "rounding", [torch.quantize_per_tensor(ties, 1.0, 3, t) for t in (torch.quint8, torch.qint8)]
    yield "float zero points", [torch.quantize_per_channel(x, scales, torch.tensor([1.25, 3.5]), 0, torch.quint8)]


def _functions(torch):
    functional, ops = torch.nn.functional, torch.ops.quantized
    for dtype in ("quint8", "qint8"):
        q = quantised(torch, 2, 4, 7, 8, dtype=dtype)
        other = quantised(torch, 2, 4, 7, 8, dtype=dtype, scale=0.051, start=77)
        scale, zero = 0.0613, q.q_zero_point() + 2
        yield f"activations {dtype}", [
            torch.relu(q), functional.relu6(q), functional.hardtanh(q, -0.4, 0.9), functional.leaky_relu(q, 0.1),
            torch.sigmoid(q), torch.tanh(q), functional.hardsigmoid(q), torch.clamp(q, -0.3, 0.7),
            functional.threshold(q, 0.2, 0.1), ops.elu(q, scale, zero), ops.hardswish(q, scale, zero), ops.relu6(q),
        ]  # fmt: skip
        yield f"pools {dtype}", [
            functional.max_pool2d(q, 3, 2, 1), functional.avg_pool2d(q, 3, 2, 1), functional.avg_pool2d(q, 3, 2, 1, False, False),
            functional.avg_pool2d(q, 2, divisor_override=3), functional.adaptive_avg_pool2d(q, (3, 5)),
            functional.interpolate(q, scale_factor=2), functional.interpolate(q, size=(5, 9), mode="bilinear"),
            functional.max_pool1d(q[0], 2),
        ]  # fmt: skip
        yield f"arithmetic {dtype}", [
            *(op(q, other, scale, zero) for op in (ops.add, ops.add_relu, ops.mul, ops.mul_relu)),
            *(op(q, n) for op in (ops.add, ops.mul) for n in (0.0, 0.7, -0.7, 30.0, -30.0)),
            ops.cat([q, other], 1, scale, zero), torch.sort(q, 2)[0], torch.topk(q, 3, 3)[0], q.mean((2, 3)),
            functional.pad(q, (1, 2)), q.masked_fill(q > 0, 0.5),
        ]  # fmt: skip
        weight, bias = torch.tensor([0.5, 1.0, 2.0, 0.75]), torch.tensor([0.1, -0.2, 0.3, 0.0])
        mean, var = torch.tensor([0.1, -0.3, 0.2, 0.0]), torch.tensor([0.5, 1.5, 1.0, 2.0])
        yield (
            f"norms {dtype}",
            [
                ops.batch_norm2d(q, weight, bias, mean, var, 1e-5, scale, zero),
                ops.batch_norm2d_relu(q, weight, bias, mean, var, 1e-5, scale, zero),
                ops.group_norm(q, 2, weight, bias, 1e-5, scale, zero),
            ],
        )


def _products(torch):
    ops = torch.ops.quantized
    for channels, with_bias in itertools.product((False, True), repeat=2):

        def weight(*shape, channels=channels):
            floats = numbers(torch, *shape, scale=0.125, start=5)
            if not channels:
                return torch.quantize_per_tensor(floats, 0.0125, 0, torch.qint8)
            scales = torch.tensor([0.01 + 0.002 * k for k in range(shape[0])])
            return torch.quantize_per_channel(floats, scales, torch.zeros(shape[0], dtype=torch.long), 0, torch.qint8)

        bias = numbers(torch, 6, scale=0.25) if with_bias else None
        x = quantised(torch, 3, 24)
        packed = ops.linear_prepack(weight(6, 24), bias)
        name = f"{'channels' if channels else 'tensor'} {'bias' if with_bias else 'no bias'}"
        yield f"linear {name}", [ops.linear(x, packed, 0.09, 100), ops.linear_relu(x, packed, 0.09, 100)]
        yield f"linear dynamic {name}", [ops.linear_dynamic(numbers(torch, 3, 24), packed, True)]
        for n in (1, 2, 3):
            x = quantised(torch, 2, 4, *(6, 5, 4)[:n])
            prepack = getattr(ops, f"conv{n}d_prepack")
            packed = prepack(weight(6, 2, *(3,) * n), bias, [2] * n, [1] * n, [1] * n, 2)
            yield f"conv{n}d {name}", [getattr(ops, f"conv{n}d{r}")(x, packed, 0.09, 100) for r in ("", "_relu")]


def _fake(torch):
    def with_gradients(function, *leaves):
        leaves = [leaf.detach().clone().requires_grad_() for leaf in leaves]
        made = function(*leaves)
        grads = torch.autograd.grad(made, leaves, numbers(torch, *made.shape, start=31))
        return [made.detach(), *grads]

    ties, one = torch.tensor([[0.5, 1.5, 2.5, -0.5, -1.5, 3.5]]), torch.ones(1)
    yield (
        "fake ties",
        [
            made
            for zero in (0, 1)
            for made in (
                torch.fake_quantize_per_tensor_affine(ties, 1.0, zero, 0, 255),
                torch.fake_quantize_per_channel_affine(ties, one, one.int() * zero, 0, 0, 255),
                torch.fake_quantize_per_channel_affine(ties, one, one * zero, 0, 0, 255),
                torch._fake_quantize_learnable_per_tensor_affine(ties, one, one * zero, 0, 255),
            )
        ],
    )
    x, scales = numbers(torch, 4, 5), torch.tensor([0.1, 0.2, 0.05, 0.3])
    zeros = torch.tensor([0, 1, 2, -3], dtype=torch.int32)
    yield "fake tensor", with_gradients(lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 3, -8, 20), x)
    yield (
        "fake channels",
        with_gradients(lambda x: torch.fake_quantize_per_channel_affine(x, scales, zeros, 0, -8, 20), x),
    )
    learn = torch._fake_quantize_learnable_per_tensor_affine
    yield (
        "learnable tensor",
        with_gradients(lambda *a: learn(*a, -8, 20, 0.5), x, torch.tensor([0.1]), torch.tensor([3.4])),
    )
    learn_each = torch._fake_quantize_learnable_per_channel_affine
    yield (
        "learnable channels",
        with_gradients(lambda *a: learn_each(*a, 0, -8, 20, 1.0), x, scales, zeros.float() + 0.25),
    )
    for rows, symmetric in itertools.product((False, True), repeat=2):
        count = 4 if rows else 1
        state = [
            torch.full((count,), math.inf),
            torch.full((count,), -math.inf),
            torch.ones(count),
            torch.zeros(count, dtype=torch.int32),
        ]
        low, high = (-128, 127) if symmetric else (0, 255)
        on, made = torch.tensor([1]), []
        for step in range(2):
            seen = numbers(torch, 4, 5, start=13 * step)
            made.append(torch.fused_moving_avg_obs_fake_quant(seen, on, on, *state, 0.1, low, high, 0, rows, symmetric))
        yield f"fused {rows} {symmetric}", [*made, *state]


def _observers(torch):
    q = torch.ao.quantization
    for name, make in {
        "MinMax": lambda: q.MinMaxObserver(),
        "MinMax symmetric": lambda: q.MinMaxObserver(dtype=torch.qint8, qscheme=torch.per_tensor_symmetric),
        "MovingAverage": lambda: q.MovingAverageMinMaxObserver(averaging_constant=0.25),
        "PerChannel": lambda: q.PerChannelMinMaxObserver(ch_axis=1),
        "MovingAveragePerChannel": lambda: q.MovingAveragePerChannelMinMaxObserver(
            dtype=torch.qint8, qscheme=torch.per_channel_symmetric
        ),
        "Histogram": lambda: q.HistogramObserver(),
        "Histogram of few bins": lambda: q.HistogramObserver(bins=64, quant_min=0, quant_max=127),
        "FixedQParams": lambda: q.FixedQParamsObserver(0.1, 3),
    }.items():
        observer = make()
        for step in range(3):
            observer(numbers(torch, 6, 5, start=41 * step, scale=0.5 + 0.25 * step))
        yield f"observer {name}", [*observer.calculate_qparams(), repr(observer), sorted(observer.state_dict())]


def cases(torch):
    """(name, what the case gives) of each case."""
    for part in (_tensors, _functions, _products, _fake, _observers):
        yield from part(torch)


def plain(torch, value):
    """A result as JSON holds it."""
    if isinstance(value, torch.Tensor):
        return given(value) if value.is_quantized else [str(value.dtype), value.detach().tolist()]
    return [plain(torch, v) for v in value] if isinstance(value, (list, tuple)) else value
