"""Functions of the top namespace that programs seldom call, made of ops; loaded when the first is looked up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from . import _C
from ._base import Tensor, ops
from .overrides import overridable

__all__ = [
    "embedding_renorm_",
    "frobenius_norm",
    "hash_tensor",
    "nuclear_norm",
    "slice_inverse",
    "to_dlpack",
    "view_as_complex_copy",
]

_norm, _matrix_norm = ops["linalg.vector_norm"], ops["linalg.matrix_norm"]


def _given(out: Tensor | None, result: Tensor) -> Tensor:
    """A result, in the tensor that the caller wants it in."""
    if out is None:
        return result
    if out.shape != result.shape:
        out.resize_(result.shape)
    return out.copy_(result)


@overridable
def embedding_renorm_(input: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Scales the rows of `input` that `indices` names so that no norm is larger than `max_norm`; without a gradient."""
    if input.dim() != 2:
        raise RuntimeError("'self' must be 2-dimensional")
    if indices.dtype not in (_C.int64, _C.int32):
        raise RuntimeError(
            f"Expected tensor for argument #2 'indices' to have one of the following scalar types: Long, Int; but got {indices.type()}"
        )
    enabled = _C.is_grad_enabled()
    _C._set_grad_enabled(False)
    try:
        rows = indices.reshape(-1).unique()
        found = input[rows]
        norms = _norm(found, norm_type, dim=1, keepdim=True)
        input[rows] = ops["where"](norms > max_norm, found * (max_norm / (norms + 1e-7)), found)
    finally:
        _C._set_grad_enabled(enabled)
    return input


@overridable
def frobenius_norm(
    input: Tensor, dim: int | Sequence[int], keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """The root of the sum of squares over at most two dimensions; over all where `dim` is empty."""
    dims = [dim] if isinstance(dim, int) else list(dim)
    if len(dims) > 2:
        raise RuntimeError(f"Expected at most 2 dimensions, but got {len(dims)} dimensions instead.")
    return _given(out, _norm(input, 2.0, dim=dims or None, keepdim=keepdim))


@overridable
def nuclear_norm(input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """The sum of singular values of a matrix, `nuclear_norm(input, keepdim=False)`, or over two dimensions `dim`."""
    if isinstance(dim, bool):
        dim, keepdim = None, dim
    if dim is None:
        if input.dim() != 2:
            raise RuntimeError(
                f"Expected a tensor with 2 dimensions, but got a tensor with {input.dim()} dimensions instead."
            )
        dim = (0, 1)
    if len(dim) != 2:
        raise RuntimeError(f"nuclear norm requires a 'dim' argument of size 2, got {dim}")
    return _given(out, _matrix_norm(input, "nuc", dim, keepdim))


@overridable
def hash_tensor(
    input: Tensor,
    dim: int | Sequence[int] | None = (),
    *,
    keepdim: bool = False,
    mode: int = 0,
    out: Tensor | None = None,
) -> Tensor:
    """The exclusive or of the bits of elements over dimensions, all by default: floats as float64, others as int64.

    Args:
        mode (int): 0.

    Returns:
        Tensor: of dtype uint64.

    Raises:
        RuntimeError: another mode; no elements and no `dim`.
        NotImplementedError: complex elements.
    """
    if mode != 0:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    if input.is_complex():
        raise NotImplementedError(f"\"xor_sum_cpu\" not implemented for '{str(input.dtype)[6:].title()}'")
    dims = [d % max(input.dim(), 1) for d in ([dim] if isinstance(dim, int) else dim or ())]
    if not dims and input.numel() == 0:
        raise RuntimeError(
            "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument."
        )
    bits = input.detach()
    bits = bits.double().view(_C.int64) if bits.is_floating_point() else bits.long()
    dims = dims or list(range(input.dim()))
    kept = [d for d in range(input.dim()) if d not in dims]
    rows = (
        bits.permute(*kept, *dims).reshape(math.prod(input.shape[d] for d in kept), -1)
        if input.dim()
        else bits[None, None]
    )
    while rows.shape[1] > 1:
        half = rows.shape[1] // 2
        rest = rows[:, 2 * half :]
        rows = ops["cat"]([rows[:, :half] ^ rows[:, half : 2 * half], rest], dim=1)
    if rows.shape[1] == 0:
        rows = rows.new_zeros(rows.shape[0], 1)
    shape = [1 if d in dims else n for d, n in enumerate(input.shape) if keepdim or d not in dims]
    return _given(out, rows.reshape(shape).contiguous().view(_C.uint64))


@overridable
def slice_inverse(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """The tensor that a slice was taken of: a view of the memory of `input` with the form of `src`."""
    return input.as_strided(src.shape, src.stride(), src.storage_offset())


@overridable
def view_as_complex_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`view_as_complex` on memory of its own."""
    return _given(out, ops["view_as_complex"](input).clone())


def to_dlpack(tensor: Tensor) -> Any:
    """A capsule for `from_dlpack` of another library."""
    from .utils.dlpack import to_dlpack

    return to_dlpack(tensor)
