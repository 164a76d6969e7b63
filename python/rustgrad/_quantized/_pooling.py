"""Pooling and resizing of quantised tensors. Averages are of integers about the zero point; maxima are of the integers."""

from __future__ import annotations

from .. import _C
from .._C import ops
from ._quantizer import stored
from ._tensor import with_value


def _integers(input, sums):
    """Averages about the zero point, rounded half to even."""
    kind, low, high = stored(input.dtype)
    zero = input.q_zero_point()
    return with_value(input, sums.round_().add_(zero).clamp_(low, high).to(kind))


def _about_zero(input):
    """The integers without the zero point, as numbers whose sums are exact."""
    return input._value.double() - input._per_tensor().zero_point


def averaged(op):
    """The rule of a function whose results are averages of elements."""

    def rule(input, *args, **kwargs):
        return _integers(input, op(_about_zero(input), *args, **kwargs))

    return rule


def maximum(op):
    """The rule of `max_pool1d` and its kin."""

    def rule(input, *args, return_indices=False, **kwargs):
        input._per_tensor()
        if return_indices:
            raise RuntimeError(f"{op.__name__}: return_indices is not implemented for quantised tensors")
        # The integers of the dtypes with eight bits are exact in float32, those of 32 bits in float64.
        wide = _C.float64 if input._value.dtype == _C.int32 else _C.float32
        return with_value(input, op(input._value.to(wide), *args, **kwargs).to(input._value.dtype))

    return rule


def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None, **options):
    """Integers of the nearest elements, or interpolated ones."""
    op = ops.get("nn.functional.interpolate")
    if op is None:
        from ..nn.functional import interpolate as op
    if mode not in ("nearest", "nearest-exact", "bilinear"):
        raise NotImplementedError(
            f"interpolate: mode {mode!r} is not implemented for quantised tensors; expected nearest or bilinear"
        )
    x = _about_zero(input).float()
    return _integers(input, op(x, size, scale_factor, mode, align_corners, **options))
