"""Collectives as functions of tensors, which autograd differentiates: the gradient of each is a collective too.

All processes of the group call them, in forward and in backward, in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._base import empty_like, zeros_like
from ..._C import Tensor
from ...autograd.function import Function
from .. import collectives
from ..group import ReduceOp, _checked
from ..host import tensor_of, tensors_of

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


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, x: Tensor) -> Tensor:
        ctx.src, ctx.group = src, group
        made = x.clone()
        collectives.broadcast(made, src, group)
        return made

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        made = grad.clone()
        collectives.reduce(made, ctx.src, group=ctx.group)
        return None, None, made if _global_rank(ctx.group) == ctx.src else zeros_like(made)


def _global_rank(group):
    pg = _checked(group)
    return pg.ranks[pg.rank()]


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, op: ReduceOp, group: Any, x: Tensor) -> Tensor:
        ctx.dst, ctx.group = dst, group
        made = x.clone()
        collectives.reduce(made, dst, op, group)
        return made

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        made = grad.clone()
        collectives.broadcast(made, ctx.dst, ctx.group)
        return None, None, None, made


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, op: ReduceOp, group: Any, x: Tensor) -> Tensor:
        ctx.op, ctx.group = op, group
        made = x.clone()
        collectives.all_reduce(made, op, group)
        return made

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return None, None, _AllReduce.apply(ctx.op, ctx.group, grad)


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, group: Any, x: Tensor) -> tuple[Tensor, ...]:
        ctx.dst, ctx.group = dst, group
        made = [zeros_like(x) for _ in range(_checked(group).size())]
        collectives.gather(x, made if _global_rank(group) == dst else None, dst, group)
        return tuple(made)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, None, _Scatter.apply(ctx.dst, ctx.group, *grads)


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, *xs: Tensor) -> Tensor:
        ctx.src, ctx.group = src, group
        made = zeros_like(xs[0])
        collectives.scatter(made, list(xs) if _global_rank(group) == src else None, src, group)
        return made

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return None, None, *_Gather.apply(ctx.src, ctx.group, grad)


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, op: ReduceOp, group: Any, output: Tensor, *xs: Tensor) -> Tensor:
        ctx.op, ctx.group = op, group
        made = empty_like(output)
        collectives.reduce_scatter(made, list(xs), op, group)
        return made

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return None, None, None, *_AllGather.apply(ctx.group, grad)


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, x: Tensor) -> tuple[Tensor, ...]:
        ctx.group = group
        made = [empty_like(x) for _ in range(_checked(group).size())]
        collectives.all_gather(made, x, group)
        return tuple(made)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, _ReduceScatter.apply(ReduceOp.SUM, ctx.group, grads[_checked(ctx.group).rank()], *grads)


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, outputs: list[Tensor], *xs: Tensor) -> tuple[Tensor, ...]:
        ctx.group, ctx.inputs = group, [empty_like(x) for x in xs]
        made = [empty_like(each) for each in outputs]
        collectives.all_to_all(made, [x.contiguous() for x in xs], group)
        return tuple(made)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, None, *_AllToAll.apply(ctx.group, ctx.inputs, *grads)


class _AllToAllSingle(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, output: Tensor, out_sizes: Any, in_sizes: Any, x: Tensor) -> Tensor:
        ctx.group, ctx.sizes, ctx.like = group, (in_sizes, out_sizes), empty_like(x)
        made = empty_like(output)
        collectives.all_to_all_single(made, x.contiguous(), out_sizes, in_sizes, group)
        return made

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return None, None, None, None, _AllToAllSingle.apply(ctx.group, ctx.like, *ctx.sizes, grad)


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """The tensor of process `src`."""
    return _Broadcast.apply(src, group, tensor_of(tensor, "tensor"))


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all processes, in process `dst`; zeros in the others."""
    return _Gather.apply(dst, group, tensor_of(tensor, "tensor"))


def scatter(tensors: Sequence[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """The tensor that process `src` has for this one; all give as many tensors."""
    return _Scatter.apply(src, group, *tensors_of(list(tensors), "tensors"))


def reduce(tensor: Tensor, dst: int, op: ReduceOp = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The tensors of all processes combined, in process `dst`; its own one in the others."""
    return _Reduce.apply(dst, op, group, tensor_of(tensor, "tensor"))


def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: ReduceOp = ReduceOp.SUM, group: Any = None
) -> Tensor:
    """This process' part of the lists of all processes combined, in the shape of `output`."""
    return _ReduceScatter.apply(op, group, output, *tensors_of(list(input_list), "input_list"))


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all processes."""
    return _AllGather.apply(group, tensor_of(tensor, "tensor"))


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None
) -> tuple[Tensor, ...]:
    """What each process has for this one, in the shapes of `output_tensor_list`."""
    return _AllToAll.apply(group, list(output_tensor_list), *tensors_of(list(input_tensor_list), "input_tensor_list"))


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Any = None,
) -> Tensor:
    """`all_to_all` of rows of one tensor, in the shape of `output`."""
    return _AllToAllSingle.apply(group, output, output_split_sizes, input_split_sizes, tensor_of(input, "input"))


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The tensors of all processes combined."""
    return _AllReduce.apply(op, group, tensor_of(tensor, "tensor"))


def __dir__() -> list[str]:
    return __all__
