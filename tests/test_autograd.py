"""The dynamic graph: leaves, accumulation, versions, in-place on views, hooks, depth, leaks, threads."""

import gc
import threading
import weakref

import pytest
from support import target


def leaf(torch, *values, device="cpu"):
    return torch.tensor(list(values), device=device).requires_grad_()


def test_leaf_rules(torch):
    w = leaf(torch, 1.0, 2.0)
    y = w * 2
    assert w.is_leaf and not y.is_leaf and w.grad_fn is None and y.grad_fn.name() == "MulBackward0"
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        w.add_(1)
    with pytest.raises(RuntimeError, match="only change requires_grad flags of leaf"):
        y.requires_grad_(False)
    with pytest.raises(RuntimeError, match="floating point"):
        torch.tensor([1, 2]).requires_grad_()
    with pytest.raises(RuntimeError, match="scalar outputs"):
        y.backward()
    with pytest.raises(RuntimeError, match="does not require grad"):
        torch.ones(1).backward()


def test_grad_accumulates(torch, device):
    w = leaf(torch, 1.0, 2.0, device=device)
    for _ in range(3):
        (w * w).sum().backward()
    assert w.grad.tolist() == [6, 12]
    w.grad = None
    (w * 3).sum().backward()
    assert w.grad.tolist() == [3, 3]
    w.grad.zero_()
    assert w.grad.tolist() == [0, 0]


def test_graph_is_freed_and_may_be_kept(torch):
    w = leaf(torch, 2.0)
    y = (w * w).sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()
    assert w.grad.item() == 8


def test_retain_grad(torch):
    w = leaf(torch, 1.0, 2.0)
    y = w * 2
    y.retain_grad()
    (y * y).sum().backward()
    assert y.retains_grad and y.grad.tolist() == [4, 8]


def test_a_retained_gradient_counts_once_after_a_write(torch):
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    y = x.clone()
    z = y.view(-1)
    y.mul_(1)
    z.retain_grad()
    z.retain_grad()
    (z**2).sum().backward()
    assert z.grad.tolist() == [0, 2, 4, 6, 8, 10]


def test_a_recorded_gradient_is_added_to_in_place(torch):
    w = leaf(torch, 1.0, 2.0)
    (w**3).sum().backward(create_graph=True)
    g = w.grad
    (w * 2).sum().backward()
    assert w.grad is g and g.requires_grad and g.tolist() == [5, 14]
    (w**2).sum().backward(create_graph=True)
    assert w.grad is not g and w.grad.tolist() == [7, 18]


def test_next_functions(torch):
    a, b = leaf(torch, 1.0), leaf(torch, 2.0)
    y = a * b + a
    names = [f.name() if f else None for f, _ in y.grad_fn.next_functions]
    assert y.grad_fn.name() == "AddBackward0" and names[0] == "MulBackward0" and "AccumulateGrad" in names[1]
    assert y.grad_fn.next_functions[1][0].variable is a


def test_modes(torch):
    w = leaf(torch, 1.0)
    with torch.no_grad():
        assert not (w * 2).requires_grad and not torch.is_grad_enabled()
        with torch.enable_grad():
            assert (w * 2).requires_grad
    with torch.inference_mode():
        x = w * 2
    assert not x.requires_grad and x.is_inference()
    assert x.data.is_inference() and x.detach().is_inference()
    with pytest.raises(RuntimeError, match="[Ii]nference"):
        (leaf(torch, 1.0) * x).sum().backward()

    @torch.no_grad()
    def inside():
        return w * 2

    assert not inside().requires_grad
    d = (w * 2).detach()
    assert not d.requires_grad and d.grad_fn is None


def test_versions_and_saved_tensors(torch):
    w = leaf(torch, 1.0, 2.0)
    x = w * 1
    assert x._version == 0
    y = x * x
    x.add_(1)
    assert x._version == 1 and x[0:1]._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    z = x * 1
    view = z[0:1]
    saved = z.exp()
    view.mul_(2)
    assert z._version == view._version == 1
    saved.sum().backward()


def test_error_says_versions(torch):
    x = leaf(torch, 1.0, 2.0) * 1
    y = x.sin()
    x.zero_()
    with pytest.raises(RuntimeError, match=r"is at version 1; expected version 0"):
        y.sum().backward()


def test_in_place_on_views(torch, device):
    w = leaf(torch, 1.0, 2.0, 3.0, device=device)
    base = w * 1
    base[1:].mul_(10)
    assert "grad_fn=<CopySlices>" in repr(base)
    base.sum().backward()
    assert w.grad.tolist() == [1, 10, 10]
    w.grad = None
    base = w * 1
    view = base.view(3, 1)
    base.mul_(4)
    (view * view).sum().backward()
    assert w.grad.tolist() == [32, 64, 96]
    x = torch.zeros(3, device=device)
    x[0] = w[2] * 2
    x.sum().backward()
    assert x.tolist() == [6, 0, 0]


def test_in_place_refuses(torch):
    w = leaf(torch, 1.0, 2.0)
    with pytest.raises(RuntimeError, match="leaf"):
        w[0:1].mul_(2)
    with pytest.raises(RuntimeError, match="single memory location"):
        torch.zeros(1).expand(3).add_(torch.tensor([1.0, 2.0, 3.0]))
    with pytest.raises(RuntimeError, match="[Oo]utput 0 of UnbindBackward0|modified inplace"):
        (w * 1).unbind()[0].mul_(2)


def test_out_has_no_gradient(torch):
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        torch.add(leaf(torch, 1.0), 1, out=torch.zeros(1))


def test_higher_orders(torch, device):
    x = leaf(torch, 2.0, device=device)
    y = (x**4).sum()
    for want in (32, 48, 48, 24):
        (y,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        assert y.item() == pytest.approx(want)


def test_autograd_grad(torch):
    a, b = leaf(torch, 1.0), leaf(torch, 2.0)
    y = (a * 3).sum()
    with pytest.raises(RuntimeError, match="appears to not have been used"):
        torch.autograd.grad(y, [a, b], retain_graph=True)
    ga, gb = torch.autograd.grad(y, [a, b], allow_unused=True, retain_graph=True)
    assert ga.item() == 3 and gb is None
    assert torch.autograd.grad(y, [a, b], materialize_grads=True, allow_unused=True)[1].item() == 0
    assert a.grad is None


def test_tensor_hooks(torch):
    w = leaf(torch, 1.0, 2.0)
    seen = []
    handle = w.register_hook(lambda g: seen.append(g.tolist()) or g * 10)
    y = w * 2
    y.register_hook(lambda g: g + 1)
    y.sum().backward()
    assert seen == [[4, 4]] and w.grad.tolist() == [40, 40]
    handle.remove()
    (w * 1).sum().backward()
    assert len(seen) == 1
    w.register_post_accumulate_grad_hook(lambda p: seen.append("after"))
    (w * 1).sum().backward()
    assert seen[-1] == "after"
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        torch.ones(1).register_hook(print)


def test_node_hooks(torch):
    w = leaf(torch, 1.0)
    y = w * 2
    seen = []
    y.grad_fn.register_hook(lambda grad_in, grad_out: seen.append((len(grad_in), grad_out[0].item())))
    y.grad_fn.register_prehook(lambda grad_out: (grad_out[0] * 5,))
    y.sum().backward()
    assert seen == [(2, 5.0)] and w.grad.item() == 10


def test_hook_errors_pass_through(torch):
    class Odd(Exception):
        pass

    def fail(grad):
        raise Odd("here")

    w = leaf(torch, 1.0)
    (w * 1).register_hook(fail)
    y = w * 2
    y.register_hook(fail)
    with pytest.raises(Odd, match="here"):
        y.sum().backward()


def test_custom_function(torch, device):
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, power):
            ctx.save_for_backward(x)
            ctx.power = power
            return x**power

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            assert ctx.needs_input_grad == (True, False)
            return grad * ctx.power * x ** (ctx.power - 1), None

    x = leaf(torch, 2.0, device=device)
    y = Cube.apply(x, 3)
    assert y.grad_fn.name() == "CubeBackward" and y.item() == 8
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    assert g.item() == 12
    assert torch.autograd.grad(g, x)[0].item() == 12


def test_a_million_nodes(torch):
    x = leaf(torch, 1.0)
    y = x
    for _ in range(1_000_000):
        y = y + 1
    y.backward()
    assert x.grad.item() == 1
    y = x
    for _ in range(1_000_000):
        y = y + 1
    del y
    gc.collect()


def doubling(torch):
    """A custom function whose node reaches the one before it by what it saved, too."""

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    return Double.apply


@pytest.mark.parametrize("kind", ["custom functions", "saved operands", "writes to views"])
def test_long_chains_are_dropped_whatever_holds_them(torch, kind):
    x = leaf(torch, [1.0, 2.0])
    double = doubling(torch)
    y = x * 1
    for _ in range(50_000):
        if kind == "custom functions":
            y = double(y)
        elif kind == "saved operands":
            y = y * y
        else:
            y[0].mul_(1.0)
    del y
    gc.collect()


def test_wide_and_shared_graphs_take_linear_time(torch):
    x = leaf(torch, 1.0)
    y = x
    for _ in range(60):
        y = (y + y) * 0.5
    y.backward()
    assert x.grad.item() == 1


def live(torch):
    gc.collect()
    return torch._C.live_counts()


@pytest.mark.skipif(target.STAND_IN, reason="counts are rustgrad's")
@pytest.mark.parametrize("create_graph", [False, True])
def test_nothing_leaks(torch, create_graph):
    def step():
        w = leaf(torch, 1.0, 2.0)
        w.register_hook(lambda g: g)
        y = (w * w).tanh() * 1
        y[0:1].mul_(2)
        (g,) = torch.autograd.grad(y.sum(), w, create_graph=create_graph)
        if create_graph:
            g.sum().backward()

    step()
    before = live(torch)
    for _ in range(10):
        step()
    assert live(torch) == before


def test_python_objects_of_a_graph_are_collected(torch):
    class Attached:
        pass

    w = leaf(torch, 1.0)
    y = w * 2
    y.attached = Attached()
    gone = weakref.ref(y.attached)
    del y
    gc.collect()
    assert gone() is None


def test_backward_from_several_threads(torch):
    w = torch.ones(100, requires_grad=True)
    errors = []

    def work():
        try:
            for _ in range(50):
                (w * w).sum().backward()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not errors
    assert w.grad[0].item() <= 400
    assert w.grad[0].item() % 2 == 0


def test_grad_mode_is_the_threads_own(torch):
    seen = []
    with torch.no_grad():
        thread = threading.Thread(target=lambda: seen.append(torch.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_gradcheck(torch):
    x = torch.tensor([0.3, -0.7], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda t: (t * t).sin(), (x,))
    assert torch.autograd.gradgradcheck(lambda t: (t * t).sin(), (x,))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda x: x // 2, "floor_divide"),
        (lambda x: 2 // x, "floor_divide"),
        (lambda x: (x * 1).floor_divide_(2), "floor_divide_"),
        (lambda x: x.heaviside(x), "heaviside"),
    ],
)
def test_what_has_no_formula_says_so_in_backward(torch, call, name):
    y = call(leaf(torch, 3.0, 5.0))
    assert y.grad_fn.name() == "torch::autograd::NotImplemented" and "grad_fn=<NotImplemented>" in repr(y)
    with pytest.raises(RuntimeError, match=f"derivative for aten::{name} is not implemented"):
        y.sum().backward()


def test_arguments_without_a_formula_say_so_in_backward(torch):
    a, x = leaf(torch, 2.0), leaf(torch, 1.0)
    for f, name in ((torch.igamma, "igamma: input"), (torch.igammac, "igammac: input"), (torch.special.zeta, "zeta")):
        torch.autograd.grad(f(a, x).sum(), x)
        with pytest.raises(NotImplementedError, match=f"the derivative for '{name}' is not implemented"):
            torch.autograd.grad(f(a, x).sum(), a)


@pytest.mark.parametrize("given", ["float64", "bfloat16", "int64"])
def test_a_gradient_given_to_backward_gets_the_dtype_of_the_output(torch, given):
    x = torch.ones(2, requires_grad=True)
    y, seen = x * 3, []
    y.retain_grad()
    y.register_hook(lambda g: seen.append(g.dtype))
    grad = torch.tensor([1, 2], dtype=getattr(torch, given))
    y.backward(grad)
    assert seen == [torch.float32] and y.grad.dtype == x.grad.dtype == torch.float32
    assert x.grad.tolist() == [3, 6]
    leaf = torch.ones(2, requires_grad=True)
    leaf.backward(grad)
    assert leaf.grad.dtype == torch.float32 and leaf.grad.tolist() == [1, 2]
    m = torch.ones(2, 2, dtype=torch.bfloat16, requires_grad=True)
    (m @ m).backward(torch.ones(2, 2))
    assert m.grad.dtype == torch.bfloat16 and m.grad.tolist() == [[4, 4], [4, 4]]
