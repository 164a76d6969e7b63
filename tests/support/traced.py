"""Programs that `make_fx` traces, and what is compared of their graphs with PyTorch's (`golden/make_fx.json`).

`python tests/support/traced.py torch > tests/golden/make_fx.json` writes the file again.
"""

import importlib
import json
import sys


def programs(torch):
    """{name: (function, arguments)}."""
    F, nn, func = torch.nn.functional, torch.nn, torch.func
    torch.manual_seed(0)
    x, w = torch.rand(3, 4), torch.rand(4, 2)
    net = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 2))
    params = {k: v.detach() for k, v in net.named_parameters()}
    convs = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(2, 3))

    def leaf(t):
        return t.detach().requires_grad_()

    def step(x, w):
        w = leaf(w)
        (grad,) = torch.autograd.grad(F.mse_loss(x @ w, torch.ones(3, 2)), w)
        return w - 0.1 * grad

    def backward(params, x, y):
        params = {k: leaf(v) for k, v in params.items()}
        F.cross_entropy(func.functional_call(net, params, (x,)), y).backward()
        return {k: v - 0.1 * v.grad for k, v in params.items()}

    def twice(x):
        x = leaf(x)
        ((x * 2).relu() ** 2).sum().backward()
        (x * 3).sum().backward()
        return x.grad

    def second(x):
        x = leaf(x)
        (grad,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        return torch.autograd.grad(grad.sum(), x)

    def written(x):
        x = leaf(x)
        y = x * 2
        y[:, 0] = 0
        return torch.autograd.grad(y.sin().sum(), x)

    def hooked(x):
        x = leaf(x)
        y = x.sin()
        y.register_hook(lambda grad: grad * 2)
        return torch.autograd.grad(y.sum(), x)

    return {
        "function": (lambda x: (x.sin() + 1, x.split(2, 1)[0]), (x,)),
        "constant": (lambda x: x + torch.tensor([1.0, 2, 3, 4]), (x,)),
        "module": (net, (x,)),
        "containers": (lambda d: {"a": d["x"] + d["y"][0]}, ({"x": x, "y": [x]},)),
        "in place": (lambda x: x.clone().add_(1).view(-1)[2:].mul_(2), (x,)),
        "grad": (func.grad(lambda x: (x.sin() * x.sigmoid()).sum()), (x,)),
        "grad of grad": (func.grad(lambda x: func.grad(lambda y: (y**3).sum())(x).sum()), (x[0],)),
        "vjp": (lambda x: func.vjp(lambda y: y.tanh().sum(), x)[1](torch.tensor(1.0)), (x,)),
        "gradients of a network": (func.grad(lambda p, x: func.functional_call(net, p, (x,)).pow(2).mean()), (params, x)),
        "convolutions": (convs, (torch.rand(2, 1, 4, 4),)),
        "step": (step, (x, w)),
        "backward": (backward, (params, x, torch.tensor([0, 1, 1]))),
        "twice": (twice, (x,)),
        "second": (second, (x,)),
        "written": (written, (x,)),
        "hooked": (hooked, (x,)),
        "maximum": (func.grad(lambda x: x.max(1)[0].sum() + x.ceil().sum()), (x,)),
    }  # fmt: skip


def described(graph):
    """What is compared of a graph: its nodes and their arguments."""
    return [f"{n.name}: {n.op} {target(n)}{list(n.args)}" for n in graph.nodes]


def target(node):
    """The target of a node without what differs by library."""
    return getattr(node.target, "__name__", node.target) if callable(node.target) else node.target


if __name__ == "__main__":
    lib = importlib.import_module(sys.argv[1])
    make_fx = importlib.import_module(f"{sys.argv[1]}.fx.experimental.proxy_tensor").make_fx
    importlib.import_module(f"{sys.argv[1]}.func")
    made = {name: described(make_fx(f)(*args).graph) for name, (f, args) in programs(lib).items()}
    print(json.dumps(made, indent=1))
