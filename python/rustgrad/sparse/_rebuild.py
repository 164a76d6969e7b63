"""Sparse tensors in pickles and checkpoints: the layout, then indices, values and the shape, as PyTorch writes them."""

from __future__ import annotations

from .. import _formats
from .._C import Tensor
from . import _invariants
from ._tensor import compressed, coo


def parts_of(self):
    """The arguments of `torch._utils._rebuild_sparse_tensor` for a tensor."""
    if self.layout is _formats.sparse_coo:
        return (self.layout, (self._indices(), self._values(), self.shape, self.is_coalesced()))
    parts = (self._pointers, self._plain, self._value)
    return (self.layout, (*(part.detach() for part in parts), self.shape))


def rebuilt(layout, data):
    """The tensor that a file describes; indices that do not fit are an error, since a file is not trusted.

    Raises:
        RuntimeError: parts that are no tensors, do not belong together, or a layout that does not exist here.
    """
    if layout is _formats.sparse_coo:
        # Older files do not say whether the indices are sorted.
        index, value, size, coalesced = data if len(data) == 4 else (*data, False)
        _check_types((index, value), size)
        _invariants.check_coo(index, value, size, bool(coalesced))
        return coo(index, value, size, bool(coalesced))
    if layout in (_formats.sparse_csr, _formats.sparse_csc):
        pointers, plain, value, size = data
        _check_types((pointers, plain, value), size)
        _invariants.check_compressed(layout, pointers, plain, value, size)
        return compressed(layout, pointers, plain, value, size)
    raise NotImplementedError(f"rebuilding sparse tensor for layout {layout}")


def _check_types(parts, size):
    if not all(type(part) is Tensor for part in parts) or not all(isinstance(n, int) for n in size):
        raise RuntimeError("a sparse tensor is described by dense tensors of indices and values, and a size")
