"""`torch._higher_order_ops.associative_scan`, which state-space models of transformers import."""

import pytest
import rustgrad as torch
from rustgrad._higher_order_ops import associative_scan
from rustgrad.testing import assert_close

MODES = ("pointwise", "generic")


def times(a, b):
    return a * b


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 8, 13])
def test_a_scan_of_products_is_cumprod(n, mode):
    x = torch.rand(2, n, 3, dtype=torch.float64)
    for dim in (1, -2):
        assert_close(associative_scan(times, x, dim, combine_mode=mode), x.cumprod(dim))
        assert_close(associative_scan(times, x, dim, True, mode), x.flip(dim).cumprod(dim).flip(dim))


@pytest.mark.parametrize("mode", MODES)
def test_a_linear_recurrence(mode):
    decay, add = torch.rand(7, 2, dtype=torch.float64), torch.rand(7, 2, dtype=torch.float64)
    leaves = {"decay": decay, "add": add}
    got = associative_scan(
        lambda a, b: {"decay": a["decay"] * b["decay"], "add": b["decay"] * a["add"] + b["add"]},
        leaves,
        0,
        combine_mode=mode,
    )
    state, want = torch.zeros(2, dtype=torch.float64), []
    for d, a in zip(decay, add, strict=True):
        state = d * state + a
        want.append(state)
    assert_close(got["add"], torch.stack(want))


def test_gradients():
    x = torch.rand(6, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: associative_scan(times, x, 0), x)
    assert torch.autograd.gradgradcheck(lambda x: associative_scan(times, x, 0, combine_mode="generic"), x)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((1, torch.ones(3), 0), ValueError, "Combine_fn must be a callable, but got 1"),
        ((times, torch.ones(3), "0"), ValueError, "Dim must be an int"),
        ((times, torch.ones(3), 0, 1), RuntimeError, "Reverse must be a bool"),
        ((times, torch.ones(3), 0, False, "other"), ValueError, "Combine_mode must either 'pointwise' or 'generic'"),
        ((times, (), 0), ValueError, "Expected at least 1 xs leaf"),
        ((times, [1], 0), ValueError, "xs leaves must be a Tensor"),
        ((times, torch.ones(3), 3), IndexError, "Dimension out of range"),
        ((lambda a, b: a, [torch.ones(3), torch.ones(2)], 0), ValueError, "differ in length along dimension 0"),
        ((lambda a, b: (a, b), torch.ones(3), 0), RuntimeError, "must return a tree of tensors like its arguments"),
        ((lambda a, b: a.sum(), torch.ones(3), 0), RuntimeError, "expected shapes .*, got"),
    ],
)
def test_errors(arguments, error, message):
    with pytest.raises(error, match=message):
        associative_scan(*arguments)
