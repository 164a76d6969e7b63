"""Arithmetic of dtypes and of the types of Python's numbers, which libraries use as `torch._prims_common`."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import rustgrad

from ._base import Tensor, dtype

__all__ = [
    "ELEMENTWISE_TYPE_PROMOTION_KIND",
    "REDUCTION_OUTPUT_TYPE_KIND",
    "RETURN_TYPE",
    "can_safe_cast_to",
    "check_fp_or_complex",
    "check_is_matrix",
    "corresponding_complex_dtype",
    "corresponding_real_dtype",
    "dtype_to_type",
    "dtype_to_type_ctor",
    "elementwise_dtypes",
    "get_computation_dtype",
    "get_dtype",
    "get_higher_dtype",
    "get_higher_type",
    "is_boolean_dtype",
    "is_complex_dtype",
    "is_float_dtype",
    "is_grad_dtype",
    "is_integer_dtype",
    "is_low_precision_dtype",
    "is_weakly_lesser_type",
    "number_type",
    "set_correction",
    "type_to_dtype",
]

_ORDER = (bool, int, float, complex)
_INTEGERS = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64")
_LOW = ("float16", "bfloat16", "complex32")
_COMPLEX_OF = {"float16": "complex32", "float32": "complex64", "float64": "complex128"}
_REAL_OF = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}
_COMPUTED_IN = {"float16": "float32", "bfloat16": "float32", "complex32": "complex64"}


def _name(kind: dtype) -> str:
    return str(kind).rpartition(".")[2]


def _named(name: str) -> dtype:
    found: dtype = getattr(rustgrad, name)
    return found


class ELEMENTWISE_TYPE_PROMOTION_KIND(enum.Enum):
    """How the dtype of a result follows from those of the arguments."""

    DEFAULT = 0
    NO_OPMATH = 1
    INT_TO_FLOAT = 2
    ALWAYS_BOOL = 3
    COMPLEX_TO_FLOAT = 4
    BOOL_TO_LONG = 5


class REDUCTION_OUTPUT_TYPE_KIND(enum.Enum):
    """The dtype of the result of a reduction."""

    SAME = 0
    COMPLEX_TO_FLOAT = 1
    KEEP_PROMOTED_TYPE = 2
    ALWAYS_BOOL = 3


class RETURN_TYPE(enum.Enum):
    """What an operation gives back."""

    NEW = 0
    VIEW = 1
    INPLACE = 2
    NONE = 3


def is_boolean_dtype(dtype: dtype) -> bool:
    """Whether a dtype is bool."""
    return _name(dtype) == "bool"


def is_integer_dtype(dtype: dtype) -> bool:
    """Whether a dtype is of integers."""
    return _name(dtype) in _INTEGERS


def is_low_precision_dtype(dtype: dtype) -> bool:
    """Whether a dtype has 16 bits for a real number."""
    return _name(dtype) in _LOW


def is_float_dtype(dtype: dtype) -> bool:
    """Whether a dtype is of floating-point numbers."""
    return dtype.is_floating_point


def is_complex_dtype(dtype: dtype) -> bool:
    """Whether a dtype is of complex numbers."""
    return dtype.is_complex


def is_grad_dtype(dtype: dtype) -> bool:
    """Whether tensors of a dtype may require grad."""
    return dtype.is_floating_point or dtype.is_complex


def corresponding_real_dtype(dtype: dtype) -> Any:
    """The dtype of the parts of complex numbers."""
    return _named(_REAL_OF[_name(dtype)])


def corresponding_complex_dtype(dtype: dtype) -> Any:
    """The dtype of complex numbers with such parts."""
    return _named(_COMPLEX_OF[_name(dtype)])


def dtype_to_type(dtype: dtype) -> type:
    """Python's type of a dtype's numbers."""
    if is_boolean_dtype(dtype):
        return bool
    return complex if dtype.is_complex else float if dtype.is_floating_point else int


def dtype_to_type_ctor(dtype: dtype) -> Callable[[Any], Any]:
    """What makes Python's number of a dtype."""
    return dtype_to_type(dtype)


def type_to_dtype(typ: type) -> Any:
    """The dtype of Python's numbers of a type.

    Raises:
        ValueError: a type of no numbers.
    """
    if typ not in _ORDER:
        raise ValueError(f"Invalid type {typ}!")
    real = rustgrad.get_default_dtype()
    return {bool: rustgrad.bool, int: rustgrad.long, float: real}.get(typ) or corresponding_complex_dtype(real)


def get_dtype(x: Any) -> Any:
    """The dtype of a tensor or number."""
    return x.dtype if isinstance(x, Tensor) else type_to_dtype(type(x))


def number_type(x: Any) -> type:
    """Python's type of a number."""
    return type(x)


def get_higher_type(a: type, b: type) -> type:
    """The type of Python's numbers that holds those of both."""
    return _ORDER[max(_ORDER.index(a), _ORDER.index(b))]


def get_higher_dtype(a: Any, b: Any) -> Any:
    """The dtype to which two are promoted; a tensor, number or None may stand for one."""
    kinds = [x if x is None or isinstance(x, dtype) else get_dtype(x) for x in (a, b)]
    if None in kinds:
        return kinds[0] or kinds[1]
    return rustgrad.promote_types(*kinds)


def is_weakly_lesser_type(a: type, b: type) -> bool:
    """Whether one type of numbers holds no more than another."""
    return _ORDER.index(a) <= _ORDER.index(b)


def can_safe_cast_to(*, cast_to: dtype, cast_from: dtype) -> bool:
    """Whether values of one dtype may become another's: no complex numbers real, no floats integers."""
    ranks = [_ORDER.index(dtype_to_type(kind)) for kind in (cast_to, cast_from)]
    return ranks[0] >= ranks[1]


def get_computation_dtype(dtype: dtype) -> Any:
    """The dtype in which is computed: float32 for 16 bits."""
    return _named(_COMPUTED_IN.get(_name(dtype), _name(dtype)))


def check_fp_or_complex(dtype: dtype, fn_name: str, allow_low_precision_dtypes: bool = True) -> None:
    """RuntimeError unless a dtype is of floating-point or complex numbers."""
    rustgrad._check(
        is_grad_dtype(dtype), lambda: f"{fn_name}: Expected a floating point or complex tensor as input. Got {dtype}"
    )
    rustgrad._check(
        allow_low_precision_dtypes or not is_low_precision_dtype(dtype),
        lambda: f"{fn_name}: Half precision dtypes not supported. Got {dtype}",
    )


def check_is_matrix(A: Tensor, f_name: str, arg_name: str = "A") -> None:
    """RuntimeError for less than two dimensions."""
    rustgrad._check(A.ndim >= 2, lambda: f"{f_name}: The input tensor {arg_name} must have at least 2 dimensions.")


def _promoted(values: Sequence[Any]) -> Any:
    """The dtype to which values are promoted: tensors with dimensions first, then those without, then numbers."""
    ranked: dict[int, Any] = {}
    for value in values:
        rank = (0 if value.ndim else 1) if isinstance(value, Tensor) else 2
        kind = get_dtype(value)
        ranked[rank] = kind if rank not in ranked else rustgrad.promote_types(ranked[rank], kind)
    total: Any = None
    for rank, kind in sorted(ranked.items()):
        one = dtype_to_type(kind)(1) if rank == 2 else rustgrad.empty((1,) * (1 - rank), dtype=kind)
        total = one if total is None else rustgrad.empty(total.shape, dtype=rustgrad.result_type(total, one))
    return get_dtype(total)


def elementwise_dtypes(*_args: Any, type_promotion_kind: ELEMENTWISE_TYPE_PROMOTION_KIND) -> tuple[Any, Any]:
    """(dtype in which an elementwise operation computes, dtype of its result)."""
    kinds = ELEMENTWISE_TYPE_PROMOTION_KIND
    common = _promoted([x for x in _args if x is not None])
    if type_promotion_kind is kinds.INT_TO_FLOAT and not is_grad_dtype(common):
        common = rustgrad.get_default_dtype()
    if type_promotion_kind is kinds.BOOL_TO_LONG and is_boolean_dtype(common):
        common = rustgrad.long
    computed = common if type_promotion_kind is kinds.NO_OPMATH else get_computation_dtype(common)
    if type_promotion_kind is kinds.ALWAYS_BOOL:
        return computed, rustgrad.bool
    if type_promotion_kind is kinds.COMPLEX_TO_FLOAT and common.is_complex:
        return computed, corresponding_real_dtype(common)
    return computed, common


def set_correction(unbiased: bool | None = None, correction: Any = None) -> float:
    """The correction of a variance, of which only one is given; 1 by default.

    Raises:
        RuntimeError: both are given.
    """
    if correction is not None and unbiased is not None:
        raise RuntimeError("cannot specify both correction and unbiased arguments")
    if correction is None:
        correction = 1.0 if unbiased is None else float(unbiased)
    if correction < 0:
        raise ValueError("correction argument should be non-negative")
    return float(correction)
