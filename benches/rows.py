"""The rows of benches/RESULTS.md, for one module: python benches/rows.py MODULE prints {row: seconds}.

The same program times rustgrad and its peer, each in a process of its own; run.py calls it in turns. A row's time is
the median over several stretches, each long enough for the clock.
"""

import importlib
import json
import sys
import time

STRETCH = 0.05
REPEATS = 7


def timed(function, stretch: float = STRETCH, repeats: int = REPEATS) -> float:
    """Seconds a call, the median of several stretches."""
    function()
    count = 1
    while True:
        start = time.perf_counter()
        for _ in range(count):
            function()
        spent = time.perf_counter() - start
        if spent > stretch / 4 or count > 10_000_000:
            break
        count *= 4
    count = max(1, int(count * stretch / max(spent, 1e-9)))
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(count):
            function()
        found.append((time.perf_counter() - start) / count)
    return sorted(found)[repeats // 2]


def calls(torch) -> dict:
    """What a call costs when there is nothing to compute."""
    a, b = torch.rand(4), torch.rand(4)
    w = torch.rand(4).requires_grad_()
    m = torch.rand(4, 4)
    return {
        "a + b, 4 floats": timed(lambda: a + b),
        "a + b, 4 floats, recorded": timed(lambda: w + b),
        "a * 2, 4 floats": timed(lambda: a * 2),
        "view: x[0]": timed(lambda: m[0]),
        "view: x.view(16)": timed(lambda: m.view(16)),
        "view: x.transpose(0, 1)": timed(lambda: m.transpose(0, 1)),
        "sum, 4 floats": timed(lambda: a.sum()),
    }


def chain(torch) -> dict:
    """Backward through a chain of 1,000 small ops, a node."""
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
    nn = torch.nn
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    x, target = torch.rand(32, 64), torch.randint(0, 10, (32,))

    def step():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), target)
        loss.backward()
        optimizer.step()

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


def texts(torch) -> dict:
    x = torch.rand(1000, 1000)
    return {"repr, 1000 x 1000": timed(lambda: repr(x)), "repr, 10": timed(lambda: repr(x[0, :10]))}


def main():
    torch = importlib.import_module(sys.argv[1])
    found = {}
    for part in (calls, chain, training, large, matrices, texts):
        try:
            found |= part(torch)
        except Exception as error:  # a row that cannot run yet is reported, not hidden
            found[f"{part.__name__}: {type(error).__name__}: {str(error)[:80]}"] = None
    print(json.dumps({"version": torch.__version__, "rows": found}))


if __name__ == "__main__":
    main()
