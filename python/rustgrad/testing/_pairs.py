"""Pairs of values to compare: one class for each kind of value. `assert_close` uses the first that accepts them.

A pair rejects inputs of another kind with `UnsupportedInputs`, and reports a difference by an `ErrorMeta` with
the item of nested containers in which it was found.
"""

from __future__ import annotations

import cmath
import sys
from collections.abc import Callable, Sequence
from typing import Any

from .. import _C, _base
from .._base import Tensor, isclose, promote_types
from .._C import dtype
from .._formats import strided
from .._own import is_own, own_module
from ._messages import scalar_mismatch, tensor_mismatch

_PRECISIONS = {
    _base.float16: (1e-3, 1e-5),
    _base.bfloat16: (1.6e-2, 1e-5),
    _base.float32: (1.3e-6, 1e-5),
    _base.float64: (1e-7, 1e-7),
    _base.complex32: (1e-3, 1e-5),
    _base.complex64: (1.3e-6, 1e-5),
    _base.complex128: (1e-7, 1e-7),
    **dict.fromkeys((_C.qint8, _C.quint8, _C.qint32), (1.3e-6, 1e-5)),
}
# These have no arithmetic: they are compared as int64.
_STORED_ONLY = (_base.uint16, _base.uint32, _base.uint64)


class UnsupportedInputs(Exception):
    """The pair is not for values of these types."""


class ErrorMeta(Exception):
    """A difference: the class and message of the error, and the keys of the item."""

    def __init__(self, type: type[Exception], msg: str, *, id: tuple[Any, ...] = ()) -> None:
        super().__init__(f"{type.__name__}: {msg}")
        self.type = type
        self.msg = msg
        self.id = id

    def to_error(self, msg: str | Callable[[str], str] | None = None) -> Exception:
        """The exception for the caller; `msg` replaces the words, or changes them if it is callable."""
        if not isinstance(msg, str):
            words = self.msg
            if self.id:
                words += f"\n\nThe failure occurred for item {item(self.id)}"
            msg = msg(words) if callable(msg) else words
        return self.type(msg)


def item(id: tuple[Any, ...]) -> str:
    """`[0]['a']`: where an item is."""
    return "".join(f"[{key!r}]" for key in id)


def default_tolerances(
    *inputs: Any, dtype_precisions: dict[dtype, tuple[float, float]] | None = None
) -> tuple[float, float]:
    """(rtol, atol) for tensors or dtypes: the loosest of theirs, zero for integers and bools.

    Raises:
        TypeError: an input is neither a tensor nor a dtype.
    """
    precisions, found = dtype_precisions or _PRECISIONS, []
    for value in inputs:
        if not isinstance(value, (Tensor, _base.dtype)):
            raise TypeError(f"Expected a torch.Tensor or a torch.dtype, but got {type(value)} instead.")
        found.append(precisions.get(value.dtype if isinstance(value, Tensor) else value, (0.0, 0.0)))
    return max(rtol for rtol, _ in found), max(atol for _, atol in found)


def get_tolerances(
    *inputs: Any, rtol: float | None, atol: float | None, id: tuple[Any, ...] = ()
) -> tuple[float, float]:
    """Those given, both or none, else the defaults of the inputs."""
    if (rtol is None) != (atol is None):
        missing = "rtol" if rtol is None else "atol"
        raise ErrorMeta(
            ValueError, f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}.", id=id
        )
    return default_tolerances(*inputs) if rtol is None else (rtol, atol)


def _numpy(name):
    """A NumPy class, if NumPy has been imported: otherwise no value can be an instance."""
    numpy = sys.modules.get("numpy")
    return () if numpy is None else (getattr(numpy, name),)


class Pair:
    """Base class. A subclass defines `compare`, which calls `_fail` if the values differ.

    All options of a comparison are passed to every pair, which uses those it supports.
    """

    def __init__(self, actual: Any, expected: Any, *, id: tuple[Any, ...] = (), **unknown_parameters: Any) -> None:
        self.actual = actual
        self.expected = expected
        self.id = id
        self._unknown_parameters = unknown_parameters

    @staticmethod
    def _inputs_not_supported():
        raise UnsupportedInputs

    @staticmethod
    def _check_inputs_isinstance(*inputs, cls):
        if not all(isinstance(value, cls) for value in inputs):
            raise UnsupportedInputs

    def _fail(self, type, msg, *, id=()):
        raise ErrorMeta(type, msg, id=id or getattr(self, "id", ()))

    def compare(self) -> None:
        """Raises an `ErrorMeta` where the two values differ."""
        raise NotImplementedError(f"{type(self).__name__}.compare is not defined")

    def extra_repr(self) -> Sequence[str | tuple[str, Any]]:
        """Names of attributes, or (name, value), that the printed form shows."""
        return []

    def __repr__(self) -> str:
        shown = [("id", self.id), ("actual", self.actual), ("expected", self.expected)]
        shown += [(x, getattr(self, x)) if isinstance(x, str) else x for x in self.extra_repr()]
        return "\n".join([f"{type(self).__name__}(", *(f"    {name}={value!s}," for name, value in shown), ")"])


class ObjectPair(Pair):
    """Values of any kind, compared by `==`."""

    def compare(self) -> None:
        try:
            equal = self.actual == self.expected
        except Exception as error:
            text = f"{self.actual} == {self.expected} failed with:\n{error}."
            raise ErrorMeta(ValueError, text, id=self.id) from error
        if not equal:
            self._fail(AssertionError, f"{self.actual} != {self.expected}")


class NonePair(Pair):
    """None and anything: only None equals it."""

    def __init__(self, actual: Any, expected: Any, **other_parameters: Any) -> None:
        if actual is not None and expected is not None:
            self._inputs_not_supported()
        super().__init__(actual, expected, **other_parameters)

    def compare(self) -> None:
        if self.actual is not self.expected:
            self._fail(AssertionError, f"None mismatch: {self.actual} is not {self.expected}")


class BooleanPair(Pair):
    """Two bools of Python or NumPy."""

    def __init__(self, actual: Any, expected: Any, *, id: tuple[Any, ...] = (), **other_parameters: Any) -> None:
        self._check_inputs_isinstance(actual, expected, cls=(bool, *_numpy("bool_")))
        super().__init__(bool(actual), bool(expected), id=id, **other_parameters)

    def compare(self) -> None:
        if self.actual is not self.expected:
            self._fail(AssertionError, f"Booleans mismatch: {self.actual} is not {self.expected}")


class NumberPair(Pair):
    """Two numbers of Python or NumPy; tolerances are those of int64, float64 and complex128."""

    _TYPE_TO_DTYPE = {int: _base.int64, float: _base.float64, complex: _base.complex128}
    _NUMBER_TYPES = tuple(_TYPE_TO_DTYPE)

    def __init__(
        self,
        actual: Any,
        expected: Any,
        *,
        id: tuple[Any, ...] = (),
        rtol: float | None = None,
        atol: float | None = None,
        equal_nan: bool = False,
        check_dtype: bool = False,
        **other_parameters: Any,
    ) -> None:
        self._check_inputs_isinstance(actual, expected, cls=(*self._NUMBER_TYPES, *_numpy("number")))
        actual, expected = (v.item() if isinstance(v, _numpy("number")) else v for v in (actual, expected))
        super().__init__(actual, expected, id=id, **other_parameters)
        dtypes = [next(d for t, d in self._TYPE_TO_DTYPE.items() if isinstance(v, t)) for v in (actual, expected)]
        self.rtol, self.atol = get_tolerances(*dtypes, rtol=rtol, atol=atol, id=id)
        self.equal_nan = equal_nan
        self.check_dtype = check_dtype

    def compare(self) -> None:
        actual, expected = self.actual, self.expected
        if self.check_dtype and type(actual) is not type(expected):
            self._fail(AssertionError, f"The (d)types do not match: {type(actual)} != {type(expected)}.")
        if actual == expected or (self.equal_nan and cmath.isnan(actual) and cmath.isnan(expected)):
            return
        difference = abs(actual - expected)
        if not (cmath.isfinite(difference) and difference <= self.atol + self.rtol * abs(expected)):
            self._fail(AssertionError, scalar_mismatch(actual, expected, rtol=self.rtol, atol=self.atol))

    def extra_repr(self) -> Sequence[str | tuple[str, Any]]:
        return ("rtol", "atol", "equal_nan", "check_dtype")


def _schemes(*tensors: Tensor) -> list[Any]:
    return [t.qscheme() if t.is_quantized else None for t in tensors]


def _kind(value: Any) -> type:
    """The class of a value; of sparse, nested and quantized tensors `Tensor`, of which they are in PyTorch."""
    kind = type(value)
    hidden = is_own(kind) and issubclass(kind, Tensor) and own_module(kind).endswith("._tensor")
    return Tensor if hidden else kind


class TensorLikePair(Pair):
    """Two tensors, or two values of related types that `as_tensor` takes.

    Shapes must be equal; device, dtype, layout and stride where they are checked. Tensors of two devices are compared
    on the CPU, of two dtypes in the one that both promote to.
    """

    def __init__(
        self,
        actual: Any,
        expected: Any,
        *,
        id: tuple[Any, ...] = (),
        allow_subclasses: bool = True,
        rtol: float | None = None,
        atol: float | None = None,
        equal_nan: bool = False,
        check_device: bool = True,
        check_dtype: bool = True,
        check_layout: bool = True,
        check_stride: bool = False,
        **other_parameters: Any,
    ) -> None:
        kinds = _kind(actual), _kind(expected)
        related = issubclass(*kinds) or issubclass(*kinds[::-1])
        if not related or (not allow_subclasses and kinds[0] is not kinds[1]):
            self._inputs_not_supported()
        actual, expected = self._to_tensor(actual), self._to_tensor(expected)
        super().__init__(actual, expected, id=id, **other_parameters)
        self.rtol, self.atol = get_tolerances(actual, expected, rtol=rtol, atol=atol, id=id)
        self.equal_nan = equal_nan
        self.check_device = check_device
        self.check_dtype = check_dtype
        self.check_layout = check_layout
        self.check_stride = check_stride

    def _to_tensor(self, value):
        if isinstance(value, Tensor):
            return value
        try:
            return _base.as_tensor(value)
        except Exception:
            self._inputs_not_supported()

    def compare(self) -> None:
        if self.actual.is_nested or self.expected.is_nested:
            self._compare_nested(self.actual, self.expected)
        else:
            self._compare(self.actual, self.expected)

    def _compare(self, actual, expected):
        self._compare_attributes(actual, expected)
        if "meta" in (actual.device.type, expected.device.type):
            return
        self._compare_values(*self._equalize_attributes(actual, expected))

    def _compare_nested(self, actual, expected):
        """The sequences of two nested tensors, whatever symbols their ragged sizes have."""
        for name in ("is_nested", "layout"):
            ours, theirs = getattr(actual, name), getattr(expected, name)
            if ours != theirs and (name != "layout" or self.check_layout):
                self._fail(AssertionError, f"The values for attribute '{name}' do not match: {ours} != {theirs}.")
        if len(actual) != len(expected):
            self._fail(AssertionError, f"The numbers of sequences do not match: {len(actual)} != {len(expected)}.")
        for ours, theirs in zip(actual.unbind(), expected.unbind(), strict=True):
            self._compare(ours, theirs)

    def _compare_attributes(self, actual, expected):
        checked = [
            ("shape", actual.shape, expected.shape, True),
            ("is_quantized", actual.is_quantized, expected.is_quantized, True),
            ("qscheme()", *_schemes(actual, expected), True),
            ("layout", actual.layout, expected.layout, self.check_layout),
            ("device", actual.device, expected.device, self.check_device),
            ("dtype", actual.dtype, expected.dtype, self.check_dtype),
        ]
        for name, ours, theirs, wanted in checked:
            if wanted and ours != theirs:
                self._fail(AssertionError, f"The values for attribute '{name}' do not match: {ours} != {theirs}.")
        both_strided = actual.layout is strided and expected.layout is strided
        if self.check_stride and both_strided and actual.stride() != expected.stride():
            strides = f"{actual.stride()} != {expected.stride()}"
            self._fail(AssertionError, f"The values for attribute 'stride()' do not match: {strides}.")

    def _equalize_attributes(self, actual, expected):
        if actual.device != expected.device:
            actual, expected = actual.cpu(), expected.cpu()
        if actual.is_quantized:
            # The numbers that they stand for, whatever scales and integers stand for them.
            return actual.dequantize(), expected.dequantize()
        actual, expected = (t.to(_base.int64) if t.dtype in _STORED_ONLY else t for t in (actual, expected))
        if actual.dtype != expected.dtype:
            common = promote_types(actual.dtype, expected.dtype)
            actual, expected = actual.to(common), expected.to(common)
        if actual.layout != expected.layout:
            actual, expected = (t if t.layout is strided else t.to_dense() for t in (actual, expected))
        return actual, expected

    def _compare_sparse(self, actual, expected):
        """The indices of two tensors of a sparse layout, then their values."""
        if actual.is_sparse:
            actual, expected = actual.coalesce(), expected.coalesce()
            ours, theirs = actual.sparse_dim(), expected.sparse_dim()
            if ours != theirs:
                text = f"The number of sparse dimensions in sparse COO tensors does not match: {ours} != {theirs}"
                self._fail(AssertionError, text)
        if actual._nnz() != expected._nnz():
            counts = f"{actual._nnz()} != {expected._nnz()}"
            kind = str(actual.layout).removeprefix("torch.sparse_").upper()
            self._fail(
                AssertionError, f"The number of specified values in sparse {kind} tensors does not match: {counts}"
            )
        for name in ("_index", "_pointers", "_plain"):
            if hasattr(actual, name):
                ours, theirs = (getattr(t, name).to(_base.int64) for t in (actual, expected))
                self._compare_strided(ours, theirs, rtol=0.0, atol=0.0)
        self._compare_values(actual._value, expected._value)

    def _compare_values(self, actual, expected):
        actual, expected = actual.detach(), expected.detach()
        if actual.layout is not strided:
            self._compare_sparse(actual, expected)
        else:
            self._compare_strided(actual, expected, rtol=self.rtol, atol=self.atol)

    def _compare_strided(self, actual, expected, **tolerances):
        matches = isclose(actual, expected, equal_nan=self.equal_nan, **tolerances)
        if matches.all():
            return
        if actual.ndim == 0:
            self._fail(AssertionError, scalar_mismatch(actual.item(), expected.item(), **tolerances))
        self._fail(AssertionError, tensor_mismatch(actual, expected, matches, **tolerances))

    def extra_repr(self) -> Sequence[str | tuple[str, Any]]:
        return ("rtol", "atol", "equal_nan", "check_device", "check_dtype", "check_layout", "check_stride")
