"""Interpolation, sampling, shuffling, folding and padding of images: modules, memory formats, pixels, deprecated names."""

import pickle

import numpy as np
import pytest

PADS = {
    "ReflectionPad": (2, "reflect", (2, 1, 1, 0, 0, 1)),
    "ReplicationPad": (2, "replicate", (3, 1, 1, 0, 0, 2)),
    "CircularPad": (2, "circular", (2, 1, 1, 0, 0, 1)),
    "ZeroPad": (2, "constant", (2, -1, 1, 0, 0, 2)),
}


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("name", PADS)
def test_modules_of_padding(torch, name, dims):
    one, mode, pairs = PADS[name]
    module = getattr(torch.nn, f"{name}{dims}d")
    x = torch.arange(2.0 * 3 * 4**dims).reshape(2, 3, *[4] * dims)
    for given, meant in ((one, (one,) * (2 * dims)), (list(pairs[: 2 * dims]), pairs[: 2 * dims])):
        layer = module(given)
        assert layer.padding == meant and repr(layer) == f"{name}{dims}d({meant})"
        want = np.pad if mode == "constant" else None
        got = layer(x)
        assert torch.equal(got, torch.nn.functional.pad(x, meant, mode))
        assert got.shape == (2, 3, *(4 + meant[2 * i] + meant[2 * i + 1] for i in reversed(range(dims))))
        if want and min(meant) >= 0:
            widths = [(0, 0), (0, 0), *((meant[2 * i], meant[2 * i + 1]) for i in reversed(range(dims)))]
            assert (got.numpy() == np.pad(x.numpy(), widths)).all()


def test_constant_and_circular_padding(torch):
    layer = torch.nn.ConstantPad2d((1, 0, 2, 0), 3.5)
    assert repr(layer) == "ConstantPad2d(padding=(1, 0, 2, 0), value=3.5)"
    assert layer(torch.zeros(1, 1)).tolist() == [[3.5, 3.5], [3.5, 3.5], [3.5, 0]]
    with pytest.raises(ValueError, match="expected 3D or 4D input"):
        torch.nn.CircularPad2d(1)(torch.zeros(2, 2))


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_convolutions_pad_by_their_mode(torch, mode):
    conv = torch.nn.Conv2d(2, 3, 3, padding=(1, 2), padding_mode=mode)
    x = torch.rand(1, 2, 5, 6)
    padded = torch.nn.functional.pad(x, (2, 2, 1, 1), mode)
    assert torch.allclose(conv(x), torch.nn.functional.conv2d(padded, conv.weight, conv.bias))


def test_modules_of_shuffling_and_folding(torch):
    nn = torch.nn
    x = torch.rand(2, 8, 4, 6)
    assert torch.equal(nn.PixelUnshuffle(2)(nn.PixelShuffle(2)(x)), x)
    assert torch.equal(nn.ChannelShuffle(2)(nn.ChannelShuffle(4)(x)), x)
    unfold, fold = nn.Unfold((2, 3), stride=(2, 3)), nn.Fold((4, 6), (2, 3), stride=(2, 3))
    assert torch.equal(fold(unfold(x)), x)
    assert [repr(m) for m in (nn.PixelShuffle(2), nn.PixelUnshuffle(3), nn.ChannelShuffle(4), unfold, fold)] == [
        "PixelShuffle(upscale_factor=2)",
        "PixelUnshuffle(downscale_factor=3)",
        "ChannelShuffle(groups=4)",
        "Unfold(kernel_size=(2, 3), dilation=1, padding=0, stride=(2, 3))",
        "Fold(output_size=(4, 6), kernel_size=(2, 3), dilation=1, padding=0, stride=(2, 3))",
    ]


def test_folding_counts_the_windows(torch):
    """`fold` of the windows of ones counts how many windows read each element."""
    ones = torch.ones(1, 1, 4, 5, dtype=torch.float64)
    settings = {"kernel_size": (2, 3), "dilation": (1, 2), "padding": (1, 0), "stride": (2, 1)}
    columns = torch.nn.functional.unfold(ones, **settings)
    counts = torch.nn.functional.fold(columns, (4, 5), **settings)
    assert columns.shape == (1, 6, 3)
    want = np.zeros((4, 5))
    for row in range(-1, 4, 2):
        for i in range(2):
            for j in range(0, 6, 2):
                if 0 <= row + i < 4:
                    want[row + i, j] += 1
    assert (counts[0, 0].numpy() == want).all()


def test_upsampling_modules(torch):
    nn = torch.nn
    x = torch.rand(1, 2, 3, 4)
    up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
    assert repr(up) == "Upsample(scale_factor=2.0, mode='bilinear')"
    assert repr(nn.UpsamplingNearest2d(size=5)) == "UpsamplingNearest2d(size=5, mode='nearest')"
    assert torch.equal(pickle.loads(pickle.dumps(up))(x), up(x))
    assert torch.equal(up(x), nn.UpsamplingBilinear2d(size=(6, 8))(x))
    nearest = nn.UpsamplingNearest2d(scale_factor=(2, 3))(x)
    assert (nearest.numpy() == x.numpy().repeat(2, 2).repeat(3, 3)).all()


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic", "area"])
def test_interpolation_keeps_the_memory_format(torch, mode):
    x = torch.rand(2, 5, 7, 6, dtype=torch.float64)
    last = x.contiguous(memory_format=torch.channels_last)
    y, z = (torch.nn.functional.interpolate(t, (4, 9), mode=mode) for t in (x, last))
    assert y.is_contiguous() and z.is_contiguous(memory_format=torch.channels_last)
    assert torch.allclose(y, z, rtol=1e-14)
    strided = torch.nn.functional.interpolate(x.transpose(2, 3), (9, 4), mode=mode)
    assert torch.allclose(strided.transpose(2, 3), y, rtol=1e-14)


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_pixels_are_within_rounding_of_floats(torch, mode, antialias):
    """Each of two passes rounds to a whole number (within 0 to 255), so that results differ from those of floats by little."""
    torch.manual_seed(3)
    x = torch.randint(90, 160, (2, 3, 17, 23), dtype=torch.uint8)
    settings = {"mode": mode, "antialias": antialias}
    pixels = torch.nn.functional.interpolate(x, (11, 31), **settings)
    floats = torch.nn.functional.interpolate(x.double(), (11, 31), **settings).clamp(0, 255)
    assert pixels.dtype == torch.uint8
    assert (pixels.double() - floats).abs().max() < 1.5


def test_large_interpolations_agree_with_their_parts(torch):
    """Blocks of rows, threads and vector lanes leave no seams: a product of matrices is the oracle."""
    torch.manual_seed(4)
    x = torch.rand(2, 3, 150, 210, dtype=torch.float64)
    for mode in ("bilinear", "bicubic"):
        one = {
            n: torch.nn.functional.interpolate(torch.eye(n, dtype=torch.float64)[None, None], (m, n), mode=mode)[0, 0]
            for n, m in ((150, 333), (210, 97))
        }
        got = torch.nn.functional.interpolate(x, (333, 97), mode=mode)
        assert torch.allclose(got, one[150] @ x @ one[210].t(), rtol=1e-12)


def test_deprecated_names_of_interpolation(torch):
    F = torch.nn.functional
    x = torch.rand(1, 1, 3, 3)
    with pytest.warns(UserWarning, match="upsample_bilinear` is deprecated"):
        y = F.upsample_bilinear(x, 5)
    assert torch.equal(y, F.interpolate(x, 5, mode="bilinear", align_corners=True))
    with pytest.warns(UserWarning, match="upsample` is deprecated"):
        assert torch.equal(F.upsample(x, scale_factor=2), F.interpolate(x, scale_factor=2))
    with pytest.warns(UserWarning, match="upsample_nearest` is deprecated"):
        assert torch.equal(F.upsample_nearest(x, 2), F.interpolate(x, 2))


def test_sampling_on_the_identity_grid(torch):
    F = torch.nn.functional
    x = torch.rand(2, 3, 5, 7, dtype=torch.float64)
    theta = torch.eye(2, 3, dtype=torch.float64).expand(2, 2, 3)
    for align in (False, True):
        grid = F.affine_grid(theta, x.shape, align_corners=align)
        for mode in ("bilinear", "bicubic", "nearest"):
            y = F.grid_sample(x, grid, mode=mode, padding_mode="border", align_corners=align)
            assert torch.allclose(y, x, atol=1e-12)
    with pytest.warns(UserWarning, match="align_corners=False since 1.3.0"):
        F.grid_sample(x, grid)


def test_sampling_agrees_with_interpolation(torch):
    """A regular grid with aligned corners reads where bilinear interpolation does."""
    F = torch.nn.functional
    x = torch.rand(1, 2, 6, 5, dtype=torch.float64, requires_grad=True)
    grid = F.affine_grid(torch.eye(2, 3, dtype=torch.float64)[None], (1, 2, 9, 11), align_corners=True)
    y, z = F.grid_sample(x, grid, align_corners=True), F.interpolate(x, (9, 11), mode="bilinear", align_corners=True)
    assert torch.allclose(y, z, atol=1e-12)
    g = torch.rand_like(y)
    a, b = (torch.autograd.grad(t, x, g)[0] for t in (y, z))
    assert torch.allclose(a, b, atol=1e-12)


def test_images_with_one_channel_expanded_are_row_major(torch):
    x = torch.arange(40.0).reshape(2, 1, 4, 5).expand(2, 3, 4, 5)
    f = torch.nn.functional
    results = (x.roll(1, 2), f.pad(x, (1, 1)), torch.cat([x, x]), f.max_pool2d(x, 2), f.interpolate(x, scale_factor=2))
    assert all(y.is_contiguous() for y in (*results, f.batch_norm(x, torch.zeros(3), torch.ones(3))))
