"""`make_tensor`: random inputs of any dtype for tests."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

from .. import _base
from .._C import Tensor
from .._C import dtype as _dtype
from .._dtype_info import finfo, iinfo
from .._formats import memory_format as _memory_format
from .._typing import DeviceLike

_STORED_ONLY = (_base.uint16, _base.uint32, _base.uint64)


def _bounds(dtype):
    """(smallest value, one above the largest, defaults for low and high)."""
    if dtype is _base.bool:
        return 0, 2, 0, 2
    if dtype.is_floating_point or dtype.is_complex:
        info = finfo(dtype)
        return info.min, info.max, -9, 9
    info = iinfo(dtype)
    # Bounds of randint are int64 themselves, so it cannot draw the largest int64.
    return info.min, min(info.max + 1, iinfo(_base.int64).max), -9, 10


def _interval(dtype, low, high):
    """`low` and `high` within the range of the dtype."""
    least, above, default_low, default_high = _bounds(dtype)
    low = default_low if low is None else low
    high = default_high if high is None else high
    smooth = dtype.is_floating_point or dtype.is_complex
    if math.isnan(low) or math.isnan(high):
        raise ValueError(f"`low` and `high` cannot be NaN, but got low={low} and high={high}")
    if low == high and smooth:
        warnings.warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated since 2.1 "
            "and will be removed in 2.3. Use `torch.full(...)` instead.",
            FutureWarning,
            stacklevel=4,
        )
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high < least or low >= above:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), "
            f"but {dtype} only supports [{least}, {above})"
        )
    low, high = (min(max(bound, least), above) for bound in (low, high))
    # `high` itself is not drawn, so its ceiling keeps all integers below it.
    return (low, high) if smooth else (math.ceil(low), math.ceil(high))


def _drawn(shape, dtype, device, low, high):
    if not (dtype.is_floating_point or dtype.is_complex):
        kind = _base.int64 if dtype in _STORED_ONLY else dtype
        return _base.randint(low, high, shape, dtype=kind, device=device)
    result = _base.empty(shape, dtype=dtype, device=device)
    parts = _base.view_as_real(result) if dtype.is_complex else result
    if high - low >= finfo(dtype).max:
        parts.uniform_(low / 2, high / 2).mul_(2)  # the width of the range would overflow
    else:
        parts.uniform_(low, high)
    return result


def make_tensor(
    *shape: int | Sequence[int],
    dtype: _dtype,
    device: DeviceLike,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: _memory_format | None = None,
) -> Tensor:
    """A tensor of random values, uniform in [low, high).

    Args:
        shape (ints or one sequence): the size.
        dtype, device: of the tensor.
        low, high (number): default -9 and 9 (10 for integers, 0 and 2 for bools); cut to the range of the dtype.
        requires_grad (bool): whether gradients are recorded.
        noncontiguous (bool): every second element along the last dimension of a larger tensor.
        exclude_zero (bool): zeros become one, or the smallest normal number.
        memory_format (memory_format): of the result; not together with `noncontiguous`.

    Raises:
        ValueError: `low` is not below `high`, one is NaN, or options exclude each other.
    """
    if len(shape) == 1 and isinstance(shape[0], Sequence):
        shape = shape[0]
    shape = tuple(shape)
    smooth = dtype.is_floating_point or dtype.is_complex
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, "
            f"but got noncontiguous={noncontiguous!r} and memory_format={memory_format!r}"
        )
    if requires_grad and not smooth:
        raise ValueError(
            f"`requires_grad=True` is not supported for boolean and integral dtypes, but got dtype={dtype!r}"
        )
    low, high = _interval(dtype, low, high)
    apart = noncontiguous and math.prod(shape) > 1
    result = _drawn((*shape[:-1], 2 * shape[-1]) if apart else shape, dtype, device, low, high)
    if exclude_zero:
        result[result == 0] = finfo(dtype).tiny if smooth else 1
    if dtype in _STORED_ONLY:
        result = result.to(dtype)
    if apart:
        result = result[..., 1::2]  # from one on, so that the offset is not zero either
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    return result.requires_grad_() if requires_grad else result
