"""Collectives as functions of tensors, which autograd differentiates: over one process each returns a copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._C import Tensor
from ..collectives import _one, _rank, _tensor
from ..group import ReduceOp, _checked

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]


def _copied(tensor: Tensor, group: Any, op: ReduceOp = ReduceOp.SUM) -> Tensor:
    _checked(group)
    if not isinstance(op, ReduceOp):
        raise TypeError(f"expected a ReduceOp, got {type(op).__name__}")
    _tensor(tensor, "tensor")
    return tensor.clone()


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """The tensor of process `src`."""
    _rank(src, "broadcast")
    return _copied(tensor, group)


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all processes, in process `dst`."""
    _rank(dst, "gather")
    return (_copied(tensor, group),)


def scatter(tensors: Sequence[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """The tensor that process `src` has for this one."""
    _rank(src, "scatter")
    return _copied(_one(tensors, "tensors"), group)


def reduce(tensor: Tensor, dst: int, op: ReduceOp = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The tensors of all processes combined, in process `dst`."""
    _rank(dst, "reduce")
    return _copied(tensor, group, op)


def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: ReduceOp = ReduceOp.SUM, group: Any = None
) -> Tensor:
    """This process' part of the lists of all processes combined."""
    return _copied(_one(input_list, "input_list"), group, op)


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all processes."""
    return (_copied(tensor, group),)


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None
) -> tuple[Tensor, ...]:
    """What each process has for this one."""
    _one(output_tensor_list, "output_tensor_list")
    return (_copied(_one(input_tensor_list, "input_tensor_list"), group),)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Any = None,
) -> Tensor:
    """`all_to_all` of the parts of one tensor."""
    return _copied(input, group)


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The tensors of all processes combined."""
    return _copied(tensor, group, op)


def __dir__() -> list[str]:
    return __all__
