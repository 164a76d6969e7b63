"""Collectives that return new tensors, under the name by which libraries import them; gradients go through all of them."""

from __future__ import annotations

from typing import Any

from .._absent import getattr_of
from .._base import cat
from .._C import Tensor
from .device_mesh import DeviceMesh
from .group import _checked
from .nn import functional as _differentiable
from .reductions import ReduceOp

__all__ = [
    "all_gather_tensor",
    "all_gather_tensor_autograd",
    "all_reduce",
    "all_to_all_single",
    "all_to_all_single_autograd",
    "broadcast",
    "reduce_scatter_tensor",
    "reduce_scatter_tensor_autograd",
    "wait_tensor",
]


def _group(group: Any) -> Any:
    """The group that a group, a mesh of one dimension, a mesh and a dimension, or the ranks of the world name."""
    if isinstance(group, DeviceMesh):
        return group.get_group()
    if isinstance(group, tuple) and len(group) == 2 and isinstance(group[0], DeviceMesh):
        return group[0].get_group(group[1])
    if isinstance(group, (list, tuple)):
        world = _checked(None)
        if list(group) != list(range(world.size())):
            raise ValueError(f"expected all ranks of the world of {world.size()}, got {group}. Hint: new_group(ranks)")
        return world
    return _checked(group)


def _op(name: str) -> ReduceOp:
    return ReduceOp[name.upper()]


def wait_tensor(tensor: Tensor) -> Tensor:
    """The tensor itself: results are complete when they are returned."""
    return tensor


def broadcast(self: Tensor, src: int, group: Any, tag: str = "") -> Tensor:
    """The tensor of process `src`."""
    return _differentiable.broadcast(self, src, _group(group))


def all_reduce(self: Tensor, reduceOp: str, group: Any, tag: str = "") -> Tensor:
    """The tensors of all processes combined, by "sum", "avg", "product", "min", "max" ..."""
    return _differentiable.all_reduce(self, _op(reduceOp), _group(group))


def all_gather_tensor(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Tensor:
    """The tensors of all processes, one after the other along a dimension."""
    return cat(_differentiable.all_gather(self.contiguous(), _group(group)), gather_dim)


def reduce_scatter_tensor(self: Tensor, reduceOp: str, scatter_dim: int, group: Any, tag: str = "") -> Tensor:
    """This process' part along a dimension of the tensors of all processes combined."""
    pg = _group(group)
    if self.size(scatter_dim) % pg.size():
        raise AssertionError(
            f"input dimension {scatter_dim} ({self.size(scatter_dim)}) must be a multiple of group_size {pg.size()}"
        )
    parts = [part.contiguous() for part in self.chunk(pg.size(), scatter_dim)]
    return _differentiable.reduce_scatter(parts[0], parts, _op(reduceOp), pg)


def all_to_all_single(
    self: Tensor,
    output_split_sizes: list[int] | None,
    input_split_sizes: list[int] | None,
    group: Any,
    tag: str = "",
) -> Tensor:
    """Some rows for each process, and those of each for this one."""
    rows = sum(output_split_sizes) if output_split_sizes else self.shape[0]
    output = self.new_empty((rows, *self.shape[1:]))
    return _differentiable.all_to_all_single(output, self, output_split_sizes, input_split_sizes, _group(group))


all_gather_tensor_autograd = all_gather_tensor
reduce_scatter_tensor_autograd = reduce_scatter_tensor
all_to_all_single_autograd = all_to_all_single
__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
