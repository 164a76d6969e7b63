"""Sobol sequences: the published first points, SciPy's for many dimensions, and what scrambling keeps."""

import pytest


def test_first_points(torch):
    engine = torch.quasirandom.SobolEngine(3)
    want = [[0, 0, 0], [0.5, 0.5, 0.5], [0.75, 0.25, 0.25], [0.25, 0.75, 0.75], [0.375, 0.375, 0.625]]
    assert engine.draw(5).tolist() == want and engine.num_generated == 5
    assert engine.draw().tolist() == [[0.875, 0.875, 0.125]]
    assert engine.reset() is engine and engine.draw(2).tolist() == want[:2]
    assert engine.fast_forward(2) is engine and engine.draw().tolist() == want[4:]


def test_many_dimensions(torch):
    qmc = pytest.importorskip("scipy.stats.qmc")
    d = 1111
    want = qmc.Sobol(d, scramble=False).random(512)
    got = torch.quasirandom.SobolEngine(d).draw(512, dtype=torch.float64)
    assert got.dtype == torch.float64 and (got.numpy() == want).all()


def test_far_points(torch):
    engine = torch.quasirandom.SobolEngine(2)
    far = engine.fast_forward(2**30 - 2).draw(2, dtype=torch.float64)
    assert ((0 <= far) & (far < 1)).all() and far[0, 0] != far[1, 0]


@pytest.mark.parametrize("seed", [0, 7])
def test_scrambled_points_stay_balanced(torch, seed):
    d, m = 20, 6
    engine = torch.quasirandom.SobolEngine(d, scramble=True, seed=seed)
    x = engine.draw_base2(m, dtype=torch.float64)
    again = torch.quasirandom.SobolEngine(d, scramble=True, seed=seed).draw(2**m, dtype=torch.float64)
    plain = torch.quasirandom.SobolEngine(d).draw(2**m, dtype=torch.float64)
    assert torch.equal(x, again) and not torch.equal(x, plain)
    cells = (x * 2**m).floor().sort(0).values
    assert torch.equal(cells, torch.arange(2.0**m, dtype=torch.float64).unsqueeze(1).expand(-1, d))
    torch.manual_seed(seed + 1)
    other = torch.quasirandom.SobolEngine(d, scramble=True).draw(2**m, dtype=torch.float64)
    assert not torch.equal(x, other)


def test_results(torch):
    engine = torch.quasirandom.SobolEngine(2, scramble=True, seed=1)
    out = torch.empty(0)
    made = engine.draw(4, out=out)
    assert made is out and out.shape == (4, 2) and out.dtype == torch.float32
    assert engine.draw(3, dtype=torch.float64).dtype == torch.float64
    assert repr(engine) == "SobolEngine(dimension=2, scramble=True, seed=1)"
    assert repr(torch.quasirandom.SobolEngine(3)) == "SobolEngine(dimension=3)"
    with pytest.raises(ValueError, match=r"7 points have been previously generated, then: n=7\+2\*\*1=9"):
        engine.draw_base2(1)
    assert engine.draw_base2(0).shape == (1, 2)


def test_range_of_dimensions(torch):
    for d in (0, -1, torch.quasirandom.SobolEngine.MAXDIM + 1):
        with pytest.raises(ValueError, match="Supported range of dimensionality"):
            torch.quasirandom.SobolEngine(d)
