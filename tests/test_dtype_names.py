"""Dtypes that have a name and no tensors here, and arithmetic of the unsigned ones."""

import copy
import pickle

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


def test_complex_half(torch):
    assert torch.chalf is torch.complex32 and torch.complex32.to_real() is torch.float16
    assert torch.complex32.to_complex() is torch.complex32
    with pytest.raises(RuntimeError, match="Unknown Complex ScalarType for Float8_e5m2"):
        torch.float8_e5m2.to_complex()


@own
@pytest.mark.parametrize("name", FACTS)
def test_tensors_of_them_are_refused(torch, name):
    d = getattr(torch, name)
    for make in (
        lambda: torch.zeros(2, dtype=d),
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
        with pytest.raises(NotImplementedError, match=f"tensors of dtype torch.{name} are not supported"):
            make()
    assert torch.get_default_dtype() is torch.float32


@own
def test_chalf_method(torch):
    with pytest.raises(NotImplementedError, match="complex32 are not supported.*Use complex64"):
        torch.ones(2).chalf()


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
