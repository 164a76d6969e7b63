"""Which bytes go to whom in a collective: rings, doubling and trees over the connections of a group.

Every process combines the parts in an order that depends on sizes and ranks only, so results are the same on every rank and
in every run. Large tensors go round a ring in parts, which moves the least bytes; small ones take the fewest steps.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from .. import _C
from .._base import empty
from .._C import Tensor
from .connections import Links, Receive, Send

__all__ = ["Call", "all_reduce", "broadcast", "bytes_of", "exchange", "reduce", "reduce_parts"]

# Below so many bytes `all_reduce` exchanges whole tensors: the steps cost more than the bytes.
_SMALL = 64 << 10
# A part that is added while the next one arrives: it and what it is added to fit in a processor's cache.
_PIECE = 256 << 10
HEADER = struct.Struct("<IHHQ")


def bytes_of(tensor: Tensor) -> memoryview:
    """The memory of a contiguous tensor on the CPU, to be read and written."""
    nbytes = tensor.numel() * tensor.element_size()
    if not nbytes:
        return memoryview(bytearray())
    start = tensor.storage_offset() * tensor.element_size()
    return _C._lend_storage(lambda view: view, tensor, True)[start : start + nbytes]


class Call:
    """One collective on one process.

    Args:
        links (Links): the connections.
        rank, size (int): this process in the group, and their number.
        number (int): how many collectives the group has done before, which the headers tell the others.
        kind (int): which collective and element type, likewise.
        combine (callable, optional): adds (or the like) its second tensor to its first one.
    """

    __slots__ = ("combine", "kind", "links", "number", "rank", "size")

    def __init__(
        self,
        links: Links,
        rank: int,
        size: int,
        number: int,
        kind: tuple[int, int],
        combine: Callable[[Tensor, Tensor], object] | None = None,
    ) -> None:
        self.links, self.rank, self.size = links, rank, size
        self.number, self.kind, self.combine = number & 0xFFFFFFFF, kind, combine

    def _header(self, nbytes):
        return HEADER.pack(self.number, *self.kind, nbytes)

    def send(self, rank: int, view: memoryview) -> Send:
        """A transfer to a process."""
        return Send(self.links, rank, self._header(len(view)), view)

    def receive(self, rank: int, view: memoryview) -> Receive:
        """A transfer from a process."""
        return Receive(self.links, rank, self._header(len(view)), view)

    def receive_into(self, rank: int, target: Tensor, scratch: Tensor, scratch_view: memoryview) -> Receive:
        """A transfer from a process that is combined with what `target` holds, piece by piece."""
        item = target.element_size()

        def take(start: int, stop: int) -> None:
            piece = target[start // item : stop // item]
            self.combine(piece, scratch[: piece.numel()])  # type: ignore[misc]

        nbytes = target.numel() * item
        return Receive(self.links, rank, self._header(nbytes), scratch_view, nbytes, take)

    def transfer(self, *pieces: Send | Receive) -> None:
        """Does transfers all at once."""
        self.links.transfer(pieces)


def _scratch(flat: Tensor, most: int) -> tuple[Tensor, memoryview]:
    """Memory for a piece of at most so many elements."""
    scratch = empty(max(1, min(most, _PIECE // flat.element_size())), dtype=flat.dtype)
    return scratch, bytes_of(scratch)


def all_reduce(call: Call, flat: Tensor) -> None:
    """The flat tensors of all processes combined, in place."""
    if flat.numel() * flat.element_size() <= _SMALL or flat.numel() < call.size:
        _double(call, flat)
        return
    bounds = [flat.numel() * i // call.size for i in range(call.size + 1)]
    reduce_parts(call, flat, bounds)
    _ring_gather(call, bytes_of(flat), [bound * flat.element_size() for bound in bounds])


def _double(call, flat):
    """Recursive doubling: in each round pairs exchange what they have. Ranks beyond a power of two join one below."""
    rank, even = call.rank, 1 << (call.size.bit_length() - 1)
    view = bytes_of(flat)
    scratch = empty(flat.numel(), dtype=flat.dtype)
    other = bytes_of(scratch)
    if rank >= even:
        call.transfer(call.send(rank - even, view))
        call.transfer(call.receive(rank - even, view))
        return
    if rank + even < call.size:
        call.transfer(call.receive(rank + even, other))
        call.combine(flat, scratch)
    step = 1
    while step < even:
        call.transfer(call.send(rank ^ step, view), call.receive(rank ^ step, other))
        call.combine(flat, scratch)
        step *= 2
    if rank + even < call.size:
        call.transfer(call.send(rank + even, view))


def reduce_parts(call: Call, flat: Tensor, bounds: Sequence[int]) -> None:
    """Part `rank` of `flat`, from `bounds[rank]` to `bounds[rank + 1]`, combined over all processes; other parts are changed."""
    rank, size, item = call.rank, call.size, flat.element_size()
    view = bytes_of(flat)
    scratch, scratch_view = _scratch(flat, max(b - a for a, b in zip(bounds, bounds[1:], strict=False)))
    for step in range(size - 1):
        out, into = (rank - step - 1) % size, (rank - step - 2) % size
        call.transfer(
            call.send((rank + 1) % size, view[bounds[out] * item : bounds[out + 1] * item]),
            call.receive_into((rank - 1) % size, flat[bounds[into] : bounds[into + 1]], scratch, scratch_view),
        )


def _ring_gather(call, view, bounds):
    """Each process's part of the bytes to all."""
    rank, size = call.rank, call.size
    for step in range(size - 1):
        out, into = (rank - step) % size, (rank - step - 1) % size
        call.transfer(
            call.send((rank + 1) % size, view[bounds[out] : bounds[out + 1]]),
            call.receive((rank - 1) % size, view[bounds[into] : bounds[into + 1]]),
        )


def _tree(call, root):
    """This process's parent in a binomial tree, None for the root, and its children, nearest first."""
    place, mask, children = (call.rank - root) % call.size, 1, []
    while mask < call.size and not place & mask:
        if place | mask < call.size:
            children.append((place | mask) + root)
        mask *= 2
    parent = None if not place else (place ^ mask) + root
    return None if parent is None else parent % call.size, [child % call.size for child in children]


def broadcast(call: Call, view: memoryview, root: int) -> None:
    """The bytes of process `root` in all processes."""
    parent, children = _tree(call, root)
    if parent is not None:
        call.transfer(call.receive(parent, view))
    for child in reversed(children):
        call.transfer(call.send(child, view))


def reduce(call: Call, flat: Tensor, root: int) -> None:
    """The flat tensors combined in process `root`; those of others are changed."""
    parent, children = _tree(call, root)
    scratch, view = _scratch(flat, flat.numel())
    for child in children:
        call.transfer(call.receive_into(child, flat, scratch, view))
    if parent is not None:
        call.transfer(call.send(parent, bytes_of(flat)))


def exchange(call: Call, sends: dict[int, memoryview], receives: dict[int, memoryview]) -> None:
    """Bytes for each of some processes, and from each of some."""
    call.transfer(
        *(call.send(rank, view) for rank, view in sends.items() if rank != call.rank),
        *(call.receive(rank, view) for rank, view in receives.items() if rank != call.rank),
    )
