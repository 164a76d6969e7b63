"""Batches in nested containers, split over devices and put together again."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from ..._base import Tensor, cat, device
from ..._typing import DeviceLike

__all__ = ["gather", "scatter", "scatter_kwargs"]


def _device(place):
    return device("cpu" if place == -1 else f"cuda:{place}") if isinstance(place, int) else device(place)


def _rebuild(like, values):
    """A tuple, named tuple or list of the type of `like`."""
    return like._make(values) if hasattr(like, "_make") else type(like)(values)


def scatter(inputs: Any, target_gpus: Sequence[int | DeviceLike], dim: int = 0) -> Any:
    """One copy of nested tuples, lists and dicts for each device, with the device's chunk of each tensor.

    Args:
        inputs (tensor or nested containers): what is no tensor is the same object in each copy.
        target_gpus (sequence of int or device): the devices; a tensor too short for all of them goes to the first ones.
        dim (int): the dimension that is split.
    """
    places = [_device(place) for place in target_gpus]

    def split(value: Any) -> Any:
        if isinstance(value, Tensor):
            return tuple(part.to(place) for part, place in zip(value.chunk(len(places), dim), places, strict=False))
        if isinstance(value, (tuple, list)) and value:
            return [_rebuild(value, parts) for parts in zip(*(split(v) for v in value), strict=False)]
        if isinstance(value, dict) and value:
            columns = zip(*(split(v) for v in value.values()), strict=False)
            return [type(value)(zip(value, parts, strict=True)) for parts in columns]
        return [value] * len(places)

    return split(inputs)


def scatter_kwargs(
    inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, target_gpus: Sequence[int | DeviceLike], dim: int = 0
) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """`scatter` of positional and keyword arguments: as many of the one as of the other."""
    positional = list(scatter(inputs, target_gpus, dim)) if inputs else []
    named = list(scatter(kwargs, target_gpus, dim)) if kwargs else []
    count = max(len(positional), len(named))
    positional += [()] * (count - len(positional))
    return tuple(positional), tuple(named + [{} for _ in range(count - len(named))])


def _joined(parts, place, dim):
    if all(part.dim() == 0 for part in parts) and dim == 0:
        warnings.warn(
            "Was asked to gather along dimension 0, but all input tensors were scalars; "
            "will instead unsqueeze and return a vector.",
            stacklevel=3,
        )
        parts = [part.unsqueeze(0) for part in parts]
    return cat([part.to(place) for part in parts], dim)


def gather(outputs: Sequence[Any], target_device: int | DeviceLike, dim: int = 0) -> Any:
    """The inverse of `scatter`: tensors at the same position are concatenated on `target_device`.

    Args:
        outputs (sequence): nested tuples, lists and dicts of tensors with the same structure.
        target_device (int or device): where the result is; -1 means the CPU.
        dim (int): the dimension along which tensors are concatenated.

    Raises:
        ValueError: dicts with different numbers of keys.
    """
    place = _device(target_device)

    def join(parts: Sequence[Any]) -> Any:
        first = parts[0]
        if isinstance(first, Tensor):
            return _joined(parts, place, dim)
        if first is None:
            return None
        if isinstance(first, dict):
            if any(len(part) != len(first) for part in parts):
                raise ValueError("All dicts must have the same number of keys")
            return type(first)((key, join([part[key] for part in parts])) for key in first)
        return _rebuild(first, [join(column) for column in zip(*parts, strict=True)])

    return join(outputs)


def __dir__() -> list[str]:
    return __all__
