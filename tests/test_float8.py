"""Floats of eight bits: values of their codes, casts, what moves them, what computes with them, files and printed forms."""

import copy
import io
import pickle

import numpy as np
import pytest
from support import target

own = pytest.mark.skipif(target.STAND_IN, reason="what only rustgrad has")
# Bits of the fraction, bias; whether the last exponent holds infinities, and whether minus zero's code is the only NaN.
FORMATS = {
    "float8_e4m3fn": (3, 7, False, False),
    "float8_e4m3fnuz": (3, 8, False, True),
    "float8_e5m2": (2, 15, True, False),
    "float8_e5m2fnuz": (2, 16, False, True),
}
NAMES = [*FORMATS, "float8_e8m0fnu"]


def numbers(name):
    """The number of each of the 256 codes, in doubles."""
    codes = np.arange(256)
    if name == "float8_e8m0fnu":
        return np.where(codes == 255, np.nan, 2.0 ** (codes - 127.0))
    fraction_bits, bias, infinities, one_nan = FORMATS[name]
    magnitude = codes & 127
    exponent, fraction = magnitude >> fraction_bits, (magnitude & (2**fraction_bits - 1)) / 2**fraction_bits
    values = np.where(exponent == 0, fraction * 2.0 ** (1 - bias), (1 + fraction) * 2.0 ** (exponent - bias))
    if infinities:
        values = np.where(exponent == 31, np.where(fraction == 0, np.inf, np.nan), values)
    elif not one_nan:
        values = np.where(magnitude == 127, np.nan, values)
    values = np.where(codes >= 128, -values, values)
    return np.where(codes == 128, np.nan, values) if one_nan else values


def codes_of(torch, x):
    return x.view(torch.uint8).numpy()


@pytest.mark.parametrize("name", NAMES)
def test_codes_and_numbers(torch, name):
    d = getattr(torch, name)
    x = torch.arange(256, dtype=torch.uint8).view(d)
    want = numbers(name)
    for to in (torch.float32, torch.float64):
        np.testing.assert_array_equal(x.to(to).numpy().astype(np.float64), want)
    np.testing.assert_array_equal(np.signbit(x.float().numpy())[~np.isnan(want)], np.signbit(want)[~np.isnan(want)])
    np.testing.assert_array_equal(np.array(x.tolist()), want)
    back = codes_of(torch, x.float().to(d))
    known = ~np.isnan(want)
    np.testing.assert_array_equal(back[known], np.arange(256)[known])


@pytest.mark.parametrize("name", FORMATS)
def test_rounds_to_the_nearest_and_ties_to_even(torch, name):
    d, want = getattr(torch, name), numbers(name)
    positive = np.flatnonzero(np.isfinite(want[:128]))
    grid = want[positive]
    rng = np.random.default_rng(0)
    middles = (grid[1:] + grid[:-1]) / 2
    x = np.concatenate([rng.uniform(0, grid[-1], 4000), rng.uniform(0, grid[9], 1000), middles, grid]).astype(
        np.float32
    )
    near = np.searchsorted(grid, x).clip(1, len(grid) - 1)
    low, high = grid[near - 1], grid[near]
    up = (high - x < x - low) | ((high - x == x - low) & (near % 2 == 0))
    expected = positive[np.where(up, near, near - 1)]
    for sign in (1, -1):
        got = codes_of(torch, torch.from_numpy(sign * x).to(d))
        signed = np.where((expected == 0) & name.endswith("uz"), 0, expected + (sign < 0) * 128)
        np.testing.assert_array_equal(got, signed)
        np.testing.assert_array_equal(codes_of(torch, torch.from_numpy(sign * x).double().to(d)), signed)


# Recorded from PyTorch 2.15: 448, 464, 1e6, inf, -inf, nan, -0.0, 2**-140.
ENDS = {
    "float8_e4m3fn": [126, 126, 126, 126, 254, 127, 128, 0],
    "float8_e4m3fnuz": [128, 128, 128, 128, 128, 128, 0, 0],
    "float8_e5m2": [95, 95, 124, 124, 252, 127, 128, 0],
    "float8_e5m2fnuz": [99, 99, 128, 128, 128, 128, 0, 0],
    "float8_e8m0fnu": [136, 136, 147, 255, 255, 255, 0, 0],
}


@pytest.mark.parametrize("name", NAMES)
def test_ends_of_the_range(torch, name):
    values = [448.0, 464.0, 1e6, float("inf"), float("-inf"), float("nan"), -0.0, 2.0**-140]
    d = getattr(torch, name)
    assert codes_of(torch, torch.tensor(values).to(d)).tolist() == ENDS[name]
    assert codes_of(torch, torch.tensor(values, dtype=d)).tolist() == ENDS[name]


def test_powers_of_two(torch):
    x = torch.tensor([1.0, 1.4999, 1.5, 3.0, 0.0, -7.0, 2.0**-127, 1.5 * 2.0**-127], dtype=torch.float8_e8m0fnu)
    assert codes_of(torch, x).tolist() == [127, 127, 128, 129, 0, 130, 0, 1]


@pytest.mark.parametrize("name", NAMES)
def test_casts(torch, name):
    d = getattr(torch, name)
    x = torch.tensor([1.0, 2.0, 4.0, 0.5]).to(d)
    for to in (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64):
        assert x.to(to).tolist() == [1.0, 2.0, 4.0, 0.5]
    for to in (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64):
        assert x.to(to).tolist() == [1, 2, 4, 0]
        assert torch.tensor([1, 2, 4], dtype=to).to(d).tolist() == [1.0, 2.0, 4.0]
    assert x.bool().tolist() == [True] * 4
    for other in NAMES:
        assert x.to(getattr(torch, other)).tolist() == [1.0, 2.0, 4.0, 0.5]
    weight = torch.ones(3, requires_grad=True)
    weight.to(d).float().sum().backward()
    assert weight.grad.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("name", NAMES[:4])
def test_moved_and_made(torch, name):
    d = getattr(torch, name)
    a, b = torch.tensor([[1.0, 2.0], [3.0, 0.5]]).to(d), torch.tensor([[-1.0, 0.0], [4.0, 8.0]]).to(d)
    assert torch.cat([a, b]).tolist() == [[1.0, 2.0], [3.0, 0.5], [-1.0, 0.0], [4.0, 8.0]]
    assert torch.stack([a, b])[1, 1].tolist() == [4.0, 8.0] and a.T.contiguous().tolist() == [[1.0, 3.0], [2.0, 0.5]]
    assert torch.where(torch.tensor([True, False]), a, b).tolist() == [[1.0, 0.0], [3.0, 8.0]]
    assert a[torch.tensor([1, 0])].tolist() == [[3.0, 0.5], [1.0, 2.0]] and a[a.float() > 1].tolist() == [2.0, 3.0]
    assert a.index_select(1, torch.tensor([1])).tolist() == [[2.0], [0.5]] and a.flip(0)[0].tolist() == [3.0, 0.5]
    assert torch.nn.functional.pad(a, (1, 0)).tolist() == [[0.0, 1.0, 2.0], [0.0, 3.0, 0.5]]
    assert a.repeat(1, 2).shape == (2, 4) and a.roll(1, 1).tolist() == [[2.0, 1.0], [0.5, 3.0]]
    c = a.clone()
    c[0, 0] = 1.5
    c[torch.tensor([1])] = b[:1]
    assert c.tolist() == [[1.5, 2.0], [-1.0, 0.0]] and c.dtype is d
    assert torch.zeros(3).copy_(a[0, :1]).tolist() == [1.0] * 3 and a.clone().copy_(torch.full((2, 2), 1.12)).dtype is d
    for made in (
        torch.zeros(2, dtype=d),
        torch.empty(2, dtype=d),
        torch.full((2,), 1.3, dtype=d),
        torch.eye(2, dtype=d),
    ):
        assert made.dtype is d and made.element_size() == 1
    assert torch.equal(a, a.clone()) and not torch.equal(a, b) and (a == a).all() and (a != b).all()
    assert a.isnan().any().item() is False and float(a[0, 1]) == 2.0 and bool(a[0, 0]) and f"{a[0, 0]:.2f}" == "1.00"
    assert a.nbytes == 4 and a.to("meta").dtype is d and torch.frombuffer(bytearray(2), dtype=d).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("name", NAMES[:4])
def test_computed_in_float32_and_rounded_once(torch, name):
    d = getattr(torch, name)
    a, b = torch.tensor([1.0, 2.0, 3.0, 0.5]).to(d), torch.tensor([2.0, 1.0, 3.0, 0.5]).to(d)
    assert torch.equal(a * b, (a.float() * b.float()).to(d)) and a.abs().dtype is d
    assert a.sum(dtype=torch.float32).item() == 6.5
    square = torch.tensor([[1.0, 2.0], [3.0, 0.5]]).to(d)
    assert torch.equal(square @ square, (square.float() @ square.float()).to(d))


@own
def test_more_than_pytorch_computes(torch):
    """PyTorch on a CPU multiplies them and takes absolute values, nothing more."""
    a, b = torch.tensor([1.0, 2.0, 3.0]).to(torch.float8_e5m2), torch.tensor([2.0, 1.0, 3.0]).to(torch.float8_e5m2)
    assert (
        (a + b).tolist() == [3.0, 3.0, 6.0]
        and (a < b).tolist() == [True, False, False]
        and (-a).tolist() == [-1, -2, -3]
    )
    assert a.sum().item() == 6.0 and a.max().item() == 3.0 and a.exp().dtype is a.dtype
    assert a.sort(descending=True).values.tolist() == [3.0, 2.0, 1.0] and a.argmax().item() == 2


@pytest.mark.parametrize("name", NAMES)
def test_promote_with_nothing_but_numbers(torch, name):
    d = getattr(torch, name)
    assert torch.promote_types(d, d) is d and torch.result_type(torch.zeros(1, dtype=d), 1.0) is d
    for other in (torch.float32, torch.int8, torch.bool, torch.complex64, torch.uint16):
        with pytest.raises(RuntimeError, match="Promotion for Float8 Types is not supported, attempted to promote"):
            torch.promote_types(d, other)
    x = torch.zeros(2, dtype=d)
    with pytest.raises(RuntimeError, match="Promotion for Float8 Types"):
        torch.cat([x, torch.ones(2)])
    with pytest.raises(RuntimeError, match="Promotion for Float8 Types"):
        x + torch.ones(2)


# Printed by PyTorch 2.15.
PRINTED = {
    "float8_e4m3fn": "tensor([ 1.5000e+00,  4.4800e+02,         nan, -1.2500e-01],\n       dtype=torch.float8_e4m3fn)",
    "float8_e5m2": "tensor([ 1.5000e+00,  4.4800e+02,         nan, -1.2500e-01],\n       dtype=torch.float8_e5m2)",
    "float8_e8m0fnu": "tensor([2.0000e+00, 5.1200e+02,        nan, 1.2500e-01],\n       dtype=torch.float8_e8m0fnu)",
}


@pytest.mark.parametrize("name", PRINTED)
def test_printed(torch, name):
    d = getattr(torch, name)
    assert repr(torch.tensor([1.5, 448.0, float("nan"), -0.125]).to(d)) == PRINTED[name]
    assert repr(torch.zeros(0, dtype=d)) == f"tensor([], dtype=torch.{name})"


@pytest.mark.parametrize("name", NAMES)
def test_files_and_copies(torch, name):
    d = getattr(torch, name)
    x = torch.arange(256, dtype=torch.uint8).view(d)
    file = io.BytesIO()
    torch.save({"w": x, "v": x[4:8]}, file)
    file.seek(0)
    read = torch.load(file)
    assert read["w"].dtype is d and np.array_equal(codes_of(torch, read["w"]), np.arange(256))
    assert read["v"].untyped_storage().data_ptr() == read["w"].untyped_storage().data_ptr()
    assert np.array_equal(codes_of(torch, copy.deepcopy(x)), np.arange(256))
    torch.testing.assert_close(x[1:100], x[1:100].clone())
    with pytest.raises(AssertionError):
        torch.testing.assert_close(x[1:3], x[2:4])
    with pytest.raises(TypeError, match=f"Got unsupported ScalarType F{name[1:]}"):
        x.numpy()


@own
@pytest.mark.parametrize("name", NAMES)
def test_pickled_and_exchanged(torch, name):
    d = getattr(torch, name)
    x = torch.arange(256, dtype=torch.uint8).view(d)
    for same in (pickle.loads(pickle.dumps(x)), torch.from_dlpack(x)):
        assert same.dtype is d and np.array_equal(codes_of(torch, same), np.arange(256))


@own
def test_stored_as_safetensors(torch, tmp_path):
    from rustgrad.utils.safetensors import load_file, save_file

    given = {
        name: torch.ones(3).to(getattr(torch, name)) for name in ("float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu")
    }
    save_file(given, tmp_path / "x.safetensors")
    header = (tmp_path / "x.safetensors").read_bytes()
    assert b'"F8_E4M3"' in header and b'"F8_E5M2"' in header and b'"F8_E8M0"' in header
    read = load_file(tmp_path / "x.safetensors")
    for name, x in given.items():
        assert read[name].dtype is x.dtype and torch.equal(read[name], x)


def test_scaled_product(torch):
    """Figures of PyTorch 2.15."""
    d = torch.float8_e4m3fn
    a, b = torch.arange(6.0).view(2, 3).to(d), torch.arange(12.0).view(4, 3).to(d).t()
    two, three = torch.tensor(2.0), torch.tensor(3.0)
    want = (a.float() @ b.float()) * 6
    assert torch.equal(torch._scaled_mm(a, b, two, three, out_dtype=torch.float32), want)
    assert torch.equal(torch._scaled_mm(a, b, two, three), want.to(d))
    biased = torch._scaled_mm(a, b, two, three, bias=torch.ones(4), out_dtype=torch.float32)
    assert torch.equal(biased, want + 1)
    rows, columns = torch.tensor([[1.0], [2.0]]), torch.tensor([[1.0, 2.0, 3.0, 4.0]])
    by_row = torch._scaled_mm(a, b, rows, columns, out_dtype=torch.bfloat16)
    assert torch.equal(by_row, (a.float() @ b.float() * rows * columns).bfloat16())
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        torch._scaled_mm(a, a, two, three)
    with pytest.raises(ValueError, match="Invalid scaling configuration"):
        torch._scaled_mm(a.float(), b.float(), two, three)
    with pytest.raises(ValueError, match="Invalid scaling configuration"):
        torch._scaled_mm(a, b, rows, three)


@own
def test_what_has_no_meaning_is_refused(torch):
    x = torch.ones(4).to(torch.float8_e4m3fn)
    with pytest.raises(NotImplementedError):
        torch.linalg.inv(x.view(2, 2))
    with pytest.raises(RuntimeError, match="Unknown Complex ScalarType"):
        torch.float8_e5m2.to_complex()
    with pytest.raises(TypeError, match="default type"):
        torch.set_default_dtype(torch.float8_e5m2)
    assert torch.get_default_dtype() is torch.float32
    with pytest.raises(RuntimeError):
        torch.zeros(2, dtype=torch.uint8).view(torch.float8_e4m3fn) + torch.zeros(2, dtype=torch.uint8)
