"""Pooling and resizing of quantised tensors. Averages are of integers about the zero point; maxima are of the integers."""

from __future__ import annotations

import math

from .. import _C
from .._C import ops
from ._quantizer import stored
from ._tensor import with_value


def _integers(input, about_zero):
    """Averages about the zero point, rounded half to even."""
    kind, low, high = stored(input.dtype)
    rounded = about_zero.double().round_().add_(input.q_zero_point())
    return with_value(input, rounded.clamp_(low, high).to(kind))


def _about_zero(input):
    """The integers without the zero point, as numbers whose sums are exact."""
    return input._value.double() - input._per_tensor().zero_point


def _of_sums(input, averages, counts):
    """Sums of windows times the float32 reciprocals of their counts, rounded after the zero point is added, as in PyTorch."""
    kind, low, high = stored(input.dtype)
    sums = (averages * counts).round_().float() * ops["reciprocal"](counts.float())
    return with_value(input, sums.double().add_(input.q_zero_point()).round_().clamp_(low, high).to(kind))


def _products(lists):
    """The counts of windows of several dimensions, from those of each dimension."""
    made = ops["ones"](())
    for counts in lists:
        made = made.unsqueeze(-1) * _C.tensor(counts, dtype=_C.float64)
    return made


def _each(value, n):
    value = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    return value * n if len(value) == 1 else value


def avg_pool(op, n):
    """The rule of `avg_pool{n}d`."""

    def rule(
        input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
    ):  # fmt: skip
        sizes, pads = _each(kernel_size, n), _each(padding, n)
        steps = _each(stride, n) if stride not in (None, (), []) else sizes
        averages = op(_about_zero(input), sizes, steps, pads, ceil_mode, count_include_pad)
        outputs = averages.shape[-n:]

        def count(at, d):
            start = at * steps[d] - pads[d]
            end = min(start + sizes[d], input.shape[d - n] + pads[d])
            return end - start if count_include_pad else min(end, input.shape[d - n]) - max(start, 0)

        counts = _products([count(at, d) for at in range(outputs[d])] for d in range(n))
        if divisor_override is not None:
            averages, counts = averages * (counts / divisor_override), ops["full_like"](counts, divisor_override)
        return _of_sums(input, averages, counts)

    return rule


def adaptive_avg_pool(op, n):
    """The rule of `adaptive_avg_pool{n}d`."""

    def rule(input, output_size):
        averages = op(_about_zero(input), output_size)

        def counts(size, out):
            return [math.ceil((i + 1) * size / out) - i * size // out for i in range(out)]

        sizes = zip(input.shape[-n:], averages.shape[-n:], strict=True)
        return _of_sums(input, averages, _products([counts(size, out) for size, out in sizes]))

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
    from ..nn.functional import interpolate

    if mode not in ("nearest", "nearest-exact", "bilinear"):
        raise NotImplementedError(
            f"interpolate: mode {mode!r} is not implemented for quantised tensors; expected nearest or bilinear"
        )
    zero = input._per_tensor().zero_point
    wide = _C.float64 if mode != "bilinear" else _C.float32
    return _integers(
        input, interpolate(input._value.to(wide), size, scale_factor, mode, align_corners, **options) - zero
    )
