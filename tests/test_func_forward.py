"""`func.jvp`, `linearize`, `jacfwd`: values against closed forms, structures, nesting, errors."""

import numpy as np
import pytest
import rustgrad as torch
from rustgrad.func import hessian, jacfwd, jvp, linearize


def rand(*shape, seed=0, dtype=torch.float64):
    return torch.tensor(np.random.default_rng(seed).normal(size=shape), dtype=dtype)


X, T = rand(3), rand(3, seed=1)


@pytest.fixture(autouse=True)
def no_level_left():
    yield
    assert torch._C._forward_levels() == [] and torch._C._is_fwd_grad_enabled()


def test_jvp_of_trees():
    f = lambda d, y: {"a": (d["x"] * y, y.sin()), "b": [d["x"]]}  # noqa: E731
    y, s = rand(3, seed=2), rand(3, seed=3)
    out, products = jvp(f, ({"x": X}, y), ({"x": T}, s))
    assert torch.equal(out["a"][0], X * y) and torch.allclose(products["a"][0], T * y + X * s)
    assert torch.allclose(products["a"][1], y.cos() * s) and torch.equal(products["b"][0], T)
    out, products, aux = jvp(lambda x: (x * x, [x.sum()]), (X,), (T,), has_aux=True)
    assert torch.allclose(products, 2 * X * T) and torch.equal(aux[0], X.sum())


def test_independent_outputs():
    one = torch.ones(2)
    out, product = jvp(lambda x: one, (X,), (T,))
    assert torch.equal(product, torch.zeros(2))
    with pytest.raises(RuntimeError, match="strict=True"):
        jvp(lambda x: one, (X,), (T,), strict=True)


def test_what_jvp_refuses():
    for args, message in (
        ((X, T), "Expected primals to be a tuple"),
        (((X,), (T, T)), "same python structure"),
        (((), ()), "at least one Tensor"),
        (((1.0,), (1.0,)), "only contain Tensors"),
        (((X,), (T[:2],)), "different size"),
    ):
        with pytest.raises(RuntimeError, match=message):
            jvp(torch.sin, *args)
    for f, message in (
        (lambda x: None, "non-empty output"),
        (lambda x: (x, 2), "unsupported type"),
    ):
        with pytest.raises(RuntimeError, match=message):
            jvp(f, (X,), (T,))
    with pytest.raises(RuntimeError, match="unsupported type"):
        jvp(lambda x: (x, 1), (X,), (T,), has_aux=True)
    with pytest.raises(RuntimeError, match="output, aux"):
        jvp(torch.sin, (X,), (T,), has_aux=True)


def test_nested_levels():
    def power(n):
        f = lambda x: x.exp() * x.sin()  # noqa: E731
        for _ in range(n):
            f = (lambda g: lambda x: jvp(g, (x,), (torch.ones_like(x),))[1])(f)
        return f

    # (e^x sin x)^(n) = 2^(n/2) e^x sin(x + n pi / 4)
    for n in range(5):
        assert torch.allclose(power(n)(X), 2 ** (n / 2) * X.exp() * (X + n * np.pi / 4).sin())


def test_perturbations_are_not_confused():
    # d/dx (x * d/dy (x + y)) = 1, not 2.
    one = torch.tensor(1.0)
    inner = lambda x: x * jvp(lambda y: x + y, (one,), (one,))[1]  # noqa: E731
    assert jvp(inner, (one,), (one,))[1] == 1.0
    inner = lambda x: jvp(lambda y: x * y.sin(), (x,), (one,))[1]  # noqa: E731
    assert torch.allclose(jvp(inner, (one,), (one,))[1], one.cos() - one.sin())


def test_with_reverse_mode():
    x = X.clone().requires_grad_()
    out, product = jvp(lambda x: (x**3).sum(), (x,), (T,))
    (g,) = torch.autograd.grad(product, x)
    assert torch.allclose(g, 6 * X * T)
    (g,) = torch.autograd.grad(out, x)
    assert torch.allclose(g, 3 * X**2)

    def gradient(x):
        x = x.view_as(x).requires_grad_()
        return torch.autograd.grad((x**3).sum(), x)[0]

    assert torch.allclose(jvp(gradient, (X,), (T,))[1], 6 * X * T)
    t = T.clone().requires_grad_()
    assert torch.allclose(torch.autograd.grad(jvp(torch.sin, (X,), (t,))[1].sum(), t)[0], X.cos())


def test_inside_dual_level():
    import rustgrad.autograd.forward_ad as fw

    with fw.dual_level():
        dual = fw.make_dual(X, T)
        out, product = jvp(lambda x: x**2 * dual, (dual,), (torch.ones_like(X),))
        assert torch.allclose(fw.unpack_dual(product).tangent, 4 * X * T)
        assert torch.allclose(fw.unpack_dual(out).tangent, 3 * X**2 * T)


def test_writes_in_place():
    def f(x):
        y = torch.zeros(2, 3, dtype=x.dtype)
        y[0] = x
        y[1] = jvp(lambda z: z.mul(x).sin_(), (x,), (T,))[1]
        y.mul_(2)
        return y

    expected = (f(X + 1e-6 * T) - f(X - 1e-6 * T)) / 2e-6
    assert torch.allclose(jvp(f, (X,), (T,))[1], expected, atol=1e-6)


def test_jacfwd():
    assert torch.allclose(jacfwd(torch.sin)(X), X.cos().diag())
    assert torch.allclose(jacfwd(torch.sin)(X[0]), X[0].cos())
    f = lambda x, y: (x[:, None] * y, {"s": y.sum()})  # noqa: E731
    y = rand(2, 2, seed=4)
    x = rand(2)
    jac = jacfwd(f, argnums=(0, 1))(x, y)
    assert jac[0][0].shape == (2, 2, 2) and jac[0][1].shape == (2, 2, 2, 2)
    assert jac[1]["s"][0].abs().sum() == 0 and torch.equal(jac[1]["s"][1], torch.ones(2, 2, dtype=y.dtype))
    assert torch.allclose(jac[0][0], torch.autograd.functional.jacobian(lambda x: f(x, y)[0], x))
    assert torch.allclose(jacfwd(f, argnums=-1)(x, y)[0], jac[0][1])
    value, aux = jacfwd(lambda x: (x * x, x.sum()), has_aux=True)(X)
    assert torch.allclose(value, (2 * X).diag()) and torch.allclose(aux, X.sum())
    assert torch.allclose(jacfwd(jacfwd(lambda x: (x**3).sum()))(X), (6 * X).diag())
    assert jacfwd(lambda x: x.sum())(torch.zeros(0)).shape == (0,)
    assert torch.allclose(jacfwd(torch.sin, chunk_size=2, randomness="same")(X), X.cos().diag())
    for make, message in (
        (lambda: jacfwd(torch.sin, argnums=2)(X), "only 1 positional"),
        (lambda: jacfwd(torch.sin, argnums=())(X), "non-empty"),
        (lambda: jacfwd(torch.mul, argnums=(0, 0))(X, X), "unique"),
        (lambda: jacfwd(torch.sin, argnums="0")(X), "must be int or Tuple"),
        (lambda: jacfwd(torch.sin)(torch.ones(2, dtype=torch.complex64)), "inputs to be real"),
        (lambda: jacfwd(lambda x: x * 1j)(X), "outputs to be real"),
        (lambda: jacfwd(torch.sin, randomness="no")(X), "randomness"),
    ):
        with pytest.raises(RuntimeError, match=message):
            make()
    with pytest.raises(ValueError, match="chunk_size"):
        jacfwd(torch.sin, chunk_size=0)(X)


def test_hessian():
    x, y = rand(3), rand(2, seed=4)
    f = lambda x, y: (x.exp() * x.sum()).sum() * (y**3).sum()  # noqa: E731
    expected = torch.autograd.functional.hessian(f, (x, y))
    found = hessian(f, argnums=(0, 1))(x, y)
    for i in range(2):
        assert torch.allclose(hessian(f, argnums=i)(x, y), expected[i][i])
        for j in range(2):
            assert torch.allclose(found[i][j], expected[i][j]) and not found[i][j].requires_grad
    assert torch.allclose(hessian(lambda x: (x**3, x.sum() * x))(x)[0].sum(0), (6 * x).diag())
    w = x.clone().requires_grad_()
    (third,) = torch.autograd.grad(hessian(lambda x: (x**3).sum())(w).sum(), w)
    assert torch.allclose(third, torch.full_like(x, 6.0))


def test_linearize():
    calls = []

    def f(x, y):
        calls.append(1)
        return {"p": x * y.exp(), "c": torch.ones(2)}

    y = rand(3, seed=2)
    out, product = linearize(f, X, y)
    assert torch.equal(out["p"], X * y.exp()) and not out["p"].requires_grad
    before = len(calls)
    for seed in range(3):
        t, s = rand(3, seed=seed), rand(3, seed=seed + 10)
        found = product(t, s)
        assert torch.allclose(found["p"], (t + X * s) * y.exp()) and torch.equal(found["c"], torch.zeros(2))
        assert not found["p"].requires_grad
    assert len(calls) == before
    for tangents, message in (
        ((T,), "same argspec"),
        ((T[:2], T), "with shape"),
        ((T.float(), T), "with dtype"),
    ):
        with pytest.raises(RuntimeError, match=message):
            product(*tangents)


def test_forward_jacobian_of_autograd_functional():
    from rustgrad.autograd.functional import hessian, jacobian

    f = lambda x, y: (x * y, x.sum())  # noqa: E731
    y = rand(3, seed=2)
    forward = jacobian(f, (X, y), vectorize=True, strategy="forward-mode")
    for a, b in zip(forward, jacobian(f, (X, y)), strict=True):
        assert all(torch.allclose(u, v) for u, v in zip(a, b, strict=True))
    g = lambda x: (x**3).sum()  # noqa: E731
    assert torch.allclose(hessian(g, X, vectorize=True, outer_jacobian_strategy="forward-mode"), (6 * X).diag())
    with pytest.raises(NotImplementedError, match="create_graph"):
        jacobian(f, (X, y), create_graph=True, vectorize=True, strategy="forward-mode")
    with pytest.raises(NotImplementedError, match="vectorize=True"):
        jacobian(f, (X, y), strategy="forward-mode")


def test_tangents_of_views_that_functions_return(torch):
    """Transforms take any tangent for a view or an input as it is; a dual level asks for a view of the tangent."""

    class Head(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x[:2], x

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def jvp(ctx, tangent):
            return tangent[:2] * 1, tangent * 1

    x = torch.arange(3.0)
    outputs, tangents = torch.func.jvp(Head.apply, (x,), (x + 1,))
    assert [t.tolist() for t in (*outputs, *tangents)] == [[0, 1], [0, 1, 2], [1, 2], [1, 2, 3]]
    assert torch.equal(torch.func.jacfwd(lambda x: Head.apply(x)[1])(x), torch.eye(3))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, x)
        with pytest.raises(RuntimeError, match="but the jvp is not returning a view"):
            Head.apply(dual)
