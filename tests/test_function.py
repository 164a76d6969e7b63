"""`autograd.Function`: ops whose backward is written in Python, and their errors."""

import gc
import importlib
import weakref

import pytest


@pytest.fixture
def autograd(torch):
    return torch.autograd


def double(torch, *values):
    return torch.tensor(list(values), dtype=torch.float64).requires_grad_()


def exp_function(torch):
    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            result = x.exp()
            ctx.save_for_backward(result)
            return result

        @staticmethod
        def backward(ctx, grad):
            (result,) = ctx.saved_tensors
            return grad * result

    return Exp


def test_function(torch, device):
    Exp = exp_function(torch)
    x = torch.tensor([0.0, 1.0], device=device, requires_grad=True)
    y = Exp.apply(x)
    assert y.grad_fn.name() == "ExpBackward" and "grad_fn=<ExpBackward>" in repr(y)
    assert y.grad_fn.next_functions[0][0].variable is x
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()
    assert not Exp.apply(x.detach()).requires_grad
    with torch.no_grad():
        assert not Exp.apply(x).requires_grad


def test_function_has_higher_derivatives(torch, autograd):
    Exp = exp_function(torch)
    x = double(torch, 0.5, -1.0)
    assert autograd.gradcheck(Exp.apply, (x,)) and autograd.gradgradcheck(Exp.apply, (x,))
    with pytest.raises(RuntimeError, match="second time"):
        y = Exp.apply(x).sum()
        y.backward()
        y.backward()


def test_setup_context(torch, autograd):
    class Scale(autograd.Function):
        @staticmethod
        def forward(x, factor, unused=None):
            return x * factor

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.factor = inputs[1]
            assert output.shape == inputs[0].shape

        @staticmethod
        def backward(ctx, grad):
            assert ctx.needs_input_grad == (True, False, False)
            return grad * ctx.factor, None, None

    x = double(torch, 1.0)
    y = Scale.apply(x, 3.0, None)
    y.backward()
    assert y.item() == 3 and x.grad.item() == 3


def test_several_outputs_and_missing_gradients(torch, autograd):
    seen = []

    class Two(autograd.Function):
        materialize = True

        @staticmethod
        def forward(ctx, x, y):
            ctx.set_materialize_grads(Two.materialize)
            index = torch.zeros(2, dtype=torch.int64)
            ctx.mark_non_differentiable(index)
            return x + y, x * y, index

        @staticmethod
        def backward(ctx, a, b, index):
            seen.append((a, b))
            return (a if a is not None else b), None

    x, y = double(torch, 1.0, 2.0), double(torch, 3.0, 4.0)
    total, product, index = Two.apply(x, y)
    assert total.requires_grad and product.requires_grad and not index.requires_grad
    total.sum().backward()
    assert seen[0][1].tolist() == [0, 0] and y.grad is None
    Two.materialize = False
    Two.apply(x, y)[1].sum().backward()
    assert seen[1][0] is None and x.grad.tolist() == [2, 2]


def test_mark_dirty_counts_as_a_write(torch, autograd):
    class Foreign(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            x.detach().numpy()[:] = 5
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 0

    x = double(torch, 1.0, 2.0) * 1
    square = x * x
    assert Foreign.apply(x) is x and x._version == 1 and x.tolist() == [5, 5]
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        square.sum().backward()


def test_mark_dirty(torch, autograd):
    class Increment(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.add_(1)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 3

    leaf = double(torch, 1.0)
    x = leaf * 2
    y = Increment.apply(x)
    assert y is x and x.grad_fn.name() == "IncrementBackward" and x.item() == 3
    y.backward()
    assert leaf.grad.item() == 6

    class Careless(Increment):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x * 1

    with pytest.raises(RuntimeError, match="marked as dirty"):
        Careless.apply(leaf * 2)


def test_an_input_returned_as_it_is(torch, autograd):
    class Same(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = double(torch, 1.0)
    y = Same.apply(x)
    assert y is not x and not y.is_leaf
    y.backward()
    assert x.grad.item() == 2


def broken(torch, result):
    class Broken(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, grad):
            return result(grad)

    return Broken.apply(double(torch, 1.0), 2.0)


def test_wrong_results_of_backward(torch, autograd):
    with pytest.raises(RuntimeError, match=r"returned an incorrect number of gradients \(expected 2, got 1\)"):
        broken(torch, lambda g: g).backward()
    with pytest.raises(RuntimeError, match=r"returned an incorrect number of gradients \(expected 2, got 3\)"):
        broken(torch, lambda g: (g, None, g)).backward()
    broken(torch, lambda g: (g, None, None)).backward()
    with pytest.raises(RuntimeError, match="returned a gradient different than None at position 2"):
        broken(torch, lambda g: (g, g)).backward()
    with pytest.raises((RuntimeError, TypeError), match="expected (a )?(Tensor|Variable) or None"):
        broken(torch, lambda g: ("x", None)).backward()
    with pytest.raises(ValueError, match="from inside"):

        def fail(grad):
            raise ValueError("from inside")

        broken(torch, fail).backward()


def test_misuse_of_function(torch, autograd):
    class Empty(autograd.Function):
        pass

    x = double(torch, 1.0)
    with pytest.raises(NotImplementedError, match="You must implement the forward function"):
        Empty.apply(x)
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        old = Empty()
    with pytest.raises(RuntimeError, match="Legacy autograd function with non-static forward"):
        old(x)

    class NoBackward(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

    y = NoBackward.apply(x)
    with pytest.raises(NotImplementedError, match="You must implement either the backward or vjp method"):
        y.backward()

    class SavesNonsense(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(3)
            return x * 1

    with pytest.raises(TypeError, match="save_for_backward can only save variables"):
        SavesNonsense.apply(x)


def test_saved_tensors_know_their_version(torch, autograd):
    Exp = exp_function(torch)
    x = double(torch, 1.0)
    y = Exp.apply(x)
    with torch.no_grad():
        y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_once_differentiable(torch, autograd):
    once = importlib.import_module(torch.__name__ + ".autograd.function").once_differentiable

    class Square(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    x = double(torch, 3.0)
    (g,) = autograd.grad(Square.apply(x), x, double(torch, 1.0), create_graph=True)
    assert g.item() == 6
    with pytest.raises(RuntimeError, match="marked with @once_differentiable"):
        g.sum().backward()


def test_contexts_are_freed(torch, autograd):
    Exp = exp_function(torch)

    class Marker:
        pass

    class Keeps(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.marker = Marker()
            refs.append(weakref.ref(ctx.marker))
            result = x * 2
            ctx.save_for_backward(x, result)
            return result

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    refs = []
    x = double(torch, 1.0)
    y = Keeps.apply(Exp.apply(x))
    y.backward()
    del y
    gc.collect()
    # Values dropped outside a call into the core are freed by the next call.
    torch.is_grad_enabled()
    assert refs[0]() is None


def test_an_input_that_is_returned_is_saved_as_the_input(torch):
    class Weigh(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            (saved,) = ctx.saved_tensors
            seen.append(saved)
            return grad * saved * saved

    seen = []
    x = double(torch, 3)
    y = Weigh.apply(x)
    assert y is not x and y.grad_fn is not None
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    assert seen[0] is x and g.item() == 9
    assert torch.autograd.grad(g, x)[0].item() == 6, "not through the function itself"


def test_a_saved_output_without_gradient_has_none(torch):
    class Largest(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            value, index = x.max(1)
            ctx.mark_non_differentiable(index)
            ctx.save_for_backward(x, index)
            return value, index

        @staticmethod
        def backward(ctx, grad, _):
            x, index = ctx.saved_tensors
            assert x.requires_grad and not index.requires_grad
            return torch.zeros_like(x).scatter(1, index[:, None], grad[:, None])

    x = torch.tensor([[1.0, 3.0], [4.0, 2.0]], requires_grad=True)
    value, index = Largest.apply(x)
    value.sum().backward()
    assert index.tolist() == [1, 0] and x.grad.tolist() == [[0, 1], [1, 0]]
