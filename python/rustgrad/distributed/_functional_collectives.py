"""Collectives that return their result, over one process: the tensor's values, in a new tensor through which gradients flow."""

from __future__ import annotations

from typing import Any

from .._base import Tensor
from .group import _checked

__all__ = [
    "all_gather_tensor",
    "all_reduce",
    "all_to_all_single",
    "broadcast",
    "reduce_scatter_tensor",
    "wait_tensor",
]


def _group(group: Any) -> None:
    """ValueError or TypeError unless it stands for one process: a group, a mesh, (mesh, dimension) or ranks."""
    if isinstance(group, tuple) and group and hasattr(group[0], "get_group"):
        group = group[0].get_group(group[1])
    elif hasattr(group, "get_group"):
        group = group.get_group()
    if isinstance(group, (list, tuple)):
        ranks = [rank for row in group for rank in (row if isinstance(row, (list, tuple)) else [row])]
        if ranks != [0]:
            raise ValueError(f"expected the rank 0 alone in a world of 1, got {group}")
        group = None
    if not isinstance(group, str):
        _checked(group)


def wait_tensor(tensor: Tensor) -> Tensor:
    """The tensor: it is there."""
    return tensor


def broadcast(self: Tensor, src: int, group: Any, tag: str = "") -> Tensor:
    """The tensor of process `src`."""
    _group(group)
    return self.clone()


def all_reduce(self: Tensor, reduceOp: Any, group: Any, tag: str = "") -> Tensor:
    """The tensors of all processes combined."""
    _group(group)
    return self.clone()


def all_gather_tensor(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Tensor:
    """The tensors of all processes side by side."""
    _group(group)
    return self.clone()


def reduce_scatter_tensor(self: Tensor, reduceOp: Any, scatter_dim: int, group: Any, tag: str = "") -> Tensor:
    """The tensors combined, of which each process gets a part."""
    _group(group)
    return self.clone()


def all_to_all_single(
    self: Tensor, output_split_sizes: Any, input_split_sizes: Any, group: Any, tag: str = ""
) -> Tensor:
    """Parts of each process's tensor to each other."""
    _group(group)
    return self.clone()


all_gather_tensor_autograd, reduce_scatter_tensor_autograd = all_gather_tensor, reduce_scatter_tensor
all_to_all_single_autograd = all_to_all_single
