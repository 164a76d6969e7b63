"""Rules of the layout `jagged` that move elements, or name them otherwise; and the forms other rules compute with: rows and blocks."""

from __future__ import annotations

import math

from .. import _formats
from .._C import ops
from ._protocols import dimension, sizes_of
from ._ragged import NestedInt, ragged_of
from ._tensor import is_nested, jagged, refuse


# --- forms ---------------------------------------------------------------------------------------------------
def elements(self):
    """All elements in a tensor without gaps: of the layout `jagged` of shape (elements of all sequences, other dimensions)."""
    if self.layout is _formats.strided:
        return self._value
    at, ragged = self._ragged_idx - 1, self._ragged
    rows = self._value.movedim(at, 0) if at else self._value
    return rows if ragged.covers(rows.shape[0]) else rows.index_select(0, ragged.index)


def from_elements(self, rows):
    """The tensor of the structure of another one, from rows in the order of `elements`."""
    rows, at = spread(self, rows, 0), self._ragged_idx - 1
    return _like(self, rows.movedim(0, at) if at else rows)


def spread(self, rows, fill):
    """Rows in the order of `elements` where these lie among the values, with `fill` in the gaps."""
    total = self._value.shape[self._ragged_idx - 1]
    if self._ragged.covers(total):
        return rows
    return rows.new_full((total, *rows.shape[1:]), fill).index_copy(0, self._ragged.index, rows)


def padded(self, fill):
    """A dense tensor of shape (batch, ..., longest, ...); `fill` stands behind the shorter sequences."""
    rows, ragged = elements(self), self._ragged
    width = ragged.longest
    block = rows.new_full((ragged.batch * width, *rows.shape[1:]), fill).index_copy(0, ragged.flat(width), rows)
    return block.unflatten(0, (ragged.batch, width)).movedim(1, self._ragged_idx)


def unpadded(block, ragged, ragged_idx):
    """The elements of the sequences in a padded block, as `elements` has them. RuntimeError: a row or an element is missing."""
    if ragged.batch != block.shape[0]:
        raise RuntimeError(f"expected one sequence for each of {block.shape[0]} rows, got {ragged.batch}")
    return block.movedim(ragged_idx, 1).flatten(0, 1).index_select(0, ragged.flat(block.shape[ragged_idx]))


def from_padded(self, block):
    """The tensor of the structure of another one, from a dense tensor as `padded` gives it."""
    return from_elements(self, unpadded(block, self._ragged, self._ragged_idx))


def to_padded_tensor(self, padding, output_size=None):
    """The sequences in a dense tensor, with `padding` behind the shorter ones.

    Args:
        output_size (sequence of int): the shape; sizes may be greater than those needed, and the ragged one cuts longer sequences off.
    """
    if output_size is None:
        return padded(self, padding)
    at, size = self._ragged_idx, list(output_size)
    block = padded(self, padding)
    if len(size) != block.dim():
        raise RuntimeError(f"to_padded_tensor: expected output_size with {block.dim()} sizes, got {len(size)}")
    least = list(block.shape)
    if size[:at] + size[at + 1 :] != least[:at] + least[at + 1 :]:
        raise RuntimeError(f"to_padded_tensor: expected output_size of {least} but for the ragged size, got {size}")
    more = size[at] - least[at]
    if more <= 0:
        return block.narrow(at, 0, size[at])
    return ops["cat"]([block, block.new_full((*least[:at], more, *least[at + 1 :]), padding)], at)


# --- sequences -----------------------------------------------------------------------------------------------
def unbind(self, dim=0):
    """The sequences, views of the values."""
    if self.layout is _formats.strided:
        from ._strided import unbind

        return unbind(self, dim)
    if dimension(self, dim) != 0:
        raise RuntimeError("unbind(): only supported for NestedTensor on dim=0")
    at, ragged = self._ragged_idx - 1, self._ragged
    value = self._value
    if ragged.covers(value.shape[at]):
        return value.split(ragged.counts, at) if ragged.batch else ()
    return tuple(value.narrow(at, a, n) for a, n in zip(ragged.starts, ragged.counts, strict=True))


def contiguous(self, *, memory_format=None):
    """The tensor itself, or its elements without gaps and row-major."""
    if self._ragged.lengths is None:
        value = self._value.contiguous()
        return self if value is self._value else jagged(value, self._ragged, self._ragged_idx)
    rows, counts = elements(self), self._ragged.lengths_tensor
    offsets = ops["cat"]([counts.new_zeros(1), counts.cumsum(0)])
    value = rows.movedim(0, self._ragged_idx - 1).contiguous()
    return jagged(value, ragged_of(offsets, None, *self._ragged.given), self._ragged_idx)


def clone(self, *, memory_format=None):
    """A copy of the values with the same structure."""
    if memory_format is _formats.contiguous_format:
        self = contiguous(self)
    return jagged(self._value.clone(), self._ragged, self._ragged_idx)


# --- dimensions ----------------------------------------------------------------------------------------------
def inner(self, dim, name, extra=0, ragged=True):
    """A dimension of the values. RuntimeError: it is that of the batch or, with `ragged`, the ragged one."""
    dim = dimension(self, dim, extra)
    if dim == 0:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0")
    if ragged and dim == self._ragged_idx:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on ragged dim")
    return dim - 1


def _like(self, value, ragged_idx=None):
    return jagged(value, self._ragged, self._ragged_idx if ragged_idx is None else ragged_idx)


def transpose(self, dim0, dim1):
    """Two dimensions exchanged; the ragged one may be among them."""
    a, b = dimension(self, dim0), dimension(self, dim1)
    if a == b:
        return _like(self, self._value.view_as(self._value))
    if 0 in (a, b):
        raise ValueError("Transpose is not supported on the batch dimension for jagged NT")
    at = {a: b, b: a}.get(self._ragged_idx, self._ragged_idx)
    return _like(self, self._value.transpose(a - 1, b - 1), at)


def permute(self, *dims, **named):
    """The dimensions in another order, of which the batch is the first."""
    dims = [dimension(self, d) for d in sizes_of(dims, named, "dims")]
    if len(set(dims)) < len(dims):
        raise ValueError("permute(): duplicate dims are not allowed.")
    if len(dims) != self.dim():
        raise ValueError(
            f"permute(): number of dimensions in the tensor input ({self.dim()}) does not match the length of the desired "
            f"ordering of dimensions ({len(dims)})."
        )
    if dims[0] != 0:
        raise ValueError("Permute is not supported on the batch dimension for jagged NT")
    return _like(self, self._value.permute([d - 1 for d in dims[1:]]), dims.index(self._ragged_idx))


def unsqueeze(self, dim):
    """A new dimension of size 1; not before the batch."""
    at = inner(self, dim, "unsqueeze", 1, ragged=False)
    return _like(self, self._value.unsqueeze(at), self._ragged_idx + (at < self._ragged_idx))


def squeeze(self, dim=None):
    """A dimension of size 1 removed."""
    if dim is None:
        refuse("squeeze without a dimension", self.layout)
    dims = [dim] if hasattr(dim, "__index__") else list(dim)
    dims = [d for d in (inner(self, d, "squeeze") for d in dims) if self._value.shape[d] == 1]
    before = sum(d < self._ragged_idx - 1 for d in dims)
    return _like(self, self._value.squeeze(tuple(dims)), self._ragged_idx - before)


def _cannot_view(self, size):
    raise RuntimeError(f"view(): cannot view shape {tuple(self.shape)} as {list(size)}")


def _inner_sizes(self, size):
    """The sizes of the values for a view of `size`, and the ragged dimension: one that is given as itself, or as -1."""
    size = list(size)
    if len(size) < 2 or size[0] not in (-1, self._ragged.batch):
        _cannot_view(self, size)
    value, j = self._value, self._ragged.size
    at = next((i for i, n in enumerate(size) if isinstance(n, NestedInt)), None)
    before = math.prod(value.shape[: self._ragged_idx - 1])
    if at is None:
        # The place before which are as many elements as before.
        at = next((i for i in range(1, len(size)) if size[i] == -1 and math.prod(size[1:i]) == before), None)
    if at is None or at == 0 or isinstance(size[at], NestedInt) and size[at] != j:
        _cannot_view(self, size)
    sizes = [value.shape[self._ragged_idx - 1] if i == at else n for i, n in enumerate(size)][1:]
    left, right = sizes[: at - 1], sizes[at:]
    after = math.prod(value.shape[self._ragged_idx :])
    for part, count in ((left, before), (right, after)):
        if part.count(-1) > 1 or any(isinstance(n, NestedInt) for n in part):
            _cannot_view(self, size)
        known = math.prod(n for n in part if n != -1)
        if -1 in part and (known == 0 or count % known):
            _cannot_view(self, size)
        part[:] = [count // known if n == -1 else n for n in part]
        if math.prod(part) != count:
            _cannot_view(self, size)
    return [*left, sizes[at - 1], *right], at


def view(self, *size, **named):
    """Other sizes of the dimensions before and after the ragged one, which stays between the same elements."""
    if "dtype" in named or size and not isinstance(size[0], (int, tuple, list, NestedInt)):
        refuse("view as another dtype", self.layout)
    sizes, at = _inner_sizes(self, sizes_of(size, named, "size"))
    return _like(self, self._value.view(sizes), at)


def reshape(self, *shape, **named):
    """`view`, or a copy where there is no view."""
    sizes, at = _inner_sizes(self, sizes_of(shape, named, "shape"))
    return _like(self, self._value.reshape(sizes), at)


def flatten(self, start_dim=0, end_dim=-1):
    """Dimensions joined, without the batch and the ragged one."""
    start, end = dimension(self, start_dim), dimension(self, end_dim)
    if start == end:
        return self
    inner(self, start, "flatten")
    if start <= self._ragged_idx <= end:
        raise RuntimeError("flatten(): not supported for NestedTensor on ragged dim")
    at = self._ragged_idx - (end - start if end < self._ragged_idx else 0)
    return _like(self, self._value.flatten(start - 1, end - 1), at)


def unflatten(self, dim, sizes):
    """A dimension split into several, not the batch or the ragged one."""
    at = inner(self, dim, "unflatten")
    made = self._value.unflatten(at, sizes)
    more = made.dim() - self._value.dim()
    return _like(self, made, self._ragged_idx + (more if at < self._ragged_idx - 1 else 0))


def expand(self, *size, **named):
    """Dimensions of size 1 repeated; others are given as they are, or as -1."""
    size = sizes_of(size, named, "size")
    at = self._ragged_idx
    if len(size) != self.dim() or size[0] not in (-1, self._ragged.batch) or size[at] not in (-1, self._ragged.size):
        raise RuntimeError(f"expand(): cannot expand shape {tuple(self.shape)} -> {list(size)}")
    return _like(self, self._value.expand([-1 if i == at else n for i, n in enumerate(size)][1:]))


def expand_as(self, other):
    """`expand` to the sizes of another nested tensor; a dense tensor is set beside each element."""
    if not is_nested(self):
        from ._elementwise import operand

        return _like(other, operand(other, self, "expand_as").expand_as(other._value))
    return expand(self, *other.shape)


def view_as(self, other):
    """`view` with the sizes of another tensor."""
    return view(self, *other.shape)


def reshape_as(self, other):
    """`reshape` to the sizes of another tensor."""
    return reshape(self, *other.shape)


# --- parts ---------------------------------------------------------------------------------------------------
def select(self, dim, index):
    """A sequence, or one index of a dimension that is not ragged."""
    if dimension(self, dim) == 0:
        return _sequence(self, index)
    at = inner(self, dim, "select")
    return _like(self, self._value.select(at, index), self._ragged_idx - (at < self._ragged_idx - 1))


def _sequence(self, index):
    ragged, at = self._ragged, self._ragged_idx - 1
    index, n = index.__index__(), ragged.batch
    if not -n <= index < n:
        raise IndexError(f"index {index} is out of bounds for dimension 0 with size {n}")
    ragged.covers(self._value.shape[at])
    return self._value.narrow(at, ragged.starts[index % n], ragged.counts[index % n])


def narrow(self, dim, start, length):
    """A range of a dimension that is not ragged."""
    return _like(self, self._value.narrow(inner(self, dim, "narrow"), start, length))


def split(self, split_size, dim=0):
    """Pieces along a dimension that is not ragged."""
    name = "split" if hasattr(split_size, "__index__") else "split_with_sizes"
    return tuple(_like(self, part) for part in self._value.split(split_size, inner(self, dim, name)))


def chunk(self, chunks, dim=0):
    """Pieces along a dimension that is not ragged; of the batch, tensors of some of the sequences."""
    if dimension(self, dim) != 0:
        return tuple(_like(self, part) for part in self._value.chunk(chunks, inner(self, dim, "chunk")))
    whole, parts = contiguous(self), []
    ragged, at, width = whole._ragged, whole._ragged_idx - 1, -(-self._ragged.batch // chunks)
    ends = [*ragged.starts, sum(ragged.counts)]
    for first in range(0, ragged.batch, width):
        last = min(first + width, ragged.batch)
        value = whole._value.narrow(at, ends[first], ends[last] - ends[first])
        part = ragged_of(ragged.offsets[first : last + 1] - ends[first])
        parts.append(jagged(value, part, whole._ragged_idx))
    return tuple(parts)


def getitem(self, index):
    """A sequence, or a part of each: slices, None and integers after `...`."""
    items = list(index) if isinstance(index, tuple) else [index]
    for item in items:
        if not (item is None or item is Ellipsis or isinstance(item, slice) or hasattr(item, "__index__")):
            refuse("indexing by tensors or lists", _formats.jagged)
        if isinstance(item, bool) or getattr(item, "dim", None):
            refuse("indexing by tensors or truth values", _formats.jagged)
    if Ellipsis not in items:
        items.append(Ellipsis)
    used = sum(item is not None for item in items) - 1
    if used > self.dim():
        raise IndexError(f"too many indices for tensor of dimension {self.dim()}")
    where = items.index(Ellipsis)
    if where:
        first, *rest = items
        if first is None or isinstance(first, slice):
            name = "unsqueeze" if first is None else "slice"
            raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0")
        return _sequence(self, first)[tuple(rest)]
    made, dim = self, self.dim() - used
    for item in items[1:]:
        if item is None:
            made, dim = unsqueeze(made, dim), dim + 1
        elif isinstance(item, slice):
            at = inner(made, dim, "slice")
            made, dim = _like(made, made._value[(slice(None),) * at + (item,)]), dim + 1
        else:
            made = select(made, dim, item)
    return made


def _parts(tensors, name):
    """The values of several tensors of one structure."""
    first = tensors[0]
    for one in tensors:
        if not is_nested(one) or one.layout is not _formats.jagged:
            refuse(f"{name} of nested and dense tensors", _formats.jagged)
        if one.dim() != first.dim():
            raise RuntimeError(f"Tensors must have same number of dimensions: got {first.dim()} and {one.dim()}")
        if one._ragged.size != first._ragged.size or one._ragged_idx != first._ragged_idx:
            raise RuntimeError(
                f"{name}(): expected tensors with the same offsets, got shapes {[t.shape for t in tensors]}"
            )
    return [one._value for one in tensors]


def cat(tensors, dim=0):
    """Tensors of one structure, joined along a dimension that is not ragged."""
    tensors = list(tensors)
    values = _parts(tensors, "cat")
    return _like(tensors[0], ops["cat"](values, inner(tensors[0], dim, "cat")))


def stack(tensors, dim=0):
    """Tensors of one structure along a new dimension, which comes neither before the batch nor in the ragged one's place."""
    tensors = list(tensors)
    values = _parts(tensors, "stack")
    return _like(tensors[0], ops["stack"](values, inner(tensors[0], dim, "stack", 1)))
