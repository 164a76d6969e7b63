"""The constructors of sparse tensors. Values are never copied: the new tensor shares the memory of those that it is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from .. import _C, _formats
from .._C import Tensor, ops
from .._C import dtype as _dtype
from .._formats import layout as _layout
from .._typing import DeviceLike
from ..overrides import overridable
from . import _invariants
from ._printing import NAMES
from ._tensor import compressed, coo, is_sparse

__all__ = [
    "sparse_bsc_tensor",
    "sparse_bsr_tensor",
    "sparse_compressed_tensor",
    "sparse_coo_tensor",
    "sparse_csc_tensor",
    "sparse_csr_tensor",
]


def _values_of(name, values, dtype, device):
    """The values as a tensor of the dtype and on the device that are asked for, or that they have."""
    if is_sparse(values):
        raise TypeError(f"{name}: expected values in a dense tensor or a sequence, got a {values.layout._name} tensor")
    if isinstance(values, Tensor):
        return values.to(device=device, dtype=dtype)
    return _C.tensor(values, dtype=dtype, device=device)


def _indices_of(name, indices, device, keep_int32=False):
    if is_sparse(indices):
        raise TypeError(
            f"{name}: expected indices in a dense tensor or a sequence, got a {indices.layout._name} tensor"
        )
    made = indices.detach() if isinstance(indices, Tensor) else _C.tensor(indices)
    if made.dtype.is_complex or made.dtype == _C.bool:
        raise TypeError(f"{name}: expected integer indices, got {made.dtype}")
    return made.to(device=device, dtype=made.dtype if keep_int32 and made.dtype == _C.int32 else _C.int64)


def _held(value, requires_grad):
    """The tensor of values that a sparse one holds: no leaf but its own, so that the two have places apart in the graph."""
    if value.requires_grad and _C.is_grad_enabled():
        return value.view_as(value)
    value = value.detach()
    if requires_grad:
        if not (value.dtype.is_floating_point or value.dtype.is_complex):
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        value.requires_grad_()
    return value


def _is_size(value):
    return isinstance(value, (tuple, list)) and all(hasattr(n, "__index__") for n in value)


def _check_size(name, size):
    if not _is_size(size):
        raise TypeError(f"{name}(): expected size to be a tuple of ints, got {type(size).__name__}")
    return tuple(n.__index__() for n in size)


def empty_coo(size, dtype=None, device=None, sparse_dim=None):
    """A tensor of the layout `sparse_coo` without elements, all of whose dimensions are sparse by default."""
    sparse = len(size) if sparse_dim is None else sparse_dim
    if any(n < 0 for n in size):
        raise RuntimeError(f"sparse_coo_tensor: Trying to create tensor with negative dimension: {list(size)}")
    index = ops["empty"]((sparse, 0), dtype=_C.int64, device=device)
    value = ops["empty"]((0, *size[sparse:]), dtype=dtype, device=device)
    return coo(index, value, size, True)


def empty_compressed(layout, size, dtype=None, device=None, index_dtype=_C.int64):
    """A tensor of the layout `sparse_csr` or `sparse_csc` without elements; dimensions before the last two are a batch."""
    if len(size) < 2:
        raise RuntimeError(
            f"torch.empty: Only batched sparse compressed (non-block) tensors are supported, but got size {list(size)}"
        )
    if any(n < 0 for n in size):
        raise RuntimeError(f"{layout._name}_tensor: Trying to create tensor with negative dimension: {list(size)}")
    lines = size[-2] if layout is _formats.sparse_csr else size[-1]
    pointers = ops["zeros"]((*size[:-2], lines + 1), dtype=index_dtype, device=device)
    plain = ops["empty"]((*size[:-2], 0), dtype=index_dtype, device=device)
    value = ops["empty"]((*size[:-2], 0), dtype=dtype, device=device)
    return compressed(layout, pointers, plain, value, size)


@overridable
def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Sequence[int] | None = None,
    *,
    dtype: _dtype | None = None,
    device: DeviceLike | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Tensor:
    """A tensor of the layout `sparse_coo`: `values[k]` at the indices `indices[:, k]`. Values at equal indices add up.

    `sparse_coo_tensor(size)` has no elements.

    Args:
        indices (sequence or Tensor): integers of shape (sparse dimensions, elements).
        values (sequence or Tensor): of shape (elements, dense dimensions); a tensor is not copied.
        size (sequence of int): by default the least that has room.
        dtype, device: of the values. Default: those of `values`.
        requires_grad (bool): whether gradients are recorded; the tensor is then a leaf, unless `values` has a history.
        check_invariants (bool, optional): no difference: the indices are checked.
        is_coalesced (bool, optional): says that the indices are sorted and distinct.

    Raises:
        RuntimeError: shapes that do not go together, an index that is negative or out of range, or not sorted as is said.
        TypeError: arguments of other types.
    """
    if values is None:
        size = indices if size is None else size
        if size is None:
            raise TypeError("sparse_coo_tensor(): missing required argument 'indices'")
        if isinstance(size, Tensor) or not _is_size(size):
            raise RuntimeError(
                f"indices must be sparse_dim x nnz, but got: {list(getattr(size, 'shape', []))}. Hint: give values too."
            )
        made = empty_coo(_check_size("sparse_coo_tensor", size), dtype, device)
        return made.requires_grad_() if requires_grad else made
    value = _values_of("sparse_coo_tensor", values, dtype, device)
    value = value.reshape(1) if value.dim() == 0 else value
    index = _indices_of("sparse_coo_tensor", indices, value.device)
    _invariants.check_coo_parts(index, value)
    shape = _invariants.inferred_size(index, value) if size is None else _check_size("sparse_coo_tensor", size)
    _invariants.check_coo(index, value, shape, bool(is_coalesced))
    name = "SparseCooTensorWithDimsAndTensorsBackward0"
    return coo(index, _held(value, requires_grad), shape, bool(is_coalesced), name)


def _sparse_coo_tensor_unsafe(
    indices: Tensor,
    values: Tensor,
    size: Sequence[int] | None = None,
    *,
    dtype: _dtype | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Tensor:
    """`sparse_coo_tensor` under the name that skips checks in PyTorch; here it makes them."""
    return sparse_coo_tensor(
        indices, values, size, dtype=dtype, device=device, requires_grad=requires_grad, is_coalesced=is_coalesced
    )


def _least_size(layout, pointers, plain, value):
    """The least shape with room for the indices."""
    batch = pointers.dim() - 1
    across = int(plain.max()) + 1 if plain.numel() else 0
    lines = pointers.shape[-1] - 1
    matrix = (lines, across) if layout is _formats.sparse_csr else (across, lines)
    return (*pointers.shape[:-1], *matrix, *value.shape[batch + 1 :])


def _compressed(name, layout, pointers, plain, values, size, dtype, device, requires_grad):
    value = _values_of(name, values, dtype, device)
    pointers = _indices_of(name, pointers, value.device, keep_int32=True)
    plain = _indices_of(name, plain, value.device, keep_int32=True)
    if size is None:
        if pointers.dim() == 0 or plain.dim() != pointers.dim() or value.dim() < pointers.dim():
            size = (0, 0)  # what is wrong is found below
        else:
            size = _least_size(layout, pointers, plain, value)
    size = _check_size(name, size)
    if any(n < 0 for n in size):
        raise RuntimeError(f"{name}: Trying to create tensor with negative dimension: {list(size)}")
    _invariants.check_compressed(layout, pointers, plain, value, size)
    held = _held(value, requires_grad)
    return compressed(layout, pointers, plain, held, size, "SparseCompressedTensorBackward0")


@overridable
def sparse_csr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Sequence[int] | None = None,
    *,
    dtype: _dtype | None = None,
    layout: _layout | None = None,
    device: DeviceLike | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """A tensor of the layout `sparse_csr`: row `i` has the elements from `crow_indices[i]` up to `crow_indices[i + 1]`.

    Args:
        crow_indices (sequence or Tensor): int32 or int64 of shape (batch, rows + 1).
        col_indices (sequence or Tensor): of shape (batch, elements), ascending within each row.
        values (sequence or Tensor): of shape (batch, elements, dense dimensions); a tensor is not copied.
        size (sequence of int): by default the least that has room.
        dtype, device: of the values. Default: those of `values`.
        check_invariants (bool, optional): no difference: the indices are checked.

    Raises:
        RuntimeError: shapes or dtypes that do not go together, or indices out of range or not sorted.
    """
    _check_layout("sparse_csr_tensor", layout, _formats.sparse_csr)
    parts = (crow_indices, col_indices, values, size, dtype, device, requires_grad)
    return _compressed("sparse_csr_tensor", _formats.sparse_csr, *parts)


@overridable
def sparse_csc_tensor(
    ccol_indices: Any,
    row_indices: Any,
    values: Any,
    size: Sequence[int] | None = None,
    *,
    dtype: _dtype | None = None,
    layout: _layout | None = None,
    device: DeviceLike | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """A tensor of the layout `sparse_csc`: `sparse_csr_tensor` with the parts of rows and columns exchanged."""
    _check_layout("sparse_csc_tensor", layout, _formats.sparse_csc)
    parts = (ccol_indices, row_indices, values, size, dtype, device, requires_grad)
    return _compressed("sparse_csc_tensor", _formats.sparse_csc, *parts)


def _check_layout(name, given, wanted):
    if given is not None and given is not wanted:
        raise RuntimeError(f"{name}: layout must be {NAMES[wanted]} but got {NAMES.get(given, given)}")


@overridable
def sparse_compressed_tensor(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Sequence[int] | None = None,
    *,
    dtype: _dtype | None = None,
    layout: _layout | None = None,
    device: DeviceLike | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """A tensor of the layout `sparse_csr` or `sparse_csc`, whichever `layout` says.

    Raises:
        RuntimeError: no such layout, or as `sparse_csr_tensor`.
        NotImplementedError: the layouts of blocks, `sparse_bsr` and `sparse_bsc`.
    """
    if layout in (_formats.sparse_bsr, _formats.sparse_bsc):
        no_blocks("sparse_compressed_tensor", layout)
    if layout not in (_formats.sparse_csr, _formats.sparse_csc):
        got = "none" if layout is None else NAMES.get(layout, layout)
        raise RuntimeError(f"sparse_compressed_tensor expected sparse compressed tensor layout but got {got}")
    parts = (compressed_indices, plain_indices, values, size, dtype, device, requires_grad)
    return _compressed("sparse_compressed_tensor", layout, *parts)


def no_blocks(name, layout) -> NoReturn:
    """The error for the layouts of blocks."""
    raise NotImplementedError(
        f"{name}: there are no tensors of the layout {layout._name}; expected sparse_coo, sparse_csr or sparse_csc. "
        "Hint: a matrix of blocks is also a sparse_csr matrix."
    )


def sparse_bsr_tensor(*args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: there are no layouts of blocks."""
    no_blocks("sparse_bsr_tensor", _formats.sparse_bsr)


def sparse_bsc_tensor(*args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: there are no layouts of blocks."""
    no_blocks("sparse_bsc_tensor", _formats.sparse_bsc)
