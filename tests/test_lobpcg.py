"""`lobpcg` against dense eigenvalues: methods, generalised problems, batches, gradients, trackers."""

import pytest
import rustgrad as torch


def symmetric(*shape, dtype=torch.float64):
    a = torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(len(shape)))
    return a @ a.mT


@pytest.mark.parametrize("method", [None, "ortho", "basic"])
@pytest.mark.parametrize("largest", [None, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_extreme_pairs(method, largest, dtype):
    torch.manual_seed(0)
    a = symmetric(20, 20, dtype=dtype)
    e, x = torch.lobpcg(a, k=3, method=method, largest=largest, niter=200)
    all_values = torch.linalg.eigvalsh(a)
    assert torch.allclose(e, all_values.flip(0)[:3] if largest is None else all_values[:3], rtol=1e-3, atol=1e-3)
    assert (a @ x - x * e).norm(dim=0).max() < 4e-4 * (a.norm() + e.max())  # the root of epsilon is the tolerance
    assert torch.allclose(x.mT @ x, torch.eye(3, dtype=dtype), atol=1e-4)


@pytest.mark.parametrize("method", ["ortho", "basic"])
def test_generalised_and_preconditioned(method):
    torch.manual_seed(1)
    a, b = symmetric(15, 15), symmetric(15, 15) + torch.eye(15, dtype=torch.float64)
    e, x = torch.lobpcg(a, k=2, B=b, iK=torch.linalg.inv(b), method=method, niter=200)
    assert (a @ x - b @ x * e).abs().max() < 1e-4 and torch.allclose(x.mT @ b @ x, torch.eye(2).double(), atol=1e-6)
    want = torch.linalg.eigvals(torch.linalg.solve(b, a)).real.sort(descending=True).values[:2]
    assert torch.allclose(e, want, rtol=1e-6)


def test_shapes_and_starts():
    a = symmetric(2, 3, 12, 12)
    e, x = torch.lobpcg(a, k=2)
    assert e.shape == (2, 3, 2) and x.shape == (2, 3, 12, 2)
    assert torch.allclose(e, torch.linalg.eigvalsh(a).flip(-1)[..., :2])
    assert [r.shape for r in torch.lobpcg(a[0, 0], k=1, n=3)] == [(1,), (12, 1)]
    start = torch.rand(12, 3, dtype=torch.float64)
    assert torch.lobpcg(a[0, 0], X=start)[0].shape == (3,)
    with pytest.raises(AssertionError, match="A must be square"):
        torch.lobpcg(torch.rand(3, 4))
    with pytest.raises(ValueError, match="smaller than 3 x the number of requested eigenpairs"):
        torch.lobpcg(a[0, 0], k=5)
    with pytest.raises(KeyError):
        torch.lobpcg(a[0, 0].half())
    with pytest.raises(RuntimeError, match="dtype"):
        torch.lobpcg(a[0, 0], X=start.float())


def test_gradients_are_those_of_eigh():
    torch.manual_seed(2)
    a = symmetric(2, 9, 9).requires_grad_()
    weights, turn = torch.tensor([1.0, 2.0]).double(), torch.randn(9, 9).double()

    def score(e, x):
        return (e * weights).sum() + (x.unsqueeze(-2) * x.unsqueeze(-3)).mul(turn.unsqueeze(-1)).mul(weights).sum()

    e, x = torch.lobpcg(a, k=2, tol=1e-13, niter=100)
    assert type(e.grad_fn).__name__ == "LOBPCGAutogradFunctionBackward"
    values, vectors = torch.linalg.eigh((a + a.mT) / 2)
    (got,) = torch.autograd.grad(score(e, x), a)
    (want,) = torch.autograd.grad(score(values.flip(-1)[..., :2], vectors.flip(-1)[..., :2]), a)
    assert torch.allclose(got, want, atol=1e-6)
    with pytest.raises(ValueError, match="expected B=None"):
        torch.lobpcg(a[0], B=torch.eye(9, dtype=torch.float64))[0].sum().backward()


def test_a_tracker_sees_the_state_and_may_stop():
    seen = []

    def tracker(worker):
        seen.append(worker.ivars["istep"])
        assert worker.iparams["k"] == 2 and worker.tvars["rerr"].shape == (2,) and worker.bparams["largest"]
        assert worker.X.shape == (12, 2) and worker.R.shape == (12, 2) and worker.E.shape == (2,)
        worker.bvars["force_stop"] = len(seen) == 3

    torch.lobpcg(symmetric(12, 12), k=2, tol=0.0, niter=-1, tracker=tracker)
    assert seen == [1, 2, 3]
