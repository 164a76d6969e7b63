"""Batch rules: ops that fold their examples into one call, views that stay views, writes of forward mode, batches of nothing.

Each is compared with a loop, and must not be a loop itself: `vmap` warns of those.
"""

import warnings

import pytest
import rustgrad as torch
import rustgrad.utils.checkpoint
from rustgrad.autograd import Function
from rustgrad.func import functional_call, grad, jacfwd, jacrev, jvp, vmap
from rustgrad.nn import functional as F
from rustgrad.testing import assert_close


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def batched(f, *args, dims=0):
    """`vmap` of `f`; a loop over the examples is an error."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*performance drop")
        return vmap(f, in_dims=dims)(*args)


def loop(f, *args):
    rows = [f(*(a[b] for a in args)) for b in range(len(args[0]))]
    if isinstance(rows[0], tuple):
        return tuple(torch.stack(list(column)) for column in zip(*rows, strict=True))
    return torch.stack(rows)


def gradient_of(f):
    """The gradient of a sum by every argument."""
    return lambda *args: grad(lambda *a: (f(*a).sin() * 2).sum(), tuple(range(len(args))))(*args)


LAYERS = {
    "conv1d": (lambda x, w: F.conv1d(x, w, padding=1), (2, 4, 9), (6, 4, 3)),
    "conv2d groups stride": (lambda x, w: F.conv2d(x, w, stride=2, groups=2), (2, 4, 7, 6), (6, 2, 3, 3)),
    "conv2d dilation": (lambda x, w: F.conv2d(x, w, dilation=2, padding=(1, 2)), (1, 3, 7, 6), (2, 3, 3, 2)),
    "conv_transpose2d": (lambda x, w: F.conv_transpose2d(x, w, stride=2), (2, 3, 4, 5), (3, 2, 3, 3)),
    "conv3d": (lambda x, w: F.conv3d(x, w), (1, 2, 4, 5, 4), (3, 2, 2, 3, 2)),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2), (2, 3, 4, 6)),
    "max_pool2d unbatched": (lambda x: F.max_pool2d(x, 2), (3, 4, 6)),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 3, 2, 1), (2, 3, 5, 6)),
    "avg_pool1d": (lambda x: F.avg_pool1d(x, 3, 2), (2, 3, 7)),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, 2), (2, 3, 5, 6)),
    "adaptive_max_pool2d": (lambda x: F.adaptive_max_pool2d(x, 2), (2, 3, 5, 6)),
    "nearest": (lambda x: F.interpolate(x, scale_factor=2), (2, 3, 4, 5)),
    "bilinear": (lambda x: F.interpolate(x, (7, 3), mode="bilinear"), (2, 3, 4, 5)),
    "bicubic antialias": (lambda x: F.interpolate(x, (3, 3), mode="bicubic", antialias=True), (2, 3, 6, 5)),
    "trilinear": (lambda x: F.interpolate(x, scale_factor=2, mode="trilinear"), (1, 2, 2, 3, 2)),
    "reflection pad": (lambda x: F.pad(x, (1, 2, 0, 1), "reflect"), (2, 3, 4, 5)),
    "replication pad": (lambda x: F.pad(x, (1, 2), "replicate"), (3, 5)),
    "replication pad 3d": (lambda x: F.pad(x, (1, 2, 0, 1, 1, 1), "replicate"), (1, 2, 3, 4, 3)),
    "fold": (lambda x: F.fold(x, (4, 5), (2, 2)), (2, 12, 12)),
    "unfold": (lambda x: F.unfold(x, (2, 2)), (2, 3, 4, 5)),
    "grid_sample": (lambda x, g: F.grid_sample(x, g.tanh(), align_corners=False), (2, 3, 4, 5), (2, 3, 3, 2)),
    "batch_norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, True), (4, 3, 5), (3,), (3,)),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), (2, 4, 5), (4,), (4,)),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (3, 5), w, b), (4, 3, 5), (3, 5), (3, 5)),
    "attention": (F.scaled_dot_product_attention, (2, 2, 4, 8), (2, 2, 5, 8), (2, 2, 5, 8)),
    "causal attention": (lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), (1, 2, 4, 8)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_and_their_gradients_by_example(name):
    f, *shapes = LAYERS[name]
    args = [torch.randn(3, *s) for s in shapes]
    assert_close(batched(f, *args), loop(f, *args), rtol=1e-4, atol=1e-4)
    assert_close(batched(gradient_of(f), *args), loop(gradient_of(f), *args), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", [name for name, layer in LAYERS.items() if len(layer) > 2])
def test_weights_that_all_examples_share(name):
    f, shape, *weights = LAYERS[name]
    x, shared = torch.randn(3, *shape), [torch.randn(*s) for s in weights]
    each = lambda a: gradient_of(f)(a, *shared)  # noqa: E731
    assert_close(batched(each, x), loop(each, x), rtol=1e-4, atol=1e-4)


def test_instance_norm():
    x = torch.randn(3, 2, 3, 5)
    assert_close(batched(F.instance_norm, x), loop(F.instance_norm, x))


def test_gradients_of_each_sample_of_a_network():
    layers = torch.nn
    net = layers.Sequential(
        layers.Conv2d(1, 4, 3), layers.GroupNorm(2, 4), layers.ReLU(), layers.MaxPool2d(2), layers.Flatten(),
        layers.Linear(36, 5),
    )  # fmt: skip
    params = {k: v.detach() for k, v in net.named_parameters()}
    x, y = torch.randn(6, 1, 8, 8), torch.randint(0, 5, (6,))

    def loss(p, a, b):
        return F.cross_entropy(functional_call(net, p, (a[None],)), b[None])

    got = batched(grad(loss), params, x, y, dims=(None, 0, 0))
    for i in range(6):
        for k, g in grad(loss)(params, x[i], y[i]).items():
            assert_close(got[k][i], g, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("pad", [None, 1])
@pytest.mark.parametrize("by_frequency", [False, True])
def test_embedding_gradient(pad, by_frequency):
    table, at = torch.randn(5, 3), torch.tensor([[0, 1, 1], [4, 4, 4], [1, 2, 0]])
    f = lambda w, i: F.embedding(i, w, pad, scale_grad_by_freq=by_frequency).square().sum()  # noqa: E731
    got = batched(grad(f), table, at, dims=(None, 0))
    assert_close(got, torch.stack([grad(f)(table, i) for i in at]))


def test_evaluation_batch_norm_has_one_set_of_statistics():
    mean, var = torch.randn(3), torch.rand(3) + 0.5
    f = lambda x: F.batch_norm(x, mean, var)  # noqa: E731
    x = torch.randn(4, 2, 3, 5)
    assert_close(batched(f, x), loop(f, x))
    assert_close(batched(gradient_of(f), x), loop(gradient_of(f), x))


INDEXING = {
    "take": (lambda x, i: x.take(i), torch.randn(3, 2, 4), torch.tensor([[0, -1], [7, 2], [-8, 3]])),
    "take 0-d": (lambda x, i: x.take(i), torch.randn(3, 4), torch.tensor([0, -1, 2])),
    "rot90": (lambda x: x.rot90(1, (0, -1)), torch.randn(3, 2, 4, 5)),
    "searchsorted": (torch.searchsorted, torch.randn(3, 6).sort(-1).values, torch.randn(3, 2, 4)),
    "searchsorted rows": (torch.searchsorted, torch.randn(3, 2, 6).sort(-1).values, torch.randn(3, 2, 4)),
    "bucketize": (torch.bucketize, torch.randn(3, 2), torch.randn(3, 6).sort(-1).values),
    "fill": (lambda x, v: torch.fill(x, v), torch.randn(3, 2, 4), torch.randn(3)),
    "fill_": (lambda x, v: x.clone().fill_(v), torch.randn(3, 2, 4), torch.randn(3)),
    "copy_": (lambda x, v: x.clone().copy_(v), torch.randn(3, 2, 4), torch.randn(3, 4)),
    "one_hot": (lambda i: F.one_hot(i, 4), torch.tensor([[0, 3], [1, 1], [2, 0]])),
    "unsafe_split": (lambda x: x.unsafe_split(2, 1)[1], torch.randn(3, 2, 4)),
    "split sizes": (lambda x: x.split([1, 3], -1)[1], torch.randn(3, 2, 4)),
    "chunk": (lambda x: x.chunk(2, 0)[1], torch.randn(3, 5, 4)),
}


@pytest.mark.parametrize("name", INDEXING)
def test_indexing(name):
    f, *args = INDEXING[name]
    assert_close(batched(f, *args), loop(f, *args))


def test_distinct_slices_are_those_of_each_example():
    x = torch.tensor([[[1, 0], [0, 0]], [[0, 1], [1, 1]], [[1, 1], [0, 1]]])
    assert_close(vmap(lambda t: torch.unique(t, dim=0))(x), loop(lambda t: torch.unique(t, dim=0), x))
    f = lambda t: torch.unique_consecutive(t, dim=1)  # noqa: E731
    x = torch.tensor([[[1, 1], [0, 1]], [[0, 1], [1, 0]]])
    assert_close(vmap(f)(x), loop(f, x))


def test_moments_of_everything():
    x = torch.randn(3, 2, 4)
    for f in (torch.var_mean, torch.std_mean):
        assert_close(batched(f, x), loop(f, x))


class TestViews:
    """What is written to a view reaches what it is a view of."""

    VIEWS = {
        "split": lambda x: x.split(2)[0],
        "split and diagonal": lambda x: x.split(2)[1].diagonal(),
        "split sizes": lambda x: x.split([1, 3], 0)[1],
        "chunk": lambda x: x.chunk(2, -1)[1],
        "tensor_split": lambda x: x.tensor_split(3)[1],
        "unbind": lambda x: x.unbind(1)[0],
        "hsplit": lambda x: x.hsplit(2)[1],
        "unfold": lambda x: x.unfold(0, 2, 2)[1],
        "narrow": lambda x: x.narrow(0, 1, 2),
        "view and select": lambda x: x.view(2, 2, 2)[1, :, 0],
    }

    @pytest.mark.parametrize("name", VIEWS)
    def test_writes_arrive(self, name):
        view = self.VIEWS[name]

        def f(x, y):
            x = x.clone()
            view(x).mul_(y).add_(1)
            return x

        x, y = torch.randn(3, 4, 2), torch.randn(3)
        assert_close(batched(f, x, y), loop(f, x, y))

    NORMS = {
        "batch_norm": lambda a: F.batch_norm(a, None, None, training=True),
        "convolution": lambda a: F.conv1d(a[None], a[:, :, None])[0],
        "sort": lambda a: a.mT.contiguous().mT.sort(0).values,
        "loop": lambda a: a.cumsum(0).renorm(2, 0, 1.0).mT.clone().mT,
    }

    @pytest.mark.parametrize("name", NORMS)
    def test_results_lie_as_those_of_an_example(self, name):
        def f(a):
            out = self.NORMS[name](a).clone()
            (out if out.is_contiguous() else out.mT).view(-1)[3:9].mul_(5)
            return out

        x = torch.randn(3, 4, 4)
        assert_close(vmap(f)(x), loop(f, x))

    @pytest.mark.parametrize("dim", [0, 1, 2])
    def test_arguments_that_lie_otherwise(self, dim):
        x = torch.randn(4, 6, 8)[:, :, ::2]
        wanted = x.clone()
        for a in wanted.unbind(dim):
            a.mul_(2)[1:].sub_(1)

        def f(a):
            (a if a.is_contiguous() else a.mT).view(-1).mul_(2)
            a[1:].sub_(1)
            return a.sum()

        got = vmap(f, in_dims=dim)(x)
        assert_close(x, wanted)
        assert_close(got, torch.stack([a.sum() for a in wanted.unbind(dim)]))

    def test_a_copy_is_not_written_to(self):
        x, at = torch.zeros(2, 4), torch.tensor([[1], [2]])
        assert [t.tolist() for t in vmap(lambda a, i: a.tensor_split(i)[0].sum())(x, at * 0 + 1)] == [0, 0]
        with pytest.raises(RuntimeError, match="add_ would write to a view that had to be copied in the batch"):
            vmap(lambda a, i: a.tensor_split(i)[0].add_(1).sum())(x, at * 0 + 1)

    def test_views_of_arguments(self):
        x = torch.zeros(2, 4, 2)
        vmap(lambda a: a.split(2)[1].add_(1).sum())(x)
        assert_close(x, torch.tensor([0.0, 0, 1, 1]).view(4, 1).expand(2, 4, 2))


class TestForwardModeWrites:
    """In place, a write to a dual is one to its tangent too, which `vmap` has to see."""

    WRITES = {
        "copy": lambda x: torch.empty(3).copy_(x),
        "add": lambda x: torch.zeros(3).add_(x),
        "setitem": lambda x: _written(x),
        "mul": lambda x: x.clone().mul_(x),
        "mul unbatched": lambda x: torch.full((3,), 2.0).mul_(x),
        "sin": lambda x: (x * 2).sin_(),
        "addcmul": lambda x: torch.ones(3).addcmul_(x, x),
        "transposed": lambda x: torch.outer(x, x).t_()[0],
        "squeezed": lambda x: (x[None] * x).squeeze_(0),
        "composite": lambda x: x.clone().xlogy_(x.exp()),
    }

    @pytest.mark.parametrize("name", WRITES)
    def test_jacobians(self, name):
        f, x = self.WRITES[name], torch.rand(3) + 0.5
        assert_close(jacfwd(f)(x), jacrev(f)(x))
        rows = [jvp(f, (x,), (v,))[1] for v in torch.eye(3)]
        assert_close(jacfwd(f)(x), torch.stack(rows, -1))

    def test_primals_of_a_batch(self):
        x, v = torch.randn(4, 3), torch.randn(4, 3)
        f = lambda a, b: jvp(lambda y: torch.empty(3).copy_(y).mul_(y), (a,), (b,))  # noqa: E731
        assert_close(vmap(f)(x, v), (x * x, 2 * x * v))


def _written(x):
    out = torch.zeros(4)
    out[:3] = x
    out[1:] += x
    return out


def test_a_jacobian_of_numbers_by_numbers():
    x = torch.tensor(3.0)
    assert_close(jacrev(lambda a: a * a)(x), torch.tensor(6.0))
    assert_close(jacrev(lambda a, b: (a * b, a), (0, 1))(x, x), ((x, x), (torch.tensor(1.0), torch.tensor(0.0))))


class TestNoExamples:
    @pytest.mark.parametrize(
        "f",
        [
            lambda x: x + 1,
            lambda x: x.sum(),
            lambda x: torch.linalg.inv(x),
            lambda x: torch.linalg.cholesky(x),
            lambda x: x.split(1)[0],
            grad(lambda x: x.square().sum()),
        ],
    )
    def test_an_empty_batch(self, f):
        shape = vmap(f)(torch.eye(2).expand(1, 2, 2)).shape[1:]
        assert vmap(f)(torch.zeros(0, 2, 2)).shape == (0, *shape)
        assert vmap(f, chunk_size=2)(torch.zeros(0, 2, 2)).shape == (0, *shape)

    def test_integers(self):
        assert vmap(lambda i: 4 // i)(torch.zeros(0, 2, dtype=torch.int64)).shape == (0, 2)


@pytest.mark.parametrize("mode", ["error", "different", "same"])
def test_a_rule_is_told_the_randomness(mode):
    told = []

    class Twice(Function):
        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def vmap(info, in_dims, x):
            told.append(info)
            return x * 2, in_dims[0]

    vmap(Twice.apply, randomness=mode)(torch.ones(3, 2))
    assert [(i.batch_size, i.randomness) for i in told] == [(3, mode)]


@pytest.mark.parametrize(
    "draw",
    [
        lambda t, g: t.normal_(generator=g),
        lambda t, g: t.uniform_(generator=g),
        lambda t, g: t.bernoulli_(generator=g),
        lambda t, g: torch.bernoulli(t * 0 + 0.5, generator=g),
        lambda t, g: torch.multinomial(t * 0 + 1, 2, generator=g),
        lambda t, g: t + torch.randn(8, generator=g),
    ],
)
def test_the_same_numbers_of_a_generator_for_all(draw):
    generator = torch.Generator().manual_seed(3)
    alone = draw(torch.ones(8), generator)
    after = generator.get_state()
    generator.manual_seed(3)
    batch = vmap(lambda t: draw(t, generator), randomness="same")(torch.ones(5, 8))
    assert torch.equal(batch, alone.expand_as(batch))
    assert torch.equal(generator.get_state(), after)


@pytest.mark.parametrize(
    "draw",
    [
        lambda t, b: torch.normal(t, 1.0),
        lambda t, b: torch.normal(0.0, t),
        lambda t, b: torch.normal(t, t[0]),
        lambda t, b: torch.normal(t, b),
        lambda t, b: torch.distributions.Normal(t, 1.0).sample(),
        lambda t, b: torch.bernoulli(t),
        lambda t, b: torch.poisson(t),
    ],
)
def test_draws_by_a_tensor_that_is_one_for_all_are_those_of_the_batch(draw):
    t, b = torch.full((4, 5), 0.5), torch.rand(3)
    torch.manual_seed(3)
    got, after = vmap(draw, in_dims=(None, 0), randomness="different")(t, b), torch.rand(1)
    torch.manual_seed(3)
    assert_close(got, draw(t.expand(3, 4, 5), b.view(3, 1, 1)))
    assert_close(after, torch.rand(1))


def test_checkpointed():
    x = torch.randn(3, 4, 4, dtype=torch.float64, requires_grad=True)
    f = lambda a: vmap(torch.linalg.qr)(a)[0].sin().sum()  # noqa: E731
    (wanted,) = torch.autograd.grad(f(x), x)
    torch.utils.checkpoint.checkpoint(f, x, use_reentrant=False).backward()
    assert_close(x.grad, wanted)


def test_an_exception_of_a_hook_is_not_a_missing_rule():
    class Stop(Exception):
        pass

    packed = []

    def pack(t):
        packed.append(t)
        if len(packed) == 3:
            raise Stop
        return t

    x = torch.randn(3, 2, requires_grad=True)
    with pytest.raises(Stop), torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        vmap(lambda a: a.sin().exp())(x)
    assert len(packed) == 3


@pytest.mark.parametrize(
    "f",
    [
        torch.linalg.cross,
        lambda a, b: torch.linalg.cross(a.sin(), b.cos()),
        lambda a, b: F.softplus(a * b),
        torch.xlogy,
    ],
)
def test_nested_calls_without_a_rule_run_by_their_steps(f):
    x, y = torch.rand(3, 4, 3) + 1, torch.rand(4, 2, 3) + 1
    got = vmap(vmap(f, (0, None)), (None, 1))(x, y)
    assert_close(got, torch.stack([torch.stack([f(a, y[:, j]) for a in x]) for j in range(2)]))


IN_PLACE = {
    "add": lambda a, b: a.clone().add_(b),
    "clamp": lambda a, b: (a * b).clamp_(-0.5, 0.5),
    "mul": lambda a, b: a.sin().mul_(b),
    "pow": lambda a, b: (a * b).pow_(2),
    "sigmoid": lambda a, b: (a + b).sigmoid_(),
    "setitem": lambda a, b: _first_set(a, b),
    "old values": lambda a, b: _read_then_written(a, b),
}


def _first_set(a, b):
    out = a.sin()
    out[0] = b[1]
    return out * b


def _read_then_written(a, b):
    out = a.sin()
    before = out * 2
    out.mul_(b)
    return out + before


@pytest.mark.parametrize("name", IN_PLACE)
@pytest.mark.parametrize("inner", [(0, 0), (0, None), (None, 0)])
@pytest.mark.parametrize("outer", [(0, 0), (0, None), (None, 0)])
def test_nested_writes(name, inner, outer):
    f = IN_PLACE[name]
    batch = lambda i, o: ((2,) if o == 0 else ()) + ((3,) if i == 0 else ()) + (4,)  # noqa: E731
    a, b = (torch.rand(*batch(i, o)) for i, o in zip(inner, outer, strict=True))
    got = vmap(vmap(f, inner), outer)(a, b)
    of = lambda t, d, k: t if d is None else t[k]  # noqa: E731
    rows = [
        [f(*(of(of(t, o, i), n, j) for t, n, o in zip((a, b), inner, outer, strict=True))) for j in range(3)]
        for i in range(2)
    ]
    assert_close(got, torch.stack([torch.stack(r) for r in rows]))


@pytest.mark.parametrize("name", [n for n in IN_PLACE if n != "setitem"])
def test_gradients_of_writes_in_a_batch(name):
    a, b = torch.rand(3, 4) - 0.5, torch.rand(3, 4)
    each = gradient_of(IN_PLACE[name])
    assert_close(vmap(each)(a, b), loop(each, a, b))
