"""Reductions of the layout `jagged`, normalisations and softmax: along the ragged dimension by segments, or in a padded block."""

from __future__ import annotations

import math

from .. import _C
from .._C import ops
from ._protocols import dimension
from ._ragged import NestedInt
from ._shape import elements, from_elements, from_padded, padded
from ._tensor import jagged, refuse


def _dims(self, dim):
    """The dimensions to reduce, sorted; None for all."""
    if dim is None or not hasattr(dim, "__index__") and not len(dim):
        return None
    dims = sorted(dimension(self, d) for d in ([dim] if hasattr(dim, "__index__") else dim))
    for a, b in zip(dims, dims[1:], strict=False):
        if a == b:
            raise RuntimeError(f"dim {a} appears multiple times in the list of dims")
    return dims


def _check(self, dims, name):
    ragged, batch = self._ragged_idx in dims, 0 in dims
    if batch and not ragged:
        raise RuntimeError(
            f"{name}(): reducing along the batch dimension but not the ragged dimension is not supported for nested tensors"
        )
    if ragged and not batch and len(dims) > 1:
        raise RuntimeError(
            f"{name}(): reducing along a ragged and non-batch dimension is not supported for nested tensors"
        )
    if ragged and self._ragged.lengths is not None:
        raise RuntimeError(
            f"{name}(): reducing across the ragged dimension is not supported for non-contiguous nested tensors with holes"
        )


def reduction(name, fill):
    """The rule of a reduction over dimensions.

    Args:
        fill: what a padded block has behind the sequences, so that it does not count; a function of the dtype, or None for a sum.
    """
    op = ops[name]

    def rule(self, dim=None, keepdim=False, **kwargs):
        dims = _dims(self, dim)
        if dims is None:
            if name.startswith("arg") and self._ragged.lengths is not None:
                refuse(f"{name} with gaps between the sequences", self.layout)
            made = op(elements(self), **kwargs)
            return made.reshape((1,) * self.dim()) if keepdim else made
        _check(self, dims, name)
        if self._ragged_idx not in dims:
            kept = [d - 1 for d in dims]
            made = op(
                self._value, kept if len(kept) > 1 or not hasattr(dim, "__index__") else kept[0], keepdim, **kwargs
            )
            at = self._ragged_idx - (0 if keepdim else sum(d < self._ragged_idx for d in dims))
            return _each(made, lambda t: jagged(t, self._ragged, at))
        if dims == [self._ragged_idx]:
            return _over_ragged(self, name, op, fill, keepdim, kwargs)
        # Of the batch: rows come first, in the place of the batch and the ragged dimension.
        at = [0, *(d - (d > self._ragged_idx) for d in dims[1:] if d != self._ragged_idx)]
        made = op(elements(self), at if len(at) > 1 else at[0], keepdim, **kwargs)
        return made.unsqueeze(self._ragged_idx) if keepdim else made

    return rule


def _each(made, change):
    """A result, or each of a tuple of results, changed."""
    if isinstance(made, tuple):
        return type(made)(map(change, made))
    return change(made)


def _over_ragged(self, name, op, fill, keepdim, kwargs):
    at = self._ragged_idx
    if fill is not None:
        return op(padded(self, fill(self.dtype)), at, keepdim, **kwargs)
    rows = elements(self)
    dtype = kwargs.get("dtype") or (rows.dtype if name == "mean" or _continuous(rows.dtype) else _C.int64)
    rows = rows.to(_C.float32 if dtype in (_C.float16, _C.bfloat16) else dtype)
    ragged = self._ragged
    made = rows.new_zeros((ragged.batch, *rows.shape[1:])).index_add(0, ragged.segment, rows)
    if name == "mean":
        if not _continuous(dtype):
            raise RuntimeError(
                f"mean(): could not infer output dtype. Input dtype must be floating point or complex, got {dtype}"
            )
        made = made / ragged.lengths_tensor.to(made.dtype).reshape(-1, *(1,) * (made.dim() - 1))
    made = made.to(dtype)
    return made.unsqueeze(at) if keepdim else made


def _continuous(dtype):
    return dtype.is_floating_point or dtype.is_complex


def least(dtype):
    """The least number of a dtype."""
    if dtype.is_floating_point:
        return -math.inf
    return False if dtype == _C.bool else _info(dtype).min


def greatest(dtype):
    """The greatest number of a dtype."""
    if dtype.is_floating_point:
        return math.inf
    return True if dtype == _C.bool else _info(dtype).max


def _info(dtype):
    from .._dtype_info import iinfo

    return iinfo(dtype)


REDUCTIONS = {
    "sum": None,
    "mean": None,
    "prod": lambda dtype: 1,
    "amax": least,
    "amin": greatest,
    "max": least,
    "min": greatest,
    "argmax": least,
    "argmin": greatest,
    "all": lambda dtype: 1,
    "any": lambda dtype: 0,
    "logsumexp": least,
}


def extremum(name):
    """`max` and `min`: a reduction with positions, or the elementwise one of two tensors."""
    reduce, other = reduction(name, REDUCTIONS[name]), "maximum" if name == "max" else "minimum"

    def rule(self, *args, **kwargs):
        from ._elementwise import pointwise

        second = args[0] if args else kwargs.get("other")
        if isinstance(second, _C.Tensor):
            return pointwise(other)(self, second)
        dim = args[0] if args else kwargs.get("dim")
        if dim is not None and not hasattr(dim, "__index__"):
            raise TypeError(f"{name}(): expected a dimension as an int, got {type(dim).__name__}")
        if dim is not None:
            _check_not_empty(self, dim, name)
        return reduce(self, *args, **kwargs)

    return rule


def _check_not_empty(self, dim, name):
    if dimension(self, dim) == self._ragged_idx and self._ragged.shortest == 0 and 0 in self._ragged.counts:
        raise RuntimeError(f"{name}(): expected no empty sequence to take it of")


def softmax(name):
    """The rule of `softmax` or `log_softmax`."""
    op = ops[name]

    def rule(self, dim=None, *args, **kwargs):
        if dim is None:
            raise RuntimeError(f"{name}(): expected a dimension")
        d = dimension(self, dim)
        if d == 0:
            raise RuntimeError(f"{name}(): not supported when reducing across the batch dimension for NestedTensor")
        if d == self._ragged_idx:
            _check_softmax(self, name.rpartition(".")[2])
        if d != self._ragged_idx:
            return jagged(op(self._value, d - 1, *args, **kwargs), self._ragged, self._ragged_idx)
        return from_padded(self, op(padded(self, -math.inf), d, *args, **kwargs))

    return rule


def _check_softmax(self, name):
    """RuntimeError: PyTorch has the form over the ragged dimension for `softmax`, next to the batch and without gaps."""
    if self._ragged.lengths is not None:
        raise RuntimeError(
            f"{name}(): not supported where lengths is not None if reducing across the ragged dimension for NestedTensor"
        )
    if self._ragged_idx > 1 or name != "softmax":
        where = " for ragged_idx > 1" if name == "softmax" else ""
        raise RuntimeError(f"{name}(): not supported when reducing along the ragged dimension{where} for NestedTensor")


def layer_norm(self, normalized_shape, weight=None, bias=None, eps=1e-5):
    """Normalisation over the last dimensions. Over the ragged one too, by the mean and variance of each sequence."""
    shape = _normalized(self, normalized_shape, "layer_norm")
    if self._ragged_idx < self.dim() - len(shape):
        return jagged(ops["nn.functional.layer_norm"](self._value, shape, weight, bias, eps), *_place(self))
    if self._ragged.lengths is not None:
        raise RuntimeError(
            "layer_norm(): not supported where lengths is not None if operating on the ragged dimension for NestedTensor"
        )
    if weight is not None or bias is not None:
        raise RuntimeError(
            "layer_norm(): expected no weight and bias over the ragged dimension: their size would be ragged"
        )
    dims = list(range(self.dim() - len(shape), self.dim()))
    rows = elements(self)
    others = [d - (d > self._ragged_idx) for d in dims if d != self._ragged_idx]
    segment, counts = self._ragged.segment, self._ragged.lengths_tensor

    def mean(t):
        t = t.mean(others, True) if others else t
        sums = t.new_zeros((self._ragged.batch, *t.shape[1:])).index_add(0, segment, t)
        means = sums / counts.to(t.dtype).reshape(-1, *(1,) * (t.dim() - 1))
        return means.index_select(0, segment)

    centred = rows - mean(rows)
    return from_elements(self, centred * (mean(centred * centred) + eps).rsqrt())


def rms_norm(self, normalized_shape, weight=None, eps=None):
    """Division by the root of the mean square over the last dimensions, without the ragged one."""
    shape = _normalized(self, normalized_shape, "rms_norm")
    if self._ragged_idx >= self.dim() - len(shape):
        raise RuntimeError("rms_norm(): not supported over the ragged dimension")
    return jagged(ops["nn.functional.rms_norm"](self._value, shape, weight, eps), *_place(self))


def _place(self):
    return self._ragged, self._ragged_idx


def _normalized(self, shape, name):
    """The normalized shape, if it is that of the last dimensions and not the whole tensor's."""
    shape = tuple(shape) if not isinstance(shape, (int, NestedInt)) else (shape,)
    if self.dim() <= 2 and self._ragged_idx >= self.dim() - len(shape):
        raise RuntimeError(f"{name}(): not supported for NestedTensor objects with 2 or fewer dimensions")
    if len(shape) >= self.dim():
        raise RuntimeError(f"{name}(): not supported when normalizing over the batch dimension for NestedTensor")
    mine = self.shape[self.dim() - len(shape) :]
    if shape != tuple(mine):
        raise RuntimeError(f"{name}: expected an input that ends with the sizes {list(shape)}, got {tuple(self.shape)}")
    return shape
