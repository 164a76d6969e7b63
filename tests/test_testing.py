"""`torch.testing`: accepted inputs and errors of `assert_close`, its messages, values of `make_tensor`."""

import dataclasses
import gc
import importlib
import subprocess
import sys
import weakref
from collections import OrderedDict

import numpy as np
import pytest
from support import target

NAN, INF = float("nan"), float("inf")


@pytest.fixture
def close(torch):
    import importlib

    return importlib.import_module(f"{torch.__name__}.testing").assert_close


def error(close, actual, expected, **options):
    """'Class: message' of the comparison, empty if it holds."""
    try:
        close(actual, expected, **options)
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    return ""


def test_equal_values_hold(torch, close):
    t = torch.tensor
    for actual, expected, options in [
        (t([1.0, 2.0]), t([1.0, 2.0 + 1e-6]), {}),
        (t([INF, -INF, 1.0]), t([INF, -INF, 1.0]), {}),
        (t([NAN]), t([NAN]), {"equal_nan": True}),
        (NAN, NAN, {"equal_nan": True}),
        (t([1.0]), t([1.0], dtype=torch.float64), {"check_dtype": False}),
        (t([1, 2]), t([1, 4]), {"rtol": 0, "atol": 2}),
        (torch.empty(0), torch.empty(0), {}),
        (1, 1.0, {"check_dtype": False}),
        (None, None, {}),
        (np.float64(2), 2.0, {}),
        (np.bool_(True), True, {}),
        (np.ones(2), np.ones(2), {}),
        ([1, (2, [t([1.0])])], (1, [2, (t([1.0]),)]), {}),
        ({"a": 1, "b": [1.0]}, OrderedDict(b=[1.0], a=1), {}),
        ([], (), {}),
        (range(3), [0, 1, 2], {}),
        (torch.nn.Parameter(t([1.0])), t([1.0]), {}),
        (t([1, 2]).to(torch.uint16), t([1, 2]), {"check_dtype": False}),
        (torch.ones(2, 3).t(), torch.ones(3, 2), {}),
    ]:
        assert error(close, actual, expected, **options) == ""


VALUES = [
    (
        "t([[1.0, 2], [3, 4]]), t([[1.0, 2.125], [3, 5]])",
        "Tensor-likes are not close!\n\nMismatched elements: 2 / 4 (50.0%)\n"
        "Greatest absolute difference: 1.0 at index (1, 1) (up to 1e-05 allowed)\n"
        "Greatest relative difference: 0.20000000298023224 at index (1, 1) (up to 1.3e-06 allowed)",
    ),
    (
        "t([1, 2, 3]), t([1, 2, 4])",
        "Tensor-likes are not equal!\n\nMismatched elements: 1 / 3 (33.3%)\n"
        "Greatest absolute difference: 1 at index (2,)\nGreatest relative difference: 0.25 at index (2,)",
    ),
    (
        "t([0.0, 1]), t([1.0, 0])",
        "Tensor-likes are not close!\n\nMismatched elements: 2 / 2 (100.0%)\n"
        "Greatest absolute difference: 1.0 at index (0,) (up to 1e-05 allowed)\n"
        "Greatest relative difference: inf at index (1,) (up to 1.3e-06 allowed)",
    ),
    (
        "t([250]).to(torch.uint8), t([3]).to(torch.uint8)",
        "Tensor-likes are not equal!\n\nMismatched elements: 1 / 1 (100.0%)\n"
        "Greatest absolute difference: 247 at index (0,)\n"
        "Greatest relative difference: 82.33333587646484 at index (0,)",
    ),
    (
        "t([INF, 1.0]), t([INF, 2.0])",
        "Tensor-likes are not close!\n\nMismatched elements: 1 / 2 (50.0%)\n"
        "Greatest absolute difference: 1.0 at index (1,) (up to 1e-05 allowed)\n"
        "Greatest relative difference: 0.5 at index (1,) (up to 1.3e-06 allowed)",
    ),
    (
        "t([NAN]), t([NAN])",
        "Tensor-likes are not close!\n\nMismatched elements: 1 / 1 (100.0%)\n"
        "Greatest absolute difference: nan at index (0,) (up to 1e-05 allowed)\n"
        "Greatest relative difference: nan at index (0,) (up to 1.3e-06 allowed)",
    ),
    (
        "t(1.0), t(2.0)",
        "Scalars are not close!\n\nExpected 2.0 but got 1.0.\nAbsolute difference: 1.0 (up to 1e-05 allowed)\n"
        "Relative difference: 0.5 (up to 1.3e-06 allowed)",
    ),
    (
        "1e-9, 1e-10, rtol=0, atol=0",
        "Scalars are not equal!\n\nExpected 1e-10 but got 1e-09.\nAbsolute difference: 9.000000000000001e-10\n"
        "Relative difference: 9.0",
    ),
    (
        "1.0, 1.5",
        "Scalars are not close!\n\nExpected 1.5 but got 1.0.\nAbsolute difference: 0.5 (up to 1e-07 allowed)\n"
        "Relative difference: 0.3333333333333333 (up to 1e-07 allowed)",
    ),
    ("1, 1.0", "The (d)types do not match: <class 'int'> != <class 'float'>."),
    ("True, False", "Booleans mismatch: True is not False"),
    ("None, 1", "None mismatch: None is not 1"),
    (
        "t([1.0]), t([1.0, 2])",
        "The values for attribute 'shape' do not match: torch.Size([1]) != torch.Size([2]).",
    ),
    (
        "t([1.0]), t([1.0], dtype=torch.float64)",
        "The values for attribute 'dtype' do not match: torch.float32 != torch.float64.",
    ),
    (
        "torch.ones(2, 3).t(), torch.ones(3, 2), check_stride=True",
        "The values for attribute 'stride()' do not match: (1, 3) != (2, 1).",
    ),
    ("[1, 2], [1]", "The length of the sequences mismatch: 2 != 1"),
    (
        "{'a': 1}, {'b': 1}",
        "The keys of the mappings do not match:\nMissing keys in the actual mapping: ['b']\n"
        "Additional keys in the actual mapping: ['a']",
    ),
    ("[1, {'a': (1, 2)}], [1, {'a': (1, 3)}]", "Scalars are not equal!\n\nExpected 3 but got 2.\n"
     "Absolute difference: 1\nRelative difference: 0.3333333333333333\n\n"
     "The failure occurred for item [1]['a'][1]"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), VALUES, ids=[call for call, _ in VALUES])
def test_messages(torch, close, call, message):
    scope = {"t": torch.tensor, "torch": torch, "error": error, "close": close, "NAN": NAN, "INF": INF}
    assert eval(f"error(close, {call})", scope) == f"AssertionError: {message}"


def test_refused(torch, close):
    one = torch.tensor([1.0])
    for actual, expected, options, message in [
        (one, np.ones(1), {}, "TypeError: No comparison pair was able to handle inputs of type"),
        (one, [1.0], {}, "TypeError: No comparison pair"),
        ("a", "a", {}, "TypeError: No comparison pair was able to handle inputs of type <class 'str'> and <class 'str'>."),
        (torch.nn.Parameter(one), one, {"allow_subclasses": False}, "TypeError: No comparison pair"),
        (one, one, {"rtol": 1}, "ValueError: Both 'rtol' and 'atol' must be either specified or omitted, but got no atol."),
    ]:  # fmt: skip
        assert error(close, actual, expected, **options).startswith(message)


def test_words_of_the_caller(torch, close):
    pair = (torch.tensor([1.0]), torch.tensor([2.0]))
    assert error(close, *pair, msg="no") == "AssertionError: no"
    assert error(close, *pair, msg=lambda text: f"Head {text[:12]}") == "AssertionError: Head Tensor-likes"
    nested = error(close, [pair[0]], [pair[1]], msg=lambda text: text[-40:])
    assert nested.endswith("The failure occurred for item [0]")


@dataclasses.dataclass
class Point:
    x: object
    y: int = 0


def test_dataclasses(torch, close):
    if target.STAND_IN and not hasattr(torch.testing._comparison, "_IS_DATACLASS_SKIP_TYPES"):
        pytest.skip("this PyTorch does not compare dataclasses")
    close(Point(torch.ones(2)), Point(torch.ones(2)))
    assert "item ['x']" in error(close, Point(torch.ones(2)), Point(torch.zeros(2)))
    assert "item ['y']" in error(close, Point(torch.ones(2), 1), Point(torch.ones(2), 2))


def test_on_devices(torch, close, device):
    x = torch.arange(6.0, device=device).reshape(2, 3)
    close(x, x.clone())
    assert "Mismatched elements: 1 / 6" in error(close, x, torch.where(x == 4, 5.0, x))
    if device != "cpu":
        assert "attribute 'device'" in error(close, x, x.cpu())
        close(x, x.cpu(), check_device=False)


@pytest.mark.skipif(target.STAND_IN, reason="PyTorch's error keeps a cycle")
def test_a_difference_keeps_nothing_alive(torch, close):
    x = torch.ones(3)
    gone = weakref.ref(x)
    gc.disable()
    try:
        error(close, [x], [torch.zeros(3)])
        del x
        assert gone() is None
    finally:
        gc.enable()


def test_pairs_can_be_made(torch, close):
    comparison = sys.modules[f"{torch.__name__}.testing._comparison"]
    text = comparison.NumberPair(1, 2.0, id=("a",), rtol=0.5, atol=1.0)
    assert repr(text) == (
        "NumberPair(\n    id=('a',),\n    actual=1,\n    expected=2.0,\n    rtol=0.5,\n    atol=1.0,\n"
        "    equal_nan=False,\n    check_dtype=False,\n)"
    )
    found = comparison.not_close_error_metas([1, "a"], [1, "b"])
    assert [(m.type, m.msg, m.id) for m in found] == [(AssertionError, "a != b", (1,))]
    assert comparison.default_tolerances(torch.float16, torch.ones(1)) == (1e-3, 1e-5)

    class Broken(comparison.ObjectPair):
        def compare(self):
            raise KeyError("oops")

    with pytest.raises(RuntimeError, match=r"Comparing\n\nBroken\("):
        comparison.not_close_error_metas(1, 1, pair_types=(Broken,))


def test_assert_allclose(torch, close):
    with pytest.warns(FutureWarning, match="is deprecated since 1.12"):
        torch.testing.assert_allclose(torch.ones(2), [1.0, 1.00001])
    with pytest.warns(FutureWarning), pytest.raises(AssertionError, match="Tensor-likes are not close!"):
        torch.testing.assert_allclose(torch.ones(2), [1.0, 1.1])


@pytest.mark.parametrize(
    "name", "bool uint8 int8 int64 uint16 uint64 float16 bfloat16 float32 float64 complex64".split()
)
def test_make_tensor(torch, close, name):
    dtype = getattr(torch, name)
    t = torch.testing.make_tensor((20, 30), dtype=dtype, device="cpu")
    assert t.shape == (20, 30) and t.dtype is dtype and not t.requires_grad and t.is_contiguous()
    wide = torch.view_as_real(t) if dtype.is_complex else t
    low, high = wide.to(torch.float64).min().item(), wide.to(torch.float64).max().item()
    least = 0 if name[0] in "bu" and name != "bfloat16" else -9
    assert low >= least and high <= (1 if name == "bool" else 9) and high - low > (0 if name == "bool" else 7)
    if target.STAND_IN and name in ("uint16", "uint64"):
        return  # PyTorch cannot fill zeros of these dtypes
    nonzero = torch.testing.make_tensor(500, dtype=dtype, device="cpu", low=0, high=2, exclude_zero=True)
    assert not (nonzero.to(torch.complex128 if dtype.is_complex else torch.float64) == 0).any()


def test_make_tensor_options(torch, close):
    make = torch.testing.make_tensor
    apart = make(2, 3, dtype=torch.float32, device="cpu", noncontiguous=True)
    assert apart.stride() == (6, 2) and apart.storage_offset() == 1
    assert make(1, dtype=torch.float32, device="cpu", noncontiguous=True).is_contiguous()
    assert make(2, 3, 4, 5, dtype=torch.float32, device="cpu", memory_format=torch.channels_last).stride()[1] == 1
    assert make(dtype=torch.float64, device="cpu", requires_grad=True).requires_grad
    assert make((0, 2), dtype=torch.float64, device="cpu").shape == (0, 2)
    wide = make(1000, dtype=torch.float32, device="cpu", low=-INF, high=INF)
    assert wide.isfinite().all() and wide.abs().max() > 1e38
    assert make(50, dtype=torch.int8, device="cpu", low=-3.5, high=-0.5).unique().tolist() == [-3, -2, -1]
    for options, message in [
        ({"dtype": torch.float32, "low": NAN}, "cannot be NaN"),
        ({"dtype": torch.int64, "low": 3, "high": 3}, "must be less than"),
        ({"dtype": torch.uint8, "low": 300, "high": 400}, r"only supports \[0, 256\)"),
        ({"dtype": torch.int64, "requires_grad": True}, "not supported for boolean and integral"),
        (
            {"dtype": torch.float32, "noncontiguous": True, "memory_format": torch.contiguous_format},
            "mutually exclusive",
        ),
    ]:
        with pytest.raises(ValueError, match=message):
            make(2, device="cpu", **options)
    with pytest.warns(FutureWarning, match="low==high"):
        assert (make(2, dtype=torch.float32, device="cpu", low=1, high=1) == 1).all()


@pytest.mark.skipif(target.STAND_IN, reason="what only rustgrad has")
def test_without_numpy():
    code = (
        "import sys; sys.modules['numpy'] = None; import rustgrad as torch;"
        "assert 'rustgrad.testing' not in sys.modules; torch.testing.assert_close([1.0, True], [1.0, True]);"
        "torch.testing.assert_close(torch.ones(2), torch.ones(2))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_a_seed_for_one_call(torch):
    utils = importlib.import_module(f"{torch.__name__}.testing._utils")
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    first = utils.wrapper_set_seed(torch.rand, 3)
    assert utils.wrapper_set_seed(torch.rand, 3).equal(first) and not first.equal(expected)
    assert torch.rand(3).equal(expected)


def test_tensors_of_two_layouts_are_of_one_class(torch):
    close, eye = torch.testing.assert_close, torch.eye(2)
    with pytest.raises(AssertionError, match="attribute 'layout' do not match: torch.sparse_coo != torch.sparse_csr"):
        close(eye.to_sparse(), eye.to_sparse_csr())
    for pair in ((eye.to_sparse(), eye.to_sparse_csr()), (eye, eye.to_sparse_csc())):
        close(*pair, check_layout=False, allow_subclasses=False)
        with pytest.raises(AssertionError, match="not close"):
            close(pair[0], pair[1] * 2, check_layout=False)
    rows = eye.to_sparse_csr()
    small = torch.sparse_csr_tensor(rows.crow_indices().int(), rows.col_indices().int(), rows.values(), (2, 2))
    close(rows, small)
    # Indices have no tolerance.
    first, second = (torch.sparse_coo_tensor([place], [1.0, 2.0], (40,)).coalesce() for place in ([0, 1], [0, 2]))
    with pytest.raises(AssertionError, match="not equal"):
        close(first, second, rtol=1.0, atol=1.0)
    with pytest.raises(AssertionError, match="number of sparse dimensions"):
        close(torch.ones(2, 2).to_sparse(1), torch.ones(2, 2).to_sparse())


def test_quantized_tensors_are_compared_as_numbers(torch):
    close, one = torch.testing.assert_close, torch.ones(1)
    q = torch.quantize_per_tensor(one, 1.0, 0, torch.qint8)
    close(q, torch.quantize_per_tensor(one, 0.5, 0, torch.qint8))
    channels = torch.quantize_per_channel(one, torch.tensor([1.0]), torch.tensor([0]), 0, torch.qint8)
    close(channels, channels.clone())
    wrong = {
        "not close": torch.quantize_per_tensor(one * 0, 1.0, 0, torch.qint8),
        "attribute 'qscheme": channels,
        "attribute 'is_quantized'": one,
        "attribute 'dtype'": torch.quantize_per_tensor(one, 1.0, 0, torch.quint8),
    }
    for match, other in wrong.items():
        with pytest.raises(AssertionError, match=match):
            close(q, other)
