"""`utils.checkpoint`: parts of a model that are recomputed in backward."""

import contextlib
import importlib

import pytest
from support import target


@pytest.fixture
def module(torch):
    return importlib.import_module(f"{torch.__name__}.utils.checkpoint")


def block(torch, calls=None):
    inner, outer = torch.nn.Linear(3, 4), torch.nn.Linear(4, 2)

    def run(x, scale=1.0):
        if calls is not None:
            calls.append(torch.is_grad_enabled())
        return outer(torch.tanh(inner(x)) * scale)

    return run, [*inner.parameters(), *outer.parameters()]


def test_gradients_are_the_same(torch, module, device):
    calls = []
    run, params = block(torch, calls)
    with torch.no_grad():
        for p in params:
            p.data = p.to(device)
    x = torch.arange(6.0, device=device).reshape(2, 3).requires_grad_()
    want = torch.autograd.grad(run(x, scale=0.5).square().sum(), [x, *params])
    calls.clear()
    out = module.checkpoint(run, x, use_reentrant=False, scale=0.5)
    assert calls == [True]
    got = torch.autograd.grad(out.square().sum(), [x, *params])
    assert calls == [True, True] and all(torch.allclose(a, b) for a, b in zip(got, want, strict=True))


@pytest.mark.filterwarnings("ignore:torch.utils.checkpoint")
@pytest.mark.parametrize("reentrant", [True, False, None])
def test_ways_to_call(torch, module, reentrant):
    calls = []
    run, params = block(torch, calls)
    x = torch.ones(2, 3, requires_grad=True)
    out = module.checkpoint(run, x, use_reentrant=reentrant)
    out.sum().backward()
    assert x.grad.shape == (2, 3) and all(p.grad is not None for p in params) and len(calls) == 2
    with torch.no_grad():
        assert not module.checkpoint(run, x, use_reentrant=False).requires_grad and len(calls) == 3


def test_memory_is_given_up(torch, module):
    saved = []
    hooks = torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t.shape) or t, lambda t: t)
    run, _ = block(torch)
    x = torch.ones(2, 3, requires_grad=True)
    with hooks:
        plain = run(x)
        kept = len(saved)
        out = module.checkpoint(run, x, use_reentrant=False)
    assert kept > 1 and len(saved) <= kept + 1 and plain.equal(out)


def test_several_passes_and_orders(torch, module):
    def cube(x):
        return (x * x) * x

    x = torch.tensor([2.0, 3.0], requires_grad=True)
    y = module.checkpoint(cube, x, use_reentrant=False).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [24.0, 54.0]
    y = module.checkpoint(cube, x, use_reentrant=False).sum()
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert second.tolist() == [12.0, 18.0]


def test_nested(torch, module):
    counts = {"outer": 0, "inner": 0}

    def inner(x):
        counts["inner"] += 1
        return x.exp().sin()

    def outer(x):
        counts["outer"] += 1
        return module.checkpoint(inner, x.cos(), use_reentrant=False) * x

    x = torch.tensor([0.3, 0.7], requires_grad=True)
    (want,) = torch.autograd.grad((x.cos().exp().sin() * x).sum(), x)
    (got,) = torch.autograd.grad(module.checkpoint(outer, x, use_reentrant=False).sum(), x)
    assert torch.allclose(got, want) and counts["outer"] == 2 and counts["inner"] >= 3


def test_random_numbers_repeat(torch, module):
    x = torch.ones(1000, requires_grad=True)
    out = module.checkpoint(torch.nn.functional.dropout, x, 0.5, use_reentrant=False)
    torch.rand(3)
    state = torch.get_rng_state()
    out.sum().backward()
    assert x.grad.equal(out.detach()) and torch.get_rng_state().equal(state)


def test_contexts_and_early_stop(torch, module):
    entered = []

    @contextlib.contextmanager
    def note(name):
        entered.append(name)
        yield
        entered.append(name + " left")

    finished = []

    def run(x):
        y = x.exp()
        finished.append(len(entered))
        return y

    x = torch.ones(2, requires_grad=True)
    contexts = {"use_reentrant": False, "context_fn": lambda: (note("first"), note("again"))}
    module.checkpoint(run, x, **contexts, early_stop=False).sum().backward()
    assert entered == ["first", "first left", "again", "again left"] and len(finished) == 2
    module.checkpoint(run, x, use_reentrant=False).sum().backward()
    assert len(finished) == 3
    with module.set_checkpoint_early_stop(False):
        out = module.checkpoint(run, x, use_reentrant=False)
    out.sum().backward()
    assert len(finished) == 5


def test_decorator(torch, module):
    if target.STAND_IN and "function=None" not in importlib.import_module("inspect").getsource(module.checkpoint):
        pytest.skip("this PyTorch has no decorator")

    @module.checkpoint(use_reentrant=False)
    def double(x):
        "Twice."
        return x * 2

    x = torch.ones(2, requires_grad=True)
    double(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0] and double.__doc__ == "Twice."


@pytest.mark.filterwarnings("ignore:torch.utils.checkpoint")
@pytest.mark.parametrize("segments", [1, 2, 3])
def test_sequential(torch, module, segments):
    layers = torch.nn.Sequential(*(torch.nn.Linear(2, 2) for _ in range(5)), torch.nn.Tanh())
    x = torch.ones(1, 2, requires_grad=True)
    want = torch.autograd.grad(layers(x).sum(), [x, *layers.parameters()])
    out = module.checkpoint_sequential(layers, segments, x, use_reentrant=False)
    got = torch.autograd.grad(out.sum(), [x, *layers.parameters()])
    assert all(torch.allclose(a, b) for a, b in zip(got, want, strict=True))
    module.checkpoint_sequential(list(layers), segments, x).sum().backward()
    assert torch.allclose(x.grad, want[0])


def test_refused(torch, module):
    x = torch.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="the use_reentrant parameter should be passed explicitly"):
        module.checkpoint(torch.exp, x)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: scale"):
        module.checkpoint(torch.exp, x, use_reentrant=True, scale=2)
    changing = []

    def other(x):
        changing.append(1)
        return x.exp().sin() if len(changing) == 1 else x.exp()

    with pytest.raises(module.CheckpointError, match="A different number of tensors was saved"):
        module.checkpoint(other, x, use_reentrant=False).sum().backward()
    sizes = []

    def growing(x):
        sizes.append(1)
        return x.repeat(len(sizes)).exp().sum()

    with pytest.raises(module.CheckpointError, match="have different metadata than during the forward pass"):
        module.checkpoint(growing, x, use_reentrant=False).backward()
    kept = torch.ones(2)
    out = module.checkpoint(lambda a, b: a * b, x, kept, use_reentrant=False)
    kept.add_(1)
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        out.sum().backward()
