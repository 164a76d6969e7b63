"""Sums, norms and softmax over the elements that are specified."""

from __future__ import annotations

from .. import _C
from .._C import ops
from ._convert import added, as_coo, coalesce, keys, to_layout
from ._printing import NAMES
from ._shape import dimension
from ._tensor import CooTensor, coo, refuse


def _dimensions(self, dim):
    """The dimensions to reduce, sorted; all for None or an empty list."""
    if dim is None:
        return list(range(self.dim()))
    dims = [dim] if hasattr(dim, "__index__") else list(dim)
    found = sorted(dimension(self, d) for d in dims)
    for a, b in zip(found, found[1:], strict=False):
        if a == b:
            raise RuntimeError(f"dim {a} appears multiple times in the list of dims")
    return found or list(range(self.dim()))


def _widened(value, dtype):
    """Values in the dtype of their sum: integers and truth values are summed as int64."""
    if dtype is None and not (value.dtype.is_floating_point or value.dtype.is_complex):
        dtype = _C.int64
    return value if dtype is None else value.to(dtype)


def sum(self, dim=None, keepdim=False, *, dtype=None):
    """The sum over all dimensions, or some: dense if no sparse dimension is left."""
    everything = dim is None or not hasattr(dim, "__index__") and not len(dim)
    if self.dtype == _C.bool and isinstance(self, CooTensor):
        self = coalesce(self)  # equal indices are one element
    if everything and not keepdim or self.dim() == 0:
        return _widened(self._value, dtype).sum()
    if not isinstance(self, CooTensor) and not keepdim:
        raise RuntimeError("reduction operations on CSR tensors with keepdim=False is unsupported")
    whole = as_coo(self)
    made = _over(whole, _widened(whole._value, dtype), _dimensions(self, dim), keepdim)
    return made if isinstance(self, CooTensor) else to_layout(made, self.layout)


def _over(whole, value, dims, keepdim):
    sparse = whole.sparse_dim()
    value = value.sum([d - sparse + 1 for d in dims if d >= sparse], keepdim) if max(dims) >= sparse else value
    left = [d for d in range(sparse) if d not in dims]
    size = [1 if d in dims else n for d, n in enumerate(whole.shape) if keepdim or d not in dims]
    if not left and not keepdim:
        return value.sum(0)
    rows = [
        whole._index[d] if d in left else whole._index.new_zeros(whole._nnz())
        for d in (range(sparse) if keepdim else left)
    ]
    stays = len(left) == sparse and whole._coalesced
    index = ops["stack"](rows) if rows else whole._index[:0]
    return coalesce(coo(index, value, size, stays))


def sparse_sum(input, dim=None, dtype=None):
    """`sparse.sum`: as `sum`, but integers keep their dtype in sums over some dimensions."""
    if not isinstance(input, CooTensor):
        raise RuntimeError(f"coalesce expected sparse coordinate tensor layout but got {NAMES[input.layout]}")
    if dim is None:
        return sum(input, dtype=dtype)
    if dtype is None and input.dtype != _C.bool:
        dtype = input.dtype
    return sum(input, dim, dtype=dtype)


def any(self, dim=None, keepdim=False):
    """Whether any element is true."""
    if dim is not None or not isinstance(self, CooTensor):
        refuse("any over a dimension" if dim is not None else "any", self.layout)
    return coalesce(self)._value.any()


def norm(self, p="fro", dim=None, keepdim=False, dtype=None):
    """The `p`-norm of all elements."""
    if not isinstance(self, CooTensor):
        refuse("norm", self.layout)
    if dim is not None and len(_dimensions(self, dim)) < self.dim() or keepdim:
        raise RuntimeError(
            "norm_sparse currently only supports full reductions, so 'dim' must either be empty or contain all dimensions of "
            "the input"
        )
    order = 2 if p in ("fro", None) else p
    return ops["linalg.vector_norm"](coalesce(self)._value, order, dtype=dtype)


def vector_norm(self, ord=None, dim=None, keepdim=False, *, dtype=None):
    """`linalg.norm` and `linalg.vector_norm` of all elements."""
    if ord is not None and self.dim() == 2 and dim is None and ord not in ("fro", 2.0):
        refuse(f"linalg.norm of order {ord!r}", self.layout)
    return norm(self, "fro" if ord is None else ord, dim, keepdim, dtype)


def softmax(self, dim, dtype=None):
    """Softmax along a dimension over the elements that are specified: the others count as minus infinity."""
    return _softmax(self, dim, dtype, False)


def log_softmax(self, dim, dtype=None):
    """The logarithm of `softmax`."""
    return _softmax(self, dim, dtype, True)


def _softmax(self, dim, dtype, log):
    name = "log_softmax" if log else "softmax"
    if not isinstance(self, CooTensor):
        refuse(f"sparse.{name}", self.layout)
    whole, dim = coalesce(self), dimension(self, dim)
    value = whole._value if dtype is None else whole._value.to(dtype)
    if not value.dtype.is_floating_point:
        raise NotImplementedError(f"{name}: \"{name}\" not implemented for '{value.dtype._scalar_type_name}'")
    made_by = "SparseLogSoftmaxBackward0" if log else "SparseSoftmaxBackward0"
    sparse = whole.sparse_dim()
    if dim >= sparse:
        made = ops[name](value, dim - sparse + 1)
    else:
        others = [d for d in range(sparse) if d != dim]
        index = ops["stack"]([whole._index[d] for d in others]) if others else whole._index[:0]
        key = keys(index, [whole.shape[d] for d in others])
        groups, at = ops["unique"](key, return_inverse=True)[:2]
        made = _grouped_softmax(value, at, groups.shape[0], log)
    return coo(whole._index, made, whole.shape, True, made_by)


def _grouped_softmax(value, at, count, log):
    """Softmax within each of `count` groups of rows."""
    lowest = value.detach().new_full((count, *value.shape[1:]), -float("inf"))
    index = at.reshape(-1, *(1,) * (value.dim() - 1)).expand_as(value)
    greatest = lowest.scatter_reduce(0, index, value.detach(), "amax")
    shifted = value - greatest.index_select(0, at)
    exp = shifted.exp()
    total = added(exp, at, count)
    return shifted - total.log().index_select(0, at) if log else exp / total.index_select(0, at)
