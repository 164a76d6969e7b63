"""Arithmetic of shapes, strides and dimensions, which libraries use from PyTorch's reference implementations.

Numbers only: nothing here computes on elements of tensors. `_prims_dtypes` has the arithmetic of dtypes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import rustgrad

from ._base import Size, Tensor, device
from ._checks import SymBool, SymFloat, SymInt
from ._prims_dtypes import *  # noqa: F403

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
