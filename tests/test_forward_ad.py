"""Forward mode: dual tensors, their levels, writes in place, views, custom functions."""

import copy
import gc
import pickle
import threading
import weakref

import numpy as np
import pytest
import rustgrad as torch
import rustgrad.autograd.forward_ad as fw
from rustgrad.autograd import Function, gradcheck, gradgradcheck


@pytest.fixture(autouse=True)
def no_level_left():
    yield
    assert fw._current_level == -1 and torch._C._forward_levels() == []


def rand(*shape, seed=0, dtype=torch.float64):
    return torch.tensor(np.random.default_rng(seed).normal(size=shape), dtype=dtype)


def push(f, *pairs):
    """(value, tangent) of f at (primal, tangent) pairs; a bare tensor has no tangent."""
    with fw.dual_level():
        args = [fw.make_dual(*p) if isinstance(p, tuple) else p for p in pairs]
        return fw.unpack_dual(f(*args))


def quotient(f, *pairs, eps=1e-6):
    up, down = ([p[0] + s * eps * p[1] if isinstance(p, tuple) else p for p in pairs] for s in (1, -1))
    return (f(*up) - f(*down)) / (2 * eps)


X, T, Y, S = rand(3, 4), rand(3, 4, seed=1), rand(3, 4, seed=2), rand(3, 4, seed=3)

FUNCTIONS = [
    ("sin", lambda x: x.sin()),
    ("affine", lambda x: 2 * x + 1),
    ("rsub", lambda x: 1 - x),
    ("tanh of exp", lambda x: x.exp().tanh()),
    ("pow", lambda x: (x * x + 1) ** 1.7),
    ("sum", lambda x: x.sum(0)),
    ("mean", lambda x: x.mean()),
    ("amax", lambda x: x.amax(1)),
    ("matmul", lambda x: x @ x.T),
    ("softmax", lambda x: x.softmax(-1)),
    ("log_softmax", lambda x: x.log_softmax(0)),
    ("cumprod", lambda x: x.cumprod(1)),
    ("prod", lambda x: x.prod(1)),
    ("norm", lambda x: x.norm()),
    ("var", lambda x: x.var(1)),
    ("sort", lambda x: x.sort(1)[0]),
    ("gather", lambda x: x.gather(1, torch.tensor([[0, 1], [2, 2], [3, 0]]))),
    ("index", lambda x: x[torch.tensor([0, 2])]),
    ("cat", lambda x: torch.cat([x, torch.ones(1, 4, dtype=x.dtype), x * x])),
    ("stack", lambda x: torch.stack([x.sin(), x])),
    ("where", lambda x: torch.where(x > 0, x * x, x)),
    ("transpose", lambda x: x.T.reshape(-1)[1:7:2]),
    ("expand", lambda x: x[:, :1].expand(3, 5) * 2),
    ("pad", lambda x: torch.nn.functional.pad(x, (1, 1), value=3.0)),
    ("masked_fill", lambda x: x.masked_fill(x > 0, 7.0)),
    ("layer_norm", lambda x: torch.nn.functional.layer_norm(x, (4,))),
    ("gelu", lambda x: torch.nn.functional.gelu(x)),
    ("silu", lambda x: torch.nn.functional.silu(x)),
    ("det", lambda x: (x @ x.T + torch.eye(3, dtype=x.dtype)).det()),
    ("inv", lambda x: torch.linalg.inv(x @ x.T + torch.eye(3, dtype=x.dtype))),
    ("svdvals", lambda x: torch.linalg.svdvals(x)),
    ("eigvalsh", lambda x: torch.linalg.eigvalsh(x @ x.T)),
    ("conv1d", lambda x: torch.nn.functional.conv1d(x[None], rand(2, 3, 2, seed=5), rand(2, seed=6))),
    ("max_pool", lambda x: torch.nn.functional.max_pool1d(x[None], 2)),
    ("attention", lambda x: torch.nn.functional.scaled_dot_product_attention(x[None], x[None].sin(), x[None])),
    ("cdist", lambda x: torch.cdist(x, x.sin() + 1)),
    ("logsumexp", lambda x: x.logsumexp(1)),
    ("f32 and f64", lambda x: x * torch.ones(4, dtype=torch.float32)),
    ("floor", lambda x: x.floor()),
]


@pytest.mark.parametrize("name, f", FUNCTIONS, ids=[n for n, _ in FUNCTIONS])
def test_tangents_are_difference_quotients(name, f):
    primal, tangent = push(f, (X, T))
    assert torch.allclose(primal, f(X)) and tangent.dtype == primal.dtype
    assert torch.allclose(tangent, quotient(f, (X, T)), atol=1e-6), name
    with torch.no_grad():
        assert torch.equal(push(f, (X, T)).tangent, tangent)


@pytest.mark.parametrize("name, f", FUNCTIONS, ids=[n for n, _ in FUNCTIONS])
def test_forward_over_reverse_and_reverse_over_forward(name, f):
    w = torch.ones_like(f(X)).cumsum(0) if f(X).ndim else torch.tensor(1.0, dtype=torch.float64)

    def gradient(x):
        if not x.requires_grad:
            x = x.view_as(x).requires_grad_()
        y = (f(x) * w).sum()
        return torch.autograd.grad(y, x)[0]

    expected = quotient(lambda x: gradient(x.detach()), (X, T), eps=1e-5)
    value, over_reverse = push(gradient, (X, T))
    assert torch.allclose(value, gradient(X))
    over_reverse = torch.zeros_like(X) if over_reverse is None else over_reverse
    assert torch.allclose(over_reverse, expected, atol=1e-5), name
    x = X.clone().requires_grad_()
    tangent = push(f, (x, T)).tangent
    if tangent.requires_grad:
        (hessian_product,) = torch.autograd.grad((tangent * w).sum(), x, allow_unused=True)
        if hessian_product is not None:
            assert torch.allclose(hessian_product, expected, atol=1e-5), name
    else:
        assert torch.allclose(expected, torch.zeros_like(expected), atol=1e-5)


def test_several_arguments_and_broadcasting():
    b, db = rand(4, seed=7), rand(4, seed=8)
    for f in (lambda x, y: x * y + y, torch.atan2, lambda x, y: x / y, lambda x, y: (x @ y).sin(), torch.maximum):
        assert torch.allclose(push(f, (X, T), (b, db)).tangent, quotient(f, (X, T), (b, db)), atol=1e-6)
        assert torch.allclose(push(f, X, (b, db)).tangent, quotient(f, X, (b, db)), atol=1e-6)


def test_complex():
    z = torch.complex(rand(3), rand(3, seed=1))
    t = torch.complex(rand(3, seed=2), rand(3, seed=3))
    for f in (
        lambda z: z.exp(),
        lambda z: z.abs(),
        lambda z: z.conj() * z,
        lambda z: z * (2 + 1j),
        lambda z: z.real.sin(),
        lambda z: torch.view_as_real(z) ** 2,
        lambda z: z.angle(),
        lambda z: z.sum() / z,
    ):
        assert torch.allclose(push(f, (z, t)).tangent, quotient(f, (z, t)), atol=1e-6)
    x, dx = rand(3), rand(3, seed=5)
    assert torch.allclose(
        push(lambda x: torch.complex(x, x * x).exp(), (x, dx)).tangent,
        quotient(lambda x: torch.complex(x, x * x).exp(), (x, dx)),
        atol=1e-6,
    )


def test_what_make_dual_refuses():
    with pytest.raises(RuntimeError, match="no level exists"):
        fw.make_dual(X, T)
    with fw.dual_level():
        with pytest.raises(RuntimeError, match="has a different size"):
            fw.make_dual(X, T[0])
        with pytest.raises(
            ValueError, match="Expected primal to be floating point or complex, but got: rustgrad.int64|torch.int64"
        ):
            fw.make_dual(torch.ones(2, dtype=torch.int64), torch.ones(2))
        with pytest.raises(ValueError, match="Expected tangent to be floating point"):
            fw.make_dual(torch.ones(2), torch.ones(2, dtype=torch.int64))
        with pytest.raises(RuntimeError, match="is complex"):
            fw.make_dual(torch.ones(2), torch.ones(2, dtype=torch.complex64))
        dual = fw.make_dual(X, T)
        with pytest.raises(RuntimeError, match="itself has a forward gradient at the same level 0"):
            fw.make_dual(X, dual)
        with pytest.raises(RuntimeError, match="already has a forward gradient at the same level 0"):
            fw.make_dual(dual, T)
        with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported"):
            fw.enter_dual_level()
        with pytest.raises(NotImplementedError, match="out= function"):
            torch.add(dual, 1, out=torch.empty(3, 4, dtype=X.dtype))
        with pytest.raises(NotImplementedError, match="out= function"):
            torch.add(X, 1, out=dual)


def test_tangents_end_with_their_level():
    with pytest.raises(ZeroDivisionError), fw.dual_level():
        dual = fw.make_dual(X, T)
        raise ZeroDivisionError
    with fw.dual_level():
        assert fw.unpack_dual(dual).tangent is None and fw.unpack_dual(dual * 2).tangent is None

    def made():
        t = rand(3, 4, seed=9)
        dual = fw.make_dual(X.clone().requires_grad_(), t)
        # The tangent's graph saves its primal: a cycle, which the end of the level breaks.
        y = dual.exp()
        return y, [weakref.ref(t), weakref.ref(fw.unpack_dual(y).tangent)]

    with fw.dual_level():
        y, refs = made()
        assert fw.unpack_dual(y).tangent is not None
    gc.collect()
    assert all(r() is None for r in refs)
    before = torch._C.live_counts()
    for _ in range(3):
        with fw.dual_level():
            made()
    assert torch._C.live_counts() == before


def test_the_given_tangent_is_kept():
    with fw.dual_level():
        dual = fw.make_dual(X, T)
        assert fw.unpack_dual(dual).tangent is T and fw.unpack_dual(dual).primal.data_ptr() == X.data_ptr()
        assert fw.unpack_dual(fw.make_dual(X, T.T.clone().T)).tangent is not T
        assert fw.unpack_dual(fw.unpack_dual(dual).primal).tangent is None
        assert "tangent=" in str(dual) and "tangent=" not in str(X)
        assert fw.unpack_dual(dual.detach()).tangent is None and fw.unpack_dual(dual.data).tangent is None
        y = dual.clone()
        y.detach_()
        assert fw.unpack_dual(y).tangent is None
        assert fw.unpack_dual(copy.deepcopy(dual)).tangent is None
        assert fw.unpack_dual(pickle.loads(pickle.dumps(dual))).tangent is None
        assert fw.unpack_dual(dual > 0).tangent is None
        fw._set_fwd_grad_enabled(False).__enter__()
        assert not fw._is_fwd_grad_enabled()
        y = dual * 2
        torch._C._set_fwd_grad_enabled(True)
        assert fw.unpack_dual(y).tangent is None and fw.unpack_dual(dual * 2).tangent is not None


IN_PLACE = [
    lambda x, y: x.mul_(y),
    lambda x, y: x.add_(y, alpha=3),
    lambda x, y: x.sin_(),
    lambda x, y: x.exp_().mul_(x),
    lambda x, y: x.copy_(y),
    lambda x, y: x.zero_(),
    lambda x, y: x.fill_(2.0),
    lambda x, y: x[1:].mul_(y[1:]),
    lambda x, y: x.T.div_(y.T + 9),
    lambda x, y: x.__setitem__((0, slice(1, 3)), y[0, 1:3] * x[1, 1:3]),
    lambda x, y: x.masked_fill_(y > 0, 1.0),
    lambda x, y: x.index_add_(0, torch.tensor([0, 0]), y[:2]),
    lambda x, y: x.t_().unsqueeze_(0).squeeze_(0).t_().mul_(y),
    lambda x, y: x.addmm_(y, y.T @ x),
    lambda x, y: x.clamp_(-0.5, 0.5),
    lambda x, y: x.eq_(y),
    lambda x, y: torch.nn.functional.relu_(x),
    lambda x, y: x.view(-1)[::2].pow_(2),
    lambda x, y: x.cumsum_(1),
]


@pytest.mark.parametrize("which", range(len(IN_PLACE)))
@pytest.mark.parametrize("duals", ["self", "other", "both"])
@pytest.mark.parametrize("recorded", [False, True])
def test_writes_in_place(which, duals, recorded):
    write = IN_PLACE[which]

    def run(x, y):
        x = x.clone()
        whole = x.view(2, 6)
        write(x, y)
        return x * whole.view(3, 4)

    pairs = ((X, T) if duals != "other" else X, (Y, S) if duals != "self" else Y)
    expected = quotient(run, *pairs)
    if recorded:
        pairs = tuple((p[0].clone().requires_grad_(), p[1]) if isinstance(p, tuple) else p for p in pairs)
    primal, tangent = push(run, *pairs)
    assert torch.allclose(primal.detach(), run(X, Y))
    tangent = torch.zeros_like(primal) if tangent is None else tangent
    assert torch.allclose(tangent, expected, atol=1e-5)
    if recorded and primal.requires_grad:
        leaves = [x.clone().requires_grad_(isinstance(p, tuple)) for x, p in zip((X, Y), pairs, strict=True)]
        try:
            run(*leaves).sum().backward()
        except RuntimeError as error:  # without tangents it writes to what a formula needs
            with pytest.raises(RuntimeError, match=str(error)[:70]):
                primal.sum().backward()
        else:
            primal.sum().backward()


def test_views_share_tangents():
    with fw.dual_level():
        dual = fw.make_dual(X.clone(), T.clone())
        view = dual[0]
        view *= 2
        assert torch.equal(fw.unpack_dual(dual).tangent[0], 2 * T[0])
        dual.mul_(3)
        assert torch.equal(fw.unpack_dual(view).tangent, 6 * T[0])
        base = torch.zeros(4, 4, dtype=X.dtype)
        column, other = base[:, 1], base[1]
        column.copy_(dual[:, 0].new_zeros(4))
        base[0] = dual[0]
        assert torch.equal(fw.unpack_dual(base).tangent[0], 6 * T[0])
        assert torch.equal(fw.unpack_dual(base).tangent[1:], torch.zeros(3, 4, dtype=X.dtype))
        assert torch.equal(fw.unpack_dual(column).tangent[0], 6 * T[0, 1])
        assert fw.unpack_dual(other).tangent.abs().sum() == 0
        # x + 1 has the tangent of x, and must not share its memory.
        moved = dual + 1
        moved.mul_(0)
        assert torch.equal(fw.unpack_dual(dual).tangent[1], 3 * T[1])
        assert torch.equal(
            fw.unpack_dual(dual.as_strided((2, 2), (4, 2), 1)).tangent,
            (3 * T.index_fill(0, torch.tensor(0), 0))[[0, 1]][:, [1, 3]]
            + torch.stack([6 * T[0, [1, 3]], torch.zeros(2, dtype=X.dtype)]),
        )


def test_saved_results_have_tangents_in_backward():
    x = X.clone()
    with fw.dual_level():
        dual = fw.make_dual(x, T).requires_grad_()
        y = dual.exp()  # saves its result
        (g,) = torch.autograd.grad(y.sum(), dual)
        assert torch.allclose(fw.unpack_dual(g).tangent, X.exp() * T)
        (g,) = torch.autograd.grad(dual.clone().exp_().mul_(2).sum(), dual)
        assert torch.allclose(fw.unpack_dual(g).tangent, 2 * X.exp() * T)
        y = dual.exp().sum()
        y.backward()
        assert torch.allclose(fw.unpack_dual(dual.grad).tangent, X.exp() * T)


class Cube(Function):
    @staticmethod
    def forward(ctx, x, k):
        y = x**3 * k
        ctx.save_for_backward(x, y)
        ctx.save_for_forward(x)
        ctx.k = k
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return 3 * g * y / x, None

    @staticmethod
    def jvp(ctx, t, k):
        assert k is None
        (x,) = ctx.saved_tensors
        return 3 * x**2 * t * ctx.k


def test_custom_functions():
    f = lambda x: Cube.apply(x, 2.0)  # noqa: E731
    assert torch.allclose(push(f, (X, T)).tangent, 6 * X**2 * T)
    assert gradcheck(f, (X.clone().requires_grad_(),), check_forward_ad=True)
    assert gradgradcheck(f, (X.clone().requires_grad_(),), check_fwd_over_rev=True)
    assert torch.allclose(torch.func.jvp(lambda x: torch.func.jvp(f, (x,), (T,))[1], (X,), (T,))[1], 12 * X * T * T)

    class Plain(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    with pytest.raises(NotImplementedError, match="You must implement the jvp function for custom autograd.Function"):
        push(Plain.apply, (X, T))
    assert push(Plain.apply, X).tangent is None

    class Several(Cube):
        @staticmethod
        def jvp(ctx, t, k):
            return t, t

    with pytest.raises(RuntimeError, match=r"expected 1 but got 2"):
        push(lambda x: Several.apply(x, 2.0), (X, T))


def test_gradcheck_sees_wrong_tangents():
    class Wrong(Cube):
        @staticmethod
        def jvp(ctx, t, k):
            return 2 * t

    x = X.clone().requires_grad_()
    with pytest.raises(RuntimeError, match="Jacobian computed with forward mode mismatch for output 0"):
        gradcheck(lambda x: Wrong.apply(x, 2.0), (x,), check_forward_ad=True)
    z = torch.complex(X, T).requires_grad_()
    assert gradcheck(lambda z: z.exp() * z.abs(), (z,), check_forward_ad=True)
    assert gradcheck(torch.matmul, (x, T.T.clone().requires_grad_()), check_forward_ad=True, check_backward_ad=False)


def test_threads_have_levels_of_their_own():
    seen = []
    with fw.dual_level():
        dual = fw.make_dual(X, T)

        def other():
            seen.append(torch._C._forward_levels())
            level = torch._C._forward_enter()
            seen.append(torch._C._tangent(dual * 2, level))
            torch._C._forward_exit(level)

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert fw.unpack_dual(dual * 2).tangent is not None
    assert seen == [[], None]


def test_levels_are_left_in_order_and_bounded():
    a, b = torch._C._forward_enter(), torch._C._forward_enter()
    with pytest.raises(RuntimeError, match="was not the last one"):
        torch._C._forward_exit(a)
    torch._C._forward_exit(b)
    torch._C._forward_exit(a)
    with pytest.raises(RuntimeError, match="invalid index"):
        torch._C._make_dual(X, T, 3)
    with pytest.raises(RuntimeError, match="was not the last one"):
        torch._C._forward_exit(0)
    levels = [torch._C._forward_enter() for _ in range(32)]
    with pytest.raises(RuntimeError, match="32 levels are open"):
        torch._C._forward_enter()
    for level in reversed(levels):
        torch._C._forward_exit(level)


def test_modules_and_inference_mode():
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8, 3)
    ).double()
    x, t = rand(2, 1, 4, 4), rand(2, 1, 4, 4, seed=1)
    net.eval()
    with torch.no_grad():
        expected = quotient(net, (x, t))
        assert torch.allclose(push(net, (x, t)).tangent, expected, atol=1e-6)
    with torch.inference_mode():
        x, t = x.clone(), t.clone()
        assert torch.allclose(push(net, (x, t)).tangent, expected, atol=1e-6)
    net.train()
    assert torch.isfinite(push(net, (rand(2, 1, 4, 4), rand(2, 1, 4, 4, seed=1))).tangent).all()


def test_checkpointed_and_hooked():
    from rustgrad.utils.checkpoint import checkpoint

    f = lambda x: checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False)  # noqa: E731
    assert torch.allclose(
        push(f, (X.clone().requires_grad_(), T)).tangent, push(lambda x: x.sin().exp(), (X, T)).tangent
    )
    packed = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
        push(lambda x: x.softmax(0), (X, T))
    assert not packed


def test_gradcheck_compares_batches_with_loops(torch):
    """`vmap` over backward, and over forward mode, is run; a wrong rule for batches is found."""
    check = torch.autograd.gradcheck
    x, y = (torch.rand(2, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert check(lambda x, y: (x * y).sin().sum(1), (x, y), check_batched_grad=True)
    assert check(torch.atan2, (x, y), check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True)

    class Twice(torch.autograd.Function):
        generate_vmap_rule = False

        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, g):
            return Backward.apply(g)

    class Backward(torch.autograd.Function):
        @staticmethod
        def forward(g):
            return g * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def vmap(info, in_dims, g):
            return g * 3, in_dims[0]

    assert check(Twice.apply, (x,))
    with pytest.raises(torch.autograd.GradcheckError, match="check_batched_grad=False"):
        check(Twice.apply, (x,), check_batched_grad=True)


def test_gradcheck_passes_inputs_without_requires_grad_to_forward_mode(torch):
    seen = []

    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            seen.append((x.requires_grad, y.requires_grad))
            return x * y

        @staticmethod
        def jvp(ctx, x, y):
            return x

    x = torch.rand(1, dtype=torch.float64, requires_grad=True)
    y = torch.ones(1, dtype=torch.float64)
    torch.autograd.gradcheck(Same.apply, (x, y), check_forward_ad=True, check_backward_ad=False)
    assert seen[-1] == (False, False)


@pytest.mark.parametrize("duals", [(0, 1), (0, 2), (1, 3), (2, 4)])
def test_batch_norm_has_no_tangents_of_running_statistics(duals):
    tensors = [torch.randn(4, 3), torch.zeros(3), torch.ones(3), torch.ones(3), torch.zeros(3)]
    with fw.dual_level():
        given = [fw.make_dual(t, torch.ones_like(t)) if i in duals else t for i, t in enumerate(tensors)]
        with pytest.raises(RuntimeError, match="not differentiable wrt running_mean and running_var"):
            torch.nn.functional.batch_norm(*given)
        alone = given[:1] + tensors[1:] if 0 in duals else tensors[:1] + given[1:3] + tensors[3:]
        torch.nn.functional.batch_norm(*alone)
        torch.nn.functional.batch_norm(*given, training=True)
