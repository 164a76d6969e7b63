"""Conversions between layouts, and the sum of values at equal indices. The key of an element is its row-major position."""

from __future__ import annotations

import math

from .. import _C, _formats
from .._C import ops
from ._printing import NAMES
from ._tensor import CooTensor, compressed, coo, is_sparse, refuse


def keys(index, shape):
    """The position of each column of indices in the sparse dimensions, flattened: int64 of shape (elements,)."""
    if index.shape[0] == 1:
        return index[0]
    key = index.new_zeros(index.shape[1])
    for row, size in zip(index, shape, strict=False):
        key = key * size + row
    return key


def indices_of(key, shape):
    """The inverse of `keys`: int64 of shape (dimensions, elements)."""
    if not shape:
        return key.new_zeros((0, key.shape[0]))
    rows = []
    for size in reversed(shape[1:]):
        # No element is in a dimension of size zero.
        rows.append(key % max(size, 1))
        key = ops["floor_divide"](key, max(size, 1))
    return ops["stack"]([key, *rows[::-1]])


def added(value, at, count):
    """(count, ...): the sums of the values with the same number in `at`; truth values are joined by `or`."""
    if value.dtype == _C.bool:
        return added(value.to(_C.int64), at, count) != 0
    zeros = ops["zeros"]((count, *value.shape[1:]), dtype=value.dtype, device=value.device)
    return zeros.index_add(0, at, value)


def coalesce(self):
    """The tensor with sorted, distinct indices: values at equal ones are added."""
    if not isinstance(self, CooTensor):
        raise RuntimeError(f"coalesce expected sparse coordinate tensor layout but got {NAMES[self.layout]}")
    if self._coalesced:
        return self
    shape, count = self.shape[: self.sparse_dim()], self._nnz()
    name = "CoalesceBackward0"
    if self._index.is_meta:
        refuse("coalesce", _formats.sparse_coo)
    key = keys(self._index, shape)
    if count < 2 or bool((key[1:] > key[:-1]).all()):
        return coo(self._index, self._value.view_as(self._value), self.shape, True, name)
    distinct, at = ops["unique"](key, return_inverse=True)[:2]
    return coo(indices_of(distinct, shape), added(self._value, at, distinct.shape[0]), self.shape, True, name)


def to_dense(self, dtype=None, *, masked_grad=None):
    """The dense tensor. RuntimeError: a `dtype`, as in PyTorch."""
    if not is_sparse(self):
        return self if dtype is None else self.to(dtype)
    if dtype is not None:
        raise RuntimeError("dtype argument is not supported by sparse_to_dense")
    plain = as_coo(self)
    sparse = plain.sparse_dim()
    key = keys(plain._index, plain.shape[:sparse])
    return added(plain._value, key, math.prod(plain.shape[:sparse])).reshape(plain.shape)


def flat(dense, sparse):
    """A dense tensor with its first `sparse` dimensions as one."""
    return dense.reshape(math.prod(dense.shape[:sparse]), *dense.shape[sparse:])


def dense_to_coo(self, sparse_dim=None):
    """The elements of a dense tensor that are not zero."""
    n = self.dim()
    sparse = n if sparse_dim is None else sparse_dim
    if not 0 <= sparse <= n:
        raise RuntimeError(f"dense_to_sparse: sparse_dim argument must be in [0,{n}] range, but {sparse} is given")
    if sparse == 0 and n > 0:
        raise RuntimeError("dense_to_sparse: sparse_dim argument must be in >0 when self.dim()>0")
    rows = flat(self, sparse) if n else self.reshape(1)
    there = rows.detach() != 0
    there = there.flatten(1).any(1) if there.dim() > 1 else there
    key = there.nonzero().flatten()
    name = f"ToSparseBackward{0 if sparse_dim is not None else 1}"
    return coo(indices_of(key, self.shape[:sparse]), rows.index_select(0, key), self.shape, True, name)


def begins(line, count, dtype=_C.int64):
    """Where each of `count` lines begins among sorted numbers of lines, and where the last ends."""
    at = ops["arange"](count + 1, dtype=line.dtype, device=line.device)
    return ops["searchsorted"](line.contiguous(), at).to(dtype)


def lines_of(pointers, count):
    """The line of each of `count` elements, from where lines begin: (..., count).

    Raises:
        RuntimeError: the pointers are not ascending from zero to `count`: a program has written to them.
    """
    if pointers.is_meta:
        return pointers.new_empty((*pointers.shape[:-1], count), dtype=_C.int64)
    lengths = pointers.long().diff(dim=-1)
    lines = lengths.shape[-1]
    if not bool((((lengths >= 0) & (lengths <= count)).all(-1) & (lengths.sum(-1) == count)).all()):
        raise RuntimeError(
            "the pointers of a sparse tensor have been changed: they do not ascend to the number of elements"
        )
    return (ops["repeat_interleave"](lengths.flatten()) % max(lines, 1)).reshape(*lengths.shape[:-1], count)


def places(self):
    """The row and the column of each element of a sparse matrix."""
    if isinstance(self, CooTensor):
        return self._index
    line, plain = lines_of(self._pointers, self._nnz()), self._plain.long()
    return (line, plain) if self._layout is _formats.sparse_csr else (plain, line)


def as_coo(self):
    """A tensor of any sparse layout as one of `sparse_coo`."""
    if isinstance(self, CooTensor):
        return self
    row = self._layout is _formats.sparse_csr
    batch, count = self._pointers.shape[:-1], self._nnz()
    line, plain = lines_of(self._pointers, count), self._plain.long()
    pair = [line.flatten(), plain.flatten()] if row else [plain.flatten(), line.flatten()]
    which = ops["arange"](math.prod(batch), device=plain.device)[:, None].expand(-1, count).flatten()
    index = ops["cat"]([indices_of(which, batch), ops["stack"](pair)])
    value = self._value.reshape(math.prod(batch) * count, *self._value.shape[len(batch) + 1 :])
    return coo(index, value, self.shape, row, "ToSparseBackward0")


def coo_to_compressed(self, layout, index_dtype=_C.int64):
    """A tensor of the layout `sparse_coo` with two sparse dimensions as one of another layout."""
    name = layout._name.removeprefix("sparse_")
    if self.sparse_dim() != 2:
        raise RuntimeError(
            f"coo_to_sparse_{name}: conversion from Sparse to {NAMES[layout]} for input tensors with sparse_dim()!=2 is not "
            "supported"
        )
    made_by = f"ToSparse{name.capitalize()}Backward0"
    row = layout is _formats.sparse_csr
    if not row:
        index, shape = self._index.flip(0), (self.shape[1], self.shape[0], *self.shape[2:])
        self = coo(index, self._value, shape)
    whole = coalesce(self)
    pointers = begins(whole._index[0], whole.shape[0], index_dtype)
    shape = self.shape if row else (self.shape[1], self.shape[0], *self.shape[2:])
    return compressed(layout, pointers, whole._index[1].to(index_dtype), whole._value, shape, made_by)


def _batched(self, layout, dense_dim):
    """Each matrix of a dense batch compressed: all have to have the same number of elements."""
    n = self.dim() - dense_dim
    name = layout._name.removeprefix("sparse_")
    matrices = self.reshape(math.prod(self.shape[: n - 2]), *self.shape[n - 2 :])
    if matrices.shape[0] == 0:
        raise RuntimeError(f"to_sparse_{name}: expected a batch that is not empty, got shape {tuple(self.shape)}")
    made = [coo_to_compressed(dense_to_coo(matrix, 2), layout) for matrix in matrices]
    if any(m._nnz() != made[0]._nnz() for m in made):
        raise RuntimeError("Expect the same number of specified elements per batch.")

    def joined(part):
        parts = ops["stack"]([getattr(m, part) for m in made])
        return parts.reshape(*self.shape[: n - 2], *parts.shape[1:])

    return compressed(layout, *map(joined, ("_pointers", "_plain", "_value")), self.shape, made[0]._made_by)


def to_compressed(self, layout, dense_dim=None):
    """A tensor of any layout as one of the layout `sparse_csr` or `sparse_csc`.

    Raises:
        RuntimeError: it has fewer than two dimensions, or another number of sparse ones, or matrices of a batch have
            different numbers of elements.
    """
    name = layout._name.removeprefix("sparse_")
    if self.layout is layout:
        return self
    if isinstance(self, CooTensor):
        return coo_to_compressed(self, layout)
    if is_sparse(self):
        if self._plain.dim() > 1:
            refuse(f"to_sparse_{name} of a batch", self.layout)
        return coo_to_compressed(as_coo(self), layout, self._plain.dtype)
    if self.dim() < 2:
        raise IndexError(f"to_sparse_{name}: expected a tensor of at least two dimensions, got {self.dim()}")
    dense = dense_dim or 0
    if not 0 <= dense <= self.dim() - 2:
        raise RuntimeError(
            f"dense_to_sparse_{name}: dense_dim argument must be in [0,{self.dim() - 2}] range, but {dense} is given"
        )
    if self.dim() - dense > 2:
        return _batched(self, layout, dense)
    return coo_to_compressed(dense_to_coo(self, 2), layout)


def to_layout(self, layout):
    """A tensor of any layout as one of another, also as a dense one."""
    from ._construct import no_blocks

    if layout is _formats.strided:
        return to_dense(self)
    if layout is _formats.sparse_coo:
        return as_coo(self) if is_sparse(self) else dense_to_coo(self)
    if layout in (_formats.sparse_bsr, _formats.sparse_bsc):
        no_blocks("to_sparse", layout)
    if not isinstance(layout, _formats.layout) or layout not in NAMES:
        raise RuntimeError(f"to_sparse: expected a layout, got {layout}")
    return to_compressed(self, layout)


def gathered(dense, mask):
    """The elements of a dense tensor, which may have to be expanded, at the indices of a tensor of the layout `sparse_coo`."""
    sparse = mask.sparse_dim()
    dense = dense.expand(mask.shape)
    if sparse == 0:
        return dense.expand(mask._nnz(), *dense.shape)
    return dense[tuple(mask._index)]


def sparse_mask(self, mask):
    """The elements of `self`, dense or sparse, at the indices of `mask`: zeros where a sparse one has none.

    Raises:
        RuntimeError: the shapes differ.
    """
    if not is_sparse(mask):
        refuse("sparse_mask by a mask", mask.layout)
    if self.shape != mask.shape:
        raise RuntimeError(
            f"sparse_mask(): operands have incompatible sizes; self has size {list(self.shape)} but mask has size "
            f"{list(mask.shape)}"
        )
    wanted = as_coo(mask)
    if not is_sparse(self):
        value = gathered(self, wanted)
    elif isinstance(self, CooTensor) and self._index is wanted._index:
        value = self._value.view_as(self._value)
    else:
        value = _looked_up(coalesce(as_coo(self)), wanted)
    if isinstance(mask, CooTensor):
        return coo(mask._index, value, mask.shape, mask._coalesced, "SparseMaskBackward0")
    value = value.reshape(*mask._plain.shape, *value.shape[1:])
    return compressed(mask._layout, mask._pointers, mask._plain, value, mask.shape, "SparseMaskBackward0")


def _looked_up(self, mask):
    """The values of a coalesced tensor at other indices."""
    sparse = self.sparse_dim()
    if sparse != mask.sparse_dim():
        raise RuntimeError(
            f"sparse_mask(): the operands have {sparse} and {mask.sparse_dim()} sparse dimensions; expected the same number"
        )
    at, there = found(keys(self._index, self.shape[:sparse]), keys(mask._index, mask.shape[:sparse]))
    if not self._nnz():
        return self._value.new_zeros((mask._nnz(), *self._value.shape[1:]))
    there = there.reshape(-1, *(1,) * (self._value.dim() - 1))
    return ops["where"](there, self._value.index_select(0, at), self._value.new_zeros(()))


def found(ascending, wanted):
    """Where each wanted key stands among ascending ones, or anywhere if it does not; and whether it does."""
    if not ascending.shape[0]:
        return wanted.new_zeros(wanted.shape), wanted != wanted
    at = ops["searchsorted"](ascending, wanted).clamp(max=ascending.shape[0] - 1)
    return at, ascending[at] == wanted
