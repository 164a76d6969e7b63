"""Kernels of the GPU device at sizes where they change their form: against the CPU's, elementwise work of several elements an
invocation, rows shared by some invocations or a workgroup, tiles of long lines, rows and channels that are cut into pieces."""

import pytest
from conftest import need
from support import target
from support.devices import both, close

torch = target.torch
F = torch.nn.functional
pytestmark = pytest.mark.skipif(target.STAND_IN, reason="what only rustgrad has")
MANY = (1 << 19) + 13


@pytest.fixture(autouse=True)
def gpu():
    need("gpu")


def agree(f, *tensors, tolerance=1e-5):
    close(both(f, tensors), tolerance)


@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8", "int64", "bool"])
def test_many_elements(dtype):
    x = (torch.arange(2 * MANY) % 251).to(getattr(torch, dtype))
    for part in (slice(0, MANY), slice(1, MANY + 2), slice(3, None, 2)):
        on = x.to("gpu")[part]
        assert torch.equal((on == on[7]).cpu(), x[part] == x[part][7])
        assert torch.equal(on.clone().cpu(), x[part])
        if dtype != "bool":
            assert torch.equal((on * 3).cpu(), x[part] * 3)
    there, here = x.to("gpu"), x.clone()
    for t in (there, here):
        part = t[1 : MANY + 1]  # does not begin with a word
        part.logical_not_() if dtype == "bool" else part.add_(1)
        t[5::2] = t[4:-1:2]
        t[1:] = t[:-1].clone()
    assert torch.equal(there.cpu(), here)
    table = x[: 724 * 724].reshape(724, 724)
    assert torch.equal(table.to("gpu").t().contiguous().cpu(), table.t().contiguous())


@pytest.mark.parametrize("length", [1, 3, 4, 5, 31, 32, 100, 513, 2100])
def test_softmax_of_every_length(length):
    x = torch.randn(37, length)
    x[3, 0], x[5, length // 2] = float("-inf"), float("nan")
    agree(lambda x: x.softmax(1), x)
    agree(lambda x: x.log_softmax(0), torch.randn(length, 37))
    agree(lambda x: x.transpose(0, 1).softmax(-1), torch.randn(length, 5000))


@pytest.mark.parametrize(
    "shape", [(3, 1023), (2, 1025), (5, 33), (1, 9000), (40, 2049), (1300, 40), (700, 3), (600, 1100), (513, 2, 5)]
)
@pytest.mark.parametrize("kind", ["cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"])
def test_scans_of_every_length(shape, kind):
    x = torch.randn(shape)
    x = x * 0.01 + 1 if kind == "cumprod" else x.round() if kind in ("cummax", "cummin") else x
    for dim in range(len(shape)):
        agree(lambda x, dim=dim: getattr(x, kind)(dim), x, tolerance=1e-4 if kind == "cumsum" else 2e-5)


@pytest.mark.parametrize("shape", [(300, 40), (70, 33), (5000, 64), (65, 6, 64), (17000, 3), (3, 17000), (16500, 65)])
def test_folds_of_every_shape(shape):
    x = torch.randn(shape)
    for dim in range(len(shape)):
        agree(lambda x, dim=dim: x.sum(dim), x, tolerance=1e-4)
        agree(lambda x, dim=dim: x.amax(dim), x)
        agree(lambda x, dim=dim: x.max(dim), x)
        agree(lambda x, dim=dim: x.var(dim), x)
        agree(lambda x, dim=dim: x.transpose(0, -1).argmin(dim), x.round())


@pytest.mark.parametrize("shape", [(8, 4, 32, 32), (3, 2, 70, 65), (600, 3, 9), (2, 600, 5), (9000, 2)])
def test_normalisation_in_pieces(shape):
    x = torch.randn(shape) * 3 + 50
    weight, bias = torch.rand(shape[1]) + 0.5, torch.randn(shape[1])
    mean, var = torch.full((shape[1],), 49.0), torch.rand(shape[1]) * 9 + 1
    agree(lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), x, weight, bias, tolerance=2e-4)
    agree(lambda x: F.batch_norm(x, None, None, training=True), x, tolerance=2e-4)
    agree(lambda x, w, b: F.batch_norm(x, mean.to(x.device), var.to(x.device), w, b), x, weight, bias, tolerance=2e-4)
    agree(lambda x, w, b: F.group_norm(x, 1, w, b), x, weight, bias, tolerance=2e-4)
    half = x.half().to("gpu")
    want = F.batch_norm(half.cpu().float(), None, None, training=True)
    assert (F.batch_norm(half, None, None, training=True).cpu().float() - want).abs().max() < 0.01


@pytest.mark.parametrize("length", [1, 2, 63, 64, 65, 200, 256, 257, 1024, 1025, 2049, 5000])
@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8", "float16"])
def test_sorts_of_every_length(length, dtype):
    x = torch.randint(-40 if dtype != "uint8" else 0, 40, (3, length)).to(getattr(torch, dtype))
    if dtype == "float32":
        x[1, length // 2], x[2, 0], x[2, -1] = float("nan"), float("inf"), float("-inf")
    for dim, descending in ((1, False), (1, True), (0, False)):
        agree(lambda x, dim=dim, descending=descending: x.detach().sort(dim=dim, descending=descending, stable=True), x)
    assert torch.equal(
        x.to("gpu").topk(min(7, length)).values.cpu().nan_to_num(), x.topk(min(7, length)).values.nan_to_num()
    )
    agree(lambda x: x.detach().t().contiguous().t().sort(dim=1, stable=True), x)
