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
    for kind, dims in (("avg", 2), ("max", 2), ("avg", 3), ("max", 3)):
        pool = getattr(torch.nn.functional, f"adaptive_{kind}_pool{dims}d")
        for size in ((), (2,), (None,), (1,) * (dims + 1)):
            with pytest.raises(RuntimeError, match=f"output_size must be {dims}"):
                pool(x if dims == 2 else x[None], size)


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


def test_pooled_images_lie_as_in_pytorch(torch, device):
    F = torch.nn.functional
    image = torch.randn(2, 6, 8, 8, device=device).to(memory_format=torch.channels_last)
    volume = torch.randn(2, 6, 4, 8, 8, device=device).to(memory_format=torch.channels_last_3d)
    # One result for each channel keeps channels that are last.
    assert F.adaptive_avg_pool2d(image, 1).stride() == (6, 1, 6, 6)
    assert F.adaptive_avg_pool2d(image.contiguous(), 1).stride() == (6, 1, 1, 1)
    # Means and adaptive maxima of volumes are row-major, so that they can be flattened by a view.
    for y in (F.avg_pool3d(volume, 2), F.adaptive_avg_pool3d(volume, 2), F.adaptive_max_pool3d(volume, 2)):
        assert y.view(2, -1).shape == (2, 6 * y[0, 0].numel())
    assert torch.allclose(F.avg_pool3d(volume, 2), F.avg_pool3d(volume.contiguous(), 2))
    assert torch.equal(F.adaptive_max_pool3d(volume, 2), F.adaptive_max_pool3d(volume.contiguous(), 2))
    one, places = F.max_pool3d(volume[0], 2, return_indices=True)
    assert one.stride() == places.stride() == (1, 96, 24, 6)
    plain = F.max_pool3d(volume[0].contiguous(), 2, return_indices=True)
    assert torch.equal(one, plain[0]) and torch.equal(places, plain[1]) and plain[0].is_contiguous()
    y, places = F.max_pool2d(image, 2, return_indices=True)
    up = F.max_unpool2d(y, places, 2)
    assert up.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(up, F.max_unpool2d(y.contiguous(), places.contiguous(), 2))


@pytest.mark.parametrize("pool", ["max_pool3d", "avg_pool3d", "adaptive_max_pool3d", "adaptive_avg_pool3d"])
@pytest.mark.parametrize("batched", [True, False])
def test_gradients_of_volumes_with_channels_last(torch, device, pool, batched):
    size = 2 if "adaptive" in pool else (2, 3, 2)
    shape = (2, 3, 4, 6, 5) if batched else (3, 4, 6, 5)
    plain = torch.randn(shape, device=device)
    last = plain.clone() if batched else plain.unsqueeze(0).clone()
    last = last.to(memory_format=torch.channels_last_3d)
    last = (last if batched else last.squeeze(0)).detach().requires_grad_()
    plain.requires_grad_()
    results = [getattr(torch.nn.functional, pool)(x, size) for x in (plain, last)]
    seed = torch.randn(results[0].shape, device=device)
    for y in results:
        y.backward(seed)
    assert torch.allclose(*results) and torch.allclose(plain.grad, last.grad)


def test_sizes_of_fractional_and_inverse_pooling(torch):
    nn, F = torch.nn, torch.nn.functional
    assert nn.FractionalMaxPool2d([2, 2], output_size=[0, 1])(torch.rand(2, 3, 8, 8)).shape == (2, 3, 0, 1)
    assert nn.FractionalMaxPool3d([3, 2, 2], output_size=[0, 1, 1])(torch.rand(2, 5, 8, 8)).shape == (2, 0, 1, 1)
    for name, bad in (("kernel_size", (1,)), ("kernel_size", ()), ("output_size", (3,)), ("output_size", ())):
        sizes = {"kernel_size": 2, "output_size": 3, name: bad}
        with pytest.raises(RuntimeError, match=f"{name} must either"):
            F.fractional_max_pool2d(torch.rand(1, 2, 7, 7), **sizes)
    x = torch.ones(1, 3, 1, 1, 1)
    with pytest.raises(RuntimeError, match="kernel_size must be a single int or 3 ints"):
        F.max_unpool3d(x, torch.zeros(x.shape, dtype=int), [1, 1])


def test_circular_padding_is_row_major(torch, device):
    """As in PyTorch, whatever the order of the input's dimensions is."""
    x = torch.randn(2, 3, 4, 4, device=device).contiguous(memory_format=torch.channels_last)
    y = torch.nn.functional.pad(x, (1, 1, 1, 1), mode="circular")
    assert y.is_contiguous() and y.equal(torch.nn.functional.pad(x.contiguous(), (1, 1, 1, 1), mode="circular"))
