"""Copies of tensors to several devices, their sums, and tensors in pieces: `nn.parallel.comm`.

A device is given as an index of a GPU, -1 for the CPU, a device or its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._base import Tensor, cat
from .scatter_gather import _device, _joined

__all__ = ["broadcast", "broadcast_coalesced", "gather", "reduce_add", "reduce_add_coalesced", "scatter"]


def _one_of(first: str, a: Any, second: str, b: Any, function: str) -> None:
    if (a is None) == (b is None):
        raise RuntimeError(
            f"{function}: exactly one of '{first}' and '{second}' must be specified, but got {first}={a} and {second}={b}"
        )


def broadcast(
    tensor: Tensor, devices: Sequence[Any] | None = None, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, ...]:
    """One tensor on each device, the given one where it is; or copied into each tensor of `out`.

    Raises:
        RuntimeError: both `devices` and `out` are given, or neither.
    """
    _one_of("devices", devices, "out", out, "broadcast")
    if out is not None:
        for result in out:
            result.copy_(tensor)
        return tuple(out)
    return tuple(tensor.to(_device(place)) for place in devices or ())


def broadcast_coalesced(
    tensors: Sequence[Tensor], devices: Sequence[Any], buffer_size: int = 10485760
) -> list[tuple[Tensor, ...]]:
    """The tensors on each device: a tuple for each. `buffer_size` has no effect: they are copied one by one."""
    return [tuple(tensor.to(_device(place)) for tensor in tensors) for place in devices]


def reduce_add(inputs: Sequence[Tensor], destination: Any = None) -> Tensor:
    """The sum of tensors of one shape, on `destination` (default: where the first tensor is).

    Raises:
        RuntimeError: no tensors.
        ValueError: they differ in shape.
    """
    if not inputs:
        raise RuntimeError("reduce_add expects at least one tensor")
    place = inputs[0].device if destination is None else _device(destination)
    total = inputs[0].to(place, copy=True)
    for i, tensor in enumerate(inputs[1:], 1):
        if tensor.shape != total.shape:
            got, expected = (" x ".join(map(str, t.shape)) for t in (tensor, total))
            raise ValueError(f"input {i} has invalid size: got {got}, but expected {expected}")
        total += tensor.to(place)
    return total


def reduce_add_coalesced(
    inputs: Sequence[Sequence[Tensor]], destination: Any = None, buffer_size: int = 10485760
) -> tuple[Tensor, ...]:
    """`reduce_add` of the tensors at each place of lists; one list for each device."""
    return tuple(reduce_add(column, destination) for column in zip(*inputs, strict=True))


def scatter(
    tensor: Tensor,
    devices: Sequence[Any] | None = None,
    chunk_sizes: Sequence[int] | None = None,
    dim: int = 0,
    streams: Any = None,
    *,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]:
    """Pieces of a tensor along `dim`, one for each device or tensor of `out`; of `chunk_sizes`, or as even as `chunk`'s."""
    if out is not None:
        if devices is not None or chunk_sizes is not None:
            raise RuntimeError("'devices' and 'chunk_sizes' must not be specified when 'out' is specified")
        for result, piece in zip(out, tensor.split([t.size(dim) for t in out], dim), strict=True):
            result.copy_(piece)
        return tuple(out)
    places = [_device(place) for place in devices or ()]
    pieces = tensor.chunk(len(places), dim) if chunk_sizes is None else tensor.split(list(chunk_sizes), dim)
    return tuple(piece.to(place) for piece, place in zip(pieces, places, strict=False))


def gather(tensors: Sequence[Tensor], dim: int = 0, destination: Any = None, *, out: Tensor | None = None) -> Tensor:
    """Tensors side by side along `dim`, on `destination` (default: the first GPU), or written into `out`."""
    if out is None:
        return _joined(list(tensors), _device(0 if destination is None else destination), dim)
    if destination is not None:
        raise RuntimeError(
            f"'destination' must not be specified when 'out' is specified, but got destination={destination}"
        )
    return out.copy_(cat([tensor.to(out.device) for tensor in tensors], dim))


def __dir__() -> list[str]:
    return __all__
