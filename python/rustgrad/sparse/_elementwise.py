"""Elementwise rules: functions that keep zero run on the values; sums join the indices; products keep those in common."""

from __future__ import annotations

from .. import _C, _formats
from .._C import Tensor, ops
from ._convert import as_coo, coalesce, found, gathered, keys, to_compressed, to_layout
from ._printing import NAMES
from ._tensor import CooTensor, coo, is_sparse, refuse, with_value

# What keeps zero and is additive: the values of one element may stay apart.
LINEAR = "neg negative positive conj conj_physical rad2deg deg2rad real imag clone".split()
# What only keeps zero.
KEEPS_ZERO = (
    "abs absolute sgn sign sin asin arcsin sinh asinh arcsinh tan atan arctan tanh atanh arctanh erf erfinv expm1 log1p floor "
    "ceil round trunc fix frac sqrt isnan isinf isposinf isneginf signbit relu nan_to_num square angle"
).split()


def unary(name, linear):
    """The rule of an op of one tensor that keeps zero; further arguments are numbers."""
    op = ops[name]

    def rule(self, *args, **kwargs):
        kwargs.pop("memory_format", None)
        whole = self if linear or not isinstance(self, CooTensor) else coalesce(self)
        return with_value(whole, op(whole._value, *args, **kwargs))

    return rule


def _number(value):
    """Whether it multiplies all elements alike: a number, or a dense tensor without dimensions."""
    return not is_sparse(value) and (not isinstance(value, Tensor) or value.dim() == 0)


def mul(self, other):
    """A product of which at least one factor is sparse."""
    if not is_sparse(self):
        self, other = other, self
    if _number(other):
        return with_value(self, self._value * other)
    if is_sparse(other) and (self.dim() == 0) != (other.dim() == 0):
        # A sparse number, which scales the other one.
        self, other = (other, self.to_dense()) if self.dim() == 0 else (self, other.to_dense())
    if is_sparse(other):
        return _common(self, other)
    if other.numel() == 1 and other.dim() <= self.dim():
        return with_value(self, self._value.to(ops_dtype(self, other)) * other.reshape(()))
    if _C.Size(_broadcast(self.shape, other.shape, "mul")) != self.shape:
        raise RuntimeError(
            f"mul: a sparse tensor is not expanded; expected a dense factor that expands to {tuple(self.shape)}, got "
            f"{tuple(other.shape)}"
        )
    whole = as_coo(self)
    product = whole._value * gathered(other, whole)
    if isinstance(self, CooTensor):
        return with_value(self, product)
    return with_value(self, product.reshape(*self._plain.shape, *product.shape[1:]))


def ops_dtype(a, b):
    """The dtype of both together."""
    return _C.promote_types(a.dtype, b.dtype)


def _broadcast(a, b, name):
    from .._functions import broadcast_shapes

    try:
        return broadcast_shapes(tuple(a), tuple(b))
    except RuntimeError:
        raise RuntimeError(
            f"{name}: The size of tensor a must match the size of tensor b; shapes {list(a)} and {list(b)} do not broadcast."
        ) from None


def _check_same(a, b, name):
    if a.shape != b.shape:
        raise RuntimeError(
            f"{name}: expected sizes of 'self' and 'other' to match, but {list(a.shape)} != {list(b.shape)}"
        )


def _same_pattern(a, b):
    return a._index is b._index or (a._index.shape == b._index.shape and bool((a._index == b._index).all()))


def _pair(a, b, name):
    """Two sparse tensors as ones of the layout `sparse_coo`, with the same number of sparse dimensions."""
    _check_same(a, b, name)
    a_coo, b_coo = as_coo(a), as_coo(b)
    if a_coo.sparse_dim() != b_coo.sparse_dim():
        raise RuntimeError(
            f"{name}: expected the same number of sparse dimensions, got {a_coo.sparse_dim()} and {b_coo.sparse_dim()}"
        )
    return a_coo, b_coo


def _common(self, other):
    """The product of two sparse tensors: of the elements that both have."""
    a, b = map(coalesce, _pair(self, other, "mul"))
    sparse = a.shape[: a.sparse_dim()]
    if _same_pattern(a, b):
        index, product = a._index, a._value * b._value
    else:
        at, there = found(keys(b._index, sparse), keys(a._index, sparse))
        kept = there.nonzero().flatten()
        index = a._index.index_select(1, kept)
        product = a._value.index_select(0, kept) * b._value.index_select(0, at.index_select(0, kept))
    return to_layout(coo(index, product, self.shape, True), self.layout)


def add(self, other, *, alpha=1):
    """A sum of two sparse tensors, or of a dense and a sparse one, which is dense."""
    return _sum(self, other, alpha, "add")


def sub(self, other, *, alpha=1):
    """A difference; as `add`."""
    return _sum(self, other, -alpha, "sub")


def rsub(self, other, *, alpha=1):
    """`other - alpha * self`."""
    return _sum(other, self, -alpha, "sub")


def _sum(self, other, alpha, name):
    if is_sparse(self) and is_sparse(other):
        return _joined(self, other, alpha, name)
    if is_sparse(self):
        if isinstance(self, CooTensor) or not isinstance(other, Tensor):
            raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
        _check_same(self, other, name)
        return other * alpha + self.to_dense()
    if not isinstance(self, Tensor) or self.shape != other.shape:
        shape = list(self.shape) if isinstance(self, Tensor) else []
        raise RuntimeError(
            f"{name}: expected 'self' and 'other' to have same size, but self has size {shape} while other has "
            f"size {list(other.shape)} (FYI: dense-sparse addition does not currently support broadcasting)"
        )
    whole = as_coo(other)
    sparse = whole.sparse_dim()
    dtype = ops_dtype(self, other)
    if dtype == _C.bool:
        return self | other.to_dense()
    rows = self.to(dtype).reshape(-1, *self.shape[sparse:])
    key = keys(whole._index, whole.shape[:sparse])
    return rows.index_add(0, key, whole._value.to(dtype), alpha=alpha).reshape(self.shape)


def _joined(self, other, alpha, name):
    """The sum of two sparse tensors: the elements that either has."""
    a, b = _pair(self, other, name)
    dtype = ops_dtype(a, b)
    if isinstance(alpha, float) and not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"{name}: For integral input tensors, argument alpha must not be a floating point number.")
    value = b._value.to(dtype)
    if dtype == _C.bool:
        value = value & bool(alpha)
    elif alpha != 1:
        value = value * alpha
    if _same_pattern(a, b):
        both = a._value.to(dtype)
        summed = both | value if dtype == _C.bool else both + value
        made = coo(a._index, summed, self.shape, a._coalesced and b._coalesced)
    else:
        index = ops["cat"]([a._index, b._index], 1)
        made = coo(index, ops["cat"]([a._value.to(dtype), value]), self.shape)
        made = coalesce(made) if a._coalesced and b._coalesced else made
    return to_layout(made, self.layout)


def div(self, other, *, rounding_mode=None):
    """A quotient by a number, or a dense tensor without dimensions."""
    what = "division" if rounding_mode is None else "floor division"
    if not is_sparse(self) or not _number(other):
        shape = list(getattr(other, "shape", []))
        raise RuntimeError(
            f"Sparse {what} requires a scalar or zero-dim dense tensor divisor (got shape {shape} for divisor)"
        )
    whole = coalesce(self) if rounding_mode is not None and isinstance(self, CooTensor) else self
    return with_value(whole, ops["div"](whole._value, other, rounding_mode=rounding_mode))


def floor_divide(self, other):
    """The quotient rounded down; as `div`."""
    return div(self, other, rounding_mode="floor")


def power(self, exponent):
    """A power with a number as the exponent."""
    if not is_sparse(self) or is_sparse(exponent) or (isinstance(exponent, Tensor) and exponent.dim()):
        refuse("pow by a tensor", self.layout if is_sparse(self) else exponent.layout)
    if exponent == 0:
        raise RuntimeError("pow: cannot raise to zeroth power on sparse tensor; it would make the result tensor dense")
    whole = coalesce(self) if isinstance(self, CooTensor) else self
    return with_value(whole, whole._value**exponent)


def copy_(self, src, non_blocking=False):
    """The elements of another sparse tensor in place of those of this one.

    Raises:
        RuntimeError: one of both is dense, or the shapes differ.
    """
    if not is_sparse(self) or not is_sparse(src) or self.layout is not src.layout:
        raise RuntimeError(
            "copy_() between dense and sparse Tensors is not implemented! Found self type = "
            f"{kind(self)} and src type = {kind(src)}"
        )
    if self.shape != src.shape:
        raise RuntimeError(f"copy_: expected a tensor of shape {tuple(self.shape)}, got {tuple(src.shape)}")
    return src.to(self.device, self.dtype).clone() if src.requires_grad else src.to(self.device, self.dtype, copy=True)


def kind(t):
    """The name of a tensor's type in errors."""
    return t.type() if t.layout in (_formats.strided, _formats.sparse_coo) else f"{NAMES[t.layout]} {t.dtype}"


def zeros_like(
    self, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False
):
    """A tensor of the shape without elements; `layout` and the others are by default those of `self`."""
    from ._construct import empty_compressed, empty_coo

    layout, dtype = layout or self.layout, dtype or self.dtype
    device = self.device if device is None else device
    if layout is _formats.strided:
        made = ops["zeros"](self.shape, dtype=dtype, device=device)
    elif layout is _formats.sparse_coo:
        made = empty_coo(self.shape, dtype, device, self.sparse_dim() if is_sparse(self) else None)
    else:
        made = (
            to_compressed(empty_coo(self.shape, dtype, device, 2), layout)
            if is_sparse(self) and self.dense_dim()
            else empty_compressed(layout, self.shape, dtype, device)
        )
    return made.requires_grad_() if requires_grad else made


def new_zeros(self, *size, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False, **named):
    """A tensor of another shape without elements, of the layout, dtype and device of `self`."""
    from ._construct import empty_compressed, empty_coo

    size = named.pop("size", size)
    size = tuple(size[0]) if len(size) == 1 and not hasattr(size[0], "__index__") else tuple(size)
    layout, dtype = layout or self.layout, dtype or self.dtype
    device = self.device if device is None else device
    if layout is _formats.strided:
        made = ops["zeros"](size, dtype=dtype, device=device)
    elif layout is _formats.sparse_coo:
        made = empty_coo(size, dtype, device)
    else:
        made = empty_compressed(layout, size, dtype, device)
    return made.requires_grad_() if requires_grad else made
