"""Collectives over one process: each leaves its own contribution, after the checks of PyTorch.

All take `group=` (by default the default group; ValueError without one) and return None, or a completed `Work` with
`async_op=True`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._C import Tensor
from ..autograd.grad_mode import no_grad
from .group import ReduceOp, Work, _checked

__all__ = [
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "gather",
    "gather_object",
    "irecv",
    "isend",
    "monitored_barrier",
    "recv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
]


def _done(group, async_op=False):
    _checked(group)
    return Work() if async_op else None


def _tensor(value, name):
    if not isinstance(value, Tensor):
        raise TypeError(f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor")
    return value


def _one(values, name):
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise TypeError(f"Invalid function argument. Expected parameter `{name}` to be a list")
    if len(values) != 1:
        raise ValueError(f"{name}: expected one entry in a world of 1, got {len(values)}")
    return values[0]


def _rank(rank, name):
    if rank not in (0, None):
        raise ValueError(f"{name}: rank {rank} is out of range; expected 0 in a world of 1.")


def _copy(into, source, name):
    _tensor(into, name)
    if into.numel() != source.numel() or into.dtype != source.dtype:
        raise ValueError(
            f"{name}: expected {tuple(source.shape)} of {source.dtype}, got {tuple(into.shape)} of {into.dtype}"
        )
    with no_grad():
        into.copy_(source.reshape(into.shape))


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """The tensors of all processes combined, in place: over one process, the tensor itself."""
    _tensor(tensor, "tensor")
    if not isinstance(op, ReduceOp):
        raise TypeError(f"all_reduce: expected a ReduceOp, got {type(op).__name__}")
    return _done(group, async_op)


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: ReduceOp = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """`all_reduce` whose result only process `dst` has."""
    _rank(dst if group_dst is None else group_dst, "reduce")
    return all_reduce(tensor, op, group, async_op)


def broadcast(
    tensor: Tensor, src: int | None = None, group: Any = None, async_op: bool = False, group_src: int | None = None
) -> Work | None:
    """The tensor of process `src` in all processes, in place."""
    _tensor(tensor, "tensor")
    _rank(src if group_src is None else group_src, "broadcast")
    return _done(group, async_op)


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """The tensors of all processes into the tensors of a list."""
    done = _done(group, async_op)
    _copy(_one(tensor_list, "tensor_list"), _tensor(tensor, "tensor"), "all_gather")
    return done


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """The tensors of all processes into one tensor."""
    done = _done(group, async_op)
    _copy(output_tensor, _tensor(input_tensor, "input_tensor"), "all_gather_into_tensor")
    return done


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """`all_gather` whose result only process `dst` has."""
    _rank(dst if group_dst is None else group_dst, "gather")
    if gather_list is None:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    return all_gather(gather_list, tensor, group, async_op)


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """One tensor of a list of process `src` for each process."""
    _rank(src if group_src is None else group_src, "scatter")
    done = _done(group, async_op)
    if scatter_list is None:
        raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
    _copy(tensor, _tensor(_one(scatter_list, "scatter_list"), "scatter_list"), "scatter")
    return done


def reduce_scatter(
    output: Tensor, input_list: list[Tensor], op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Lists of tensors combined, one result for each process."""
    done = _done(group, async_op)
    _copy(output, _tensor(_one(input_list, "input_list"), "input_list"), "reduce_scatter")
    return done


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Tensors combined, one part of the result for each process."""
    done = _done(group, async_op)
    _copy(output, _tensor(input, "input"), "reduce_scatter_tensor")
    return done


def all_to_all(
    output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: Any = None, async_op: bool = False
) -> Work | None:
    """One tensor of each process for each process."""
    return all_gather(output_tensor_list, _one(input_tensor_list, "input_tensor_list"), group, async_op)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """One part of each process's tensor for each process."""
    return all_gather_into_tensor(output, input, group, async_op)


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Waits for all processes: for none but this one."""
    return _done(group, async_op)


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """`barrier`, which names processes that do not arrive."""
    _done(group)


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """An object of each process into a list."""
    _done(group)
    _one(object_list, "object_list")
    object_list[0] = obj


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
) -> None:
    """`all_gather_object` whose result only process `dst` has."""
    _rank(dst if group_dst is None else group_dst, "gather_object")
    if object_gather_list is None:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    all_gather_object(object_gather_list, obj, group)


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """The objects of process `src` in all processes."""
    _rank(src if group_src is None else group_src, "broadcast_object_list")
    _done(group)


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    """One object of a list of process `src` for each process, as the first entry of a list."""
    _rank(src if group_src is None else group_src, "scatter_object_list")
    _done(group)
    if not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    scatter_object_output_list[0] = _one(scatter_object_input_list, "scatter_object_input_list")


def _no_peer(name):
    raise ValueError(f"{name}: a process cannot send to itself, and the world has one process.")


def send(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> None:
    """ValueError: there is no other process to send to."""
    _checked(group)
    _no_peer("send")


def recv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> int:
    """ValueError: there is no other process to receive from."""
    _checked(group)
    return _no_peer("recv")


def isend(
    tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None
) -> Work:
    """ValueError: there is no other process to send to."""
    _checked(group)
    return _no_peer("isend")


def batch_isend_irecv(p2p_op_list: list[Any]) -> list[Work]:
    """ValueError: there is no other process, and so no `P2POp`, of which it takes a list."""
    raise ValueError(
        f"Invalid ``p2p_op_list``: expected P2POps between two processes, got {len(p2p_op_list)} entries in a world of 1."
    )


def irecv(
    tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None
) -> Work:
    """ValueError: there is no other process to receive from."""
    _checked(group)
    return _no_peer("irecv")
