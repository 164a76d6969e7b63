"""Numerically hard cases: large means, infinities in complex numbers, matrices of huge and of tiny numbers."""

import itertools
import math

import numpy as np
import pytest
from conftest import need
from support.target import to_numpy, torch

INF, NAN = math.inf, math.nan


def c128(*values):
    return torch.tensor(list(values), dtype=torch.complex128)


def parts(tensor):
    array = to_numpy(tensor)
    return [(v.real, v.imag) for v in np.atleast_1d(array)]


def alike(got, want):
    """Equality with NaN equal to NaN and signed zeros; None means either sign, a string anything."""
    if isinstance(want, str):
        return True
    if math.isnan(want) or math.isnan(got):
        return math.isnan(want) and math.isnan(got)
    if want == 0 or math.isinf(want):
        return got == want and math.copysign(1, got) == math.copysign(1, want)
    return abs(got - want) <= 1e-14 * abs(want)


# --- variance ----------------------------------------------------------------------------------------

LAYOUTS = {
    "all": lambda x: (x, None),
    "rows": lambda x: (x, 0),
    "columns": lambda x: (x, 1),
    "transposed": lambda x: (x.t(), 0),
    "stepped": lambda x: (x[::3, ::2], 1),
    "narrow": lambda x: (x.reshape(-1, 5), 0),
    "three dimensions": lambda x: (x.reshape(40, -1, 10), (0, 2)),
}


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("mean", [0.0, 1e3, 1e5, 1e6, -4e6, 1e7])
def test_variance_of_a_large_mean(device, layout, mean):
    """As accurate as two passes in double precision over the same float32 numbers."""
    need(device)
    spread = np.random.RandomState(5).randint(-3, 4, (1000, 110))
    x = torch.tensor((mean + spread).astype(np.float32)).to(device)
    view, dim = LAYOUTS[layout](x)
    wide = to_numpy(view).astype(np.float64)
    for correction in (0, 1):
        var, average = torch.var_mean(view, dim, correction=correction)
        np.testing.assert_allclose(to_numpy(var), wide.var(dim, ddof=correction), rtol=3e-6)
        np.testing.assert_allclose(to_numpy(average), wide.mean(dim), rtol=2e-7, atol=1e-6)
        np.testing.assert_allclose(
            to_numpy(torch.std(view, dim, correction=correction)), wide.std(dim, ddof=correction), rtol=3e-6
        )


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_variance_in_double_precision(dtype):
    spread = np.random.RandomState(1).randint(-3, 4, (700, 30)) / 8
    x = torch.tensor(1e9 + spread, dtype=getattr(torch, dtype))
    for dim in (None, 0, 1):
        np.testing.assert_allclose(to_numpy(x.var(dim)), spread.var(dim, ddof=1), rtol=1e-9)


def test_variance_of_equal_and_of_infinite_numbers():
    assert torch.full((1000, 3), 16777215.0).var(0).tolist() == [0, 0, 0]
    var, mean = torch.var_mean(torch.tensor([1.0, INF]))
    assert math.isnan(var.item()) and mean.item() == INF


def test_layer_norm_of_a_million_features():
    x = torch.tensor(5 + np.random.RandomState(2).rand(2, 1 << 20).astype(np.float32))
    wide = to_numpy(x).astype(np.float64)
    want = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    got = torch.nn.functional.layer_norm(x, (1 << 20,))
    assert np.abs(to_numpy(got) - want).max() < 3e-6


# --- complex numbers ---------------------------------------------------------------------------------

CORNERS = [0.0, -0.0, 1.0, -2.5, 0.5, 1e-10, 1000.0, -1000.0, INF, -INF, NAN]
# NumPy's functions, except for signs that C99 leaves unspecified.
SAME_AS_NUMPY = [
    "exp",
    "log",
    "sqrt",
    "sin",
    "cos",
    "tan",
    "sinh",
    "cosh",
    "tanh",
    "asin",
    "acos",
    "atan",
    "asinh",
    "acosh",
    "atanh",
]


@pytest.mark.parametrize("name", SAME_AS_NUMPY)
def test_complex_functions_at_special_values(name):
    z = np.array([complex(a, b) for a, b in itertools.product(CORNERS, CORNERS)])
    numpy_name = name.replace("a", "arc", 1) if name[0] == "a" else name
    with np.errstate(all="ignore"):
        want = getattr(np, numpy_name)(z)
    got = to_numpy(getattr(torch, name)(torch.tensor(z)))
    wrong = []
    for x, g, w in zip(z, got, want):
        for a, b in ((g.real, w.real), (g.imag, w.imag)):
            close = (
                abs(a - b) <= 1e-13 * max(abs(b), 1e-300) if math.isfinite(a) and math.isfinite(b) else abs(a) == abs(b)
            )
            if not (close or (math.isnan(a) and math.isnan(b))):
                wrong.append(f"{name}({x}) is {g}, NumPy's {w}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("a", "b", "want"),
    [
        (1 + 1j, 0j, (INF, INF)),
        (1 + 1j, complex(-0.0, 0.0), (-INF, -INF)),
        (1 + 1j, INF, (0.0, 0.0)),
        (1 + 1j, complex(INF, INF), (0.0, 0.0)),
        (complex(INF, 1), 2 + 0j, (INF, NAN)),
        (complex(INF, NAN), 2 + 1j, (INF, -INF)),
        (complex(INF, INF), 2 + 0j, (INF, INF)),
        (0j, 0j, (NAN, NAN)),
        (complex(NAN, NAN), 0j, (NAN, NAN)),
        (1e200 + 1e200j, 1e200 + 1e200j, (1.0, 0.0)),
        (1e-200 + 1e-200j, 1e-200 + 1e-200j, (1.0, 0.0)),
        (1e308 + 1e308j, 1e-308 + 0j, (INF, INF)),
        (1e308 + 1e307j, 2 + 2j, (2.75e307, -2.25e307)),
        (2.0**-1070 + 0j, 2.0**-1071 + 0j, (2.0, 0.0)),
        (1e-250 + 1e-250j, 1e-145 + 0j, (1e-105, 1e-105)),
    ],
)
def test_complex_division_by_annex_g(a, b, want):
    for count in (1, 64, 70):
        x, y = c128(*[1 + 2j] * (count - 1), a), c128(*[2 + 1j] * (count - 1), b)
        got = parts(x / y)
        assert all(map(alike, got[-1], want)), f"{a} / {b} is {got[-1]}"
        assert all(g == (0.8, 0.6) for g in got[:-1]), "neighbours of an extreme number change"


def test_reciprocals_of_infinity_and_zero():
    assert parts(torch.reciprocal(c128(complex(INF, 0)))) == [(0, 0)]
    assert parts(torch.rsqrt(c128(complex(INF, 0)))) == [(0, 0)]
    assert parts(torch.reciprocal(torch.tensor([complex(INF, INF)], dtype=torch.complex64))) == [(0, 0)]


def test_complex_logarithm_near_the_unit_circle():
    np.testing.assert_allclose(to_numpy(torch.log(c128(1 + 1e-9j))).real, [5e-19], rtol=1e-12)
    sizes = to_numpy(torch.log(c128(1.5e308 + 1.5e308j, 3e-310j))).real
    np.testing.assert_allclose(sizes, [math.log(1.5e308) + math.log(2) / 2, math.log(3e-310)], rtol=1e-12)
    np.testing.assert_allclose(to_numpy(torch.atan(c128(1e-10 + 1j))).imag, [11.859499055250184], rtol=1e-13)


@pytest.mark.parametrize("base", [-1.0, -2.0])
def test_gradient_of_a_complex_power_of_a_negative_number(base):
    want = base ** (0.5 - 1j) * complex(math.log(-base), math.pi)
    for power in (lambda e: base**e, lambda e: torch.tensor(base) ** e, lambda e: torch.full((2,), base)[0] ** e):
        e = torch.tensor(0.5 - 1j, requires_grad=True)
        power(e).real.backward()
        assert abs(e.grad.item() - want.conjugate()) < 1e-4 * abs(want)


@pytest.mark.parametrize("name", ["addmm", "addmv", "baddbmm", "addbmm", "addr"])
def test_complex_alpha_with_beta_zero_does_not_read(name):
    m, v, b = (
        torch.ones(2, 2, dtype=torch.complex128),
        torch.ones(2, dtype=torch.complex128),
        torch.ones(1, 2, 2, dtype=torch.complex128),
    )
    args = {"addmm": (m, m, m), "addmv": (v, m, v), "baddbmm": (b, b, b), "addbmm": (m, b, b), "addr": (m, v, v)}[name]
    out = getattr(torch, name)(args[0] * NAN, *args[1:], beta=0, alpha=0.9 + 0.3j)
    assert torch.isfinite(torch.view_as_real(out)).all()


# --- gradients and replacements ----------------------------------------------------------------------


@pytest.mark.parametrize(("function", "edge"), [("xlogy", 0.0), ("special.xlog1py", -1.0)])
def test_logarithmic_products_pass_no_nan_where_nothing_comes_back(function, edge):
    f = torch.xlogy if function == "xlogy" else torch.special.xlog1py
    x = torch.tensor([1.0, 0.0], requires_grad=True)
    f(x, torch.tensor([edge, edge])).backward(torch.tensor([0.0, 1.0]))
    assert x.grad.tolist() == [0.0, 0.0]


def test_nan_to_num_replaces_once():
    x = torch.tensor([INF, NAN, -INF]).nan_to_num(nan=5.0, posinf=NAN, neginf=NAN)
    assert math.isnan(x[0]) and x[1] == 5 and math.isnan(x[2])


# --- decompositions ----------------------------------------------------------------------------------

SCALES = [1e-250, 1e-155, 1.0, 1e155, 1e250]


def matrix(scale, dtype):
    a = np.random.RandomState(4).randn(4, 4) + (
        1j * np.random.RandomState(6).randn(4, 4) if dtype == "complex128" else 0
    )
    return a, torch.tensor(a * scale, dtype=getattr(torch, dtype))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("scale", SCALES)
def test_decompositions_at_any_scale(scale, dtype):
    a, x = matrix(scale, dtype)
    linalg = torch.linalg
    close = lambda got, want: np.testing.assert_allclose(
        to_numpy(got), want, rtol=1e-10, atol=1e-12 * np.abs(want).max()
    )
    values = np.linalg.svd(a, compute_uv=False)
    close(linalg.svdvals(x) / scale, values)
    u, s, vh = linalg.svd(x)
    close(u * (s / scale) @ vh, a)
    close(linalg.eigvalsh(x + x.mH) / scale, np.linalg.eigvalsh(a + a.conj().T))
    w, v = linalg.eig(x)
    close((v * (w / scale)) @ linalg.inv(v), a.astype(complex))
    q, r = linalg.qr(x)
    close(q @ (r / scale), a)
    close(q.mH @ q, np.eye(4))
    close(linalg.inv(x) * scale, np.linalg.inv(a))
    close(linalg.pinv(x) * scale, np.linalg.inv(a))
    close(linalg.solve(x, x[:, :2]), np.eye(4)[:, :2])
    p, low, up = linalg.lu(x)
    close(p @ low @ (up / scale), a)
    close(linalg.lstsq(x, x[:, :1]).solution, np.eye(4)[:, :1])
    assert linalg.matrix_rank(x) == 4


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_single_precision_decompositions_at_any_scale(scale, dtype):
    a, x = matrix(scale, {"float32": "float64", "complex64": "complex128"}[dtype])
    x = x.to(getattr(torch, dtype))
    q, r = torch.linalg.qr(x)
    np.testing.assert_allclose(to_numpy(q @ (r / scale)), a, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(to_numpy(torch.linalg.inv(x) * scale), np.linalg.inv(a), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(to_numpy(torch.linalg.svdvals(x)) / scale, np.linalg.svd(a, compute_uv=False), rtol=1e-4)


def test_cholesky_inverse_of_a_singular_factor():
    with pytest.raises(torch.linalg.LinAlgError, match="The diagonal element 1 is zero"):
        torch.cholesky_inverse(torch.tensor([[0.0, 0.0], [1.0, 1.0]]))
    with pytest.raises(torch.linalg.LinAlgError, match=r"\(Batch element 1\): The diagonal element 2 is zero"):
        torch.cholesky_inverse(torch.stack([torch.eye(2), torch.tensor([[1.0, 0.0], [1.0, 0.0]])]))


def test_lstsq_counts_ranks_as_lapack_does():
    one = torch.tensor([[2.0]])
    for driver, solution, rank in (("gelsd", 0.5, 1), ("gelsy", 0.5, 1), ("gelss", 0.0, 0)):
        found = torch.linalg.lstsq(one, torch.ones(1, 1), rcond=1.0, driver=driver)
        assert (found.solution.item(), found.rank.item()) == (solution, rank), driver
    with pytest.raises(torch.linalg.LinAlgError, match="does not have full rank"):
        torch.linalg.lstsq(torch.ones(3, 2), torch.ones(3, 1), driver="gels")


# --- bools -------------------------------------------------------------------------------------------


def test_a_bool_is_true_whatever_its_byte():
    m = torch.tensor([255, 128, 0], dtype=torch.uint8).view(torch.bool)
    want = [True, True, False]
    for found in (m == True, m + m, m * m, m | m, m & m, m.clone(), m.sort(descending=True)[0], m.to(torch.bool)):  # noqa: E712
        assert found.tolist() == want
    assert (m ^ True).tolist() == (~m).tolist() == [False, False, True]
    assert (
        m.to(torch.uint8).tolist()
        == m.int().tolist()
        == m.cumsum(0).diff(prepend=torch.zeros(1, dtype=torch.int64)).tolist()
        == [1, 1, 0]
    )
    assert m.unique().tolist() == [False, True] and m.sum().item() == 2 and m.all().item() is False
    assert (m.amax().item(), m.amin().item()) == (True, False)
    assert torch.equal(m, torch.tensor(want)) and not torch.equal(m, torch.tensor([True, False, False]))


def test_histogram_of_points_without_coordinates():
    for weight in (None, torch.ones(5)):
        hist, edges = torch.histogramdd(torch.ones(5, 0), [], weight=weight)
        assert (hist.shape, hist.item(), len(edges)) == ((), 0, 0)
    assert math.isnan(torch.histogramdd(torch.ones(5, 0), 3, weight=torch.ones(5), density=True).hist.item())


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize(
    ("a", "b"),
    [((2, 2), (2, 2)), ((5, 2), (2, 7)), ((1, 8), (8, 8)), ((8, 8), (8, 1)), ((4, 2, 3), (4, 3, 2)), ((3,), (3,))],
)
def test_a_product_of_several_negative_zeros_is_zero(a, b, dtype):
    """Sums of products start from zero, as PyTorch's."""
    for x, y in ((torch.zeros(a), -torch.ones(b)), (-torch.ones(a), torch.zeros(b))):
        x, y = x.to(getattr(torch, dtype)), y.to(getattr(torch, dtype))
        columns = x.mT.contiguous().mT if x.ndim > 1 else x
        assert not any((left @ y).signbit().any() for left in (x, columns))


@pytest.mark.parametrize(
    ("x", "want"),
    [
        ([complex(NAN, 0), 0], (NAN, NAN)),
        ([0, complex(1, NAN)], (NAN, NAN)),
        ([INF, INF], (INF, 0)),
        ([complex(INF, 1), INF], (INF, math.pi / 4)),
        ([-INF, -INF], (-INF, "any")),
        ([-INF, complex(1, 2)], (1, 2)),
        ([INF, complex(0, 3)], (INF, 0)),
    ],
)
def test_sums_of_complex_exponentials(x, want):
    """In logarithms: of a running sum and of two operands."""
    for got in (torch.logcumsumexp(c128(*x), 0)[1], torch.logaddexp(c128(x[0]), c128(x[1]))[0]):
        assert all(alike(g, w) for g, w in zip(parts(got)[0], want, strict=True)), got


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_numbers_beside_half_floats(dtype):
    """Comparisons, remainders and shrinks read a number as an element of the dtype; products compute with it in float32."""
    dtype = getattr(torch, dtype)
    x = torch.tensor([0.1, 0.3, -0.3, -1e4, 2.0], dtype=dtype)
    assert (x == 0.1).tolist() == [True, False, False, False, False]
    assert (x == -1e4).tolist() == [False, False, False, True, False]
    assert not (x[:1] != 0.1).any() and not (x[1:2] > 0.3).any() and not (x[2:3] < -0.3).any()
    assert (x[:2] <= 0.3).all() and (x[1:2] >= 0.3).all() and (0.1 == x)[0]
    assert torch.nn.functional.hardshrink(x, 0.3)[1:3].tolist() == [0, 0]
    assert torch.nn.functional.softshrink(x, 0.3)[1:3].tolist() == [0, 0]
    step = torch.tensor(0.3, dtype=dtype)
    for f in (torch.remainder, torch.fmod):
        assert torch.equal(f(x, 0.3), f(x, step.expand(5)))
    assert torch.equal(torch.remainder(0.3, x), torch.remainder(step.expand(5), x))
    assert torch.equal(x * 0.3, (x.float() * 0.3).to(dtype))
    steps = torch.compile(lambda x: ((x == 0.1) | (x > 0.3)).to(x.dtype) * 2 + torch.remainder(x, 0.3))
    want = ((x == 0.1) | (x > 0.3)).to(dtype) * 2 + torch.remainder(x, 0.3)
    assert all(torch.equal(steps(x), want) for _ in range(6))


def test_isin_of_lists_with_nan():
    """NaN equals nothing, and does not hide the other elements."""
    nan, inf = float("nan"), float("inf")
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        x = torch.tensor([1.0, 2.0, nan, inf, -inf], dtype=dtype)
        for given, want in (
            ([1.0, nan], [True, False, False, False, False]),
            ([nan, inf, nan], [False, False, False, True, False]),
            ([nan, nan], [False] * 5),
            ([nan, -inf, 2.0, 7.0], [False, True, False, False, True]),
        ):
            listed = torch.tensor(given, dtype=dtype)
            assert torch.isin(x, listed).tolist() == want
            assert torch.isin(x, listed, invert=True).tolist() == [not w for w in want]


def test_kron_of_more_elements_than_there_can_be():
    wide = torch.ones(1).expand(2**40)
    with pytest.raises(RuntimeError):
        torch.kron(wide, wide)


@pytest.mark.parametrize("weight", [1, True, 0.25])
def test_a_weight_of_lerp_without_dimensions_promotes_as_a_number(torch, weight):
    """As in PyTorch; a weight with dimensions has the dtype of the ends."""
    start, end = torch.zeros(3), torch.full((3,), 4.0)
    for dtype in (torch.float64, torch.int64, torch.float16) if weight == 1 else (None,):
        got = torch.lerp(start, end, torch.tensor(weight, dtype=dtype))
        assert got.dtype is torch.float32 and got.tolist() == [4.0 * weight] * 3
    slope = torch.tensor(0.25, dtype=torch.float64, requires_grad=True)
    torch.lerp(start, end, slope).sum().backward()
    assert slope.grad.dtype is torch.float64 and slope.grad.item() == 12.0
    assert torch.lerp(torch.zeros(()), torch.ones(()), torch.tensor(0.5, dtype=torch.float64)).dtype is torch.float64
    with pytest.raises(RuntimeError, match="expected dtype float for `weight`"):
        torch.lerp(start, end, torch.ones(3, dtype=torch.int64))
