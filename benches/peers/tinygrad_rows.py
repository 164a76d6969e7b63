"""The rows for tinygrad on the CPU, by its `TinyJit`; results are realized, since tinygrad is lazy."""

import json
from importlib.metadata import version

import data
from timing import timed
from tinygrad import Tensor, TinyJit, nn
from tinygrad.helpers import Context


def timed_call(function, given) -> float:
    """Of a call that runs its kernels and waits for them."""
    jitted = TinyJit(lambda *tensors: function(*tensors).realize())
    return timed(lambda: jitted(*given))


def ops() -> dict:
    a, b = Tensor.rand(4).realize(), Tensor.rand(4).realize()
    big, other = Tensor.rand(1_000_000).realize(), Tensor.rand(1_000_000).realize()
    square = Tensor.rand(1000, 1000).realize()
    calls = {
        "a + b, 4 floats": (lambda a, b: a + b, (a, b)),
        "a + b, 1M floats": (lambda a, b: a + b, (big, other)),
        "tanh, 1M floats": (lambda a: a.tanh(), (big,)),
        "sum, 1M floats": (lambda a: a.sum(), (big,)),
        "softmax, 1000 x 1000": (lambda a: a.softmax(1), (square,)),
        "transpose and copy, 1000 x 1000": (lambda a: a.transpose(0, 1).contiguous(), (square,)),
    }
    for n in (128, 1024):
        calls[f"matmul, {n} x {n}"] = (lambda a, b: a @ b, (Tensor.rand(n, n).realize(), Tensor.rand(n, n).realize()))
    return {name: timed_call(*call) for name, call in calls.items()}


def layers(name):
    if name == "MLP":
        return [nn.Linear(64, 32), Tensor.relu, nn.Linear(32, 10)], data.MLP, (data.BATCH, 64)
    net = [
        *(nn.Conv2d(1, 6, 5, padding=2), Tensor.relu, Tensor.max_pool2d),
        *(nn.Conv2d(6, 16, 5), Tensor.relu, Tensor.max_pool2d, lambda x: x.flatten(1)),
        *(nn.Linear(400, 120), Tensor.relu, nn.Linear(120, 84), Tensor.relu, nn.Linear(84, 10)),
    ]
    return net, data.LENET, (data.BATCH, 1, 28, 28)


def step_of(name):
    net, shapes, shape = layers(name)
    with_weights = [layer for layer in net if hasattr(layer, "weight")]
    values = [Tensor(v).reshape(s) for v, s in zip(data.parameters(shapes), shapes, strict=True)]
    for layer, weight, bias in zip(with_weights, values[::2], values[1::2], strict=True):
        layer.weight.assign(weight).realize()
        layer.bias.assign(bias).realize()
    x, y = Tensor(data.numbers(shape, 0)).reshape(shape).realize(), Tensor(data.LABELS).realize()
    optimizer = nn.optim.Adam(nn.state.get_parameters(with_weights), lr=1e-3)

    @TinyJit
    def step():
        optimizer.zero_grad()
        loss = x.sequential(net).sparse_categorical_crossentropy(y).backward()
        return loss.realize(*optimizer.schedule_step())

    return step


def main() -> None:
    rows, losses = ops(), {}
    with Context(TRAINING=1):
        for name in ("MLP", "LeNet"):
            step = step_of(name)
            losses[name] = [step().item() for _ in range(data.STEPS)][-1]
            rows[f"{name}, a training step"] = timed(lambda step=step: step().item())
    print(json.dumps({"version": f"tinygrad {version('tinygrad')}", "rows": rows, "losses": losses}))


main()
