"""The reductions of losses as numbers, which ops of PyTorch's extension module take, and as the legacy arguments give them."""

from __future__ import annotations

import warnings

from .functional import legacy_reduction as legacy_get_string

__all__: list[str] = []

_NUMBERS = {"none": 0, "mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """The number of a reduction.

    Raises:
        ValueError: an unknown one.
    """
    if reduction == "elementwise_mean":
        warnings.warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.", stacklevel=2)
        return 1
    if reduction not in _NUMBERS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _NUMBERS[reduction]


def legacy_get_enum(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> int:
    """The number of the reduction that the legacy arguments mean."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
