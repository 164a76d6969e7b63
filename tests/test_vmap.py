"""`vmap`: against loops over the examples; what cannot be batched is refused. Ops one by one: `test_ops.py`, vmap."""

import contextlib
import warnings

import pytest
import rustgrad as torch
from rustgrad.func import functional_call, grad, jacrev, stack_module_state, vjp, vmap
from rustgrad.testing import assert_close


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def loop(f, *args, dims=None):
    dims = dims or (0,) * len(args)
    size = next(a.size(d) for a, d in zip(args, dims, strict=True) if d is not None)
    rows = [f(*(a if d is None else a.select(d, b) for a, d in zip(args, dims, strict=True))) for b in range(size)]
    return torch.stack(rows)


class TestResults:
    def test_dot(self):
        x, y = torch.randn(3, 5), torch.randn(3, 5)
        assert_close(vmap(torch.dot)(x, y), (x * y).sum(1))

    def test_dimensions(self):
        x, y = torch.randn(2, 3, 4), torch.randn(4, 3)
        f = lambda a, b: a.sin() + b.cos()  # noqa: E731
        assert_close(
            vmap(f, in_dims=(1, 1))(x.transpose(0, 2)[:, :, :1], y),
            loop(f, x.transpose(0, 2)[:, :, :1], y, dims=(1, 1)),
        )
        assert_close(vmap(f, in_dims=(1, None))(x, y[:, 0]), loop(f, x, y[:, 0], dims=(1, None)))
        assert_close(vmap(lambda a: a * 2, in_dims=-1, out_dims=1)(x), (x * 2).permute(0, 2, 1))

    def test_trees_of_arguments_and_results(self):
        args = {"a": torch.randn(3, 2), "b": (torch.randn(2, 3), torch.randn(4))}
        f = lambda d: {"s": d["a"] + d["b"][0], "t": (d["b"][1], d["a"].sum())}  # noqa: E731
        out = vmap(f, in_dims=({"a": 0, "b": (1, None)},), out_dims={"s": 1, "t": (None, 0)})(args)
        assert_close(out["s"], (args["a"] + args["b"][0].T).T)
        assert out["t"][0] is not None and out["t"][0].shape == (4,)
        assert_close(out["t"][1], args["a"].sum(1))

    def test_result_without_a_batch_is_expanded(self):
        y = torch.randn(2)
        assert_close(vmap(lambda x: y)(torch.zeros(3)), y.expand(3, 2))

    def test_nested(self):
        x, y = torch.randn(3, 4), torch.randn(5, 4)
        got = vmap(lambda a: vmap(lambda b: (a * b).sum())(y))(x)
        assert_close(got, x @ y.T)
        got = vmap(vmap(lambda a: a.cumsum(0)), in_dims=1, out_dims=1)(torch.ones(2, 3, 4))
        assert_close(got, torch.ones(2, 3, 4).cumsum(2))

    def test_control_flow_on_shapes(self):
        def f(x):
            out = 0
            for i in range(x.shape[0]):
                out = out + (x[i] if i % 2 else -x[i])
            return out if x.dim() == 1 else None

        x = torch.randn(4, 3)
        assert_close(vmap(f)(x), loop(f, x))

    def test_promotion_of_numbers_in_a_batch(self):
        x, y = torch.randn(3, dtype=torch.float64), torch.randn(3, 2)
        assert vmap(torch.mul)(x, y).dtype == torch.float32
        assert vmap(torch.add)(torch.arange(3), torch.ones(3, 2, dtype=torch.int8)).dtype == torch.int8

    def test_chunks(self):
        x = torch.randn(7, 3)
        calls = []

        def f(a):
            calls.append(1)
            return a.exp().sum()

        assert_close(vmap(f, chunk_size=3)(x), x.exp().sum(1))
        assert len(calls) == 3
        assert_close(vmap(f, chunk_size=20)(x), x.exp().sum(1))

    def test_closed_over_tensors_get_gradients(self):
        w = torch.randn(3, 3, requires_grad=True)
        x = torch.randn(5, 3)
        (got,) = torch.autograd.grad(vmap(lambda a: (w @ a).tanh().sum())(x).sum(), w)
        (want,) = torch.autograd.grad((x @ w.T).tanh().sum(), w)
        assert_close(got, want)
        assert w.grad is None

    def test_gradients_of_batched_arguments(self):
        x = torch.randn(4, 3, requires_grad=True)
        (got,) = torch.autograd.grad(vmap(lambda a: a.prod() * a.softmax(0)[0], in_dims=0)(x).sum(), x)
        (want,) = torch.autograd.grad((x.prod(1) * x.softmax(1)[:, 0]).sum(), x)
        assert_close(got, want)

    def test_function_without_a_rule_loops_and_warns_once(self):
        before = torch._C._set_vmap_warnings(True)
        x = torch.randn(3, 5)
        f = lambda a: a.median()  # noqa: E731
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            first, second = vmap(f)(x), vmap(f)(x)
        assert len([w for w in seen if "performance drop" in str(w.message)]) <= 1
        torch._C._set_vmap_warnings(before)
        assert_close(first, loop(f, x))
        assert_close(second, first)


class TestWrites:
    def test_in_place_on_arguments(self):
        x = torch.randn(3, 2)
        want = x + 1
        assert vmap(lambda a: a.add_(1))(x) is not None
        assert_close(x, want)

    def test_in_place_on_results(self):
        def f(a):
            b = a * 2
            b[0] = a.sum()
            b[1:].mul_(3)
            return b

        x = torch.randn(3, 4)
        assert_close(vmap(f)(x), loop(f, x))

    def test_new_memory_may_be_filled_with_examples(self):
        def f(a):
            out = torch.zeros(2, 2)
            out[0] = a
            out[1, 1] = a[0]
            return out

        x = torch.randn(3, 2)
        assert_close(vmap(f)(x), loop(f, x))

    def test_memory_from_outside_may_not(self):
        y = torch.zeros(2)
        with pytest.raises(RuntimeError, match="vmap: aten::add_\\(self, \\*extra_args\\) is not possible"):
            vmap(lambda a: y.add_(a))(torch.ones(3, 2))
        assert_close(y, torch.zeros(2))

    def test_old_values_of_shared_tensors(self):
        def f(a):
            c = torch.ones(2)
            d = a * c
            c.add_(5)
            return d + c

        x = torch.randn(3, 2)
        assert_close(vmap(f)(x), x + 6)

    def test_new_memory_that_was_read_before(self):
        def f(a):
            c = torch.full((2,), 3.0)
            d = c * a
            c.mul_(a)
            return c + d

        x = torch.randn(3, 2)
        assert_close(vmap(f)(x), 6 * x)


class TestRefusals:
    def test_values(self):
        with pytest.raises(RuntimeError, match=r"calling .item\(\) on a Tensor"):
            vmap(lambda a: a.sum().item())(torch.randn(3, 2))
        with pytest.raises(RuntimeError, match="vmap"):
            vmap(lambda a: a.tolist())(torch.randn(3, 2))
        y = torch.tensor(2.0)
        assert_close(vmap(lambda a: a * y.item())(torch.ones(3)), torch.full((3,), 2.0))

    def test_control_flow(self):
        with pytest.raises(RuntimeError, match="data-dependent control flow"):
            vmap(lambda a: a if a.sum() > 0 else -a)(torch.randn(3, 2))

    def test_dynamic_shapes(self):
        with pytest.raises(RuntimeError, match="dynamic shape"):
            vmap(lambda a: a.nonzero())(torch.tensor([[1, 0], [1, 1]]))

    @pytest.mark.parametrize(
        ("kwargs", "args", "match"),
        [
            ({}, (), "got no inputs"),
            ({"in_dims": (0, 0)}, (1,), "not compatible with the structure"),
            ({"in_dims": 3}, (1,), "dimensionality 2"),
            ({"in_dims": None}, (1,), "got: <class 'NoneType'>"),
            ({"out_dims": "a"}, (1,), "`out_dims` must be"),
            ({"chunk_size": 0}, (1,), "chunk_size"),
        ],
    )
    def test_arguments(self, kwargs, args, match):
        with pytest.raises(ValueError, match=match):
            vmap(lambda *a: a[0], **kwargs)(*(torch.ones(2, 2) for _ in args))

    def test_sizes(self):
        with pytest.raises(ValueError, match="same size in the mapped"):
            vmap(torch.add)(torch.ones(2), torch.ones(3))
        with pytest.raises(ValueError, match="must only return Tensors"):
            vmap(lambda a: 1)(torch.ones(2))
        with pytest.raises(ValueError, match="when out_dim is None"):
            vmap(lambda a: a, out_dims=None)(torch.ones(2))

    def test_backward(self):
        x = torch.ones(2, requires_grad=True)
        with pytest.raises(RuntimeError, match="backward\\(\\) called inside a functorch transform"):
            vmap(lambda a: a.sum().backward())(x)


class TestRandomness:
    def test_error(self):
        with pytest.raises(RuntimeError, match="randomness error mode"):
            vmap(lambda a: a + torch.randn(2))(torch.zeros(3, 2))

    def test_what_is_refused_is_not_drawn(self):
        own = torch.Generator()

        def caught(a):
            with contextlib.suppress(RuntimeError):
                torch.rand(2, generator=own)
            return a

        before = torch.get_rng_state(), own.get_state()
        for f in (lambda a: a + torch.randn(2), lambda a: torch.nn.functional.dropout(a), caught):
            with pytest.raises(RuntimeError, match="randomness error mode"):
                vmap(f)(torch.zeros(3, 2))
        assert torch.equal(torch.get_rng_state(), before[0])
        assert torch.equal(own.get_state(), before[1])

    def test_different(self):
        got = vmap(lambda a: a + torch.rand(2), randomness="different")(torch.zeros(3, 2))
        assert len({float(v) for v in got.flatten()}) == 6
        torch.manual_seed(5)
        got = vmap(lambda a: a + torch.randn(2), randomness="different")(torch.zeros(3, 2))
        after = torch.rand(1)
        torch.manual_seed(5)
        assert_close(got, torch.randn(3, 2))
        assert_close(after, torch.rand(1))

    def test_same(self):
        got = vmap(lambda a: a + torch.rand(2), randomness="same")(torch.zeros(3, 2))
        assert_close(got, got[:1].expand(3, 2))
        got = vmap(lambda a: torch.nn.functional.dropout(a), randomness="same")(torch.ones(3, 8))
        assert_close(got, got[:1].expand(3, 8))


class TestTransforms:
    def test_gradients_of_each_sample(self):
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
        params = {k: v.detach() for k, v in model.named_parameters()}
        x, y = torch.randn(5, 4), torch.randint(0, 3, (5,))

        def loss(p, a, target):
            out = functional_call(model, p, (a.unsqueeze(0),))
            return torch.nn.functional.cross_entropy(out, target.unsqueeze(0))

        got = vmap(grad(loss), (None, 0, 0))(params, x, y)
        for b in range(5):
            want = grad(loss)(params, x[b], y[b])
            for k in params:
                assert_close(got[k][b], want[k])

    def test_ensemble(self):
        models = [torch.nn.Linear(3, 2) for _ in range(4)]
        params, buffers = stack_module_state(models)
        x = torch.randn(6, 3)
        got = vmap(lambda p, b: functional_call(models[0], (p, b), (x,)))(params, buffers)
        assert_close(got, torch.stack([m(x) for m in models]))
        got.sum().backward()
        assert params["weight"].grad.shape == (4, 2, 3)

    def test_convolutions_of_each_sample(self):
        weight, x = torch.randn(4, 2, 3, 3), torch.randn(5, 2, 6, 6)
        f = lambda w, a: torch.nn.functional.conv2d(a.unsqueeze(0), w).relu().sum()  # noqa: E731
        got = vmap(grad(f), (None, 0))(weight, x)
        assert_close(got, torch.stack([grad(f)(weight, a) for a in x]), rtol=1e-4, atol=1e-4)
        weights = torch.randn(5, 4, 2, 3, 3)
        assert_close(
            vmap(f)(weights, x), torch.stack([f(w, a) for w, a in zip(weights, x, strict=True)]), rtol=1e-4, atol=1e-4
        )

    def test_grad_of_vmap_and_vmap_of_vjp(self):
        x = torch.randn(4, 3)
        f = lambda a: vmap(lambda b: b.sin().sum())(a).sum()  # noqa: E731
        assert_close(grad(f)(x), x.cos())
        _, pull = vjp(torch.sin, x)
        v = torch.randn(6, 4, 3)
        assert_close(vmap(pull)(v)[0], v * x.cos())

    def test_hessians_of_each_sample(self):
        x = torch.randn(3, 4)
        f = lambda a: (a**3).sum() * a[0]  # noqa: E731
        got = vmap(jacrev(jacrev(f)))(x)
        want = torch.stack([torch.autograd.functional.hessian(f, a) for a in x])
        assert_close(got, want)


def test_batched_gradients():
    x = torch.randn(3, requires_grad=True)
    y = x.exp() * x.sum()
    rows = torch.eye(3)
    (got,) = torch.autograd.grad(y, x, rows, is_grads_batched=True, retain_graph=True, create_graph=True)
    want = torch.stack([torch.autograd.grad(y, x, r, retain_graph=True)[0] for r in rows])
    assert_close(got, want)
    assert got.requires_grad


def test_vectorized_jacobians():
    f = lambda a, b: (a.unsqueeze(1) * b).sin()  # noqa: E731
    args = (torch.randn(2), torch.randn(3))
    one = torch.autograd.functional.jacobian(f, args)
    for got, want in zip(torch.autograd.functional.jacobian(f, args, vectorize=True), one, strict=True):
        assert_close(got, want)
    g = lambda a: (a.exp() * a.flip(0)).sum()  # noqa: E731
    x = torch.randn(4)
    assert_close(torch.autograd.functional.hessian(g, x, vectorize=True), torch.autograd.functional.hessian(g, x))


def test_nothing_is_left_behind():
    x = torch.randn(3, 2)
    state = torch.get_rng_state()
    version = x._version
    vmap(lambda a: a.sin().sum())(x)
    assert torch._C._vmap_depth() == 0
    assert x._version == version
    assert torch.equal(torch.get_rng_state(), state)
    with pytest.raises(ZeroDivisionError):
        vmap(lambda a: 1 / 0)(x)
    assert torch._C._vmap_depth() == 0


class Square(torch.autograd.Function):
    """With a rule derived from forward and backward."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, y):
        return x * x + y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g, g


class Own(torch.autograd.Function):
    """With a rule of its own."""

    @staticmethod
    def forward(x):
        return x.exp()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]

    @staticmethod
    def vmap(info, in_dims, x):
        assert info.batch_size == x.size(in_dims[0])
        return Own.apply(x), in_dims[0]


class TestCustomFunctions:
    def test_derived_rule(self):
        x, y = torch.randn(4, 3, requires_grad=True), torch.randn(3, requires_grad=True)
        out = vmap(Square.apply, in_dims=(0, None))(x, y)
        assert_close(out, x * x + y)
        got = torch.autograd.grad(out.sum(), (x, y))
        assert_close(got, (2 * x, torch.full((3,), 4.0)))
        f = lambda a: Square.apply(a, y.detach()).sum()  # noqa: E731
        assert_close(vmap(grad(f))(x.detach()), 2 * x)

    def test_own_rule(self):
        x = torch.randn(4, 3, requires_grad=True)
        out = vmap(Own.apply, in_dims=1, out_dims=1)(x)
        assert_close(out, x.exp())
        assert_close(torch.autograd.grad(out.sum(), x)[0], x.exp())

    def test_no_rule(self):
        class Plain(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

        with pytest.raises(RuntimeError, match="it does not have vmap support"):
            vmap(Plain.apply)(torch.ones(3))
        assert_close(Plain.apply(torch.ones(3)), torch.full((3,), 2.0))


class TestBatchInTheLastDimension:
    def test_views_of_copies_are_views(self, torch):
        def f(x):
            y = x.clone()
            y.view(-1)[1] = 7.0
            return y

        x = torch.arange(24.0).view(2, 3, 4)
        expected = torch.stack([f(x[..., i]) for i in range(4)])
        assert torch.equal(torch.vmap(f, in_dims=-1)(x), expected)

    def test_writes_to_the_argument_arrive(self, torch):
        def f(x):
            return x.mul_(2).sum()

        x = torch.arange(6.0).view(2, 3)
        expected = x.clone() * 2
        assert torch.equal(torch.vmap(f, in_dims=1)(x), expected.sum(0)) and torch.equal(x, expected)


def test_the_names_of_before_func(torch):
    from importlib import import_module

    older = import_module(f"{torch.__name__}._vmap_internals")
    with pytest.warns(FutureWarning, match="torch.vmap"):
        assert older.vmap(torch.dot)(torch.ones(2, 3), torch.ones(2, 3)).tolist() == [3, 3]
    total, none = older._vmap(lambda x: (x.sum(), None), 0, 0, allow_none_pass_through=True)(torch.ones(2, 3))
    assert total.tolist() == [3, 3] and none is None
    before = torch._C._debug_only_are_vmap_fallback_warnings_enabled()
    torch._C._debug_only_display_vmap_fallback_warnings(not before)
    assert torch._C._debug_only_are_vmap_fallback_warnings_enabled() is not before
    torch._C._debug_only_display_vmap_fallback_warnings(before)
    assert torch._C.has_lapack and not hasattr(torch._C, "no_such_name")
    assert torch._C._has_xpu is False
    assert torch._C._dispatch_find_schema_or_throw("aten::add", "Tensor")
    with pytest.raises(RuntimeError, match="Could not find schema for aten::nothing"):
        torch._C._dispatch_find_schema_or_throw("aten::nothing", "")
