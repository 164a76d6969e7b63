"""`_foreach_*`: each equals a loop over its op, out of place and in place."""

import pytest

UNARY = "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round rsqrt".split()
UNARY += "sigmoid sign sin sinh sqrt tan tanh trunc".split()
BINARY = {"maximum": "clamp_min", "minimum": "clamp_max"} | {
    n: n for n in "add sub mul div pow clamp_min clamp_max".split()
}


def lists(torch, dtype=None):
    torch.manual_seed(0)
    return [torch.rand(shape, dtype=dtype) * 0.8 + 0.1 for shape in ((2, 3), (4,), ())]


def same(found, expected):
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape and a.equal(b)


@pytest.mark.parametrize("name", UNARY)
def test_of_one_list(torch, name):
    xs = lists(torch)
    expected = [getattr(x, name)() for x in xs]
    found = getattr(torch, f"_foreach_{name}")(xs)
    assert type(found) is tuple
    same(found, expected)
    changed = getattr(torch, f"_foreach_{name}_")(xs)
    assert changed[0] is xs[0]
    same(xs, expected)


@pytest.mark.parametrize("name", BINARY)
def test_of_a_list_and_operands(torch, name):
    xs, ys = lists(torch), lists(torch)[::-1]
    ys = [y.reshape(-1)[0] for y in ys]
    for others in (2.0, [1.0, 2.0, 3.0], ys, torch.tensor(2.0)):
        each = others if isinstance(others, list) else [others] * 3
        expected = [getattr(x, BINARY[name])(y) for x, y in zip(xs, each, strict=True)]
        same(getattr(torch, f"_foreach_{name}")(xs, others), expected)
        copies = [x.clone() for x in xs]
        getattr(torch, f"_foreach_{name}_")(tuple(copies), others)
        same(copies, expected)


def test_options(torch):
    xs, ys = lists(torch), [x * 2 for x in lists(torch)]
    pairs = list(zip(xs, ys, strict=True))
    same(torch._foreach_add(xs, ys, alpha=3), [x.add(y, alpha=3) for x, y in pairs])
    same(torch._foreach_sub(xs, ys, alpha=3), [x.sub(y, alpha=3) for x, y in pairs])
    for values in (2.0, [1.0, 2.0, 3.0], torch.tensor([1.0, 2.0, 3.0])):
        each = [2.0] * 3 if isinstance(values, float) else list(map(float, values))
        for name in ("addcmul", "addcdiv"):
            expected = [getattr(x, name)(y, y, value=v) for (x, y), v in zip(pairs, each, strict=True)]
            same(getattr(torch, f"_foreach_{name}")(xs, ys, ys, values), expected)
            copies = [x.clone() for x in xs]
            getattr(torch, f"_foreach_{name}_")(copies, ys, ys, values)
            same(copies, expected)
    same(torch._foreach_lerp(xs, ys, 0.25), [x.lerp(y, 0.25) for x, y in pairs])
    same(torch._foreach_lerp(xs, ys, ys), [x.lerp(y, y) for x, y in pairs])
    same(torch._foreach_pow(2.0, xs), [2.0**x for x in xs])
    same(torch._foreach_norm(xs, 1), [x.abs().sum() for x in xs])
    assert torch._foreach_norm(xs, dtype=torch.float64)[0].dtype == torch.float64
    same(torch._foreach_max(xs), [x.max() for x in xs])
    torch._foreach_copy_(ys, xs, non_blocking=True)
    same(ys, xs)
    same(torch._foreach_zero_(ys), [torch.zeros_like(x) for x in xs])
    same(torch._foreach_clone(xs), xs)


def test_those_in_place_return_what_they_were_given(torch):
    for given in (lists(torch), tuple(lists(torch))):
        ones = [torch.ones_like(t) for t in given]
        assert torch._foreach_sqrt_(given) is given and torch._foreach_add_(given, 1) is given
        assert torch._foreach_addcmul_(given, ones, ones, 2) is given
        assert torch._foreach_zero_(given) is given and torch._foreach_copy_(given, ones) is given
        same(given, ones)


def test_numbers_in_a_tensor_are_one_for_each_tensor(torch):
    xs = lists(torch)
    with pytest.raises(RuntimeError, match="packed scalar Tensor to be of dimension 1. Got 0 instead"):
        torch._foreach_addcmul(xs, xs, xs, torch.tensor(2.0))
    with pytest.raises(RuntimeError, match="length of scalars to match input of length 3 but got 2"):
        torch._foreach_addcdiv_(xs, xs, xs, torch.tensor([2.0, 3.0]))


def test_averages_of_weights(torch):
    """As averages of weights and optimizers of programs use them."""
    model, average = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    before = [p.detach().clone() for p in average.parameters()]
    with torch.no_grad():
        torch._foreach_mul_(list(average.parameters()), 0.9)
        torch._foreach_add_(list(average.parameters()), list(model.parameters()), alpha=0.1)
    for new, old, p in zip(average.parameters(), before, model.parameters(), strict=True):
        assert torch.allclose(new, 0.9 * old + 0.1 * p)
    with pytest.raises(RuntimeError, match="leaf"):
        torch._foreach_mul_(list(average.parameters()), 0.9)
    xs = [torch.ones(2, requires_grad=True)]
    torch._foreach_exp(torch._foreach_mul(xs, 2.0))[0].sum().backward()
    assert xs[0].grad is not None


def test_refusals(torch):
    xs = lists(torch)
    for bad, message in (([], "at least one tensor"), ([1.0], "same number of elements as scalar list")):
        with pytest.raises(RuntimeError, match=message):
            torch._foreach_add(bad if not bad else xs, 1 if not bad else bad)
    with pytest.raises(RuntimeError, match="same number of tensors, got 3 and 1"):
        torch._foreach_add(xs, xs[:1])
    with pytest.raises(RuntimeError, match="expected to be 0 dim but it has 1 dimensions and 2 elements"):
        torch._foreach_mul(xs, torch.ones(2))
    with pytest.raises(TypeError, match="must be tuple of Tensors, not int"):
        torch._foreach_exp(1)
    with pytest.raises(AttributeError):
        _ = torch._foreach_nothing


def test_the_functions_of_gradient_scalers(torch):
    grads, found, scale = [torch.tensor([2.0, 4.0]), torch.tensor([6.0])], torch.zeros(1), torch.tensor([8.0])
    torch._amp_foreach_non_finite_check_and_unscale_(grads, found, torch.tensor(0.5))
    assert grads[0].tolist() == [1, 2] and grads[1].tolist() == [3] and found.item() == 0
    tracker = torch.zeros(1, dtype=torch.int32)
    for expected in ((8, 1), (16, 0)):
        torch._amp_update_scale_(scale, tracker, found, 2.0, 0.5, 2)
        assert (scale.item(), tracker.item()) == expected
    grads[1][0] = float("inf")
    torch._amp_foreach_non_finite_check_and_unscale_(grads, found, torch.tensor(0.5))
    assert found.item() == 1
    torch._amp_update_scale_(scale, tracker, found, 2.0, 0.5, 2)
    assert (scale.item(), tracker.item()) == (8, 0)


def test_values(torch):
    def made():
        return [torch.tensor([0.25, 0.5]), torch.tensor([0.75])]

    def values(tensors):
        return [t.tolist() for t in tensors]

    results = {
        "add": torch._foreach_add(made(), made(), alpha=2),
        "mul": torch._foreach_mul(made(), [2.0, 4.0]),
        "div": torch._foreach_div(made(), torch.tensor(0.5)),
        "sub": torch._foreach_sub(made(), 0.25),
        "maximum": torch._foreach_maximum(made(), 0.5),
        "lerp": torch._foreach_lerp(made(), torch._foreach_neg(made()), [0.5, 1.0]),
        "addcmul": torch._foreach_addcmul(made(), made(), made(), torch.tensor([4.0, 0.0])),
        "pow": torch._foreach_pow(2.0, [torch.tensor([1.0, 2.0])]),
        "norm": torch._foreach_norm([torch.tensor([3.0, 4.0])]),
        "rsqrt": torch._foreach_rsqrt([torch.tensor([4.0])]),
    }
    assert {name: values(r) for name, r in results.items()} == {
        "add": [[0.75, 1.5], [2.25]],
        "mul": [[0.5, 1.0], [3.0]],
        "div": [[0.5, 1.0], [1.5]],
        "sub": [[0.0, 0.25], [0.5]],
        "maximum": [[0.5, 0.5], [0.75]],
        "lerp": [[0.0, 0.0], [-0.75]],
        "addcmul": [[0.5, 1.5], [0.75]],
        "pow": [[2.0, 4.0]],
        "norm": [5.0],
        "rsqrt": [[0.5]],
    }
    tensors = made()
    torch._foreach_mul_(tensors, 2.0)
    torch._foreach_addcdiv_(tensors, made(), made(), -1.0)
    torch._foreach_minimum_(tensors, [0.0, 1.0])
    assert values(tensors) == [[-0.5, 0.0], [0.5]]
    torch._foreach_copy_(tensors, made())
    torch._foreach_zero_(tensors[:1])
    assert values(tensors) == [[0.0, 0.0], [0.75]]
    for wrong, message in (
        (lambda: torch._foreach_add([], 1), "Tensor list must have at least one tensor"),
        (lambda: torch._foreach_add(tensors, tensors[:1]), "must have the same number of tensors, got 2 and 1"),
        (lambda: torch._foreach_mul(tensors, [1.0]), "same number of elements as scalar list"),
        (lambda: torch._foreach_mul(tensors, torch.ones(3)), "expected to be 0 dim but it has 1 dimensions"),
    ):
        with pytest.raises(RuntimeError, match=message):
            wrong()
    with pytest.raises(TypeError):
        torch._foreach_copy_(tensors, 1.0)
    w = torch.ones(1, requires_grad=True)
    torch._foreach_exp([w])[0].backward()
    assert w.grad.item() == pytest.approx(2.718281828)
    assert not hasattr(torch, "_foreach_softmax") and not hasattr(torch, "_foreach_clone_")


def test_arguments_by_keyword(torch):
    """PyTorch's overloads name a list of tensors `other`, a number `scalar`, numbers `scalars`."""
    xs, ys = lists(torch), lists(torch)[:]
    same(torch._foreach_mul(xs, other=ys), [x * y for x, y in zip(xs, ys, strict=True)])
    same(torch._foreach_add(xs, other=ys, alpha=2), [x + 2 * y for x, y in zip(xs, ys, strict=True)])
    same(torch._foreach_div(xs, scalars=[1, 2, 4.0]), [x / d for x, d in zip(xs, (1, 2, 4.0), strict=True)])
    same(torch._foreach_pow(xs, exponent=2), [x**2 for x in xs])
    half = [x.lerp(y, 0.5) for x, y in zip(xs, ys, strict=True)]
    same(torch._foreach_lerp(xs, ys, weight=0.5), half)
    same(torch._foreach_lerp(xs, tensors1=ys, weights=[torch.tensor(0.5)] * 3), half)
    expected = [x * 3 for x in xs]
    assert torch._foreach_mul_(xs, scalar=3) is xs
    same(xs, expected)
    with pytest.raises(TypeError):
        torch._foreach_mul(xs, number=3)


def test_of_zeros_and_copies_that_are_not_in_place(torch):
    xs, ys = lists(torch), [torch.ones(3, dtype=torch.float64), torch.full((4,), 2), torch.tensor(3)]
    before = [x.clone() for x in xs]
    same(torch._foreach_zero(xs), [torch.zeros_like(x) for x in xs])
    same(torch._foreach_copy(xs, ys), [torch.full((2, 3), 1.0), torch.full((4,), 2.0), torch.tensor(3.0)])
    same(xs, before)
