"""Copies, sums and pieces of tensors over devices as `autograd.Function`s: `Broadcast.apply(devices, *tensors)` and so on.

Moves between devices are recorded by autograd anyhow, so each of them calls its function of `comm`.
"""

from __future__ import annotations

from typing import Any

from ..._base import Tensor
from . import comm

__all__: list[str] = []


class Broadcast:
    """`apply(devices, *tensors)`: the tensors on each device, all in one tuple; gradients are summed."""

    @staticmethod
    def apply(target_gpus: Any, *inputs: Tensor) -> tuple[Tensor, ...]:
        """The tensors on the first device, then those on the second, and so on."""
        return tuple(t for copies in comm.broadcast_coalesced(inputs, target_gpus) for t in copies)


class ReduceAddCoalesced:
    """`apply(destination, count, *tensors)`: sums over groups of `count` tensors."""

    @staticmethod
    def apply(destination: Any, num_inputs: int, *grads: Tensor) -> tuple[Tensor, ...]:
        """The sum of the first tensors of all groups, that of the second ones, and so on."""
        return comm.reduce_add_coalesced(
            [grads[i : i + num_inputs] for i in range(0, len(grads), num_inputs)], destination
        )


class Gather:
    """`apply(device, dim, *tensors)`: tensors side by side."""

    @staticmethod
    def apply(target_device: Any, dim: int, *inputs: Tensor) -> Tensor:
        """The tensors along `dim`, on one device."""
        return comm.gather(inputs, dim, target_device)


class Scatter:
    """`apply(devices, chunk_sizes, dim, tensor)`: a tensor in pieces."""

    @staticmethod
    def apply(target_gpus: Any, chunk_sizes: Any, dim: int, input: Tensor) -> tuple[Tensor, ...]:
        """A piece of the tensor for each device."""
        return comm.scatter(input, target_gpus, chunk_sizes, dim)
