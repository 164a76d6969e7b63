"""Cycles through hooks, contexts and attributes: the collector frees them, but nothing that a graph still holds."""

import gc
import weakref

import pytest
from support import target

own = pytest.mark.skipif(target.STAND_IN, reason="what only rustgrad promises or counts")


class Object:
    """An object that can be weakly referenced."""


def function(torch):
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.y = x * 2
            return ctx.y

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    return Double


def collected(make, *args):
    """Whether the collector frees what `make` returns a weak reference to."""
    watched = make(*args)
    for _ in range(3):
        gc.collect()
    return watched() is None


def test_hooks_that_hold_their_tensor(torch):
    def on(register, leaf=True):
        def make():
            o = Object()
            x = torch.ones(3, requires_grad=True)
            t = x if leaf else x * 2
            getattr(t, register)(lambda g: (t, o) and None)
            return weakref.ref(o)

        return make

    assert collected(on("register_hook")) and collected(on("register_post_accumulate_grad_hook"))

    def parameter():
        o, p = Object(), torch.nn.Parameter(torch.rand(3))
        p.register_hook(lambda g: (p, o) and None)
        return weakref.ref(o)

    assert collected(parameter)


@own
def test_hooks_that_hold_results(torch):
    """PyTorch leaks these."""

    def result():
        o, x = Object(), torch.ones(3, requires_grad=True)
        y = x * 2
        y.register_hook(lambda g: (y, o) and None)
        return weakref.ref(o)

    def later_result():
        o, x = Object(), torch.ones(3, requires_grad=True)
        y = (x * 2).exp().sum()
        y.register_hook(lambda g: None)
        x.register_hook(lambda g: (y, o) and None)
        return weakref.ref(o)

    def gradient():
        o, x = Object(), torch.ones(3, requires_grad=True)
        x.mark = o
        x.grad = torch.ones(3)
        x.grad.owner = x
        return weakref.ref(o)

    assert collected(result) and collected(later_result) and collected(gradient)


def test_contexts_that_hold_their_results(torch):
    double = function(torch)

    def output():
        y = double.apply(torch.ones(3, requires_grad=True))
        return weakref.ref(y)

    def attribute():
        o, y = Object(), double.apply(torch.ones(3, requires_grad=True))
        y.grad_fn.mark = (y, o)
        return weakref.ref(o)

    assert collected(output) and collected(attribute)


@pytest.mark.parametrize("custom", [False, True])
@pytest.mark.parametrize("on_tensor", [False, True])
def test_hooks_that_hold_their_node(torch, custom, on_tensor):
    calls = []

    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad

    def make():
        a = torch.tensor(1.0, requires_grad=True)
        b = Same.apply(a) if custom else a.clone()
        o, node = Object(), b.grad_fn

        def hook(*args):
            calls.append((node, o) and None)

        (b if on_tensor else node).register_hook(hook)
        return b.clone(), weakref.ref(o)

    out, watched = make()
    out.backward(retain_graph=True)
    gc.collect()
    out.backward(retain_graph=True)
    assert len(calls) == 2 and watched() is not None, "a graph that somebody holds keeps its hooks"
    del out
    gc.collect()
    assert watched() is None


def test_what_a_graph_holds_stays(torch):
    """Collections at any point free nothing that is in use."""
    double, seen = function(torch), []

    def graph():
        x = torch.ones(3, requires_grad=True)
        x.mark = x
        y = double.apply(x)
        y.mark = y
        z = y * 2
        z.register_hook(lambda g: seen.append(("z", z is not None, g.sum().item())))
        x.register_hook(lambda g: seen.append(("x", x.mark is x, g.sum().item())))
        with torch.autograd.graph.saved_tensors_hooks(lambda t: (t, Object()), lambda p: p[0]):
            w = z.exp()
        return w.sum()

    losses = [graph() for _ in range(5)]
    gc.collect()
    for loss in losses:
        gc.collect()
        loss.backward()
        gc.collect()
    assert len(seen) == 10 and all(ok for _, ok, _ in seen)
    assert seen[0][0] == "z" and seen[1][0] == "x" and seen[1][2] == pytest.approx(4 * seen[0][2], rel=1e-5)


def test_attributes_of_what_a_tensor_or_a_graph_holds_stay(torch):
    p = torch.zeros(3, requires_grad=True)
    p.grad = torch.ones(3)
    p.grad.me = p.grad
    g = p.grad
    g.note = Object()
    del g
    y = torch.ones(3, requires_grad=True)
    y.me = (y, "leaf")
    out = y * 2
    del y
    gc.collect()
    assert p.grad.me is p.grad and isinstance(p.grad.note, Object)
    assert out.grad_fn.next_functions[0][0].variable.me[1] == "leaf"

    def directory():
        o, x = Object(), torch.ones(3)
        x.__dict__["me"] = (x, o)
        return weakref.ref(o)

    assert collected(directory)


@own
def test_collections_inside_of_backward_take_nothing_away(torch):
    x = torch.ones(3, requires_grad=True)
    order = []

    class Note(torch.autograd.Function):
        @staticmethod
        def forward(ctx, t, name):
            ctx.name, ctx.self = name, ctx
            ctx.save_for_backward(t)
            return t * 1

        @staticmethod
        def backward(ctx, grad):
            gc.collect()
            order.append((ctx.self.name, ctx.saved_tensors[0].sum().item()))
            return grad, None

    def graph():
        t = x * 1
        for i in range(10):
            t = Note.apply(t, i)
            t.register_hook(lambda g: None if gc.collect() else None)
            t.retain_grad()
        return t.sum()

    loss = graph()
    gc.collect()
    loss.backward()
    assert order == [(i, 3.0) for i in reversed(range(10))] and x.grad.tolist() == [1, 1, 1]
    counts = torch._C.live_counts()
    graph()
    gc.collect()
    assert torch._C.live_counts() == counts


def test_an_unpacking_hook_may_look_at_its_node(torch):
    x = torch.ones(3, requires_grad=True)
    looked = []

    def unpack(t):
        if not looked:
            looked.append(None)
            looked[0] = y.grad_fn._saved_self
        return t

    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
        y = x * x
    y.sum().backward()
    assert looked[0].tolist() == [1, 1, 1] and x.grad.tolist() == [2, 2, 2]


@own
@pytest.mark.parametrize("depth, young", [(100, True), (10_000, False)])
def test_young_collections_search_the_new_part_of_a_graph(torch, depth, young):
    """A loop that calls functions has the collector run each few hundred calls, which must not search the whole graph."""

    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

    gc.collect()
    gc.disable()
    try:
        o, x = Object(), torch.ones(1, requires_grad=True)
        y = x
        for _ in range(depth):
            y = Same.apply(y)
        x.register_hook(lambda g, held=(y, o): None)
        watched = weakref.ref(o)
        del o, x, y
        gc.collect(0)
        assert (watched() is None) == young
        gc.collect()
        assert watched() is None
    finally:
        gc.enable()
