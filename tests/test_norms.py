"""Batch, group and instance normalisation: running statistics, modes, formats, graphs. Values are in `test_nn` and the table."""

import math

import pytest


def close(got, want, tol=1e-5):
    assert got.shape == want.shape and (got - want).abs().max().item() <= tol


def test_running_statistics_follow_the_batches(torch, device):
    norm = torch.nn.BatchNorm1d(2, momentum=0.25).to(device)
    x = torch.tensor([[1.0, 2.0], [3.0, 6.0], [5.0, 4.0]], device=device)
    norm(x)
    close(norm.running_mean, torch.tensor([0.75, 1.0], device=device))
    # The unbiased variance of a batch is 4.
    close(norm.running_var, torch.tensor([1.75, 1.75], device=device))
    assert norm.num_batches_tracked.item() == 1
    norm.eval()
    before = norm.running_mean.clone()
    close(norm(x), (x - norm.running_mean) / (norm.running_var + 1e-5).sqrt())
    assert torch.equal(norm.running_mean, before) and norm.num_batches_tracked.item() == 1


def test_without_momentum_the_statistics_are_averages(torch):
    norm = torch.nn.BatchNorm1d(1, momentum=None)
    for batch in ([0.0, 2.0], [4.0, 6.0], [8.0, 10.0]):
        norm(torch.tensor(batch).reshape(2, 1))
    assert norm.running_mean.item() == pytest.approx(5.0) and norm.running_var.item() == pytest.approx(2.0)


def test_one_value_has_no_unbiased_variance(torch):
    mean, var = torch.zeros(2), torch.ones(2)
    y = torch.batch_norm(torch.ones(1, 2), None, None, mean, var, True, 0.1, 1e-5, False)
    assert y.tolist() == [[0, 0]] and all(map(math.isnan, var.tolist()))
    with pytest.raises(ValueError, match="Expected more than 1 value per channel when training"):
        torch.nn.BatchNorm1d(2)(torch.ones(1, 2))
    with pytest.raises(ValueError, match="Expected more than 1 spatial element"):
        torch.nn.functional.instance_norm(torch.ones(2, 3, 1))


def test_a_second_forward_leaves_the_graph_valid(torch, device):
    """The running statistics change in place, as in PyTorch without a new version, since training does not read them."""
    norm = torch.nn.BatchNorm2d(2).to(device)
    x = torch.randn(3, 2, 4, 4, device=device, requires_grad=True)
    first, second = norm(x), norm(x)
    (first + second).sum().backward()
    assert x.grad.abs().max().item() < 1e-4
    norm.eval()
    (norm(x).sum() + norm(x * 2).sum()).backward()


@pytest.mark.parametrize("groups", [None, 1, 2, 6])
def test_channels_last_is_kept(torch, device, groups):
    x = torch.randn(2, 6, 5, 3, device=device)
    norm = torch.nn.BatchNorm2d(6) if groups is None else torch.nn.GroupNorm(groups, 6)
    norm = norm.to(device)
    last = x.clone().contiguous(memory_format=torch.channels_last).requires_grad_()
    plain = x.clone().requires_grad_()
    y, z = norm(last), norm(plain)
    assert y.is_contiguous(memory_format=torch.channels_last) and z.is_contiguous()
    close(y, z)
    weights = torch.randn(2, 6, 5, 3, device=device)
    (y * weights).sum().backward()
    (z * weights).sum().backward()
    close(last.grad, plain.grad)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_half_precision_computes_in_float32(torch, name):
    dtype = getattr(torch, name)
    x = (torch.randn(64, 3, 8) * 0.01 + 100).to(dtype)
    y = torch.nn.functional.batch_norm(x, None, None, training=True)
    want = torch.nn.functional.batch_norm(x.double(), None, None, training=True)
    assert y.dtype == dtype
    close(y.double(), want, 0.05)
    mixed = torch.nn.BatchNorm1d(3)
    assert mixed(x).dtype == dtype and mixed.running_mean.dtype == torch.float32
    with pytest.raises(RuntimeError, match="expect parameter to have scalar type of Float"):
        torch.nn.BatchNorm1d(3).double()(x)


def test_variance_does_not_cancel(torch, device):
    """The mean is a million deviations away."""
    x = torch.randn(1000, 2, dtype=torch.float64)
    y = torch.nn.functional.batch_norm((x * 0.5 + 4096).float().to(device), None, None, training=True)
    exact = (x * 0.5 + 4096).float().double()
    want = (exact - exact.mean(0)) / (exact.var(0, correction=0) + 1e-5).sqrt()
    close(y.cpu().double(), want, 1e-3)


def test_gradients_of_second_order(torch):
    for norm in (
        torch.nn.BatchNorm1d(4),
        torch.nn.BatchNorm1d(4).eval(),
        torch.nn.GroupNorm(2, 4),
        torch.nn.RMSNorm(3),
    ):
        norm = norm.double()
        x = torch.randn(3, 4, 3, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(norm, (x,)) and torch.autograd.gradgradcheck(norm, (x,))


def test_statistics_of_groups_pass_gradients(torch):
    x = torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: torch.native_group_norm(x, None, None, 2, 4, 3, 2, 1e-5), (x,))


def test_synchronised_batch_norm_is_batch_norm(torch):
    net = torch.nn.Sequential(
        torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3), torch.nn.Sequential(torch.nn.BatchNorm1d(3))
    )
    converted = torch.nn.SyncBatchNorm.convert_sync_batchnorm(net)
    assert [type(m).__name__ for m in converted.modules()].count("SyncBatchNorm") == 2
    x = torch.randn(5, 2)
    assert torch.equal(converted.eval()(x), net.eval()(x))


def test_checkpoints_without_a_count_of_batches_load(torch):
    norm = torch.nn.BatchNorm1d(2)
    state = norm.state_dict()
    del state["num_batches_tracked"]
    state._metadata[""]["version"] = 1
    norm.load_state_dict(state)
    assert norm.num_batches_tracked.item() == 0
    plain = torch.nn.InstanceNorm1d(2)
    assert plain.state_dict() == {} and "momentum=0.1, affine=False" in repr(plain)


def test_inputs_of_other_ranks_are_refused(torch):
    nn = torch.nn
    for module, shape, message in [
        (nn.BatchNorm1d(2), (2,), r"expected 2D or 3D input \(got 1D input\)"),
        (nn.BatchNorm2d(2), (2, 2), r"expected 4D input \(got 2D input\)"),
        (nn.BatchNorm3d(2), (2, 2), r"expected 5D input \(got 2D input\)"),
        (nn.InstanceNorm2d(2), (2, 2), r"expected 3D or 4D input \(got 2D input\)"),
        (nn.InstanceNorm1d(3, affine=True), (2, 2, 4), "to match num_features"),
        (nn.CrossMapLRN2d(2), (2, 2), "Expected input to be 4D"),
        (nn.LocalResponseNorm(2), (2, 2), "Expected 3D or higher"),
    ]:
        with pytest.raises(ValueError, match=message):
            module(torch.ones(shape))
    with pytest.raises(ValueError, match="must be divisible by num_groups"):
        nn.GroupNorm(2, 3)
    with pytest.warns(UserWarning, match="does not match num_features"):
        nn.InstanceNorm1d(5)(torch.randn(2, 3, 4))


@pytest.mark.parametrize("shape", [(64, 3), (4, 3, 1000), (1, 1, 7), (2, 3, 0), (0, 3, 2)])
def test_shapes_at_the_edges(torch, device, shape):
    x = torch.randn(shape, device=device)
    if x.numel() == 0:
        assert (
            torch.nn.functional.batch_norm(x, torch.zeros(3, device=device), torch.ones(3, device=device)).shape
            == shape
        )
        return
    y = torch.batch_norm(x, None, None, None, None, True, 0.1, 1e-5, False)
    dims = [d for d in range(x.dim()) if d != 1]
    assert y.mean(dims).abs().max().item() < 1e-5


@pytest.mark.parametrize("kind", ["BatchNorm", "InstanceNorm"])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_lazy_norms_take_the_channels_of_the_first_input(torch, kind, dims):
    lazy = getattr(torch.nn, f"Lazy{kind}{dims}d")(eps=0.1, momentum=0.3, dtype=torch.float64)
    assert lazy.has_uninitialized_params() and lazy.num_features == 0
    x = torch.randn(3, 2, *(4, 5, 3)[:dims], dtype=torch.float64)
    y = lazy(x)
    usual = getattr(torch.nn, f"{kind}{dims}d")(2, 0.1, 0.3, True, True, dtype=torch.float64)
    assert type(lazy) is type(usual) and repr(lazy) == repr(usual)
    assert torch.equal(usual(x), y) and torch.equal(usual.running_var, lazy.running_var)
    assert list(lazy.state_dict()) == list(usual.state_dict())
    with pytest.raises(ValueError, match="expected"):
        getattr(torch.nn, f"Lazy{kind}{dims}d")()(torch.ones(1, 1, 1, 1, 1, 1))


def test_normalisation_across_channels(torch):
    """Where no channel has left the window, `CrossMapLRN2d` is `LocalResponseNorm`; later, the first one still counts."""
    nn = torch.nn
    x = torch.randn(2, 3, 2, 2, dtype=torch.float64, requires_grad=True)
    cross = nn.CrossMapLRN2d(5, 0.5, 0.6, 2.0)
    close(cross(x), nn.LocalResponseNorm(5, 0.5, 0.6, 2.0)(x), 1e-12)
    assert torch.autograd.gradcheck(cross, (x,))
    ones = torch.ones(1, 4, 1, 1)
    sums = nn.CrossMapLRN2d(3, 3.0, -1.0, 0.0)(ones).flatten()
    assert sums.tolist() == [2, 3, 4, 3]


@pytest.mark.parametrize(
    "shape,strides,want",
    [
        ((1, 2, 3, 1), (6, 1, 2, 1), (6, 1, 2, 2)),
        ((2, 3, 1, 1), (3, 1, 3, 3), (3, 1, 1, 1)),
        ((2, 1, 3, 3), (9, 1, 3, 1), (9, 9, 3, 1)),
        ((2, 2, 1, 3), (6, 1, 100, 2), (6, 1, 6, 2)),
        ((2, 2, 2, 3), (12, 1, 6, 2), (12, 1, 6, 2)),
        ((2, 2, 2, 3), (24, 2, 12, 4), (12, 1, 6, 2)),
    ],
)
def test_format_of_batch_norm_where_strides_are_ambiguous(torch, shape, strides, want):
    x = torch.arange(200.0).as_strided(shape, strides).requires_grad_()
    for norm in (torch.nn.BatchNorm2d(shape[1]), torch.nn.BatchNorm2d(shape[1]).eval()):
        y = norm(x)
        assert y.stride() == want
        dense = x.detach().contiguous(memory_format=torch.contiguous_format).clone().requires_grad_()
        close(y, norm(dense))
        for input in (x, dense):
            norm(input).square().sum().backward()
        close(x.grad, dense.grad, 1e-4)
        x.grad = None


def test_gradients_with_channels_last_are_as_accurate(torch):
    torch.manual_seed(1)
    x, g = torch.randn(4, 8, 20, 20), torch.randn(4, 8, 20, 20)
    exact = torch.nn.BatchNorm2d(8).double()
    exact(x.double()).backward(g.double())
    last = torch.nn.BatchNorm2d(8)
    last(x.contiguous(memory_format=torch.channels_last)).backward(g.contiguous(memory_format=torch.channels_last))
    close(last.weight.grad.double(), exact.weight.grad, 2e-5)
    close(last.bias.grad.double(), exact.bias.grad, 2e-5)


def test_batch_norm_update_stats_moves_the_running_statistics(torch):
    """The figures are PyTorch's."""
    x, mean, var = torch.arange(12.0).reshape(2, 3, 2), torch.zeros(3), torch.ones(3)
    of_batch = torch.batch_norm_update_stats(x, mean, var, 0.1)
    torch.testing.assert_close(of_batch[0], torch.tensor([3.5, 5.5, 7.5]))
    torch.testing.assert_close(of_batch[1], torch.full((3,), 9.25))
    torch.testing.assert_close(mean, torch.tensor([0.35, 0.55, 0.75]))
    torch.testing.assert_close(var, torch.full((3,), 0.9 + 0.1 * 9.25 * 4 / 3))


@pytest.mark.parametrize("dims", [2, 3])
def test_root_mean_square_norm_keeps_channels_last(torch, dims):
    last = torch.channels_last if dims == 2 else torch.channels_last_3d
    x = torch.randn(2, 4, *(3,) * dims)
    weight = torch.rand(3)
    y = torch.nn.functional.rms_norm(x.contiguous(memory_format=last), (3,), weight)
    assert y.is_contiguous(memory_format=last)
    close(y, torch.nn.functional.rms_norm(x, (3,), weight))
