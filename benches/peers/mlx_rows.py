"""The rows for MLX on the CPU: steps are compiled by `mx.compile`; results are evaluated, since MLX is lazy."""

import json
from importlib.metadata import version

import data
import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
from timing import timed


def ops() -> dict:
    a, b = mx.random.uniform(shape=(4,)), mx.random.uniform(shape=(4,))
    big, other = mx.random.uniform(shape=(1_000_000,)), mx.random.uniform(shape=(1_000_000,))
    square = mx.random.uniform(shape=(1000, 1000))
    mx.eval(a, b, big, other, square)
    found = {
        "a + b, 4 floats": timed(lambda: mx.eval(a + b)),
        "a + b, 1M floats": timed(lambda: mx.eval(big + other)),
        "tanh, 1M floats": timed(lambda: mx.eval(mx.tanh(big))),
        "sum, 1M floats": timed(lambda: mx.eval(big.sum())),
        "softmax, 1000 x 1000": timed(lambda: mx.eval(mx.softmax(square, 1))),
        "transpose and copy, 1000 x 1000": timed(lambda: mx.eval(mx.contiguous(square.T))),
    }
    for n in (128, 1024):
        left, right = mx.random.uniform(shape=(n, n)), mx.random.uniform(shape=(n, n))
        mx.eval(left, right)
        found[f"matmul, {n} x {n}"] = timed(lambda left=left, right=right: mx.eval(left @ right))
    return found


def tensors(shapes):
    found = zip(data.parameters(shapes), shapes, strict=True)
    return [mx.array(values).reshape(shape) for values, shape in found]


def mlp():
    net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    return net, tensors(data.MLP), mx.array(data.numbers((data.BATCH, 64), 0)).reshape(data.BATCH, 64)


def lenet():
    net = nn.Sequential(
        *(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), lambda x: x.reshape(x.shape[0], -1)),
        *(nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)),
    )
    values = tensors(data.LENET)
    # Channels come last in MLX: filters, and the inputs of the first linear layer.
    values[0], values[2] = (w.transpose(0, 2, 3, 1) for w in (values[0], values[2]))
    values[4] = values[4].reshape(120, 16, 5, 5).transpose(0, 2, 3, 1).reshape(120, 400)
    return net, values, mx.array(data.numbers((data.BATCH, 1, 28, 28), 0)).reshape(data.BATCH, 28, 28, 1)


def step_of(made):
    net, values, x = made
    layers = [layer for layer in net.layers if isinstance(layer, nn.Linear | nn.Conv2d)]
    for layer, weight, bias in zip(layers, values[::2], values[1::2], strict=True):
        layer.weight, layer.bias = weight, bias
    y = mx.array(data.LABELS)
    optimizer = optim.Adam(learning_rate=1e-3, bias_correction=True)
    of_loss = nn.value_and_grad(net, lambda: nn.losses.cross_entropy(net(x), y, reduction="mean"))
    state = [net.state, optimizer.state]

    @lambda f: mx.compile(f, inputs=state, outputs=state)
    def compiled():
        loss, grads = of_loss()
        optimizer.update(net, grads)
        return loss

    def step():
        loss = compiled()
        mx.eval(loss, state)
        return loss

    return step


def main() -> None:
    rows, losses = ops(), {}
    for name, make in (("MLP", mlp), ("LeNet", lenet)):
        step = step_of(make())
        losses[name] = [step().item() for _ in range(data.STEPS)][-1]
        rows[f"{name}, a training step"] = timed(lambda step=step: step().item())
    print(json.dumps({"version": f"MLX {version('mlx')}", "rows": rows, "losses": losses}))


main()
