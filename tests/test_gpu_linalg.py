"""Factorizations on the GPU device, which work in blocks of columns: against the CPU's, below, at and beyond a block, for
batches, singular and failing matrices."""

import math

import pytest
from conftest import need
from support import target

torch = target.torch
pytestmark = pytest.mark.skipif(target.STAND_IN, reason="what only rustgrad has")


@pytest.fixture(autouse=True)
def gpu():
    need("gpu")


SIZES = [(1,), (2,), (31,), (32,), (33,), (70,), (3, 5), (2, 2, 40)]


def matrices(size):
    """Well-conditioned matrices of order `size[-1]`."""
    n = size[-1]
    return torch.randn(*size, n) + 2 * math.sqrt(n) * torch.eye(n)


def both(f, *tensors):
    """Results and gradients of `f` on the CPU and on the GPU."""
    sides = []
    for device in ("cpu", "gpu"):
        on = [t.to(device).detach().requires_grad_() for t in tensors]
        out = f(*on)
        grads = torch.autograd.grad((out * out.detach().sin()).sum(), on)
        sides.append([t.detach().cpu() for t in (out, *grads)])
    for a, b in zip(*sides, strict=True):
        torch.testing.assert_close(b, a, rtol=1e-3, atol=2e-4 * (1 + a.abs().max().item()))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky(size, upper):
    a = matrices(size)
    both(lambda a: torch.linalg.cholesky(a @ a.mT, upper=upper), a)


@pytest.mark.parametrize("size", SIZES)
def test_solve_and_inverse(size):
    a, b = matrices(size), torch.randn(*size, 3)
    both(torch.linalg.solve, a, b)
    both(lambda a, b: torch.linalg.solve(a, b.mT, left=False), a, b)
    both(torch.linalg.inv, a)
    # Rows must be exchanged.
    both(lambda a, b: torch.linalg.solve(a.flip(-2), b), a, b)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_triangular_systems(size, upper, left):
    a, b = matrices(size), torch.randn(*size, 4)
    for unit in (False, True):

        def solve(a, b, unit=unit):
            b = b if left else b.mT
            return torch.linalg.solve_triangular(a, b, upper=upper, left=left, unitriangular=unit)

        both(solve, a / a.shape[-1] if unit else a, b)


@pytest.mark.parametrize("size", SIZES)
def test_determinants(size):
    a = matrices(size)
    both(lambda a: torch.linalg.slogdet(a.flip(-2))[1], a)
    assert torch.equal(torch.linalg.slogdet(a.gpu().flip(-2))[0].cpu(), torch.linalg.slogdet(a.flip(-2))[0])


TALL = [
    (1, 1),
    (3, 1),
    (1, 4),
    (33, 32),
    (70, 40),
    (40, 70),
    (65, 65),
    (2, 3, 5, 2),
    (2, 2, 7),
    (0, 3),
    (3, 0),
    (0, 4, 3),
]


@pytest.mark.parametrize("shape", TALL)
def test_qr(shape):
    a = torch.randn(shape)
    for mode in ("reduced", "complete", "r"):
        for x, y in zip(torch.linalg.qr(a.gpu(), mode), torch.linalg.qr(a, mode), strict=True):
            torch.testing.assert_close(x.cpu(), y, rtol=1e-3, atol=1e-4)
    if shape[-2] > shape[-1] and a.numel():
        both(lambda a: torch.linalg.qr(a)[0], a)
        both(lambda a: torch.linalg.qr(a)[1], a)


@pytest.mark.parametrize("scale", [1e-30, 1, 1e30])
def test_qr_of_columns_that_need_no_reflection(scale):
    a = torch.zeros(40, 36)
    a[:20, 3] = torch.arange(20.0)
    a[7, 7], a[7:, 34] = -2, 3
    q, r = torch.linalg.qr((a * scale).gpu())
    want_q, want_r = torch.linalg.qr(a)
    torch.testing.assert_close(q.cpu(), want_q, rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(r.cpu() / scale, want_r, rtol=1e-3, atol=1e-5)
    assert torch.linalg.qr(torch.full((3, 3), math.nan, device="gpu"))[1].isnan().any()


def test_products_of_reflections():
    a, other = torch.randn(2, 70, 40), torch.randn(2, 70, 3)
    raw, taus = torch.geqrf(a)
    on = torch.geqrf(a.gpu())
    torch.testing.assert_close(on[0].cpu(), raw, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(on[1].cpu(), taus, rtol=1e-3, atol=1e-4)
    both(lambda a, taus: torch.linalg.householder_product(a, taus), raw[:, :9, :5], taus[:, :5])
    # Factors of any size, zeros too, and fewer than columns.
    taus[:, ::2] = 0
    for k in (40, 33, 0):
        got = torch.linalg.householder_product(raw.gpu(), taus[:, :k].gpu()).cpu()
        torch.testing.assert_close(got, torch.linalg.householder_product(raw, taus[:, :k]), rtol=1e-3, atol=1e-4)
    for transpose in (False, True):
        got = torch.ormqr(raw.gpu(), taus.gpu(), other.gpu(), transpose=transpose).cpu()
        torch.testing.assert_close(got, torch.ormqr(raw, taus, other, transpose=transpose), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("shape", TALL)
def test_lu(shape):
    a = torch.randn(shape)
    for x, y in zip(torch.linalg.lu(a.gpu()), torch.linalg.lu(a), strict=True):
        torch.testing.assert_close(x.cpu(), y, rtol=1e-3, atol=1e-4)
    lu, pivots = torch.linalg.lu_factor(a.gpu())
    assert torch.equal(pivots.cpu(), torch.linalg.lu_factor(a)[1])
    parts = torch.lu_unpack(lu, pivots)
    torch.testing.assert_close((parts[0] @ parts[1] @ parts[2]).cpu(), a, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("size", SIZES)
def test_systems_of_factored_matrices(size):
    a, b = matrices(size).flip(-2), torch.randn(*size, 3)
    both(lambda a, b: torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b), a, b)
    both(lambda a, b: torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b.mT, left=False, adjoint=True), a, b)
    both(lambda a: torch.cholesky_inverse(torch.linalg.cholesky(a @ a.mT)), a)


def test_pivots_that_name_no_row():
    for pivots in ([2, 4, 3], [0, 1, 2]):
        with pytest.raises(RuntimeError, match="between 1 and 3, got [04]"):
            torch.lu_unpack(torch.eye(3, device="gpu"), torch.tensor(pivots, dtype=torch.int32, device="gpu"))
    with pytest.raises(torch.linalg.LinAlgError, match="The diagonal element 3 is zero"):
        torch.cholesky_inverse(torch.diag(torch.tensor([1.0, 2, 0])).gpu())


def test_matrices_that_fail():
    with pytest.raises(torch.linalg.LinAlgError, match="The diagonal element 2 is zero"):
        torch.linalg.inv(torch.tensor([[1.0, 2.0], [2.0, 4.0]], device="gpu"))
    bad = torch.eye(40).repeat(3, 1, 1)
    bad[1, 35, 35] = -1
    with pytest.raises(torch.linalg.LinAlgError, match="Batch element 1.*minor of order 36"):
        torch.linalg.cholesky(bad.gpu())
    factor, info = torch.linalg.cholesky_ex(bad.gpu())
    assert info.tolist() == [0, 36, 0] and torch.equal(factor[2].cpu(), torch.eye(40))
    assert torch.linalg.cholesky_ex(torch.full((2, 2), math.nan, device="gpu"))[1].item() == 1
    singular = torch.zeros(2, 3, 3, device="gpu")
    assert torch.linalg.inv_ex(singular)[1].tolist() == [1, 1]
    sign, log = torch.linalg.slogdet(singular)
    assert sign.tolist() == [0, 0] and log.tolist() == [-math.inf] * 2
    for shape in [(0, 0), (2, 0, 0), (0, 3, 3)]:
        empty = torch.zeros(shape, device="gpu")
        assert torch.linalg.inv(empty).shape == shape and torch.linalg.cholesky(empty).shape == shape
        assert torch.logdet(empty).cpu().tolist() == torch.logdet(empty.cpu()).tolist()
