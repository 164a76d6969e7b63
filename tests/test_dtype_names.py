"""`complex32`, dtypes that have a name and no tensors here, and arithmetic of the unsigned ones."""

import copy
import io
import pickle

import numpy as np
import pytest
from support import target

own = pytest.mark.skipif(target.STAND_IN, reason="what only rustgrad has")
FACTS = {  # itemsize, floating, complex, signed; greatest and smallest normal number, eps
    "complex32": (4, False, True, True, 65504.0, 2.0**-14, 2.0**-10),
    "float8_e4m3fn": (1, True, False, True, 448.0, 2.0**-6, 2.0**-3),
    "float8_e4m3fnuz": (1, True, False, True, 240.0, 2.0**-7, 2.0**-3),
    "float8_e5m2": (1, True, False, True, 57344.0, 2.0**-14, 2.0**-2),
    "float8_e5m2fnuz": (1, True, False, True, 57344.0, 2.0**-15, 2.0**-2),
    "float8_e8m0fnu": (1, True, False, False, 2.0**127, 2.0**-127, 1.0),
}


@pytest.mark.parametrize("name", FACTS)
def test_names(torch, name):
    d = getattr(torch, name)
    assert isinstance(d, torch.dtype) and str(d) == f"torch.{name}"
    info = torch.finfo(d)
    facts = (d.itemsize, d.is_floating_point, d.is_complex, d.is_signed, info.max, info.smallest_normal, info.eps)
    assert facts == FACTS[name]
    assert d == d and d != torch.float16 and len({d, torch.float16, d}) == 2
    assert pickle.loads(pickle.dumps(d)) is d and copy.deepcopy(d) is d
    assert torch.can_cast(torch.int64, d) and torch.can_cast(d, torch.complex64) and not torch.can_cast(d, torch.int8)


@pytest.mark.parametrize("name", [f"{u}int{n}" for n in range(1, 8) for u in ("", "u")])
def test_integers_of_few_bits(torch, name):
    """Libraries list them where they choose how weights are stored; no tensor has them."""
    d = getattr(torch, name)
    assert (str(d), d.itemsize, d.is_floating_point, d.is_signed) == (f"torch.{name}", 1, False, name[0] == "i")
    assert pickle.loads(pickle.dumps(d)) is d and d is not torch.int8


@own
def test_quantised_dtypes_are_names(torch):
    sizes = {"qint8": 1, "quint8": 1, "qint32": 4, "quint4x2": 1, "quint2x4": 1, "bits8": 1, "bits16": 2}
    for name, size in sizes.items():
        d = getattr(torch, name)
        assert (repr(d), d.itemsize, d.is_floating_point) == (f"torch.{name}", size, False)
        with pytest.raises(NotImplementedError, match=f"tensors of dtype torch.{name} are not supported"):
            torch.zeros(1, dtype=d)
    d = torch.float4_e2m1fn_x2
    for make in (
        lambda: torch.tensor([1.0], dtype=d),
        lambda: torch.ones(2).to(d),
        lambda: torch.ones(2).to("cpu", d),
        lambda: torch.ones(2).view(d),
        lambda: torch.ones(2).sum(dtype=d),
        lambda: torch.frombuffer(b"abcd", dtype=d),
        lambda: torch.nn.Linear(1, 1, dtype=d),
        lambda: torch.UntypedStorage(8)._as(d),
        lambda: torch.promote_types(d, torch.float32),
        lambda: torch.set_default_dtype(d),
        lambda: setattr(torch.ones(2, requires_grad=True), "grad_dtype", d),
    ):
        with pytest.raises(NotImplementedError, match="tensors of dtype torch.float4_e2m1fn_x2 are not supported"):
            make()
    assert torch.get_default_dtype() is torch.float32
    assert torch.float4_e2m1fn_x2.is_floating_point and torch.qint8.is_signed and not torch.quint8.is_signed


def test_complex_half(torch):
    assert torch.chalf is torch.complex32 and torch.complex32.to_real() is torch.float16
    assert torch.complex32.to_complex() is torch.complex32
    with pytest.raises(RuntimeError, match="Unknown Complex ScalarType for Float8_e5m2"):
        torch.float8_e5m2.to_complex()


@pytest.mark.filterwarnings("ignore:ComplexHalf support", "ignore:Casting complex")
class TestComplexHalf:
    """Two halves in memory; every op computes in complex64 and rounds once."""

    VALUES = [0.5 - 2j, 3 + 0.1j, -1 + 1j, 65504j]

    def of(self, torch):
        return torch.tensor(self.VALUES, dtype=torch.complex32)

    def test_made(self, torch):
        x = self.of(torch)
        assert x.dtype is torch.complex32 and x.itemsize == 4 and x.element_size() == 4
        assert (
            x.tolist()
            == np.array(self.VALUES).view(np.float64).astype(np.float16).astype(np.float64).view(complex).tolist()
        )
        assert repr(x[:2]) == "tensor([0.5000-2.0000j, 3.0000+0.1000j], dtype=torch.complex32)"
        for same in (
            x.clone(),
            x.to(torch.complex64).chalf(),
            torch.tensor(x.tolist(), dtype=torch.chalf),
            copy.deepcopy(x),
        ):
            assert same.dtype is torch.complex32 and torch.equal(same, x)
        for make in (torch.zeros, torch.ones, torch.empty, torch.rand, torch.randn):
            assert make(3, dtype=torch.complex32).dtype is torch.complex32
        assert torch.full((2,), 1j, dtype=torch.chalf).tolist() == [1j, 1j]

    def test_results_of_halves(self, torch):
        half = torch.tensor([1.0, 2.0], dtype=torch.float16)
        for made in (
            half * 1j,
            1j + half,
            torch.complex(half, half),
            torch.view_as_complex(half),
            half * torch.tensor(1j),
        ):
            assert made.dtype is torch.complex32
        previous = torch.get_default_dtype()
        torch.set_default_dtype(torch.float16)
        try:
            assert torch.tensor([1.0, 3 + 5j]).dtype is torch.complex32
            assert repr(torch.tensor([1j])) == "tensor([0.+1.j], dtype=torch.complex32)"
        finally:
            torch.set_default_dtype(previous)

    @pytest.mark.parametrize(
        "other,want",
        [
            ("bool", "complex32"),
            ("int64", "complex32"),
            ("float16", "complex32"),
            ("bfloat16", "complex64"),
            ("float32", "complex64"),
            ("float64", "complex128"),
            ("complex64", "complex64"),
            ("complex128", "complex128"),
        ],
    )
    def test_promotion(self, torch, other, want):
        a, b = torch.complex32, getattr(torch, other)
        assert torch.promote_types(a, b) is torch.promote_types(b, a) is getattr(torch, want)
        assert (torch.ones(2, dtype=a) + torch.ones(2, dtype=b)).dtype is getattr(torch, want)

    def test_views_share_memory(self, torch):
        x = self.of(torch)
        torch.view_as_real(x)[1, 0] = 7
        x.imag[1] = 8
        x.view(torch.float16)[0] = 9
        assert x[:2].tolist() == [9 - 2j, 7 + 8j] and x.real.dtype is torch.float16
        assert x.view(torch.int32).shape == (4,)

    def test_ops_round_once(self, torch):
        x, wide = self.of(torch)[:3], self.of(torch)[:3].to(torch.complex64)
        for f in (
            lambda x: x + x,
            lambda x: x * (2 - 1j),
            lambda x: -x,
            lambda x: x.conj(),
            lambda x: x.abs(),
            lambda x: torch.addcmul(x, x, x),
            lambda x: x.sgn(),
            lambda x: torch.where(x == x, x, 2 * x),
            lambda x: torch.cat([x, x.flip(0)]),
            lambda x: x[[2, 0]],
            lambda x: x.index_select(0, torch.tensor([1])),
        ):
            got, want = f(x), f(wide)
            assert got.dtype is (torch.float16 if want.dtype is torch.float32 else torch.complex32)
            assert torch.equal(got, want.to(got.dtype))

    @own
    def test_more_than_pytorch_has(self, torch):
        x, wide = self.of(torch)[:3], self.of(torch)[:3].to(torch.complex64)
        for f in (
            torch.exp,
            torch.sum,
            torch.mean,
            torch.prod,
            torch.std,
            lambda x: x / (1 + x),
            lambda x: x.cumsum(0),
            lambda x: torch.nn.functional.pad(x[None], (1, 1), mode="replicate"),
        ):
            got, want = f(x), f(wide)
            assert got.dtype.to_complex() is torch.complex32 and torch.equal(got, want.to(got.dtype))

    @own
    def test_gradient(self, torch):
        half = torch.tensor([1.0, 2.0], dtype=torch.float16, requires_grad=True)
        y = (half * (1 + 2j)).abs().sum()
        y.backward()
        assert half.grad.dtype is torch.float16
        torch.testing.assert_close(half.grad, torch.full_like(half, 5**0.5))
        z = torch.tensor([1 + 1j], dtype=torch.chalf, requires_grad=True)
        torch.nn.functional.pad(z[None], (2, 1), mode="replicate").abs().square().sum().backward()
        assert z.grad.dtype is torch.chalf and z.grad.tolist() == [8 + 8j]

    @own
    def test_refusals(self, torch):
        x = torch.ones(2, 2, dtype=torch.chalf)
        for f in (lambda: x @ x, lambda: torch.linalg.inv(x), lambda: x.sort(), lambda: x < x):
            with pytest.raises((RuntimeError, TypeError), match="ComplexHalf|complex|Low precision"):
                f()
        with pytest.raises(RuntimeError, match="Unsupported dtype ComplexHalf"):
            torch.fft.fft(x)
        with pytest.raises(TypeError, match="unsupported ScalarType ComplexHalf"):
            x.numpy()

    def test_saved_and_exchanged(self, torch):
        x = self.of(torch)
        file = io.BytesIO()
        torch.save({"x": x, "row": x[1:]}, file)
        file.seek(0)
        loaded = torch.load(file)
        assert loaded["x"].dtype is torch.chalf and torch.equal(loaded["x"], x) and torch.equal(loaded["row"], x[1:])
        assert torch.equal(pickle.loads(pickle.dumps(x)), x)
        assert torch.equal(torch.from_dlpack(x), x) and torch.from_dlpack(x).dtype is torch.chalf


UNSIGNED = [("uint16", 2**16), ("uint32", 2**32), ("uint64", 2**64)]


@pytest.mark.parametrize("name,bound", UNSIGNED)
def test_unsigned_arithmetic_wraps(torch, name, bound):
    dtype = getattr(torch, name)
    values, others = [0, 1, bound - 1, bound // 2, 3], [5, bound - 1, bound - 1, 2, 3]
    x, y = torch.tensor(values, dtype=dtype), torch.tensor(others, dtype=dtype)
    assert (x * y).tolist() == [a * b % bound for a, b in zip(values, others, strict=True)]
    assert (x == y).tolist() == [a == b for a, b in zip(values, others, strict=True)]
    assert (x != bound - 1).tolist() == [a != bound - 1 for a in values]
    assert (x & y).tolist() == [a & b for a, b in zip(values, others, strict=True)]
    assert (x | y).tolist() == [a | b for a, b in zip(values, others, strict=True)]
    assert (x ^ y).tolist() == [a ^ b for a, b in zip(values, others, strict=True)]
    assert torch.where(x == y, x, y).tolist() == [a if a == b else b for a, b in zip(values, others, strict=True)]
    assert (x * y).dtype == torch.where(x == y, x, y).dtype == dtype


@pytest.mark.parametrize("name,bound", UNSIGNED[:2])
def test_unsigned_order(torch, name, bound):
    x = torch.tensor([0, 5, bound - 1], dtype=getattr(torch, name))
    assert x.clamp(1, 7).tolist() == [1, 5, 7]
    assert torch.maximum(x, torch.full_like(x, 6)).tolist() == [6, 6, bound - 1]
    assert torch.minimum(x, torch.full_like(x, 6)).tolist() == [0, 5, 6]


@own
def test_unsigned_order_in_64_bits_is_refused(torch):
    x = torch.tensor([2**63, 1], dtype=torch.uint64)
    for compare in (lambda: x < 2, lambda: x.clamp(0, 1), lambda: torch.maximum(x, x), lambda: x // 2):
        with pytest.raises(NotImplementedError, match="not implemented for 'UInt64'"):
            compare()


@pytest.mark.parametrize("name,bound", UNSIGNED)
def test_unsigned_sort(torch, name, bound):
    values = [bound // 2, 1, bound - 1, 0, bound // 2 - 1]
    x = torch.tensor(values, dtype=getattr(torch, name))
    assert x.sort().values.tolist() == sorted(values)
    assert x.argsort(descending=True).tolist() == sorted(range(5), key=lambda i: -values[i])


@own
def test_greatest_of_unsigned_64_bits_is_refused(torch):
    x = torch.tensor([2**63, 1], dtype=torch.uint64)
    for f in (lambda: x.max(), lambda: x.amin(), lambda: x.argmax(), lambda: x.max(0), lambda: x.cummax(0)):
        with pytest.raises(NotImplementedError, match="(?i)uint64"):
            f()
