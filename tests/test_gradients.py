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
