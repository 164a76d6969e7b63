"""Gradients where a slope is constant, at ties, at NaN and at infinity: against recorded results of PyTorch."""

import numpy as np
import pytest

FLAT = {
    "leaky_relu": lambda torch, x: torch.nn.functional.leaky_relu(x),
    "hardtanh": lambda torch, x: torch.nn.functional.hardtanh(x),
    "relu6": lambda torch, x: torch.nn.functional.relu6(x),
    "hardsigmoid": lambda torch, x: torch.nn.functional.hardsigmoid(x),
    "hardshrink": lambda torch, x: torch.nn.functional.hardshrink(x),
    "softshrink": lambda torch, x: torch.nn.functional.softshrink(x),
    "prelu": lambda torch, x: torch.nn.functional.prelu(x, torch.tensor(0.25)),
    "nll_loss": lambda torch, x: torch.nn.functional.nll_loss(x, torch.tensor([0, 2])),
    "reflect": lambda torch, x: torch.nn.functional.pad(x, (1, 1), "reflect"),
    "replicate": lambda torch, x: torch.nn.functional.pad(x, (1, 1), "replicate"),
    "pdist of one row": lambda torch, x: torch.pdist(x[:1]),
    "svd of nothing": lambda torch, x: torch.linalg.svd(x[:0])[0],
}


@pytest.mark.parametrize("name", FLAT)
def test_gradients_of_constant_slopes_require_gradients(torch, name):
    """The gradient of a (piecewise) constant slope can be computed and is zero."""
    x = torch.tensor([[0.3, -2.0, 7.0], [-0.1, 0.6, -9.0]]).requires_grad_()
    (g,) = torch.autograd.grad(FLAT[name](torch, x).sum(), x, create_graph=True)
    assert g.requires_grad
    assert torch.autograd.grad(g.sum(), x)[0].tolist() == [[0, 0, 0], [0, 0, 0]]


NAN, INF = float("nan"), float("inf")
# (function, arguments, their gradients), recorded from PyTorch
AT_SPECIAL_POINTS = [
    ("fmax", ([1, 1, NAN, NAN], [1, NAN, 1, NAN]), ([0.5, 1, 0, 1], [0.5, 0, 1, 0])),
    ("fmin", ([1, 1, NAN, NAN], [1, NAN, 1, NAN]), ([0.5, 1, 0, 1], [0.5, 0, 1, 0])),
    ("nextafter", ([1, 2], [1, 1]), ([0, 1], [0, 0])),
    ("atan2", ([0, 1], [0, 1]), ([0, 0.5], [0, -0.5])),
    ("copysign", ([0, NAN, -2], [1, 1, 1]), ([0, NAN, -1], [0, 0, 0])),
    ("div", ([0, 1], [2.0**-100, INF]), ([2.0**100, 0], [0, 0])),
    ("clamp", ([INF, -INF], [0, 0]), ([1, 0], [0, 1])),
    ("acosh", ([-1.25],), ([4 / 3],)),
    ("sinc", ([0, 2.0**-100],), ([0, 0],)),
]


@pytest.mark.parametrize("name, args, want", AT_SPECIAL_POINTS, ids=[row[0] for row in AT_SPECIAL_POINTS])
def test_gradients_at_special_points(torch, name, args, want):
    args = [torch.tensor([float(v) for v in arg]).requires_grad_() for arg in args]
    found = torch.autograd.grad(getattr(torch, name)(*args).sum(), args)
    for g, w in zip(found, want, strict=True):
        assert torch.allclose(g, torch.tensor([float(v) for v in w]), equal_nan=True)


@pytest.mark.parametrize(
    "shape,view,size,stride",
    [
        ((5,), lambda x: x.expand(5, 5), (5, 5), (0, 1)),
        ((2, 3), lambda x: x.expand(10, 2, 3), (2, 3), (3, 1)),
        ((3,), lambda x: x.expand(4, 3), (3,), (1,)),
        ((4,), lambda x: x.as_strided((3, 2), (1, 1)), (4,), (1,)),
        ((4,), lambda x: x.unfold(0, 2, 1), (2, 2), (1, 2)),
        ((6,), lambda x: x[1:5].expand(2, 4), (3, 2), (1, 1)),
    ],
)
def test_strided_views_of_overlapping_views(torch, shape, view, size, stride):
    """Elements of the input that share a place share its gradient; the view before them adds the shares up."""
    x = torch.arange(float(np.prod(shape)), dtype=torch.float64).reshape(shape).requires_grad_()
    f = lambda x: view(x).as_strided(size, stride)  # noqa: E731
    assert torch.autograd.gradcheck(f, (x,)) and torch.autograd.gradgradcheck(f, (x,))


def _without_a_derivative(torch):
    F = torch.nn.functional
    x, p, t, i = torch.rand(4, 3), torch.rand(4, 3), torch.rand(4, 3), torch.tensor([0, 2, 1, 1])
    ld, pivots = torch.linalg.ldl_factor(torch.eye(3) + 1)
    return {
        "nll_loss": lambda w: F.nll_loss(x, i, w),
        "nll_loss of images": lambda w: F.nll_loss(torch.rand(2, 3, 2, 2), torch.zeros(2, 2, 2, dtype=torch.int64), w),
        "cross_entropy": lambda w: F.cross_entropy(x, i, w),
        "cross_entropy, smoothed": lambda w: F.cross_entropy(x, i, w, label_smoothing=0.1),
        "binary_cross_entropy": lambda w: F.binary_cross_entropy(p, t, w),
        "binary_cross_entropy_with_logits": lambda w: F.binary_cross_entropy_with_logits(x, t, w),
        "binary_cross_entropy_with_logits, positive": lambda w: F.binary_cross_entropy_with_logits(x, t, pos_weight=w),
        "multi_margin_loss": lambda w: F.multi_margin_loss(x, i, weight=w),
        "batch_norm, mean": lambda w: F.batch_norm(x, w, torch.ones(3)),
        "batch_norm, variance": lambda w: F.batch_norm(x, torch.zeros(3), w, training=True),
        "instance_norm": lambda w: F.instance_norm(torch.rand(2, 3, 5), w, torch.ones(3), use_input_stats=False),
        "bincount": lambda w: torch.bincount(torch.tensor([0, 2, 2]), w),
        "pinv": lambda w: torch.linalg.pinv(torch.rand(3, 2, 2), rtol=w / 10),
        "ldl_solve": lambda w: torch.linalg.ldl_solve(ld, pivots, w[:, None]),
    }


@pytest.mark.parametrize("name", _without_a_derivative(__import__("rustgrad")))
def test_arguments_without_a_derivative_may_not_require_grad(torch, name):
    """They would silently get none; PyTorch refuses them too."""
    f = _without_a_derivative(torch)[name]
    weight = torch.tensor([0.5, 1.0, 2.0], requires_grad=True)
    with pytest.raises(
        RuntimeError, match=r"not differentiable with respect to argument .* cannot have requires_grad True"
    ):
        f(weight)
    assert not f(weight.detach()).requires_grad
    with torch.no_grad():
        f(weight)


def test_class_probabilities_have_weights_that_learn(torch):
    weight = torch.ones(3, requires_grad=True)
    torch.nn.functional.cross_entropy(torch.rand(4, 3), torch.rand(4, 3), weight).backward()
    assert weight.grad.abs().min() > 0


@pytest.mark.parametrize(
    "f",
    [
        lambda torch, x: torch.unique(x),
        lambda torch, x: torch.unique(x, dim=0),
        lambda torch, x: torch.unique_consecutive(x),
        lambda torch, x: torch.unique(x, return_inverse=True)[0],
        lambda torch, x: torch.geqrf(x)[0],
        lambda torch, x: x.scatter(0, torch.zeros(1, 2, dtype=torch.int64), x, reduce="multiply"),
        lambda torch, x: x.clone().scatter_(0, torch.zeros(1, 2, dtype=torch.int64), 2.0, reduce="add"),
    ],
)
@pytest.mark.filterwarnings("ignore:The reduce argument")
def test_results_without_a_formula_refuse_backward(torch, f):
    """They belong to the graph, so that nothing is silently cut."""
    y = f(torch, torch.rand(3, 2, requires_grad=True))
    assert y.requires_grad
    with pytest.raises(RuntimeError, match="is not implemented"):
        y.sum().backward()


def test_an_integer_result_that_is_asked_for_has_no_gradient(torch):
    x = torch.ones(2, requires_grad=True)
    calls = (
        lambda x: x.sum(dtype=torch.int32),
        lambda x: x.sum(0, dtype=torch.int64),
        lambda x: x.prod(dtype=torch.uint8),
        lambda x: x.nansum(dtype=torch.int64),
        lambda x: x.cumsum(0, dtype=torch.int64),
        lambda x: x.cumprod(0, dtype=torch.int8),
    )
    for call in calls:
        with pytest.raises(RuntimeError, match="Autograd not support dtype"):
            call(x)
        assert not call(x.detach()).requires_grad
        with torch.no_grad():
            call(x)
    assert not x.to(torch.int32).requires_grad and not x.int().requires_grad


def test_the_gradient_of_a_mean_is_memory_of_its_own(torch):
    pool = torch.nn.functional.adaptive_avg_pool2d
    means = (
        lambda x: x.mean(),
        lambda x: x.mean(0),
        lambda x: x.mean((0, 1), keepdim=True),
        lambda x: torch.var_mean(x)[1],
        lambda x: pool(x[None], 1),
    )
    for mean in means:
        x = torch.rand(3, 4, requires_grad=True)
        y = mean(x)
        (g,) = torch.autograd.grad(y.sum(), x)
        assert g.is_contiguous()
        first = g.clone()
        assert torch.equal(g.add_(1), first + 1)
        h = x * 1
        h.register_hook(lambda g: g.mul_(2))
        mean(h).sum().backward()
        assert torch.equal(x.grad, 2 * first)
    # As in PyTorch, the gradient of a sum is an expanded view.
    (g,) = torch.autograd.grad(x.sum(), x)
    assert g.stride() == (0, 0)


def test_gradcheck_compares_shapes(torch):
    def wide(x):
        return x * 2 if bool((x == 1).all()) else (x * 2).expand(3)

    x = torch.ones(1, dtype=torch.float64, requires_grad=True)
    with pytest.raises(RuntimeError):
        torch.autograd.gradcheck(wide, x)


@pytest.mark.parametrize("shape", [(4, 0), (0, 0), (0, 3)])
def test_layer_norm_of_nothing_has_gradients(torch, shape):
    x, weight, bias = (torch.ones(s, requires_grad=True) for s in (shape, shape[1:], shape[1:]))
    torch.nn.functional.layer_norm(x, shape[1:], weight, bias).sum().backward()
    assert [tuple(t.grad.shape) for t in (x, weight, bias)] == [shape, shape[1:], shape[1:]]


def test_padding_names_the_argument_of_the_dimension(torch):
    x = torch.zeros(1, 3, 5, 5)
    for pad, argument in {(9, 0, 0, 0): 4, (0, 0, 9, 0): 6}.items():
        with pytest.raises(RuntimeError, match=f"Argument #{argument}: Padding size should be less"):
            torch.nn.functional.pad(x, pad, mode="reflect")
