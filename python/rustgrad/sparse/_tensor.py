"""Sparse tensors: a subclass of `Tensor` whose indices and values are ordinary tensors.

The object's own body is a *meta* tensor of the shape and dtype: it has no memory, so what reads the body by a way around
`__torch_function__` finds no elements, and can never take wrong ones. Every op goes through the table of `_rules`, whose
rules are calls of dense ops on the values. So gradients of any order follow, on every device: the graph is that of the
values, a sparse leaf is one whose values are a leaf, and the gradient of a sparse tensor has its pattern.
"""

from __future__ import annotations

import math
from typing import Any, NoReturn

from .. import _C, _formats
from .._C import Tensor, ops
from . import _grads, _printing, _protocols


def bare(cls, shape, dtype):
    """An object of a class of sparse tensors without its parts."""
    return _C._as_subclass(_body(shape, dtype), cls)


def _body(shape, dtype):
    """A tensor without memory. RuntimeError: positions of elements would not fit in an int64."""
    if math.prod(max(n, 1) for n in shape) >= 1 << 63:
        raise RuntimeError(f"numel: integer multiplication overflow; the shape {tuple(shape)} has too many positions")
    return ops["empty"](tuple(shape), dtype=dtype, device="meta")


def coo(index, value, shape, coalesced=False, name=None):
    """A tensor of the layout `sparse_coo` from parts that belong together, which are not checked.

    Args:
        index (Tensor): int64 of shape (sparse dimensions, elements).
        value (Tensor): of shape (elements, dense dimensions).
        name (str): of the op that made it, as it is printed.
    """
    made = bare(CooTensor, shape, value.dtype)
    # One element is sorted.
    made._index, made._value, made._coalesced, made._made_by = index, value, coalesced or index.shape[1] < 2, name
    return made


def compressed(layout, pointers, plain, value, shape, name=None):
    """A tensor of the layout `sparse_csr` or `sparse_csc` from parts that belong together, which are not checked."""
    made = bare(CompressedTensor, shape, value.dtype)
    made._pointers, made._plain, made._value, made._layout, made._made_by = pointers, plain, value, layout, name
    return made


def with_value(self, value, name=None):
    """A tensor with the pattern of `self` and other values, of the same shape."""
    shape = (*self.shape[: self.dim() - self.dense_dim()], *value.shape[self._value.dim() - self.dense_dim() :])
    if isinstance(self, CooTensor):
        return coo(self._index, value, shape, self._coalesced, name)
    return compressed(self._layout, self._pointers, self._plain, value, shape, name)


def is_sparse(value):
    """Whether an object is a sparse tensor of any layout."""
    return isinstance(value, SparseTensor)


def refuse(name, layout):
    """The error for an op that has no rule for a layout."""
    raise NotImplementedError(f"{name}: not implemented for {layout._name} tensors. Hint: call .to_dense().")


class SparseTensor(_protocols.Protocols, _grads.Opaque, Tensor):
    """What the layouts have in common. Objects are made by `sparse_coo_tensor` and its kin, never by the class."""

    _value: Tensor
    _layout: _formats.layout
    _made_by: str | None

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(f"{cls.__name__}: no constructor; expected a call of sparse_coo_tensor, or to_sparse")

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from ._rules import call

        return NotImplemented if _protocols.others_decide(types, SparseTensor) else call(func, args, kwargs or {})

    # --- metadata --------------------------------------------------------------------------------------------
    layout = property(lambda self: self._layout, doc="`sparse_coo`, `sparse_csr` or `sparse_csc`.")
    is_sparse = property(lambda self: self._layout is _formats.sparse_coo, doc="Whether the layout is `sparse_coo`.")
    is_sparse_csr = property(
        lambda self: self._layout is _formats.sparse_csr, doc="Whether the layout is `sparse_csr`."
    )
    _base = property(lambda self: None, doc="None: a sparse tensor is no view.")

    def _nnz(self) -> int:
        """The number of elements that are specified; of a batch, in each matrix."""
        return self._value.shape[self._value.dim() - self.dense_dim() - 1]

    def sparse_dim(self) -> int:
        """The number of sparse dimensions."""
        raise NotImplementedError

    def dense_dim(self) -> int:
        """The number of dense dimensions, which come last."""
        raise NotImplementedError

    def values(self) -> Tensor:
        """The values of a coalesced tensor: shape (elements, dense dimensions). They share its memory and history.

        Raises:
            RuntimeError: the tensor is not coalesced.
        """
        return self._value.view_as(self._value) if self._value.requires_grad else self._value.detach()

    def _pattern(self) -> tuple[Tensor, ...]:
        """The tensors of indices."""
        return tuple(getattr(self, name) for name in ("_index", "_pointers", "_plain") if hasattr(self, name))

    def _set(self, other: SparseTensor) -> None:
        """Takes the parts of another tensor of the layout, in place."""
        if self.shape != other.shape or self.dtype != other.dtype:
            Tensor.data.__set__(self, _body(other.shape, other.dtype))
        for name in self._parts:
            setattr(self, name, getattr(other, name))
        self.__dict__.pop("_held_grad", None)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return _printing.text(self)


class CooTensor(SparseTensor):
    """A tensor of the layout `sparse_coo`: a column of indices for each value."""

    _index: Tensor
    _coalesced: bool
    _layout = _formats.sparse_coo
    _parts = ("_index", "_value", "_coalesced", "_made_by")

    def sparse_dim(self) -> int:
        """The number of sparse dimensions."""
        return self._index.shape[0]

    def dense_dim(self) -> int:
        """The number of dense dimensions, which come last."""
        return self._value.dim() - 1

    def _indices(self) -> Tensor:
        """The indices as they are: shape (sparse dimensions, elements)."""
        return self._index.detach()

    def _values(self) -> Tensor:
        """The values as they are, without history: shape (elements, dense dimensions)."""
        return self._value.detach()

    def indices(self) -> Tensor:
        """The indices of a coalesced tensor: sorted and distinct.

        Raises:
            RuntimeError: the tensor is not coalesced.
        """
        self._check("indices")
        return self._indices()

    def values(self) -> Tensor:
        """The values of a coalesced tensor: shape (elements, dense dimensions). They share its memory and history.

        Raises:
            RuntimeError: the tensor is not coalesced.
        """
        self._check("values")
        return super().values()

    def _check(self, what):
        if not self._coalesced:
            raise RuntimeError(f"Cannot get {what} on an uncoalesced tensor, please call .coalesce() first")

    def is_coalesced(self) -> bool:
        """Whether the indices are known to be sorted and distinct."""
        return self._coalesced

    def coalesce(self) -> SparseTensor:
        """The tensor with sorted, distinct indices: values at equal ones are added. Itself if they are known to be."""
        from ._convert import coalesce

        return coalesce(self)

    def sparse_resize_(self, size: Any, sparse_dim: int, dense_dim: int) -> CooTensor:
        """Changes the shape in place; the elements stay. RuntimeError: they would not fit."""
        from ._shape import sparse_resize_

        return sparse_resize_(self, tuple(size), sparse_dim, dense_dim)

    def sparse_resize_and_clear_(self, size: Any, sparse_dim: int, dense_dim: int) -> CooTensor:
        """Removes all elements and changes the shape in place."""
        from ._shape import sparse_resize_and_clear_

        return sparse_resize_and_clear_(self, tuple(size), sparse_dim, dense_dim)

    def resize_as_sparse_(self, the_template: SparseTensor) -> CooTensor:
        """Takes the shape, sparse and dense dimensions of another sparse tensor, in place."""
        from ._shape import resize_as_sparse_

        return resize_as_sparse_(self, the_template)

    def _coalesced_(self, coalesced: bool) -> CooTensor:
        """Says whether the indices are sorted and distinct, which is not checked."""
        self._coalesced = coalesced
        return self


class CompressedTensor(SparseTensor):
    """A tensor of the layout `sparse_csr` or `sparse_csc`: where each row (column) begins, then the other index."""

    _pointers: Tensor
    _plain: Tensor
    _parts = ("_pointers", "_plain", "_value", "_layout", "_made_by")

    def sparse_dim(self) -> int:
        """Two: a matrix is sparse."""
        return 2

    def dense_dim(self) -> int:
        """The number of dense dimensions, which come last."""
        return self._value.dim() - self._plain.dim()

    def crow_indices(self) -> Tensor:
        """Where each row begins among the elements, and where the last one ends: shape (..., rows + 1).

        Raises:
            RuntimeError: the layout is not `sparse_csr`.
        """
        return self._part("crow_indices", _formats.sparse_csr, "_pointers")

    def col_indices(self) -> Tensor:
        """The column of each element, of the layout `sparse_csr`: shape (..., elements)."""
        return self._part("col_indices", _formats.sparse_csr, "_plain")

    def ccol_indices(self) -> Tensor:
        """Where each column begins among the elements, of the layout `sparse_csc`: shape (..., columns + 1)."""
        return self._part("ccol_indices", _formats.sparse_csc, "_pointers")

    def row_indices(self) -> Tensor:
        """The row of each element, of the layout `sparse_csc`: shape (..., elements)."""
        return self._part("row_indices", _formats.sparse_csc, "_plain")

    def _part(self, name, layout, attribute):
        if self._layout is not layout:
            wanted = "row" if layout is _formats.sparse_csr else "column"
            raise RuntimeError(
                f"{name} expected sparse {wanted} compressed tensor layout but got {_printing.NAMES[self._layout]}"
            )
        return getattr(self, attribute).detach()
