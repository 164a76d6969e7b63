"""`func.grad`, `vjp`, `jacrev`: values against autograd, levels, errors."""

import pytest
import rustgrad as torch
from rustgrad.func import debug_unwrap, functional_call, functionalize, grad, grad_and_value, jacrev, vjp
from rustgrad.testing import assert_close


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


class TestGrad:
    def test_value_and_orders(self):
        x = torch.tensor(0.7)
        assert_close(grad(torch.sin)(x), x.cos())
        assert_close(grad(grad(torch.sin))(x), -x.sin())
        assert_close(grad(grad(grad(torch.sin)))(x), -x.cos())
        got, value = grad_and_value(torch.sin)(x)
        assert_close((got, value), (x.cos(), x.sin()))
        assert not got.requires_grad and not value.requires_grad

    def test_trees_argnums_and_aux(self):
        f = lambda p, b: ((p["w"] * b).sum(), {"seen": b * 2, "w": p["w"]})  # noqa: E731
        p, b = {"w": torch.randn(3)}, torch.randn(3)
        got, aux = grad(f, has_aux=True)(p, b)
        assert_close(got["w"], b)
        assert_close(aux["seen"], b * 2)
        assert not aux["w"].requires_grad
        first, second = grad(lambda a, c: (a * c).sum(), argnums=(0, 1))(p["w"], b)
        assert_close((first, second), (b, p["w"]))
        assert_close(grad(lambda a, c: (a * c).sum(), argnums=-1)(p["w"], b), p["w"])

    def test_no_perturbation_confusion(self):
        def f(x):
            return x * grad(lambda y: x + y)(torch.tensor(1.0))

        assert_close(grad(f)(torch.tensor(3.0)), torch.tensor(1.0))
        inner = lambda x: grad(lambda y: (x * y) ** 2)(x)  # noqa: E731
        x = torch.tensor(1.5)
        assert_close(grad(inner)(x), 6 * x**2)

    def test_levels(self):
        x = torch.tensor(2.0, requires_grad=True)
        got = grad(lambda a: a**3)(x)
        assert got.requires_grad
        assert_close(torch.autograd.grad(got, x)[0], 6 * x)
        with torch.no_grad():
            got = grad(lambda a: a**3)(x)
        assert not got.requires_grad
        assert_close(got, 3 * x.detach() ** 2)
        assert x.grad is None

    def test_parameters_closed_over(self):
        w = torch.tensor(3.0, requires_grad=True)
        got = grad(lambda a: w * a**2)(torch.tensor(2.0))
        assert_close(torch.autograd.grad(got, w)[0], torch.tensor(4.0))

    def test_inner_no_grad(self):
        def f(x):
            with torch.no_grad():
                c = x**2
            return x**3 - c

        x = torch.tensor(2.0)
        assert_close(grad(f)(x), 3 * x**2)

    def test_unused_argument(self):
        got = grad(lambda a, b: b.sum(), argnums=(0, 1))(torch.ones(2), torch.ones(3))
        assert_close(got, (torch.zeros(2), torch.ones(3)))

    @pytest.mark.parametrize(
        ("f", "args", "kwargs", "match"),
        [
            (lambda a: a, (2,), {}, "to return a scalar Tensor, got tensor with 1 dims"),
            (lambda a: 3.0, (2,), {}, "to return a Tensor, got <class 'float'>"),
            (lambda a: a.sum(), (2,), {"has_aux": True}, r"should be a tuple: \(output, aux\)"),
            (lambda a: a.sum(), (2,), {"argnums": 1}, "Got argnum=1, but only 1 positional inputs"),
            (lambda a: a.sum(), (2,), {"argnums": ()}, "argnums must be non-empty"),
            (lambda a: a.sum(), (2,), {"argnums": (0, 0)}, "must be unique"),
            (lambda a: a.sum(), (2,), {"argnums": 0.5}, "argnum"),
        ],
    )
    def test_errors(self, f, args, kwargs, match):
        with pytest.raises(RuntimeError, match=match):
            grad(f, **kwargs)(*(torch.ones(n) for n in args))


class TestVjp:
    def test_values(self):
        x, y = torch.randn(3), torch.randn(3)
        out, pull = vjp(lambda a, b: (a * b, a.sum()), x, y)
        assert_close(out, (x * y, x.sum()))
        v = (torch.randn(3), torch.tensor(2.0))
        assert_close(pull(v), (v[0] * y + 2, v[0] * x))
        assert_close(pull(v), (v[0] * y + 2, v[0] * x))

    def test_one_primal(self):
        x = torch.randn(3)
        out, pull, aux = vjp(lambda a: (a.sin(), a), x, has_aux=True)
        (got,) = pull(torch.ones(3))
        assert_close((out, got, aux), (x.sin(), x.cos(), x))

    def test_errors(self):
        with pytest.raises(RuntimeError, match="floating-point or complex"):
            vjp(lambda a: a.argmax(), torch.randn(3))
        _, pull = vjp(lambda a: (a, a), torch.randn(3))
        with pytest.raises(RuntimeError, match="pytree structure of cotangents"):
            pull(torch.randn(3))
        with pytest.raises(RuntimeError, match="only tensors"):
            vjp(lambda a: 1, torch.randn(3))


class TestJacobians:
    def test_values(self):
        x = torch.randn(3)
        assert_close(jacrev(torch.sin)(x), torch.diag(x.cos()))
        f = lambda a, b: {"p": a.outer(b), "s": a.sum()}  # noqa: E731
        y = torch.randn(2)
        for chunk in (None, 1, 2, 100):
            got = jacrev(f, argnums=(0, 1), chunk_size=chunk)(x, y)
            assert_close(got["p"][0], torch.einsum("ik,j->ijk", torch.eye(3), y))
            assert_close(got["p"][1], torch.einsum("i,jk->ijk", x, torch.eye(2)))
            assert_close(got["s"][0], torch.ones(3))
            assert_close(got["s"][1], torch.zeros(2))

    def test_hessian(self):
        x = torch.randn(4, dtype=torch.float64)
        f = lambda a: (a.exp() * a.roll(1)).sum()  # noqa: E731
        assert_close(jacrev(jacrev(f))(x), torch.autograd.functional.hessian(f, x))
        assert_close(jacrev(grad(f))(x), torch.autograd.functional.hessian(f, x))

    def test_aux_and_errors(self):
        jac, aux = jacrev(lambda a: (a * 2, a + 1), has_aux=True)(torch.ones(2))
        assert_close((jac, aux), (2 * torch.eye(2), torch.full((2,), 2.0)))
        with pytest.raises(ValueError, match="chunk_size"):
            jacrev(torch.sin, chunk_size=0)
        with pytest.raises(RuntimeError, match="Expected all inputs to be real"):
            jacrev(torch.sin)(torch.ones(2, dtype=torch.complex64))

    def test_writes_inside(self):
        def f(a):
            b = a.clone()
            b[0] = a[1] * 2
            b[1:].mul_(a[0])
            return b

        x = torch.randn(3)
        want = torch.autograd.functional.jacobian(f, x)
        assert_close(jacrev(f)(x), want)


def test_gauss_newton_products():
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    params = {k: v.detach() for k, v in model.named_parameters()}
    x = torch.randn(5, 3)
    f = lambda p: functional_call(model, p, (x,))  # noqa: E731
    out, pull = vjp(f, params)
    v = torch.randn_like(out)
    (back,) = pull(v)
    jac = jacrev(f)(params)
    for k in params:
        assert_close(back[k], torch.einsum("no,no...->...", v, jac[k]), rtol=1e-4, atol=1e-4)


def test_inner_loops_of_meta_learning():
    w = torch.randn(3, requires_grad=True)
    x, y = torch.randn(4, 5, 3), torch.randn(4, 5)

    def inner(w, a, b):
        loss = lambda p: ((a @ p - b) ** 2).mean()  # noqa: E731
        return loss(w - 0.1 * grad(loss)(w))

    got = torch.autograd.grad(torch.vmap(inner, (None, 0, 0))(w, x, y).mean(), w)[0]
    want = torch.autograd.grad(torch.stack([inner(w, a, b) for a, b in zip(x, y, strict=True)]).mean(), w)[0]
    assert_close(got, want)


def test_functionalize_and_debug_unwrap():
    f = functionalize(lambda a: a.clone().add_(1), remove="mutations_and_views")
    assert_close(f(torch.ones(2)), torch.full((2,), 2.0))
    with pytest.raises(RuntimeError, match="invalid argument for remove=x"):
        functionalize(f, remove="x")
    x = torch.ones(2)
    assert debug_unwrap(x) is x


def test_batch_norms_without_running_statistics(torch):
    nn, func = torch.nn, torch.func
    model = nn.Sequential(nn.Conv2d(1, 2, 1), nn.Sequential(nn.BatchNorm2d(2), nn.GroupNorm(1, 2)))
    assert func.replace_all_batch_norm_modules_(model) is model
    norm = model[1][0]
    assert norm.running_mean is norm.running_var is norm.num_batches_tracked is None and not norm.track_running_stats
    parameters = {k: v.detach() for k, v in model.named_parameters()}
    x = torch.randn(3, 4, 1, 5, 5)
    found = torch.vmap(lambda x: func.functional_call(model, parameters, (x,)))(x)
    torch.testing.assert_close(found, torch.stack([model(one) for one in x]))
