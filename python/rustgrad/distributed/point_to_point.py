"""Messages from one process to another: `send`, `recv` and their kin.

Messages of one sender, receiver and tag arrive in order. A `send` is done when the system has the bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._C import Tensor
from .group import ProcessGroup, Work, _checked, _outside
from .host import Host, group_rank, tensor_of
from .messages import ANY
from .schedules import bytes_of

__all__ = ["P2POp", "batch_isend_irecv", "irecv", "isend", "recv", "send"]


class _Message(Work):
    """A message on its way; the memory stays until it has arrived."""

    def __init__(self, tensor: Tensor, host: Host, incoming: bool) -> None:
        super().__init__(None, [tensor], ANY - 1)
        self._host, self._incoming = host, incoming

    def finish(self, error: BaseException | None = None) -> None:
        if self._incoming and error is None:
            self._host.back()
        super().finish(error)


def _peer(pg: ProcessGroup, rank: int, what: str) -> int:
    if rank == pg.rank():
        raise ValueError(f"Invalid {what} rank: {what} rank should not be the same as the rank of the current process.")
    return rank


def isend(
    tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None
) -> Work | None:
    """Sends a tensor to process `dst` and returns before it has gone: it stays as it is until `wait()`.

    Raises:
        ValueError: the process is this one, or not in the group.
    """
    tensor_of(tensor, "tensor")
    if _outside(group, "isend"):
        return None
    pg = _checked(group)
    peer = _peer(pg, group_rank(group, dst, group_dst, "dst"), "destination")
    host = Host(tensor)
    work = _Message(tensor, host, False)
    pg._mail().send(peer, tag, bytes_of(host.flat), work)
    return work


def irecv(
    tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None
) -> Work | None:
    """Receives a tensor of process `src`, by default of any, and returns before it is there.

    Raises:
        ValueError: the process is this one, or not in the group.
    """
    tensor_of(tensor, "tensor")
    if _outside(group, "irecv"):
        return None
    pg = _checked(group)
    source = ANY
    if src is not None or group_src is not None:
        source = _peer(pg, group_rank(group, src, group_src, "src"), "source")
    elif pg.size() == 1:
        _peer(pg, pg.rank(), "source")
    host = Host(tensor)
    work = _Message(tensor, host, True)
    pg._mail().receive(source, tag, bytes_of(host.flat), work)
    return work


def send(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> None:
    """Sends a tensor to process `dst`. ValueError for this process, or one that is not in the group."""
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def recv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> int:
    """Receives a tensor of process `src`, by default of any; the number of the sender in the world, -1 outside the group."""
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    return _checked(group).ranks[work.source_rank()]


class P2POp:
    """A message for `batch_isend_irecv`.

    Args:
        op (callable): `isend` or `irecv`.
        tensor (Tensor): what is sent, or where it arrives.
        peer (int): the other process, in the world; `group_peer` is its number in the group.

    Raises:
        ValueError: another `op`, or no peer.
    """

    def __init__(
        self,
        op: Callable[..., Any],
        tensor: Tensor,
        peer: int | None = None,
        group: Any = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or ``torch.distributed.irecv``."
            )
        self.op, self.tensor, self.tag = op, tensor_of(tensor, "tensor"), tag
        self.group = _checked(group)
        self.group_peer = group_rank(group, peer, group_peer, "peer")
        self.peer = self.group.ranks[self.group_peer]


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Begins several messages; their `Work`s. ValueError for an empty list, or one of something else."""
    if not isinstance(p2p_op_list, list) or not all(isinstance(op, P2POp) for op in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to to be of type ``torch.distributed.P2POp``.")
    if not p2p_op_list:
        raise ValueError("p2p_op_list must not be empty")
    works = []
    for each in p2p_op_list:
        peer = {"group_dst" if each.op is isend else "group_src": each.group_peer}
        works.append(each.op(each.tensor, group=each.group, tag=each.tag, **peer))
    return works
