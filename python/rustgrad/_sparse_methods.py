"""The methods of `Tensor` that make sparse tensors, or are asked of them: what a dense one answers.

The module `sparse` is imported by the first call that needs it. Its classes have their own answers.
"""

from __future__ import annotations

from typing import Any, NoReturn

from . import _formats

# The layout that a method wants, in the words of PyTorch's error.
_WANTED = {
    "coalesce": "sparse coordinate",
    "is_coalesced": "sparse coordinate",
    "indices": "sparse coordinate",
    "_indices": "sparse coordinate",
    "_values": "sparse coordinate",
    "_nnz": "sparse",
    "values": "sparse",
    "crow_indices": "sparse row compressed",
    "col_indices": "sparse row compressed",
    "ccol_indices": "sparse column compressed",
    "row_indices": "sparse column compressed",
}


def _refuse(self, name, layout) -> NoReturn:
    from .sparse._printing import NAMES

    raise RuntimeError(f"{name} expected {layout} tensor layout but got {NAMES[self.layout]}")


def _wanting(name, layout):
    def method(self: Any) -> Any:
        own = getattr(type(self), name)
        if getattr(own, "__wrapped__", own) is not method:  # `Tensor.values(s)`
            return own(self)
        _refuse(self, name, layout)

    method.__name__ = name
    method.__doc__ = f"RuntimeError: the tensor is not of a {layout} layout."
    return method


class Methods:
    """Further methods of `Tensor`."""

    def sparse_dim(self) -> int:
        """The number of sparse dimensions: none of a dense tensor."""
        return 0

    def dense_dim(self) -> int:
        """The number of dense dimensions: all of a dense tensor."""
        return self.dim()

    def to_dense(self, dtype=None, *, masked_grad=None):
        """The dense tensor with the same elements; a dense one itself.

        Raises:
            RuntimeError: a `dtype` for a sparse tensor.
        """
        from .sparse import _convert

        return _convert.to_dense(self, dtype)

    def to_sparse(self, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
        """The tensor in a sparse layout, with the elements that are not zero: `sparse_coo` by default.

        Args:
            sparse_dim (int, optional): how many dimensions are sparse, of the layout `sparse_coo`; all by default.
            layout (layout, optional): another one; also `strided`.
            dense_dim (int, optional): how many dimensions are dense, of a compressed layout.

        Raises:
            RuntimeError: a number of dimensions out of range, or a conversion that does not exist.
            NotImplementedError: `layout` is one of blocks.
        """
        from .sparse import _convert
        from .sparse._tensor import is_sparse

        if sparse_dim is not None and layout is not None:
            raise TypeError("to_sparse() takes 0 positional arguments but 1 was given")
        if sparse_dim is None:
            if layout in (_formats.sparse_csr, _formats.sparse_csc):
                return _convert.to_compressed(self, layout, dense_dim)
            return _convert.to_layout(self, layout or _formats.sparse_coo)
        if not is_sparse(self):
            return _convert.dense_to_coo(self, sparse_dim)
        if sparse_dim != self.sparse_dim():
            raise RuntimeError(
                "to_sparse: conversion from Sparse to Sparse with sparse_dim argument !=self.sparse_dim() is not supported"
            )
        return _convert.as_coo(self)

    def to_sparse_coo(self):
        """The tensor in the layout `sparse_coo`: `to_sparse()`."""
        return self.to_sparse()

    def to_sparse_csr(self, dense_dim=None):
        """The matrix, or batch of matrices, in the layout `sparse_csr`.

        Raises:
            IndexError: fewer than two dimensions.
            RuntimeError: another number of sparse dimensions than two, or matrices with different numbers of elements.
        """
        return self.to_sparse(layout=_formats.sparse_csr, dense_dim=dense_dim)

    def to_sparse_csc(self, dense_dim=None):
        """The matrix, or batch of matrices, in the layout `sparse_csc`; as `to_sparse_csr`."""
        return self.to_sparse(layout=_formats.sparse_csc, dense_dim=dense_dim)

    def to_sparse_bsr(self, blocksize, dense_dim=None):
        """NotImplementedError: there are no layouts of blocks."""
        return self.to_sparse(layout=_formats.sparse_bsr)

    def to_sparse_bsc(self, blocksize, dense_dim=None):
        """NotImplementedError: there are no layouts of blocks."""
        return self.to_sparse(layout=_formats.sparse_bsc)

    def to_mkldnn(self, *args: Any, **kwargs: Any) -> NoReturn:
        """NotImplementedError: there are no such tensors."""
        raise NotImplementedError("to_mkldnn: there are no tensors of that layout; expected a dense one")

    def sparse_mask(self, mask):
        """The elements at the indices of a sparse tensor of the same shape, as a sparse tensor with these indices.

        Raises:
            RuntimeError: the shapes differ.
            NotImplementedError: `mask` is dense.
        """
        from .sparse import _convert

        return _convert.sparse_mask(self, mask)

    def sparse_resize_(self, size, sparse_dim, dense_dim) -> NoReturn:
        """RuntimeError: the tensor is not of the layout `sparse_coo`."""
        _refuse(self, "sparse_resize_", "sparse coordinate")

    def sparse_resize_and_clear_(self, size, sparse_dim, dense_dim) -> NoReturn:
        """RuntimeError: the tensor is not of the layout `sparse_coo`."""
        _refuse(self, "sparse_resize_and_clear_", "sparse coordinate")

    def resize_as_sparse_(self, the_template) -> NoReturn:
        """RuntimeError: the tensor is not of the layout `sparse_coo`."""
        _refuse(self, "resize_as_sparse_", "sparse coordinate")

    def smm(self, mat):
        """The product of a sparse matrix and a dense one as a sparse matrix: `torch.smm`."""
        from .sparse import smm

        return smm(self, mat)

    def sspaddmm(self, mat1, mat2, *, beta=1, alpha=1):
        """`beta * self + alpha * mat1 @ mat2`, sparse: `torch.sspaddmm`."""
        from .sparse import sspaddmm

        return sspaddmm(self, mat1, mat2, beta=beta, alpha=alpha)


for _name, _layout in _WANTED.items():
    setattr(Methods, _name, _wanting(_name, _layout))
