"""The rows for rustgrad and PyTorch: python torch_like.py rustgrad|torch prints {"rows": .., "losses": ..}."""

import importlib
import json
import sys

import data
from timing import timed


def ops(torch) -> dict:
    a, b = torch.rand(4), torch.rand(4)
    big, other = torch.rand(1_000_000), torch.rand(1_000_000)
    square = torch.rand(1000, 1000)
    found = {
        "a + b, 4 floats": timed(lambda: a + b),
        "a + b, 1M floats": timed(lambda: big + other),
        "tanh, 1M floats": timed(lambda: big.tanh()),
        "sum, 1M floats": timed(lambda: big.sum()),
        "softmax, 1000 x 1000": timed(lambda: torch.softmax(square, 1)),
        "transpose and copy, 1000 x 1000": timed(lambda: square.t().contiguous()),
    }
    for n in (128, 1024):
        left, right = torch.rand(n, n), torch.rand(n, n)
        found[f"matmul, {n} x {n}"] = timed(lambda left=left, right=right: left @ right)
    return found


def model(torch, name):
    nn = torch.nn
    if name == "MLP":
        net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
        shapes, shape = data.MLP, (data.BATCH, 64)
    else:
        net = nn.Sequential(
            *(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
            *(nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)),
        )
        shapes, shape = data.LENET, (data.BATCH, 1, 28, 28)
    with torch.no_grad():
        for p, values in zip(net.parameters(), data.parameters(shapes), strict=True):
            p.copy_(torch.tensor(values).view(p.shape))
    return net, torch.tensor(data.numbers(shape, 0)).view(shape)


def step_of(torch, name):
    net, x = model(torch, name)
    y = torch.tensor(data.LABELS)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)

    def step():
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def main(module: str) -> None:
    torch = importlib.import_module(module)
    rows, losses = ops(torch), {}
    for name in ("MLP", "LeNet"):
        step = step_of(torch, name)
        losses[name] = [step().item() for _ in range(data.STEPS)][-1]
        rows[f"{name}, a training step"] = timed(lambda step=step: step().item())
        if module == "rustgrad":
            step = torch.compile(step_of(torch, name))
            rows[f"{name}, a training step, compiled"] = timed(lambda step=step: step().item())
    print(json.dumps({"version": f"{module} {torch.__version__}", "rows": rows, "losses": losses}))


main(sys.argv[1])
