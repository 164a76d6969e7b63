"""The functions of `rustgrad.sparse`, and products under older names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _C, _formats
from .._C import Tensor, ops
from .._C import dtype as _dtype
from .._formats import layout as _layout
from .._typing import Number
from . import _convert, _products, _reduce, _rules, _shape
from ._printing import NAMES
from ._tensor import CooTensor, coo, is_sparse

__all__ = ["addmm", "log_softmax", "mm", "sampled_addmm", "softmax", "spdiags", "sum"]


def _check(name: str, *tensors: Any) -> None:
    for i, one in enumerate(tensors, 1):
        if not isinstance(one, Tensor):
            raise TypeError(f"{name}(): argument {i} must be Tensor, not {type(one).__name__}")


def _out(name, result, out):
    return result if out is None else _rules._put(out, result, name)


def mm(mat1: Tensor, mat2: Tensor, reduce: str | None = None) -> Tensor:
    """The product of two matrices, (n, k) and (k, m), of which any may be sparse: sparse if both are.

    The gradient of a sparse factor has its indices alone.

    Args:
        reduce (str, optional): "sum", "mean", "amax" or "amin": how the terms of an element are joined; `mat1` is then of the
            layout `sparse_csr` and `mat2` dense.

    Raises:
        RuntimeError: shapes or dtypes that do not go together, or another `reduce`.
        NotImplementedError: layouts that `reduce` is not for.
    """
    _check("sparse.mm", mat1, mat2)
    if reduce is not None:
        return _products.reduced_mm(mat1, mat2, reduce)
    return _products.mm(mat1, mat2) if is_sparse(mat1) or is_sparse(mat2) else ops["mm"](mat1, mat2)


def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """`beta * mat + alpha * mat1 @ mat2` for a dense `mat` and a sparse `mat1`: shape (n, m)."""
    _check("sparse.addmm", mat, mat1, mat2)
    if not is_sparse(mat1) and not is_sparse(mat2):
        return ops["addmm"](mat, mat1, mat2, beta=beta, alpha=alpha)
    return _products.addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


def sampled_addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1.0, alpha: Number = 1.0, out: Tensor | None = None
) -> Tensor:
    """`beta * input + alpha * (mat1 @ mat2)` at the indices of `input` alone, which is of a compressed layout.

    Raises:
        RuntimeError: shapes that do not go together.
        NotImplementedError: `input` is of another layout.
    """
    _check("sparse.sampled_addmm", input, mat1, mat2)
    return _out("sampled_addmm", _products.sampled_addmm(input, mat1, mat2, beta=beta, alpha=alpha), out)


def sum(input: Tensor, dim: int | Sequence[int] | None = None, dtype: _dtype | None = None) -> Tensor:
    """The sum of a `sparse_coo` tensor over all dimensions, or some: sparse as long as a sparse dimension is left.

    Raises:
        RuntimeError: a tensor of another layout, or a dimension that is listed twice.
        IndexError: a dimension out of range.
    """
    _check("sparse.sum", input)
    return _reduce.sparse_sum(input, dim, dtype)


def softmax(input: Tensor, dim: int, dtype: _dtype | None = None) -> Tensor:
    """Softmax along a dimension of a `sparse_coo` tensor: elements that are not specified count as minus infinity.

    Raises:
        NotImplementedError: another layout, or no floating-point numbers.
    """
    _check("sparse.softmax", input)
    return _reduce.softmax(input, dim, dtype)


def log_softmax(input: Tensor, dim: int, dtype: _dtype | None = None) -> Tensor:
    """The logarithm of `softmax`, at the elements that are specified."""
    _check("sparse.log_softmax", input)
    return _reduce.log_softmax(input, dim, dtype)


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Sequence[int], layout: _layout | None = None) -> Tensor:
    """A sparse matrix whose diagonals are the rows of a matrix: element (i, i + offset) is the one of column i + offset.

    Args:
        diagonals (Tensor): (n, m), or a vector for one.
        offsets (Tensor): int64 of n distinct numbers: 0 is the main diagonal, 1 the one above.
        shape (sequence of int): of the result.
        layout (layout, optional): `sparse_csr` or `sparse_csc` instead of `sparse_coo`.

    Raises:
        RuntimeError: arguments that do not go together.
    """
    _check("sparse.spdiags", diagonals, offsets)
    offsets = offsets.reshape(1) if offsets.dim() == 0 else offsets
    diagonals = diagonals.unsqueeze(0) if diagonals.dim() == 1 else diagonals
    if diagonals.dim() != 2:
        raise RuntimeError("Diagonals must be vector or matrix")
    if len(shape) != 2:
        raise RuntimeError("Output shape must be 2d")
    if offsets.dim() != 1:
        raise RuntimeError("Offsets must be scalar or vector")
    if offsets.dtype != _C.int64:
        raise RuntimeError(f"Offset Tensor must have dtype Long but got {offsets.dtype._scalar_type_name}")
    if diagonals.shape[0] != offsets.shape[0]:
        raise RuntimeError(
            f"Number of diagonals ({diagonals.shape[0]}) does not match the number of offsets ({offsets.shape[0]})"
        )
    known = (None, _formats.sparse_coo, _formats.sparse_csr, _formats.sparse_csc)
    if layout not in known:
        raise RuntimeError(
            f"Only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got {NAMES.get(layout, layout)}"
        )
    if offsets.unique().shape[0] != offsets.shape[0]:
        raise RuntimeError("Offset tensor contains duplicate values")
    made = _diagonals(diagonals, offsets, tuple(n.__index__() for n in shape))
    return made if layout in known[:2] else _convert.to_compressed(made, layout)


def _diagonals(diagonals, offsets, shape):
    rows, columns = shape
    if rows < 0 or columns < 0:
        raise RuntimeError(f"sparse.spdiags: Trying to create tensor with negative dimension: {list(shape)}")
    for offset in offsets.tolist():
        if not -rows <= offset <= columns:
            raise RuntimeError(f"sparse.spdiags: expected offsets of diagonals in {list(shape)}, got {offset}")
    column = ops["arange"](diagonals.shape[1], device=diagonals.device).expand(diagonals.shape)
    row = column - offsets.to(diagonals.device)[:, None]
    inside = ((row >= 0) & (row < rows) & (column < columns)).flatten().nonzero().flatten()
    index = ops["stack"]([row.flatten(), column.flatten()]).index_select(1, inside)
    return coo(index, diagonals.flatten().index_select(0, inside), shape)


def smm(input: Tensor, mat: Tensor) -> Tensor:
    """The product of a sparse matrix and a dense one, as a sparse matrix all of whose elements are specified."""
    _check("smm", input, mat)
    return _products.smm(input, mat)


def sspaddmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Tensor | None = None
) -> Tensor:
    """`beta * input + alpha * mat1 @ mat2` for sparse `input` and `mat1` and a dense `mat2`: sparse."""
    _check("sspaddmm", input, mat1, mat2)
    return _out("sspaddmm", _products.sspaddmm(input, mat1, mat2, beta=beta, alpha=alpha), out)


def saddmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """`sspaddmm` under another name."""
    return sspaddmm(input, mat1, mat2, beta=beta, alpha=alpha)


def hspmm(mat1: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product of a sparse matrix and a dense one, with rows as the sparse and columns as the dense dimension."""
    _check("hspmm", mat1, mat2)
    return _out("hspmm", _products.hspmm(mat1, mat2), out)


def spmm(input: Tensor, mat2: Tensor) -> Tensor:
    """`mm`, under the name that programs use for sparse matrices."""
    _check("spmm", input, mat2)
    return ops["mm"](input, mat2)


def dsmm(input: Tensor, mat2: Tensor) -> Tensor:
    """`mm`, under the name that programs use for sparse matrices."""
    _check("dsmm", input, mat2)
    return ops["mm"](input, mat2)


def resize_as_sparse_(input: Tensor, the_template: Tensor) -> Tensor:
    """The shape, sparse and dense dimensions of another sparse tensor, in place."""
    _check("resize_as_sparse_", input, the_template)
    if not isinstance(input, CooTensor):
        return input.resize_as_sparse_(the_template)
    return _shape.resize_as_sparse_(input, the_template)
