"""Collectives of tensors: the functions that all processes of a group call together.

All take `group=` (by default the default group; ValueError without one) and return None, or a `Work` with `async_op=True`.
Tensors are of any element type and device, contiguous or not; those of the other processes have the same size and type.
They raise DistBackendError, a RuntimeError, where a process has ended, calls another collective, or takes too long.
"""

from __future__ import annotations

from typing import Any

from .._base import cat
from .._C import Tensor
from . import schedules
from .group import ReduceOp, Work, _checked, _outside
from .host import Host, group_rank, same_dtype, tensor_of, tensors_of
from .reductions import combiner
from .schedules import Call, bytes_of

__all__ = [
    "all_gather",
    "all_gather_into_tensor",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
]


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """The tensors of all processes combined, in place."""
    tensor_of(tensor, "tensor")
    if _outside(group, "all_reduce"):
        return None
    pg = _checked(group)
    combine = combiner(op, tensor, "all_reduce")
    host = Host(tensor)

    def action(call: Call) -> None:
        if call.size > 1 and host.flat.numel():
            schedules.all_reduce(call, host.flat)
            _average(op, host.flat, call.size)
            host.back()

    return pg._collective("all_reduce", tensor.dtype, action, async_op, [tensor], combine)


def _average(op, flat, size):
    if op is ReduceOp.AVG:
        flat.div_(size)


def all_reduce_coalesced(
    tensors: list[Tensor], op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """`all_reduce` of several tensors of one element type as one."""
    given = [tensors] if isinstance(tensors, Tensor) else list(tensors_of(tensors, "tensors"))
    if _outside(group, "all_reduce_coalesced"):
        return None
    same_dtype(*given)
    combine = combiner(op, given[0], "all_reduce")
    hosts = [Host(tensor) for tensor in given]

    def action(call: Call) -> None:
        if call.size > 1:
            flat = cat([host.flat for host in hosts])
            schedules.all_reduce(call, flat)
            _average(op, flat, call.size)
            for host, part in zip(hosts, flat.split([host.flat.numel() for host in hosts]), strict=True):
                host.fill(part)
                host.back()

    return _checked(group)._collective("all_reduce", given[0].dtype, action, async_op, given, combine)


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: ReduceOp = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """`all_reduce` whose result only process `dst` has; the tensors of others stay."""
    tensor_of(tensor, "tensor")
    if _outside(group, "reduce"):
        return None
    root = group_rank(group, dst, group_dst, "dst")
    combine = combiner(op, tensor, "reduce")
    host = Host(tensor)

    def action(call: Call) -> None:
        if call.size > 1:
            schedules.reduce(call, host.flat if call.rank == root else host.flat.clone(), root)
            if call.rank == root:
                _average(op, host.flat, call.size)
                host.back()

    return _checked(group)._collective("reduce", tensor.dtype, action, async_op, [tensor], combine)


def broadcast(
    tensor: Tensor, src: int | None = None, group: Any = None, async_op: bool = False, group_src: int | None = None
) -> Work | None:
    """The tensor of process `src` in all processes, in place."""
    tensor_of(tensor, "tensor")
    if _outside(group, "broadcast"):
        return None
    root = group_rank(group, src, group_src, "src")
    host = Host(tensor)

    def action(call: Call) -> None:
        if call.size > 1:
            schedules.broadcast(call, bytes_of(host.flat), root)
            if call.rank != root:
                host.back()

    return _checked(group)._collective("broadcast", tensor.dtype, action, async_op, [tensor])


def _exchange(kind, group, send, receive, async_op, result):
    """Flat tensors for each of some processes, and of each of some: what goes to this one itself is copied."""
    pg = _checked(group)
    dtype = next(iter({**send, **receive}.values())).flat.dtype if send or receive else None

    def action(call: Call) -> None:
        if call.rank in send and call.rank in receive:
            receive[call.rank].fill(send[call.rank].flat)
        schedules.exchange(
            call,
            {rank: bytes_of(host.flat) for rank, host in send.items()},
            {rank: bytes_of(host.flat) for rank, host in receive.items()},
        )
        for host in receive.values():
            host.back()

    return pg._collective(kind, dtype, action, async_op, result)


def _sizes(name, inputs, outputs):
    """RuntimeError for tensors that differ in size."""
    for i, (source, into) in enumerate(zip(inputs, outputs, strict=False)):
        if source.numel() != into.numel():
            raise RuntimeError(
                f"{name}: invalid tensor size at index {i} (expected {tuple(source.shape)}, got {tuple(into.shape)})"
            )


def _count(name, what, values, size):
    if len(values) != size:
        raise RuntimeError(f"{name}: invalid {what} (expected length {size}, got {len(values)})")


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """The tensors of all processes into the tensors of a list."""
    outputs = tensors_of(tensor_list, "tensor_list")
    tensor_of(tensor, "tensor")
    if _outside(group, "all_gather"):
        return None
    same_dtype(*outputs, tensor)
    size = _checked(group).size()
    _count("all_gather", "output tensor list", outputs, size)
    _sizes("all_gather", [tensor], [outputs[_checked(group).rank()]])
    own = Host(tensor)
    receive = {rank: Host(into) for rank, into in enumerate(outputs)}
    return _exchange("all_gather", group, dict.fromkeys(range(size), own), receive, async_op, list(outputs))


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """The tensors of all processes into one tensor, one after the other."""
    tensor_of(input_tensor, "input_tensor")
    tensor_of(output_tensor, "output_tensor")
    if _outside(group, "all_gather_into_tensor"):
        return None
    same_dtype(output_tensor, input_tensor)
    size = _checked(group).size()
    if output_tensor.numel() != size * input_tensor.numel():
        raise RuntimeError(
            f"all_gather_into_tensor: output tensor size must be equal to world_size times input tensor size: expected "
            f"{size} x {tuple(input_tensor.shape)}, got {tuple(output_tensor.shape)}"
        )
    own, whole = Host(input_tensor), Host(output_tensor)
    parts = whole.flat.chunk(size) if whole.flat.numel() else [whole.flat] * size
    work = _exchange(
        "all_gather", group, dict.fromkeys(range(size), own), _parts(whole, parts), async_op, [output_tensor]
    )
    return work


class _Part:
    """A part of the memory of a tensor; the last one returns the whole."""

    def __init__(self, flat: Tensor, whole: Host | None) -> None:
        self.flat, self.whole = flat, whole

    def fill(self, flat: Tensor) -> None:
        self.flat.copy_(flat)

    def back(self) -> None:
        if self.whole is not None:
            self.whole.back()


def _parts(whole, parts):
    last = len(parts) - 1
    return {rank: _Part(part, whole if rank == last else None) for rank, part in enumerate(parts)}


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """`all_gather` whose result only process `dst`, by default 0, has."""
    tensor_of(tensor, "tensor")
    if _outside(group, "gather"):
        return None
    pg = _checked(group)
    root = group_rank(group, dst, group_dst, "dst", 0)
    if pg.rank() != root:
        if gather_list:
            raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
        return _exchange("gather", group, {root: Host(tensor)}, {}, async_op, [tensor])
    if not gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    outputs = tensors_of(gather_list, "gather_list")
    same_dtype(*outputs, tensor)
    _count("gather", "output tensor list", outputs, pg.size())
    _sizes("gather", [tensor] * pg.size(), outputs)
    receive = {rank: Host(into) for rank, into in enumerate(outputs)}
    return _exchange("gather", group, {root: Host(tensor)}, receive, async_op, list(outputs))


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """One tensor of a list of process `src`, by default 0, for each process."""
    tensor_of(tensor, "tensor")
    if _outside(group, "scatter"):
        return None
    pg = _checked(group)
    root = group_rank(group, src, group_src, "src", 0)
    own = Host(tensor)
    if pg.rank() != root:
        if scatter_list:
            raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
        return _exchange("scatter", group, {}, {root: own}, async_op, [tensor])
    if not scatter_list:
        raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
    inputs = tensors_of(scatter_list, "scatter_list")
    same_dtype(tensor, *inputs)
    if len(inputs) != pg.size():
        raise RuntimeError(
            f"scatter: Incorrect input list size {len(inputs)}. Input list size should be {pg.size()}, same as size of the "
            "process group."
        )
    _sizes("scatter", [tensor] * pg.size(), inputs)
    send = {rank: Host(source) for rank, source in enumerate(inputs)}
    return _exchange("scatter", group, send, {root: own}, async_op, [tensor])


def _reduce_scatter(output, flat, bounds, op, group, async_op):
    """Part `rank` of a flat copy, combined, into a tensor."""
    combine = combiner(op, output, "reduce_scatter")
    host = Host(output)

    def action(call: Call) -> None:
        if call.size > 1:
            schedules.reduce_parts(call, flat, bounds)
        own = flat[bounds[call.rank] : bounds[call.rank + 1]]
        _average(op, own, call.size)
        host.fill(own)
        host.back()

    return _checked(group)._collective("reduce_scatter", output.dtype, action, async_op, [output], combine)


def reduce_scatter(
    output: Tensor, input_list: list[Tensor], op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Lists of tensors combined, one result for each process."""
    tensor_of(output, "output")
    inputs = tensors_of(input_list, "input_list")
    if _outside(group, "reduce_scatter"):
        return None
    pg = _checked(group)
    same_dtype(output, *inputs)
    _count("reduce_scatter", "input tensor list", inputs, pg.size())
    _sizes("reduce_scatter", [inputs[pg.rank()]], [output])
    bounds = [0]
    for source in inputs:
        bounds.append(bounds[-1] + source.numel())
    flat = cat([Host(source).flat for source in inputs])
    return _reduce_scatter(output, flat, bounds, op, group, async_op)


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Tensors combined, one part of the result for each process."""
    tensor_of(output, "output")
    tensor_of(input, "input")
    if _outside(group, "reduce_scatter_tensor"):
        return None
    size = _checked(group).size()
    same_dtype(output, input)
    if input.numel() != size * output.numel():
        raise RuntimeError(
            f"reduce_scatter_tensor: input tensor must be world_size times the output: expected {size} x "
            f"{tuple(output.shape)}, got {tuple(input.shape)}"
        )
    bounds = [output.numel() * rank for rank in range(size + 1)]
    return _reduce_scatter(output, Host(input).flat.clone(), bounds, op, group, async_op)


def all_to_all(
    output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: Any = None, async_op: bool = False
) -> Work | None:
    """One tensor of each process for each process."""
    outputs = tensors_of(output_tensor_list, "output_tensor_list")
    inputs = tensors_of(input_tensor_list, "input_tensor_list")
    if _outside(group, "all_to_all"):
        return None
    pg = _checked(group)
    same_dtype(*outputs, *inputs)
    _count("all_to_all", "output tensor list", outputs, pg.size())
    _count("all_to_all", "input tensor list", inputs, pg.size())
    _sizes("all_to_all", [inputs[pg.rank()]], [outputs[pg.rank()]])
    send = {rank: Host(source) for rank, source in enumerate(inputs)}
    receive = {rank: Host(into) for rank, into in enumerate(outputs)}
    return _exchange("all_to_all", group, send, receive, async_op, list(outputs))


def _splits(name, tensor, sizes, count):
    """How many rows of a tensor each process has."""
    rows = tensor.shape[0] if tensor.dim() else 0
    if not sizes:
        if rows % count:
            raise RuntimeError(f"Tensor's dim 0 does not divide equally across group size: {name} has {rows} rows")
        return [rows // count] * count
    if len(sizes) != count:
        raise RuntimeError(f"Number of tensor splits not equal to group size: expected {count}, got {len(sizes)}")
    if sum(sizes) != rows:
        raise RuntimeError(f"Split sizes doesn't match total dim 0 size: {name} has {rows} rows, got {list(sizes)}")
    return list(sizes)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Some rows of each process's tensor for each process: equally many, or as many as the lists say."""
    tensor_of(output, "output")
    tensor_of(input, "input")
    if _outside(group, "all_to_all_single"):
        return None
    same_dtype(output, input)
    size = _checked(group).size()
    pieces = []
    for name, tensor, sizes in (("input", input, input_split_sizes), ("output", output, output_split_sizes)):
        rows = _splits(name, tensor, sizes, size)
        row = tensor.numel() // tensor.shape[0] if tensor.dim() and tensor.shape[0] else 0
        host = Host(tensor)
        pieces.append(_parts(host, host.flat.split([count * row for count in rows])))
    return _exchange("all_to_all", group, pieces[0], pieces[1], async_op, [output])
