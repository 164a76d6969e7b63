"""Random counts (poisson, binomial) and counts of points (histogramdd): cases that samples cannot express."""

import numpy as np
import pytest
import rustgrad as torch

DEVICES = ["cpu", *(["gpu"] if torch.gpu.is_available() else [])]


def draws(threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        torch.manual_seed(3)
        rates = torch.linspace(0.0, 40.0, 3001)
        chances = torch.linspace(-0.1, 1.1, 3001)
        return torch.poisson(rates), torch.binomial(rates.floor(), chances), torch.rand(3)
    finally:
        torch.set_num_threads(before)


def test_counts_depend_on_the_seed_alone():
    assert all(torch.equal(a, b) for a, b in zip(draws(2), draws(1), strict=True))
    rates = torch.full((1000,), 12.5)
    assert not torch.equal(torch.poisson(rates), torch.poisson(rates))
    one, other = (torch.poisson(rates, generator=torch.Generator().manual_seed(5)) for _ in range(2))
    assert torch.equal(one, other)
    assert not torch.equal(one, torch.poisson(rates, torch.Generator().manual_seed(6)))


def test_an_element_does_not_depend_on_the_others():
    def first(n):
        return torch.poisson(torch.full((n,), 30.0), torch.Generator().manual_seed(1))[:7]

    assert torch.equal(first(7), first(5000))


def test_moments():
    torch.manual_seed(0)
    for rate in (0.5, 8.0, 200.0):
        x = torch.poisson(torch.full((100_000,), rate, dtype=torch.float64))
        assert abs(x.mean() - rate) < 0.02 * rate**0.5 and abs(x.var() / rate - 1) < 0.03
    for n, p in ((5.0, 0.3), (60.0, 0.8), (1000.0, 0.25)):
        x = torch.binomial(torch.full((100_000,), n), torch.tensor(p))
        assert abs(x.mean() - n * p) < 0.02 * (n * p) ** 0.5 and abs(x.var() / (n * p * (1 - p)) - 1) < 0.03
        assert 0 <= x.min() and x.max() <= n and torch.equal(x, x.floor())


def test_odd_parameters():
    inf, nan = float("inf"), float("nan")
    assert torch.poisson(torch.tensor([inf, 0.0])).tolist() == [inf, 0]
    count, prob = torch.tensor([inf, 10.5, -3, 0]), torch.tensor([0.5, 1.0, 0.5, 0.5])
    assert torch.binomial(count, prob).tolist() == [inf, 10.5, 0, 0]
    assert torch.binomial(torch.tensor([nan, 3.0]), torch.tensor([0.5, nan])).isnan().all()
    x = torch.ones(3, requires_grad=True)
    torch.poisson(x).sum().backward()
    assert x.grad.tolist() == [0, 0, 0]
    with pytest.raises(RuntimeError, match="derivative for aten::binomial is not implemented"):
        torch.binomial(x, x).sum().backward()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("density", [False, True])
def test_histogramdd(device, weighted, density):
    rng = np.random.RandomState(0)
    x, w = rng.randn(200, 3).astype("float32"), rng.rand(200).astype("float32")
    edges = [np.array(e, "float32") for e in ([-1, 0, 0.5], [-2, 2], [-1, -0.5, 0, 3])]
    given = {"weight": torch.tensor(w, device=device)} if weighted else {}
    points = torch.tensor(x, device=device)
    weights = w if weighted else None
    for bins, limits in (
        ([torch.tensor(e, device=device) for e in edges], None),
        ((4, 1, 2), [-1, 1, 0, 2, -0.5, 2.5]),
    ):
        got = torch.histogramdd(points, bins, range=limits, density=density, **given)
        pairs = limits and list(zip(limits[::2], limits[1::2], strict=True))
        want, ends = np.histogramdd(x, bins if limits else edges, range=pairs, density=density, weights=weights)
        np.testing.assert_allclose(got.hist.cpu().numpy(), want, rtol=1e-4)
        for e, end in zip(got.bin_edges, ends, strict=True):
            np.testing.assert_allclose(e.cpu().numpy(), end, rtol=1e-6)


def test_histogramdd_of_a_batch_and_its_errors():
    x = torch.tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 0.0], [2.0, 2.0]])
    result = torch.histogramdd(x.reshape(2, 2, 2), 3, weight=torch.tensor([[1.0, 2.0], [4.0, 8.0]]))
    assert repr(result).startswith("torch.return_types.histogramdd(\nhist=tensor([[0., 1., 0.],")
    assert result.hist.tolist() == [[0, 1, 0], [2, 0, 0], [4, 0, 8]] and len(result.bin_edges) == 2
    for bins, problem in (([2], "The size of bins"), ([torch.ones(2)], "expected 2 sequences"), (0, "must be > 0")):
        with pytest.raises(RuntimeError, match=problem):
            torch.histogramdd(x, bins)
    with pytest.raises(RuntimeError, match="at least 2 dimensions"):
        torch.histogramdd(x[:, 0], 1)
