"""Sizes of the parts of split tensors."""

from __future__ import annotations

from collections.abc import Sequence

from ..device_mesh import DeviceMesh
from .placement_types import Placement, Shard

__all__ = ["compute_local_shape_and_global_offset"]


def compute_local_shape_and_global_offset(
    global_shape: Sequence[int], mesh: DeviceMesh, placements: Sequence[Placement]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape of this process' part of a tensor, and where it begins in each dimension; zeros outside the mesh."""
    sizes, offsets = list(global_shape), [0] * len(global_shape)
    place = mesh.get_coordinate()
    if place is None:
        return (0,), ()
    for mesh_dim, placement in enumerate(placements):
        if isinstance(placement, Shard):
            size, start = Shard.local_shard_size_and_offset(sizes[placement.dim], mesh.size(mesh_dim), place[mesh_dim])
            sizes[placement.dim] = size
            offsets[placement.dim] += start
    return tuple(sizes), tuple(offsets)
