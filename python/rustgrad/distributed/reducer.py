"""The reducer of `DistributedDataParallel`: gradients averaged over processes while backward still runs.

Parameters are put into buckets in the reverse of their order, which is about the order in which their gradients come. A hook
runs when a gradient is there; once a bucket has all of its gradients they are copied into one flat tensor, which the thread
of the process group reduces. At the end of backward the averages go into the gradients. Buckets are reduced in their order,
the same in all processes.
"""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from .._base import empty, frombuffer, mul, stack, tensor, uint8
from .._base import int32 as _int32
from .._C import Tensor, _queue_callback
from ..autograd.grad_mode import no_grad
from .collectives import all_gather, all_reduce, broadcast
from .process_group import ProcessGroup

__all__ = ["GradBucket", "Reducer", "broadcast_coalesced", "check_same_model"]

_FIRST_BYTES = 1 << 20
_Hook = Callable[[Any, "GradBucket"], Any]


class GradBucket:
    """What a communication hook is given: the gradients of some parameters as one flat tensor."""

    def __init__(self, index: int, parameters: list[Tensor], is_last: bool) -> None:
        self._index, self._parameters, self._is_last = index, parameters, is_last
        like = parameters[0]
        self._buffer = empty(sum(p.numel() for p in parameters), dtype=like.dtype, device=like.device)
        self._views = [
            part.view(p.shape) for p, part in zip(parameters, self._buffer.split([p.numel() for p in parameters]))
        ]
        self._pending = len(parameters)
        self._result: Any = None

    def index(self) -> int:
        """Its number, in the order of reduction."""
        return self._index

    def buffer(self) -> Tensor:
        """The gradients as one tensor of one dimension."""
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        """Replaces the values of the gradients."""
        self._buffer.copy_(buffer)

    def gradients(self) -> list[Tensor]:
        """Views of the buffer with the shapes of the parameters."""
        return list(self._views)

    def parameters(self) -> list[Tensor]:
        """The parameters."""
        return list(self._parameters)

    def is_last(self) -> bool:
        """Whether it is the last one to be reduced."""
        return self._is_last


def _buckets(parameters: Sequence[Tensor], cap: float) -> list[GradBucket]:
    """Neighbours of one type and device, of `cap` bytes at most; the first is small, so that its reduction begins early."""
    lists: list[list[Tensor]] = []
    open_lists: dict[Any, tuple[list[Tensor], int]] = {}
    limit = min(_FIRST_BYTES, cap)
    for parameter in reversed(parameters):
        key = (parameter.dtype, parameter.device)
        members, nbytes = open_lists.get(key, ([], 0))
        if not members:
            lists.append(members)
        members.append(parameter)
        nbytes += parameter.numel() * parameter.element_size()
        if nbytes >= limit:
            open_lists.pop(key, None)
            limit = cap
        else:
            open_lists[key] = (members, nbytes)
    return [GradBucket(i, members, i == len(lists) - 1) for i, members in enumerate(lists)]


class Reducer:
    """Averages the gradients of parameters over the processes of a group.

    Args:
        parameters (list): those that require gradients.
        group (ProcessGroup): the processes.
        cap (float): how many bytes a bucket has at most.
        find_unused (bool): whether parameters may get no gradient.
        late (bool): whether all buckets wait for the end of backward, since a gradient may come in several parts.
        keep_views (bool): whether gradients become views of the buckets.
    """

    def __init__(
        self,
        parameters: list[Tensor],
        group: ProcessGroup,
        cap: float,
        find_unused: bool = False,
        late: bool = False,
        keep_views: bool = False,
    ) -> None:
        self.parameters, self.group, self.find_unused, self.late = parameters, group, find_unused or late, late
        self.keep_views = keep_views
        self.hook: tuple[Any, _Hook] | None = None
        self.buckets = _buckets(parameters, cap)
        self._place = {id(p): (bucket, i) for bucket in self.buckets for i, p in enumerate(bucket._parameters)}
        self._armed = self._is_queued = False
        self._begin()
        myself = weakref.ref(self)

        def ready(parameter: Tensor) -> None:
            reducer = myself()
            if reducer is not None and reducer._armed:
                reducer._mark(parameter)

        self._handles = [p.register_post_accumulate_grad_hook(ready) for p in parameters]

    def _begin(self):
        """Expects every gradient again."""
        self._ready: set[int] = set()
        self._next = 0
        for bucket in self.buckets:
            bucket._pending, bucket._result = len(bucket._parameters), None

    def prepare(self, sync: bool) -> None:
        """Before a forward whose backward is to reduce, or not.

        Raises:
            RuntimeError: the last backward left parameters without a gradient.
        """
        if self._armed and self._ready and sync:
            missing = [i for i, p in enumerate(self.parameters) if id(p) not in self._ready]
            self.wait()
            raise RuntimeError(_UNFINISHED.format(rank=self.group.rank(), missing=" ".join(map(str, missing))))
        self._armed = sync

    def wait(self) -> None:
        """Waits for what has been begun, and forgets it."""
        for bucket in self.buckets[: self._next]:
            _result(bucket)
        self._armed = False
        self._begin()

    def _mark(self, parameter):
        """The gradient of a parameter is there."""
        bucket, _ = self._place[id(parameter)]
        if id(parameter) in self._ready:
            if bucket._index < self._next:
                raise RuntimeError(
                    "Expected to mark a variable ready only once. Its gradient came twice in one backward: by reentrant "
                    "checkpoints, or a parameter that several of them share. Hint: use `static_graph=True`, or checkpoints "
                    "with `use_reentrant=False`."
                )
            return
        self._ready.add(id(parameter))
        bucket._pending -= 1
        if not self.late:
            with no_grad():
                self._launch_ready()
        all_ready = len(self._ready) == len(self.parameters)
        if not self._is_queued and (self.find_unused or all_ready):
            self._is_queued = True
            _queue_callback(self._finish)

    def _launch_ready(self, all_of_them=False):
        while self._next < len(self.buckets) and (all_of_them or not self.buckets[self._next]._pending):
            self._launch(self.buckets[self._next])
            self._next += 1

    def _launch(self, bucket):
        """Copies the gradients of a bucket and begins their reduction."""
        for parameter, view in zip(bucket._parameters, bucket._views):
            grad = parameter.grad
            if grad is None:
                view.zero_()
            elif grad.is_sparse:
                raise RuntimeError(
                    "DistributedDataParallel: sparse gradients are not supported; expected dense ones. Use sparse=False."
                )
            elif self.hook is None:  # Divided before they are added: sums of half precision might overflow.
                mul(grad.detach(), 1 / self.group.size(), out=view)
            elif grad.data_ptr() != view.data_ptr():
                view.copy_(grad.detach())
        self._reduce(bucket)

    def _reduce(self, bucket):
        if self.hook is not None:
            bucket._result = self.hook[1](self.hook[0], bucket)
        else:
            bucket._result = all_reduce(bucket._buffer, group=self.group, async_op=True)

    def _finish(self):
        """At the end of backward: reduces what is left and writes the averages into the gradients."""
        self._is_queued = False
        with no_grad():
            self._launch_ready(all_of_them=True)
            used = self._used_anywhere() if self.find_unused else None
            for bucket in self.buckets:
                result = _result(bucket)
                if result is not None and result.data_ptr() != bucket._buffer.data_ptr():
                    bucket._buffer.copy_(result.view(-1))
                for parameter, view in zip(bucket._parameters, bucket._views):
                    if used is None or used[id(parameter)]:
                        self._write(parameter, view)
        self._begin()
        # Where gradients may be missing, a second backward after one forward may bring others.
        self._armed = self.find_unused

    def _used_anywhere(self):
        """For each parameter whether it has got a gradient in some process."""
        used = tensor([int(id(p) in self._ready) for p in self.parameters], dtype=_int32)
        all_reduce(used, group=self.group)
        return dict(zip(map(id, self.parameters), used.tolist()))

    def _write(self, parameter, view):
        if self.keep_views:
            parameter.grad = view
        elif parameter.grad is None:
            parameter.grad = view.clone()
        elif parameter.grad.data_ptr() != view.data_ptr():
            parameter.grad.detach().copy_(view)

    def shadow(self) -> None:
        """Takes part in the reductions of the others' backward, with zeros: this process has no more inputs."""
        with no_grad():
            for bucket in self.buckets:
                bucket._buffer.zero_()
                self._reduce(bucket)
            if self.find_unused:
                self._used_anywhere()
            for bucket in self.buckets:
                _result(bucket)

    def remove(self) -> None:
        """Takes the hooks from the parameters."""
        for handle in self._handles:
            handle.remove()


def _result(bucket):
    """What a reduction gives, once it is done: the tensor that a hook's future holds; None for the buffer itself."""
    made, bucket._result = bucket._result, None
    if made is None:
        return None
    result = made.wait()
    if isinstance(result, (list, tuple)):
        result = result[0]
    return result if isinstance(result, Tensor) else None


_UNFINISHED = (
    "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that your "
    "module has parameters that were not used in producing loss. You can enable unused parameter detection by passing the "
    "keyword argument `find_unused_parameters=True` to `torch.nn.parallel.DistributedDataParallel`, and by making sure all "
    "`forward` function outputs participate in calculating loss.\n"
    "Parameter indices which did not receive grad for rank {rank}: {missing}"
)


def broadcast_coalesced(tensors: Sequence[Tensor], group: ProcessGroup, root: int = 0) -> None:
    """The tensors of process `root` of a group in all of its processes, those of one type and device as one."""
    kinds: dict[Any, list[Tensor]] = {}
    for each in tensors:
        kinds.setdefault((each.dtype, each.device), []).append(each.detach())
    with no_grad():
        for members in kinds.values():
            flat = empty(sum(t.numel() for t in members), dtype=members[0].dtype, device=members[0].device)
            parts = [p.view(t.shape) for t, p in zip(members, flat.split([t.numel() for t in members]))]
            if group.rank() == root:
                for each, part in zip(members, parts):
                    part.copy_(each)
            broadcast(flat, group=group, group_src=root)
            if group.rank() != root:
                for each, part in zip(members, parts):
                    each.copy_(part)


def check_same_model(parameters: Sequence[Tensor], group: ProcessGroup) -> None:
    """RuntimeError in all processes unless all have parameters of the same shapes and types."""
    text = repr([(tuple(p.shape), str(p.dtype)) for p in parameters])
    digest = hashlib.sha256(f"{len(parameters)} {text}".encode()).digest() + len(parameters).to_bytes(8, "little")
    own = frombuffer(bytearray(digest), dtype=uint8)
    every = [empty(40, dtype=uint8) for _ in range(group.size())]
    all_gather(every, own, group)
    rows = stack(every)
    for rank in range(group.size()):
        if not rows[rank].equal(rows[0]):
            counts = [int.from_bytes(bytes(rows[i, 32:].tolist()), "little") for i in (0, rank)]
            what = f"{counts[0]} params, while rank {rank} has inconsistent {counts[1]} params"
            if counts[0] == counts[1]:
                what = f"parameters of other shapes or types than rank {rank}"
            raise RuntimeError(f"DDP expects same model across all ranks, but Rank 0 has {what}.")
