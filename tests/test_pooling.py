"""Pooling: indices, formats, gradients of any order, unpooling, and sizes at the limits. Values are in `test_nn` and the table."""

import pytest


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("channels_last", [False, True])
def test_indices_point_at_the_maxima(torch, device, dims, channels_last):
    F = torch.nn.functional
    x = torch.randn(2, 3, *(7, 6, 5)[:dims], device=device)
    if channels_last:
        if dims != 2:
            return
        x = x.contiguous(memory_format=torch.channels_last)
    pool = getattr(F, f"max_pool{dims}d")
    y, places = pool(x, 3, 2, 1, return_indices=True)
    picked = x.flatten(2).gather(2, places.flatten(2)).reshape(y.shape)
    assert torch.equal(picked, y) and torch.equal(pool(x, 3, 2, 1), y)
    if channels_last:
        assert y.is_contiguous(memory_format=torch.channels_last)
    y, places = getattr(F, f"adaptive_max_pool{dims}d")(x, (4, 3, 2)[:dims], return_indices=True)
    assert torch.equal(x.flatten(2).gather(2, places.flatten(2)).reshape(y.shape), y)


def test_nan_wins_and_the_first_of_equals(torch, device):
    F = torch.nn.functional
    x = torch.tensor([[[1.0, float("nan"), 3.0, 2.0, 2.0, 1.0]]], device=device)
    y, places = F.max_pool1d(x, 2, return_indices=True)
    assert str(y.tolist()) == "[[[nan, 3.0, 2.0]]]" and places.tolist() == [[[1, 2, 4]]]
    lowest = torch.full((1, 1, 4), -float("inf"), device=device)
    assert F.max_pool1d(lowest, 2, padding=1, return_indices=True)[1].tolist() == [[[0, 1, 3]]]


@pytest.mark.parametrize("call", [
    lambda F, x: F.max_pool2d(x, 3, 2, 1),
    lambda F, x: F.max_pool2d(x, (2, 3), 1, dilation=2),
    lambda F, x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    lambda F, x: F.avg_pool2d(x, (2, 3), ceil_mode=True, divisor_override=5),
    lambda F, x: F.adaptive_avg_pool2d(x, (3, 4)),
    lambda F, x: F.adaptive_max_pool2d(x, (3, 4)),
    lambda F, x: F.lp_pool2d(x.exp(), 3.0, 2),
])  # fmt: skip
def test_gradients_of_both_orders_in_both_formats(torch, call):
    F = torch.nn.functional
    x = torch.randn(1, 2, 7, 6, dtype=torch.float64)
    for form in (torch.contiguous_format, torch.channels_last):
        leaf = x.contiguous(memory_format=form).requires_grad_()
        assert torch.autograd.gradcheck(lambda x: call(F, x), (leaf,))
        assert torch.autograd.gradgradcheck(lambda x: call(F, x) ** 2, (leaf,))


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_unpooling_puts_maxima_back(torch, device, dims):
    nn = torch.nn
    x = torch.randn(2, 3, *(4, 6, 4)[:dims], device=device)
    y, places = getattr(nn, f"MaxPool{dims}d")(2, return_indices=True)(x)
    back = getattr(nn, f"MaxUnpool{dims}d")(2)(y, places)
    assert back.shape == x.shape
    assert torch.equal(back[back != 0], x[back != 0]) and (back != 0).sum().item() == y.numel()
    wider = getattr(nn, f"MaxUnpool{dims}d")(2)(y, places, output_size=[n + 1 for n in x.shape[2:]])
    assert wider.shape[2:] == tuple(n + 1 for n in x.shape[2:])
    with pytest.raises(ValueError, match="invalid output_size"):
        getattr(nn, f"MaxUnpool{dims}d")(2)(y, places, output_size=[n + 9 for n in x.shape[2:]])


def test_places_outside_the_output_are_refused(torch):
    F = torch.nn.functional
    x, places = torch.ones(1, 1, 2, 2), torch.tensor([[[[0, 1], [2, 99]]]])
    with pytest.raises(RuntimeError, match=r"Found an invalid max index: 99 \(output volumes are of size 4x4\)"):
        F.max_unpool2d(x, places, 2)
    with pytest.raises(RuntimeError, match="should be type int64"):
        F.max_unpool2d(x, places.int(), 2)


def test_fractional_windows(torch, device):
    nn = torch.nn
    x = torch.randn(2, 3, 9, 7, device=device, requires_grad=True)
    y, places = nn.FractionalMaxPool2d(2, output_ratio=(0.5, 0.6), return_indices=True)(x)
    assert y.shape == (2, 3, 4, 4) and torch.equal(x.flatten(2).gather(2, places.flatten(2)).reshape(y.shape), y)
    y.sum().backward()
    assert x.grad.sum().item() == y.numel()
    torch.manual_seed(1)
    first = nn.functional.fractional_max_pool2d(x, 2, output_size=3)
    torch.manual_seed(1)
    assert torch.equal(first, nn.functional.fractional_max_pool2d(x, 2, output_size=3))
    assert nn.FractionalMaxPool3d(2, output_size=2)(torch.randn(1, 4, 5, 6, device=device)).shape == (1, 2, 2, 2)
    with pytest.raises(ValueError, match="requires specifying either"):
        nn.FractionalMaxPool2d(2)
    with pytest.raises(ValueError, match="only one of output_size and output_ratio"):
        nn.FractionalMaxPool2d(2, output_size=2, output_ratio=0.5)
    with pytest.raises(RuntimeError, match="too large relative to input"):
        nn.functional.fractional_max_pool2d(x, 2, output_size=9)


def test_global_pooling_is_a_mean(torch, device):
    x = torch.randn(2, 3, 4, 5, device=device, requires_grad=True)
    y = torch.nn.AdaptiveAvgPool2d((1, 1))(x)
    assert y.grad_fn.name() == "MeanBackward1"
    assert (y.flatten(1) - x.mean((2, 3))).abs().max().item() < 1e-6
    assert torch.nn.AdaptiveAvgPool2d((None, 2))(x).shape == (2, 3, 4, 2)
    with pytest.raises(ValueError, match="Input dimension should be at least 3"):
        torch.nn.functional.adaptive_avg_pool2d(x[0, 0], (None, 2))


@pytest.mark.parametrize("huge", [2**30, 2**31 - 1, 2**31, 2**62])
def test_huge_windows_and_steps(torch, huge):
    """A window, step, padding or dilation of any size gives a result or an error, at once."""
    F = torch.nn.functional
    x = torch.randn(1, 1, 2, 3, requires_grad=True)
    for kernel, stride, padding, dilation in [
        (huge, 1, 0, 1), (huge, 1, huge // 2, 1), (huge, huge, huge // 2, 1), (2, huge, 0, 1), (2, huge, 1, 1),
        (2, 1, huge, 1), (2, 1, 0, huge), (2, 1, 1, huge), (huge, 1, huge // 2, huge),
    ]:  # fmt: skip
        for pool, arguments in [
            (F.max_pool2d, (kernel, stride, padding, dilation)),
            (F.max_pool2d, (kernel, stride, padding, dilation, True)),
            (F.avg_pool2d, (kernel, stride, padding)),
            (F.avg_pool2d, (kernel, stride, padding, True, False)),
        ]:
            try:
                pool(x, *arguments).sum().backward()
            except RuntimeError:
                continue
            assert x.grad.shape == x.shape
    with pytest.raises(RuntimeError):
        F.adaptive_avg_pool2d(x, huge)


def test_empty_batches(torch, device):
    F = torch.nn.functional
    x = torch.zeros(0, 3, 4, 4, device=device, requires_grad=True)
    for call in (F.max_pool2d, F.avg_pool2d, F.adaptive_avg_pool2d, F.adaptive_max_pool2d):
        y = call(x, 2)
        assert y.shape == (0, 3, 2, 2)
        y.sum().backward()
        assert x.grad.shape == x.shape
    assert F.adaptive_avg_pool2d(torch.ones(1, 2, 3, 3, device=device), 0).shape == (1, 2, 0, 0)
