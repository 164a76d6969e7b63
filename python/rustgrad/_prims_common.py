"""Arithmetic of shapes, strides, dimensions and types, which libraries use from PyTorch's reference implementations.

Numbers only: nothing here computes on elements of tensors.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import rustgrad

from ._base import Size, Tensor, device, dtype
from ._checks import SymBool, SymFloat, SymInt

__all__: list[str] = []

ShapeType: TypeAlias = Size | list[int] | tuple[int, ...]
StrideType: TypeAlias = list[int] | tuple[int, ...]
DimsType: TypeAlias = int | list[int] | tuple[int, ...]
DimsSequenceType: TypeAlias = list[int] | tuple[int, ...]
NumberTypeType: TypeAlias = type[bool] | type[int] | type[float] | type[complex]
NumberType: TypeAlias = bool | int | float | complex
RealNumberType: TypeAlias = bool | int | float
DeviceLikeType: TypeAlias = str | device | int
TensorLikeType = TensorLike = Tensor
TensorSequenceType: TypeAlias = list[Tensor] | tuple[Tensor, ...]
TensorOrNumberLikeType: TypeAlias = Tensor | bool | int | float | complex
Dim = int
Number = (bool, int, float, complex, SymInt, SymFloat, SymBool)
IntLike, FloatLike, BoolLike = (int, SymInt), (float, SymFloat), (bool, SymBool)
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


class _Types(NamedTuple):
    computation_dtype: dtype
    result_dtype: dtype


def make_contiguous_strides_for(shape: ShapeType, row_major: bool = True) -> tuple[int, ...]:
    """The strides of a contiguous tensor; of matrices by columns if not `row_major`."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    strides.reverse()
    if not row_major and len(shape) > 1:
        strides[-2:] = [1, max(shape[-2], 1)]
    return tuple(strides)


def _last_channels(shape: ShapeType, dims: int) -> tuple[int, ...]:
    rustgrad._check(len(shape) == dims, lambda: f"Only tensors of rank {dims} can use the channels_last memory format")
    batch, channels, *rest = shape
    steps = make_contiguous_strides_for((batch, *rest, channels))
    return (steps[0], steps[-1], *steps[1:-1])


def make_channels_last_2d_strides_for(shape: ShapeType) -> tuple[int, ...]:
    """The strides of (N, C, H, W) with channels last."""
    return _last_channels(shape, 4)


def make_channels_last_3d_strides_for(shape: ShapeType) -> tuple[int, ...]:
    """The strides of (N, C, D, H, W) with channels last."""
    return _last_channels(shape, 5)


def make_channels_last_strides_for(shape: ShapeType) -> tuple[int, ...]:
    """The strides of a shape of 4 or 5 dimensions with channels last; 3 and less are contiguous."""
    return _last_channels(shape, len(shape)) if len(shape) in (4, 5) else make_contiguous_strides_for(shape)


def compute_required_storage_length(shape: ShapeType, strides: StrideType, storage_offset: int) -> int:
    """The number of elements that a storage needs for a tensor."""
    if math.prod(shape) == 0:
        return 0
    return storage_offset + 1 + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))


def is_contiguous(a: Tensor, false_if_dde: bool = False) -> bool:
    """Whether a tensor is row-major without gaps."""
    return a.is_contiguous()


def is_contiguous_or_false(a: Tensor) -> bool:
    """Whether a tensor is row-major without gaps."""
    return a.is_contiguous()


def is_channels_last_contiguous(a: Tensor) -> bool:
    """Whether a tensor of 4 or 5 dimensions has its channels last, without gaps."""
    formats = {4: rustgrad.channels_last, 5: rustgrad.channels_last_3d}
    return a.ndim in formats and a.is_contiguous(memory_format=formats[a.ndim])


def is_contiguous_for_memory_format(a: Tensor, *, memory_format: Any, false_if_dde: bool = False) -> bool:
    """Whether a tensor is without gaps in a memory format."""
    return a.is_contiguous(memory_format=memory_format)


def suggest_memory_format(x: Tensor) -> Any:
    """The memory format that results should have."""
    if x.is_contiguous() or x.ndim not in (4, 5):
        return rustgrad.contiguous_format
    if tuple(x.stride()) == make_channels_last_strides_for(x.shape):
        return rustgrad.channels_last if x.ndim == 4 else rustgrad.channels_last_3d
    return rustgrad.contiguous_format


def is_same_shape(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether two shapes are equal."""
    return tuple(a) == tuple(b)


same_shape = is_same_shape


def is_valid_permutation(rank: int, perm: DimsSequenceType) -> bool:
    """Whether every dimension is there once."""
    return isinstance(perm, Sequence) and sorted(perm) == [*range(rank)]


def apply_perm(inp: Sequence[Any], perm: Sequence[int]) -> tuple[Any, ...]:
    """The elements at places, in their order."""
    return tuple(inp[i] for i in perm)


def invert_perm(perm: Sequence[int]) -> list[int]:
    """The permutation that undoes another."""
    return sorted(range(len(perm)), key=perm.__getitem__)


def validate_dim_length(length: int) -> None:
    """RuntimeError for a negative size."""
    rustgrad._check_is_size(length)


def validate_shape(shape: ShapeType) -> None:
    """RuntimeError for a negative size."""
    for size in shape:
        validate_dim_length(size)


def validate_idx(rank: int, idx: int) -> None:
    """AssertionError unless a number is that of a dimension, not negative."""
    if not (isinstance(idx, int) and (0 <= idx < rank or idx == 0)):
        raise AssertionError(f"idx {idx} is out of range for rank {rank}")


def canonicalize_dim(rank: int, idx: int, wrap_scalar: bool = True) -> int:
    """The number of a dimension, counted from the first.

    Raises:
        IndexError: there is no such dimension; a tensor without dimensions has one if `wrap_scalar`.
    """
    if rank < 0:
        raise IndexError(f"Rank cannot be negative but got {rank}")
    if rank == 0:
        if not wrap_scalar:
            raise IndexError(f"Dimension specified as {idx} but tensor has no dimensions")
        rank = 1
    if not -rank <= idx < rank:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {idx})")
    return idx % rank


def canonicalize_dims(rank: int, indices: Any, wrap_scalar: bool = True) -> Any:
    """`canonicalize_dim` of a number, or of each of several as a tuple."""
    if isinstance(indices, int):
        return canonicalize_dim(rank, indices, wrap_scalar)
    return tuple(canonicalize_dim(rank, i, wrap_scalar) for i in indices)


def canonicalize_device(device: DeviceLikeType) -> Any:
    """A device."""
    return rustgrad.device(device)


def _dims_of(shape: Sequence[int], dims: Sequence[int]) -> tuple[int, ...]:
    found = tuple(canonicalize_dim(len(shape), d) for d in dims)
    if len({*found}) != len(found):
        raise RuntimeError("duplicate value in the list of dims")
    return found


def reduction_dims(shape: ShapeType, dims: Sequence[int] | None) -> tuple[int, ...]:
    """The dimensions over which is reduced: all where none are given.

    Raises:
        RuntimeError: one is given twice.
    """
    return tuple(range(len(shape))) if dims is None else _dims_of(shape, dims)


def compute_reduction_output_shape(shape: ShapeType, dimensions: Sequence[int]) -> tuple[int, ...]:
    """The sizes of the dimensions over which is not reduced."""
    return tuple(n for i, n in enumerate(shape) if i not in dimensions)


def extract_dims_from_varargs(dims: Any) -> Any:
    """Dimensions that are given one by one or as a sequence."""
    return dims[0] if dims and isinstance(dims[0], Sequence) else dims


def extract_shape_from_varargs(shape: Any, validate: bool = True) -> tuple[int, ...]:
    """Sizes that are given one by one or as a sequence."""
    found = tuple(extract_dims_from_varargs(shape))
    if validate:
        validate_shape(found)
    return found


def infer_size(shape: ShapeType, numel: int) -> tuple[int, ...]:
    """A shape with the size in the place of -1 that gives `numel` elements.

    Raises:
        RuntimeError: there is none.
    """
    known = math.prod(n for n in shape if n != -1)
    if shape.count(-1) > 1:
        raise RuntimeError("only one dimension can be inferred")
    fits = numel == known if -1 not in shape else known > 0 and numel % known == 0
    if not fits:
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")
    return tuple(numel // known if n == -1 else n for n in shape)


def infer_size_shapes(a: ShapeType, b: ShapeType) -> tuple[int, ...]:
    """The shape to which two are broadcast."""
    return tuple(rustgrad.broadcast_shapes(a, b))


def is_expandable_to(shape: ShapeType, desired: ShapeType) -> bool:
    """Whether a tensor of one shape can be expanded to another."""
    if len(shape) > len(desired):
        return False
    return all(n in (1, wanted) for n, wanted in zip(reversed(shape), reversed(desired), strict=False))


def extract_shape(*args: Any, allow_cpu_scalar_tensors: bool) -> Any:
    """The shape that tensors have; None where they differ, or are numbers."""
    shapes = {
        a.shape for a in args if isinstance(a, Tensor) and not (allow_cpu_scalar_tensors and is_cpu_scalar_tensor(a))
    }
    scalar = any(isinstance(a, Tensor) for a in args) and not shapes
    return Size(()) if scalar else shapes.pop() if len(shapes) == 1 else None


def is_cpu_scalar_tensor(a: object) -> bool:
    """Whether a value is a tensor without dimensions on the CPU."""
    return isinstance(a, Tensor) and a.ndim == 0 and a.device.type == "cpu"


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


def alert_not_deterministic(caller: str) -> None:
    """RuntimeError, or a warning, where only deterministic algorithms are allowed."""
    if not rustgrad.are_deterministic_algorithms_enabled():
        return
    text = f"{caller} does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms(True)'. "
    if not rustgrad.is_deterministic_algorithms_warn_only_enabled():
        raise RuntimeError(
            text + "You can turn off determinism just for this operation, or you can use the 'warn_only=True' option."
        )
    import warnings

    warnings.warn(text, stacklevel=2)


def clone_preserve_strides(x: Tensor) -> Tensor:
    """A copy with the same strides."""
    needed = compute_required_storage_length(x.size(), x.stride(), 0)
    flat = rustgrad.as_strided(x, (needed,), (1,)).clone()
    return rustgrad.as_strided(flat, x.size(), x.stride())
