"""`aot_function` and `aot_module`: graphs of results and of gradients compute what the function does, step after step."""

import copy
import importlib

import pytest
from support import target

torch = target.torch
nn, F = torch.nn, torch.nn.functional
aot = importlib.import_module(f"{target.NAME}._functorch.aot_autograd")
compilers = importlib.import_module(f"{target.NAME}._functorch.compilers")
pytree = importlib.import_module(f"{target.NAME}.utils._pytree")


class Kept:
    """A compiler that keeps the graphs."""

    def __init__(self):
        self.graphs = []

    def __call__(self, graph, inputs):
        self.graphs.append(graph)
        assert [tuple(t.shape) for t in inputs if hasattr(t, "shape")]
        return aot.make_boxed_func(graph.forward)

    def ops(self, i):
        return [n.name for n in self.graphs[i].graph.nodes if n.op == "call_function"]


def compared(function, *args):
    """Results, gradients and arguments of a function and of what is compiled of it."""
    found = []
    for run in (function, aot.aot_function(function, compilers.nop)):
        given = [a.detach().clone().requires_grad_(a.requires_grad) for a in args]
        for _ in range(2):
            leaves = pytree.tree_leaves(run(*given))
            losses = [t.sum() for t in leaves if isinstance(t, torch.Tensor) and t.requires_grad]
            if losses:
                sum(losses).backward()
        found.append([leaves, [g.grad for g in given], given])
    for a, b in zip(pytree.tree_leaves(found[0]), pytree.tree_leaves(found[1])):
        torch.testing.assert_close(a, b)


def written(x, y):
    y.add_(1)
    z = x * y
    z[:, 0].mul_(2)
    return {"z": z.sin(), "n": [3, y.sum()], "x": x}


def test_functions():
    x, y = torch.rand(3, 4, requires_grad=True), torch.rand(3, 4)
    compared(lambda x, y: (x @ y.T).softmax(1).exp(), x, y)
    compared(lambda x, y: {"a": x * y, "b": [x.sum(), 3, None]}, x, y)
    compared(written, x, y)
    compared(lambda x: x.sin().cos(), y)
    compared(lambda x: (x.t(), x.relu(), x.max(1)), x)


def test_graphs():
    kept = Kept()
    run = aot.aot_function(lambda a, b: ((a * b).sin().sum(), a.detach() + 1), kept, kept)
    a, b = torch.rand(3, requires_grad=True), torch.rand(3)
    out, other = run(a, b)
    assert len(kept.graphs) == 1 and out.grad_fn.name() == "CompiledFunctionBackward" and not other.requires_grad
    out.backward()
    torch.testing.assert_close(a.grad, (a * b).cos().detach() * b)
    assert [n.name for n in kept.graphs[0].graph.nodes][:2] == ["primals_1", "primals_2"]
    assert kept.ops(0) == ["mul", "sin", "sum_1", "detach", "add"] and kept.ops(1) == [
        "expand",
        "cos",
        "mul_1",
        "mul_2",
    ]
    assert [n.name for n in kept.graphs[1].graph.nodes][:3] == ["primals_2", "mul", "tangents_1"]
    run(a, b)
    assert len(kept.graphs) == 2
    # Writes become results.
    inner = Kept()
    z = torch.ones(2)
    aot.aot_function(lambda x: x.add_(1) * 2, inner)(z)
    assert inner.ops(0) == ["add", "mul"] and z.tolist() == [2, 2]


def test_modules():
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.Linear(3, 2))
    other = copy.deepcopy(model)
    compiled = aot.aot_module(other, compilers.nop)
    assert len(list(compiled.parameters())) == 6
    x, target_ = torch.rand(5, 4), torch.tensor([0, 1, 1, 0, 1])
    for m, run in ((model, model), (other, compiled)):
        optimizer = torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)
        for _ in range(3):
            optimizer.zero_grad()
            F.cross_entropy(run(x), target_).backward()
            optimizer.step()
    for (name, a), (_, b) in zip(model.state_dict().items(), other.state_dict().items()):
        torch.testing.assert_close(a, b, msg=name)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), model(x))


@pytest.mark.skipif(target.STAND_IN, reason="what rustgrad answers where PyTorch has more")
def test_what_is_not_here_says_so():
    with pytest.raises(NotImplementedError, match="dynamic=True"):
        aot.aot_function(torch.sin, compilers.nop, dynamic=True)
    with pytest.raises(NotImplementedError, match="default_partition"):
        aot.aot_function(torch.sin, compilers.nop, partition_fn=lambda *given: None)
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(NotImplementedError, match="writes to an argument which requires grad"):
        aot.aot_function(lambda x: x.mul_(2), compilers.nop)(x * 1)
