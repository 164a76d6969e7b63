"""Collectives of Python objects, which cross as pickles: use them among processes that trust each other.

All take `group=`, by default the default group, and wait until they are done.
"""

from __future__ import annotations

import pickle
from typing import Any

from .._base import empty, frombuffer, int64, tensor, uint8
from .._C import Tensor
from .collectives import all_gather, broadcast, gather, scatter
from .group import _checked, _outside
from .host import group_rank
from .point_to_point import recv, send
from .schedules import bytes_of

__all__ = [
    "all_gather_object",
    "broadcast_object_list",
    "gather_object",
    "recv_object_list",
    "scatter_object_list",
    "send_object_list",
]


def _to_tensor(obj: Any) -> tuple[Tensor, Tensor]:
    """An object's pickle as bytes, and their number."""
    data = bytearray(pickle.dumps(obj))
    return frombuffer(data, dtype=uint8), tensor([len(data)], dtype=int64)


def _to_object(data: Tensor) -> Any:
    return pickle.loads(bytes_of(data))


def _padded(data: Tensor, most: int) -> Tensor:
    whole = empty(most, dtype=uint8)
    whole[: data.numel()] = data
    return whole


def _all_sizes(size: Tensor, group: Any) -> list[int]:
    sizes = [empty(1, dtype=int64) for _ in range(_checked(group).size())]
    all_gather(sizes, size, group)
    return [int(each) for each in sizes]


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """An object of each process into a list, which has as many entries."""
    if _outside(group, "all_gather_object"):
        return
    _checked(group)
    data, size = _to_tensor(obj)
    sizes = _all_sizes(size, group)
    outputs = [empty(count, dtype=uint8) for count in sizes]
    all_gather(outputs, data, group)
    for i, each in enumerate(outputs):
        object_list[i] = _to_object(each)


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
) -> None:
    """`all_gather_object` whose result only process `dst`, by default 0, has."""
    if _outside(group, "gather_object"):
        return
    _checked(group)
    root = group_rank(group, dst, group_dst, "dst", 0)
    here = _checked(group).rank() == root
    if here and object_gather_list is None:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    if not here and object_gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    data, size = _to_tensor(obj)
    sizes = _all_sizes(size, group)
    most = max(sizes)
    outputs = [empty(most, dtype=uint8) for _ in sizes] if here else None
    gather(_padded(data, most), outputs, group=group, group_dst=root)
    if object_gather_list is not None and outputs is not None:
        for i, (each, count) in enumerate(zip(outputs, sizes, strict=True)):
            object_gather_list[i] = _to_object(each[:count])


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """The objects of process `src`, by default 0, in the lists of all processes, which have as many entries."""
    if _outside(group, "broadcast_object_list"):
        return
    _checked(group)
    root = group_rank(group, src, group_src, "src", 0)
    here = _checked(group).rank() == root
    sizes, data = _packed(object_list) if here else (empty(len(object_list), dtype=int64), None)
    broadcast(sizes, group=group, group_src=root)
    if data is None:
        data = empty(int(sizes.sum()), dtype=uint8)
    broadcast(data, group=group, group_src=root)
    if not here:
        _unpack(object_list, sizes, data)


def _packed(objects):
    """The sizes of the pickles of objects, and all their bytes."""
    pickles = [pickle.dumps(obj) for obj in objects]
    sizes = tensor([len(each) for each in pickles], dtype=int64)
    return sizes, frombuffer(bytearray(b"".join(pickles)), dtype=uint8) if pickles else empty(0, dtype=uint8)


def _unpack(objects, sizes, data):
    for i, part in enumerate(data.split(sizes.tolist())):
        objects[i] = _to_object(part)


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    """One object of a list of process `src`, by default 0, for each process, as the first entry of a list."""
    if _outside(group, "scatter_object_list"):
        return
    _checked(group)
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    root = group_rank(group, src, group_src, "src", 0)
    pg = _checked(group)
    pairs = None
    if pg.rank() == root:
        if scatter_object_input_list is None:
            raise ValueError("source rank must provide non-None scatter_object_input_list")
        pairs = [_to_tensor(obj) for obj in scatter_object_input_list]
        if len(pairs) != pg.size():
            raise ValueError(f"scatter_object_list: expected {pg.size()} objects, got {len(pairs)}")
    most = tensor([max(int(size) for _, size in pairs) if pairs else 0], dtype=int64)
    broadcast(most, group=group, group_src=root)
    data, size = empty(int(most), dtype=uint8), empty(1, dtype=int64)
    scatter(data, pairs and [_padded(each, int(most)) for each, _ in pairs], group=group, group_src=root)
    scatter(size, pairs and [each for _, each in pairs], group=group, group_src=root)
    scatter_object_output_list[0] = _to_object(data[: int(size)])


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: Any = None,
    device: Any = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Sends objects to process `dst`."""
    sizes, data = _packed(object_list)
    send(sizes, dst, group, group_dst=group_dst)
    send(data, dst, group, group_dst=group_dst)


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Receives as many objects as the list has entries, of process `src`, by default of any; the sender's number."""
    sizes = empty(len(object_list), dtype=int64)
    sender = recv(sizes, src, group, group_src=group_src)
    data = empty(int(sizes.sum()), dtype=uint8)
    recv(data, sender, group)
    _unpack(object_list, sizes, data)
    return sender
