"""Rules of the layout `strided`: of each component, or of the vector of all elements where the last dimension is regular."""

from __future__ import annotations

import itertools
import math

from .. import _formats
from .._C import Tensor, ops
from ._protocols import dimension, sizes_of
from ._tensor import is_nested, refuse, strided, with_value


def from_components(parts):
    """The tensor of some components, with their history."""
    parts = list(parts)
    if not parts:
        return strided(ops["zeros"](0), ())
    return strided(ops["cat"]([part.reshape(-1) for part in parts]), [part.shape for part in parts])


def unbind(self, dim=0):
    """The components, views of the values."""
    dim = dimension(self, dim)
    if dim != 0:
        raise RuntimeError(f"NestedTensor can only be unbound along dimension 0 got dimension {dim} instead.")
    parts = self._value.split([math.prod(size) for size in self._sizes]) if self._sizes else ()
    return tuple(part.view(size) for part, size in zip(parts, self._sizes, strict=True))


def each(self, function):
    """The tensor of what a function makes of each component."""
    return from_components(map(function, unbind(self)))


def inner(self, dim, name, extra=0):
    """A dimension of the components. RuntimeError: it is that of the batch."""
    dim = dimension(self, dim, extra)
    if dim == 0:
        raise RuntimeError(f"{name}(): Nested tensor dimension 0 is not supported; it is that of the components")
    return dim - 1


def along(name, default=None):
    """The rule of a function of one dimension: `squeeze`, `unsqueeze`, `select`."""
    op = ops[name] if name in ops else getattr(Tensor, name)

    def rule(self, dim=default, *args, **kwargs):
        extra = 1 if name == "unsqueeze" else 0
        if dim is None:
            raise RuntimeError(f"{name}: expected a dimension of a nested tensor")
        at = inner(self, dim, name, extra)
        return each(self, lambda part: op(part, at, *args, **kwargs))

    return rule


def _rows(self):
    """The elements as rows of the last dimension, where it is regular, else None."""
    last = {size[-1] for size in self._sizes if size}
    return self._value.view(-1, last.pop()) if len(last) == 1 and 0 not in last else None


def softmax(name):
    """The rule of `softmax` or `log_softmax`."""
    op = ops[name]

    def rule(self, dim=None, *args, **kwargs):
        if dim is None:
            raise RuntimeError(f"{name}(): expected a dimension")
        at = dimension(self, dim)
        if at == 0:
            raise RuntimeError("Cannot apply softmax across nested dimension 0")
        rows = _rows(self) if at == self.dim() - 1 else None
        if rows is not None:
            return with_value(self, op(rows, 1, *args, **kwargs).reshape(-1))
        return each(self, lambda part: op(part, at - 1, *args, **kwargs))

    return rule


def _with_last(self, rows):
    """A tensor of rows, of which each replaces one of the last dimension."""
    return strided(rows.reshape(-1), [(*size[:-1], rows.shape[-1]) for size in self._sizes])


def _regular(self, name):
    rows = _rows(self)
    if rows is None:
        raise RuntimeError(f"{name}: expected components with the same last size, got shapes {list(self._sizes)}")
    return rows


def linear(self, weight, bias=None):
    """`x @ weight.T + bias` of the last dimension."""
    if is_nested(weight) or is_nested(bias):
        raise RuntimeError("linear: expected a dense weight and bias for a nested input")
    if self.dim() != 3:
        raise RuntimeError(
            f"Linear requires nested_tensor.dim == 3 and dense_matrix.dim == 2. Nested tensor dim: {self.dim()}."
        )
    return _with_last(self, ops["nn.functional.linear"](_regular(self, "linear"), weight, bias))


def layer_norm(self, normalized_shape, weight=None, bias=None, eps=1e-5):
    """Normalisation over the last dimensions of the components."""
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if any(size[-len(shape) :] != shape for size in self._sizes) or len(shape) >= self.dim():
        raise RuntimeError(f"layer_norm: expected components that end with {list(shape)}, got {list(self._sizes)}")
    value = self._value.reshape(-1, *shape)
    return with_value(self, ops["nn.functional.layer_norm"](value, shape, weight, bias, eps).reshape(-1))


def embedding(input, weight, *args, **kwargs):
    """The rows of a table at nested indices."""
    rows = ops["nn.functional.embedding"](input._value, weight, *args, **kwargs)
    return strided(rows.reshape(-1), [(*size, weight.shape[1]) for size in input._sizes])


def matmul(self, other):
    """The products of the components; a dense factor has three dimensions or more, of which the first is the batch."""
    if is_nested(self) and not is_nested(other) and other.dim() == 2 and self.dim() > 3:
        return _with_last(self, _regular(self, "matmul") @ other)
    for one, what in ((self, "1st"), (other, "2nd")):
        if not is_nested(one) and one.dim() < 3:
            raise RuntimeError(
                f"Expected both to be nested, but got a non-nested {what} input of {one.dim()} dimensions"
            )
        if is_nested(one) and one.dim() < 3:
            raise RuntimeError(
                f"matmul: For nested tensors, only inputs with >= 3 dims are currently supported. {what} input has rank: {one.dim()}"
            )
    if self.dim() != other.dim():
        raise RuntimeError("matmul: both inputs must have the same rank")
    a, b = unbind_any(self), unbind_any(other)
    if len(a) != len(b):
        raise RuntimeError(
            f"matmul: Expected size for the 1st dimension of 2nd input tensor to be: {len(a)} but got: {len(b)}."
        )
    for i, (left, right) in enumerate(zip(a, b, strict=True)):
        if left.shape[:-2] != right.shape[:-2]:
            raise RuntimeError(
                "matmul: For nested tensors, no broadcasting is currently performed: expected equal batches"
            )
        if left.shape[-1] != right.shape[-2]:
            raise RuntimeError(
                f"{i}-th nested matrices in batch cannot be multiplied ({left.shape[-2]}x{left.shape[-1]} and "
                f"{right.shape[-2]}x{right.shape[-1]})"
            )
    return from_components(map(ops["matmul"], a, b))


def unbind_any(one):
    """The components of a nested tensor, or the slices of a dense one."""
    return unbind(one) if is_nested(one) else one.unbind()


def bmm(self, mat2):
    """`matmul` of two factors with three dimensions."""
    for name, one in (("batch1", self), ("batch2", mat2)):
        if one.dim() != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    return matmul(self, mat2)


def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """Attention within each component."""
    for given, what in ((attn_mask is not None, "an explicit attn_mask is set"), (is_causal, "is_causal=True")):
        if given:
            raise RuntimeError(
                f"scaled_dot_product_attention: nested tensors of layout strided are not supported when {what}"
            )
    op = ops["nn.functional.scaled_dot_product_attention"]
    options = {"dropout_p": dropout_p, "scale": scale, "enable_gqa": enable_gqa}
    parts = zip(*map(unbind_any, (query, key, value)), strict=True)
    return from_components([op(*one, **options) for one in parts])


def transpose(self, dim0, dim1):
    """Two dimensions of the components exchanged: a copy."""
    a, b = dimension(self, dim0), dimension(self, dim1)
    if 0 in (a, b) and a != b:
        raise RuntimeError("Nested tensor dimension 0 cannot be transposed")
    return each(self, lambda part: part.transpose(a - 1, b - 1)) if a != b else self


def permute(self, *dims, **named):
    """The dimensions of the components in another order."""
    dims = [dimension(self, d) for d in sizes_of(dims, named, "dims")]
    if dims[0] != 0:
        raise RuntimeError("permute: Nested tensor dimension 0 cannot be permuted")
    return each(self, lambda part: part.permute([d - 1 for d in dims[1:]]))


def reshape(self, *shape, **named):
    """Other sizes of each component; -1 stands for a size that stays or, behind the old ones, that is inferred."""
    shape = sizes_of(shape, named, "size" if "size" in named else "shape")
    if not shape or not all(hasattr(n, "__index__") for n in shape):
        refuse("view as another dtype", _formats.strided)
    if len(shape) < self.dim():
        raise RuntimeError(
            f"view: For now nested view can't flatten dimensions: expected {self.dim()} sizes at least, got {shape}"
        )
    if shape[0] != len(self._sizes):
        raise RuntimeError(
            f"view: For now nested view cannot change or infer the implicit batch dimension, got {shape}"
        )
    if any(n < -1 for n in shape):
        raise RuntimeError(f"view: invalid shape dimension {next(n for n in shape if n < -1)}")
    old = self.dim() - 1

    def one(part):
        sizes = list(shape[1:])
        unknown = [i for i, n in enumerate(sizes) if n == -1]
        if len(unknown) > 1:
            raise RuntimeError("view: only one dimension can be inferred")
        if unknown and unknown[0] < old:
            sizes[unknown[0]] = part.shape[unknown[0]]
        return part.reshape(sizes)

    return each(self, one)


def sum_(self, dim=None, keepdim=False, *, dtype=None):
    """The sum over the last dimension, which stays with size 1; or of all elements."""
    dims = [] if dim is None else [dim] if hasattr(dim, "__index__") else list(dim)
    if not dims:
        return self._value.sum(dtype=dtype)
    if len(dims) > 1:
        raise RuntimeError("NestedTensor only allows reduction of a single dimension for now.")
    at = dimension(self, dims[0])
    if at != self.dim() - 1:
        raise RuntimeError(
            f"NestedTensor can only be reduced across the last dimension for now got dimension {at} instead."
        )
    if not keepdim:
        raise RuntimeError("NestedTensor always requires keepdim=True for now.")
    return each(self, lambda part: part.sum(-1, True, dtype=dtype))


def select(self, dim, index):
    """A component, or one index of a dimension of each."""
    at = dimension(self, dim)
    if at == 0:
        n = len(self._sizes)
        if not -n <= index < n:
            raise IndexError(f"index {index} is out of bounds for dimension 0 with size {n}")
        return unbind(self)[index]
    return each(self, lambda part: part.select(at - 1, index))


def getitem(self, index):
    """A component, or a part of one."""
    items = index if isinstance(index, tuple) else (index,)
    for item in items:
        if not (item is None or item is Ellipsis or isinstance(item, slice) or hasattr(item, "__index__")):
            refuse("indexing by tensors or lists", _formats.strided)
        if isinstance(item, (bool, Tensor)):
            refuse("indexing by tensors or truth values", _formats.strided)
    first, rest = items[0], tuple(items[1:])
    if first is Ellipsis and not rest:
        return self
    if first is None or first is Ellipsis:
        raise RuntimeError("indexing: expected an integer or a slice for the batch of a nested tensor")
    if not isinstance(first, slice):
        return select(self, 0, first.__index__())[rest]
    refuse("a slice of the components", _formats.strided)


def narrow(self, dim, start, length):
    """A range of the components."""
    if dimension(self, dim) != 0:
        raise RuntimeError(f"narrow(): only dim=0 supported for nested tensors, but got: {dim}")
    return from_components(unbind(self)[start : start + length])


def _last(self, dim, name):
    if dimension(self, dim) != self.dim() - 1:
        raise RuntimeError(f"{name}(): only the last dimension of a nested tensor is divided, got {dim}")


def chunk(self, chunks, dim=0):
    """Pieces of the last dimension, which is regular."""
    _last(self, dim, "chunk")
    return _transposed(self, lambda part: part.chunk(chunks, -1))


def split(self, split_size, dim=0):
    """Pieces of the last dimension, which is regular."""
    _last(self, dim, "split_with_sizes")
    return _transposed(self, lambda part: part.split(split_size, -1))


def _transposed(self, function):
    self.size(-1)
    return tuple(map(from_components, zip(*map(function, unbind(self)), strict=True)))


def to_padded_tensor(self, padding, output_size=None):
    """The components in a dense tensor of the greatest sizes, or of `output_size`, with `padding` behind them."""
    if not self._sizes:
        return self._value.new_empty((0,))
    if self._value.numel() == 0:
        raise RuntimeError("at least one constituent tensor should have non-zero numel")
    least = [max(sizes) for sizes in zip(*self._sizes, strict=True)]
    size = [len(self._sizes), *least] if output_size is None else list(output_size)
    if len(size) != self.dim() or any(n < m for n, m in zip(size[1:], least, strict=False)):
        raise RuntimeError("Value in output_size is less than NestedTensor padded size. Truncation is not supported.")

    def one(part):
        behind = [(0, n - m) for n, m in zip(size[1:], part.shape, strict=True)]
        return ops["nn.functional.pad"](part, list(itertools.chain(*reversed(behind))), value=padding)

    made = ops["stack"]([one(part) for part in unbind(self)])
    more = size[0] - made.shape[0]
    return made if more <= 0 else ops["cat"]([made, made.new_full((more, *size[1:]), padding)])


def cat(tensors, dim=0):
    """All components one after another, or joined one by one along another dimension."""
    tensors = list(tensors)
    at = dimension(tensors[0], dim)
    if at == 0:
        return from_components(itertools.chain(*map(unbind_any, tensors)))
    for one in tensors:
        if not is_nested(one):
            refuse("cat of nested and dense tensors", _formats.strided)
        if len(one._sizes) != len(tensors[0]._sizes):
            raise RuntimeError("cat(): expected tensors with equally many components")
    return from_components(ops["cat"](list(parts), at - 1) for parts in zip(*map(unbind, tensors), strict=True))


def clone(self, *, memory_format=None):
    """A copy. RuntimeError: another memory format than a contiguous one."""
    if memory_format not in (None, _formats.preserve_format, _formats.contiguous_format):
        raise RuntimeError(
            "Nested tensor clone supports Preserve and Contiguous memory formats, called clone with memory format: "
            f"{memory_format}"
        )
    return with_value(self, self._value.clone())


def contiguous(self, *, memory_format=None):
    """The tensor itself: components lie one after another."""
    return self
