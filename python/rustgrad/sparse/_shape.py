"""Rules that move elements without changing them: views of dense tensors, which of sparse ones are new index tensors."""

from __future__ import annotations

import builtins

from .. import _formats
from .._C import Tensor, ops
from ._convert import as_coo, begins
from ._tensor import CooTensor, compressed, coo, is_sparse, refuse, with_value


def dimension(self, dim, extra=0):
    """A dimension counted from the front. IndexError: there is none such."""
    n = self.dim() + extra
    dim = dim.__index__()
    low = max(n, 1)
    if not -low <= dim < low:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-low}, {low - 1}], but got {dim})")
    return dim % low


def transpose(self, dim0, dim1):
    """The tensor with two dimensions exchanged: both sparse, or of a compressed layout the two of the matrix."""
    a, b = dimension(self, dim0), dimension(self, dim1)
    if not isinstance(self, CooTensor):
        batch = self._pointers.dim() - 1
        if {a, b} != {batch, batch + 1} and a != b:
            refuse(f"transpose of the dimensions {a} and {b}", self._layout)
        return _flipped(self) if a != b else with_value(self, self._value.view_as(self._value))
    if max(a, b) >= self.sparse_dim() and a != b and min(a, b) < self.sparse_dim():
        raise RuntimeError(
            f"sparse transpose: transposed dimensions must be sparse Got sparse_dim: {self.sparse_dim()}, d0: {a}, d1: {b}"
        )
    order = list(range(self.dim()))
    order[a], order[b] = b, a
    return _ordered(self, order)


def _flipped(self):
    """The transpose of a compressed tensor has the same parts and the other layout."""
    batch = self._pointers.dim() - 1
    size = list(self.shape)
    size[batch], size[batch + 1] = size[batch + 1], size[batch]
    layout = _formats.sparse_csc if self._layout is _formats.sparse_csr else _formats.sparse_csr
    return compressed(layout, self._pointers, self._plain, self._value.view_as(self._value), size)


def _ordered(self, order):
    sparse = self.sparse_dim()
    index = self._index
    if order[:sparse] != list(range(sparse)):
        index = ops["stack"]([index[d] for d in order[:sparse]])
    value = self._value.permute(0, *(d - sparse + 1 for d in order[sparse:]))
    coalesced = self._coalesced and index is self._index
    return coo(index, value, [self.shape[d] for d in order], coalesced)


def permute(self, *order, dims=None):
    """The dimensions in another order: sparse ones stay before dense ones."""
    dims = order if dims is None else dims
    dims = dims[0] if len(dims) == 1 and not hasattr(dims[0], "__index__") else dims
    if not isinstance(self, CooTensor):
        if self.dim() == 2 and [dimension(self, d) for d in dims] == [1, 0]:
            return _flipped(self)
        refuse("permute", self._layout)
    if len(dims) != self.dim():
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering "
            f"of dimensions i.e. input.dim() = {self.dim()} is not equal to len(dims) = {len(dims)}"
        )
    order = [dimension(self, d) for d in dims]
    if len(set(order)) != len(order):
        raise RuntimeError("permute(sparse_coo): repeated dim in permute")
    if any(d >= self.sparse_dim() for d in order[: self.sparse_dim()]):
        raise RuntimeError(
            "permute(sparse_coo): transpositions between sparse and dense dimensions are not allowed.Only transpositions "
            "within sparse and dense dimensions are supported."
        )
    return _ordered(self, order)


def t(self):
    """The transpose of a matrix of two sparse dimensions, or a vector as it is."""
    if not isinstance(self, CooTensor):
        if self.dim() != 2:
            raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {self.dim()}D")
        return _flipped(self)
    if self.sparse_dim() > 2 or self.dense_dim():
        raise RuntimeError(
            f"t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got {self.sparse_dim()} sparse and "
            f"{self.dense_dim()} dense dimensions"
        )
    return transpose(self, 0, 1) if self.dim() == 2 else with_value(self, self._value.view_as(self._value))


def adjoint(self):
    """The conjugate transpose of the last two dimensions."""
    return transpose(self, -2, -1).conj()


def movedim(self, source, destination):
    """Dimensions at other places, as `permute`."""
    pair = [[d] if hasattr(d, "__index__") else list(d) for d in (source, destination)]
    a, b = ([dimension(self, d) for d in dims] for dims in pair)
    if len(a) != len(b) or len(set(a)) != len(a) or len(set(b)) != len(b):
        raise RuntimeError(
            "movedim: Invalid source or destination dims: expected the same number of distinct dimensions"
        )
    order = [d for d in range(self.dim()) if d not in a]
    for to, source_dim in sorted(zip(b, a, strict=True)):
        order.insert(to, source_dim)
    return permute(self, order)


def unsqueeze(self, dim):
    """A dimension of size one more: sparse where it stands before or between sparse ones, or right after them."""
    if not isinstance(self, CooTensor):
        refuse("unsqueeze", self._layout)
    dim, sparse = dimension(self, dim, 1), self.sparse_dim()
    size = [*self.shape[:dim], 1, *self.shape[dim:]]
    if dim > sparse:
        return coo(self._index, self._value.unsqueeze(dim - sparse + 1), size, self._coalesced)
    zeros = self._index.new_zeros((1, self._nnz()))
    index = ops["cat"]([self._index[:dim], zeros, self._index[dim:]])
    return coo(index, self._value.view_as(self._value), size, self._coalesced)


def squeeze(self, dim=None):
    """The tensor without its dimensions of size one, or without some of them."""
    if not isinstance(self, CooTensor):
        refuse("squeeze", self._layout)
    dims = range(self.dim()) if dim is None else [dim] if hasattr(dim, "__index__") else dim
    gone = {d for d in (dimension(self, d) for d in dims) if self.dim() and self.shape[d] == 1}
    sparse = self.sparse_dim()
    rows = [self._index[d] for d in range(sparse) if d not in gone]
    index = ops["stack"](rows) if rows else self._index[:0]
    dense = [n for d, n in enumerate(self.shape) if d >= sparse and d not in gone]
    size = [n for d, n in enumerate(self.shape) if d not in gone]
    return coo(index, self._value.reshape(self._nnz(), *dense), size, self._coalesced)


def _kept(self, there, coalesced):
    """The elements of which a mask says so, as (index, value)."""
    at = there.nonzero().flatten()
    return self._index.index_select(1, at), self._value.index_select(0, at), coalesced


def select(self, dim, index):
    """The elements at one index of a dimension: without that dimension; dense if no sparse one is left."""
    dim = dimension(self, dim)
    index, n = index.__index__(), self.shape[dim] if self.dim() else 0
    if not self.dim():
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    if not -n <= index < n:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(self.shape)} at dimension {dim}"
        )
    index, whole = index % n, as_coo(self)
    sparse, size = whole.sparse_dim(), [k for d, k in enumerate(self.shape) if d != dim]
    if dim >= sparse:
        return coo(whole._index, whole._value.select(dim - sparse + 1, index), size, whole._coalesced)
    columns, value, coalesced = _kept(whole, whole._index[dim] == index, whole._coalesced)
    if sparse == 1:
        return value.sum(0).to(self.dtype)
    return coo(ops["cat"]([columns[:dim], columns[dim + 1 :]]), value, size, coalesced)


def unbind(self, dim=0):
    """The slices along a dimension."""
    dim = dimension(self, dim)
    return tuple(select(self, dim, i) for i in range(self.shape[dim]))


def narrow_copy(self, dim, start, length):
    """The elements from index `start` of a dimension, `length` of them."""
    if not isinstance(self, CooTensor):
        refuse("narrow_copy", self._layout)
    dim = dimension(self, dim)
    n, sparse = self.shape[dim], self.sparse_dim()
    start = start + n if start < 0 else start
    if not 0 <= start <= n or length < 0 or start + length > n:
        raise RuntimeError(f"narrow_copy: start ({start}) + length ({length}) exceeds dimension size ({n}).")
    size = [*self.shape[:dim], length, *self.shape[dim + 1 :]]
    if dim >= sparse:
        return coo(self._index, self._value.narrow(dim - sparse + 1, start, length).clone(), size, self._coalesced)
    row = self._index[dim]
    columns, value, coalesced = _kept(self, (row >= start) & (row < start + length), self._coalesced)
    shifted = ops["cat"]([columns[:dim], columns[dim : dim + 1] - start, columns[dim + 1 :]])
    return coo(shifted, value, size, coalesced)


def index_select(self, dim, index):
    """The slices at a list of indices of a dimension, in that order and as often as they are listed."""
    if not isinstance(self, CooTensor):
        refuse("index_select", self._layout)
    dim = dimension(self, dim)
    n, sparse = self.shape[dim] if self.dim() else 1, self.sparse_dim()
    if is_sparse(index) or not isinstance(index, Tensor) or index.dim() > 1:
        raise IndexError("index_select() argument index must be 1-D long-tensor.")
    if index.dtype.is_floating_point or index.dtype.is_complex:
        raise IndexError("index_select() argument index must be of integral type.")
    index = index.reshape(-1).long()
    if index.numel():
        low, high = (int(x) for x in index.aminmax())
        if low < -n or high >= n:
            raise IndexError(
                f"index_select(): index contains {low if low < -n else high} that is out of range for tensor of size "
                f"{list(self.shape)} at dimension {dim}"
            )
    index = ops["where"](index < 0, index + n, index)
    size = [*self.shape[:dim], index.shape[0], *self.shape[dim + 1 :]]
    if dim >= sparse:
        return coo(self._index, self._value.index_select(dim - sparse + 1, index), size, self._coalesced)
    # The elements sorted by that index; then those of each wanted one follow each other.
    order = ops["argsort"](self._index[dim], stable=True)
    bounds = begins(self._index[dim].index_select(0, order), n)
    which, at = runs(bounds.index_select(0, index), bounds.index_select(0, index + 1))
    at = order.index_select(0, at)
    columns = self._index.index_select(1, at)
    columns = ops["cat"]([columns[:dim], which[None], columns[dim + 1 :]])
    return coo(columns, self._value.index_select(0, at), size)


def runs(first, end):
    """The numbers from each `first` to its `end`, joined: which run each belongs to, and the number."""
    lengths = end - first
    which = ops["repeat_interleave"](ops["arange"](first.shape[0], device=first.device), lengths)
    before = lengths.cumsum(0) - lengths
    at = (
        ops["arange"](which.shape[0], device=first.device)
        - before.index_select(0, which)
        + first.index_select(0, which)
    )
    return which, at


def getitem(self, key):
    """`self[key]` of integers, full slices, None and an ellipsis."""
    if not is_sparse(self):
        refuse("indexing by a sparse tensor", _formats.sparse_coo)
    keys = list(key) if isinstance(key, tuple) else [key]
    if any(isinstance(k, Tensor) and (k.dim() or k.dtype.is_floating_point) or isinstance(k, list) for k in keys):
        refuse("indexing by a tensor", self.layout)
    count = builtins.sum(k is not None and k is not Ellipsis for k in keys)
    if count > self.dim():
        raise IndexError(f"too many indices for tensor of dimension {self.dim()}")
    if Ellipsis in keys:
        at = keys.index(Ellipsis)
        keys[at : at + 1] = [slice(None)] * (self.dim() - count)
    made, dim = self, 0
    for k in keys:
        if k is None:
            made, dim = made.unsqueeze(dim), dim + 1
        elif isinstance(k, slice):
            if k.indices(made.shape[dim]) != (0, made.shape[dim], 1):
                refuse("a slice that is not the whole dimension", self.layout)
            dim += 1
        elif isinstance(k, bool) or not hasattr(k, "__index__"):
            raise TypeError(f"a sparse tensor is indexed by integers, got {type(k).__name__}")
        else:
            made = made.select(dim, k)
    return made


def _coos(tensors, name):
    tensors = list(tensors)
    for i, one in enumerate(tensors):
        if not is_sparse(one):
            raise RuntimeError(f"Concatenating sparse tensors, but a dense tensor was found at position {i}.")
        if not isinstance(one, CooTensor):
            refuse(name, one.layout)
        if one.sparse_dim() != tensors[0].sparse_dim() or one.dense_dim() != tensors[0].dense_dim():
            raise RuntimeError(
                "All tensors must have the same sparse_dim and dense_dim, but tensor at position "
                f"{i} has {one.sparse_dim()}, {one.dense_dim()} and the first {tensors[0].sparse_dim()}, "
                f"{tensors[0].dense_dim()}"
            )
    return tensors


def cat(tensors, dim=0):
    """The tensors one after the other along a dimension."""
    tensors = _coos(tensors, "cat")
    first = tensors[0]
    dim, sparse = dimension(first, dim), first.sparse_dim()
    for i, one in enumerate(tensors):
        if any(a != b for d, (a, b) in enumerate(zip(one.shape, first.shape, strict=True)) if d != dim):
            raise RuntimeError(
                f"All tensors must have the same shape: {list(first.shape)} (except in the concatenating dimension), but found "
                f"shape: {list(one.shape)} at position {i}"
            )
    before = [0]
    for one in tensors:
        before.append(before[-1] + one.shape[dim])
    size = [*first.shape[:dim], before[-1], *first.shape[dim + 1 :]]
    if dim < sparse:
        shifted = [
            ops["cat"]([one._index[:dim], one._index[dim : dim + 1] + start, one._index[dim + 1 :]])
            for one, start in zip(tensors, before, strict=False)
        ]
        return coo(ops["cat"](shifted, 1), ops["cat"]([one._value for one in tensors]), size)
    values = []
    for one, start in zip(tensors, before, strict=False):
        at = dim - sparse + 1
        left, right = list(one._value.shape), list(one._value.shape)
        left[at], right[at] = start, before[-1] - start - one.shape[dim]
        values.append(ops["cat"]([one._value.new_zeros(left), one._value, one._value.new_zeros(right)], at))
    return coo(ops["cat"]([one._index for one in tensors], 1), ops["cat"](values), size)


def stack(tensors, dim=0):
    """The tensors along a new dimension."""
    tensors = list(tensors)
    for one in tensors:
        if one.shape != tensors[0].shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(tensors[0].shape)} at entry 0 and "
                f"{list(one.shape)}"
            )
    dim = dimension(tensors[0], dim, 1)
    return cat([one.unsqueeze(dim) for one in _coos(tensors, "stack")], dim)


def hstack(tensors):
    """The tensors one after the other along the second dimension; vectors along the first."""
    tensors = list(tensors)
    return cat(tensors, 0 if tensors[0].dim() == 1 else 1)


def vstack(tensors):
    """The tensors one below the other."""
    return cat([one.unsqueeze(0) if one.dim() == 1 else one for one in tensors], 0)


def sparse_resize_(self, size, sparse_dim, dense_dim):
    """Changes the shape in place; elements stay, so no size may shrink and no sparse dimension may come or go.

    Raises:
        RuntimeError: an element would be out of the new shape, or the tensor requires grad.
    """
    _check_resize(self, size, sparse_dim, dense_dim)
    if self._nnz():
        if (sparse_dim, dense_dim) != (self.sparse_dim(), self.dense_dim()):
            which = "sparse" if sparse_dim != self.sparse_dim() else "dense"
            had, wanted = (self.sparse_dim(), sparse_dim) if which == "sparse" else (self.dense_dim(), dense_dim)
            raise RuntimeError(
                f"changing the number of {which} dimensions (from {had} to {wanted}) on a non-empty sparse tensor is not "
                "supported. Hint: sparse_resize_and_clear_ removes the elements."
            )
        if any(a < b for a, b in zip(size, self.shape, strict=True)):
            raise RuntimeError(
                "shrinking the size of dimensions on a non-empty sparse tensor is not supported; got "
                f"{list(size)} for {list(self.shape)}. Hint: sparse_resize_and_clear_ removes the elements."
            )
    count = self._nnz()
    value = self._value.new_zeros((count, *size[sparse_dim:]))
    if count:
        value[tuple(slice(0, n) for n in self._value.shape)] = self._value
    index = self._index if count else self._index.new_zeros((sparse_dim, 0))
    self._set(coo(index, value, size, self._coalesced))
    return self


def sparse_resize_and_clear_(self, size, sparse_dim, dense_dim):
    """Removes all elements and changes the shape in place."""
    _check_resize(self, size, sparse_dim, dense_dim)
    index = self._index.new_zeros((sparse_dim, 0))
    self._set(coo(index, self._value.new_zeros((0, *size[sparse_dim:])), size, True))
    return self


def _check_resize(self, size, sparse_dim, dense_dim):
    if self.requires_grad:
        raise RuntimeError("sparse_resize_: cannot resize tensors that require grad")
    if sparse_dim + dense_dim != len(size) or min((sparse_dim, dense_dim, *size)) < 0:
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = {sparse_dim}, "
            f"dense_dim = {dense_dim}"
        )


def resize_as_sparse_(self, the_template):
    """The shape, sparse and dense dimensions of another sparse tensor, in place."""
    if self.shape == the_template.shape:
        return self
    return sparse_resize_(self, the_template.shape, the_template.sparse_dim(), the_template.dense_dim())
