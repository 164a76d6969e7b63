"""Collectives of objects in which a failure of one rank is raised on all, and parts of state dicts and files."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

from ..._C import Tensor
from ..group import get_rank, get_world_size
from ..objects import all_gather_object, broadcast_object_list, gather_object, scatter_object_list
from .api import CheckpointException, _is_wrapped_exception, _wrap_exception
from .metadata import MetadataIndex

__all__ = ["find_state_dict_object", "find_tensor_shard"]

T = TypeVar("T")
R = TypeVar("R")


def _get_failure_dict(results: list[Any]) -> dict[int, Any]:
    """Rank -> exception, of the results that are wrapped exceptions."""
    return {rank: result for rank, result in enumerate(results) if _is_wrapped_exception(result)}


def _all_gather_keys(local_dict: dict[str, Any], group: Any = None) -> set[str]:
    """The keys of a dict on all ranks of a group."""
    every: list[Any] = [None] * get_world_size(group)
    all_gather_object(every, list(local_dict), group=group)
    return {key for keys in every for key in keys}


def _assert_same_keys(state_dict: dict[str, Any], process_group: Any = None) -> None:
    """AssertionError: the keys are not the same on all ranks."""
    if get_world_size(process_group) == 1:
        return
    missing = _all_gather_keys(state_dict, process_group) - set(state_dict)
    if missing:
        raise AssertionError(f"Key(s) present in other ranks but not this one, difference: {missing}")


def _caught(function: Callable[[], Any]) -> Any:
    """What a function returns, or the exception that it raised, as it can cross to other ranks."""
    try:
        return function()
    except BaseException as error:
        wrapped = _wrap_exception(error)
        try:
            pickle.loads(pickle.dumps(wrapped))
        except Exception:  # an exception whose pickle says not how it is made
            wrapped = RuntimeError(f"{type(error).__name__}: {error}"), wrapped[1]
        return wrapped


class _DistWrapper:
    """The ranks of a group, or this process alone.

    Args:
        group: None for the default group.
        use_dist (bool): whether there are other ranks.
        coordinator_rank (int): which rank decides.
    """

    def __init__(self, group: Any, use_dist: bool, coordinator_rank: int) -> None:
        self.group, self.use_dist = group, use_dist
        self.coordinator_rank = coordinator_rank if use_dist else 0
        self.rank = get_rank(group) if use_dist else 0
        self.is_coordinator = self.rank == self.coordinator_rank

    def get_rank(self) -> int:
        """The rank of this process."""
        return self.rank

    def get_world_size(self) -> int:
        """The number of ranks."""
        return get_world_size(self.group) if self.use_dist else 1

    def broadcast_object(self, object: Any) -> Any:
        """The object of the coordinator."""
        objects = [object]
        if self.use_dist:
            broadcast_object_list(objects, group=self.group, group_src=self.coordinator_rank)
        return objects[0]

    def gather_object(self, object: Any) -> list[Any] | None:
        """The objects of all ranks, on the coordinator; None elsewhere."""
        if not self.use_dist:
            return [object]
        found = [None] * self.get_world_size() if self.is_coordinator else None
        gather_object(object, found, group=self.group, group_dst=self.coordinator_rank)
        return found

    def all_gather_object(self, object: Any) -> list[Any]:
        """The objects of all ranks."""
        if not self.use_dist:
            return [object]
        found: list[Any] = [None] * self.get_world_size()
        all_gather_object(found, object, group=self.group)
        return found

    def scatter_object(self, object_list: list[Any] | None) -> Any:
        """This rank's object of the coordinator's list."""
        if not self.use_dist:
            assert object_list is not None
            return object_list[0]
        found: list[Any] = [None]
        scatter_object_list(
            found, object_list if self.is_coordinator else None, group=self.group, group_src=self.coordinator_rank
        )
        return found[0]

    def _reduced(self, step, map_fun, reduce_fun):
        """What `reduce_fun` makes of the results of all ranks, on the coordinator, or the exception that all have to raise."""
        gathered = self.gather_object(_caught(map_fun))
        if gathered is None:
            return None
        failures = _get_failure_dict(gathered)
        if not failures:
            result = _caught(lambda: reduce_fun(gathered))
            if not _is_wrapped_exception(result):
                return result
            failures = {self.rank: result}
        return CheckpointException(step, failures)

    def reduce_scatter(self, step: str, map_fun: Callable[[], T], reduce_fun: Callable[[list[T]], list[R]]) -> R:
        """`map_fun` on each rank, `reduce_fun` of all results on the coordinator, whose list gives each rank one.

        Raises:
            CheckpointException: on all ranks, where one of them has failed.
        """
        made = self._reduced(step, map_fun, reduce_fun)
        if isinstance(made, CheckpointException):
            made = [made] * self.get_world_size()
        return _raised_or(self.scatter_object(made))

    def all_reduce(self, step: str, map_fun: Callable[[], T], reduce_fun: Callable[[list[T]], R]) -> R:
        """`map_fun` on each rank, and what `reduce_fun` makes of all results on the coordinator.

        Raises:
            CheckpointException: on all ranks, where one of them has failed.
        """
        return _raised_or(self.broadcast_object(self._reduced(step, map_fun, reduce_fun)))

    def all_gather(self, step: str, map_fun: Callable[[], T]) -> list[T]:
        """The results of `map_fun` on all ranks.

        Raises:
            CheckpointException: on all ranks, where one of them has failed.
        """
        found = self.all_gather_object(_caught(map_fun))
        failures = _get_failure_dict(found)
        if failures:
            raise CheckpointException(step, failures)
        return found

    def broadcast(self, step: str, map_fun: Callable[[], T]) -> T:
        """The result of `map_fun` on the coordinator.

        Raises:
            CheckpointException: on all ranks, where the coordinator has failed.
        """
        made = None
        if self.is_coordinator:
            made = _caught(map_fun)
            made = CheckpointException(step, {self.rank: made}) if _is_wrapped_exception(made) else made
        return _raised_or(self.broadcast_object(made))

    def barrier(self) -> None:
        """Waits for all ranks."""
        if self.use_dist:
            from .. import barrier

            barrier(group=self.group)


def _raised_or(made: Any) -> Any:
    if isinstance(made, CheckpointException):
        raise made
    return made


def _not_a_piece(index: MetadataIndex) -> NoReturn:
    raise ValueError(f"FQN: '{index.fqn}' is not a ShardedTensor, can't find by offset: '{index.offset}'")


def find_tensor_shard(tensor: Tensor, index: MetadataIndex) -> Tensor:
    """The piece of a tensor: the tensor itself. ValueError: the piece begins elsewhere than at zero."""
    if index.offset is not None and any(index.offset):
        _not_a_piece(index)
    return tensor


def find_state_dict_object(state_dict: dict[str, Any], index: MetadataIndex) -> Any:
    """The value of a name. ValueError: there is none, or it is in no pieces."""
    if index.fqn not in state_dict:
        raise ValueError(f"Could not find FQN: '{index.fqn}'")
    value = state_dict[index.fqn]
    if isinstance(value, Tensor):
        return find_tensor_shard(value, index)
    if index.offset is not None:
        _not_a_piece(index)
    return value


def _element_wise_add(a: Sequence[int], b: Sequence[int]) -> list[int]:
    """The sums of elements."""
    return [i + j for i, j in zip(a, b, strict=True)]


def _element_wise_sub(a: Sequence[int], b: Sequence[int]) -> list[int]:
    """The differences of elements."""
    return [i - j for i, j in zip(a, b, strict=True)]


class _ReaderView(io.RawIOBase):
    """A part of a file, as a file."""

    def __init__(self, base_stream: Any, offset: int, len: int) -> None:
        super().__init__()
        self.base_stream, self.offset, self.len, self._at = base_stream, offset, len, 0

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Goes to a place, counted from the beginning of the part."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.len}[whence]
        self._at = max(start + offset, 0)
        return self._at

    def tell(self) -> int:
        """The place."""
        return self._at

    def readable(self) -> bool:
        """Whether the file can be read."""
        return bool(self.base_stream.readable())

    def seekable(self) -> bool:
        """Whether places can be gone to."""
        return bool(self.base_stream.seekable())

    def readinto(self, b: Any) -> int:
        """Reads into a buffer."""
        view = memoryview(b).cast("B")
        count = min(len(view), max(self.len - self._at, 0))
        self.base_stream.seek(self.offset + self._at)
        read = self.base_stream.readinto(view[:count])
        self._at += read
        return int(read)


def _create_file_view(file: Any, offset: int, length: int) -> Any:
    """A part of a file, as a file."""
    return _ReaderView(file, offset, length)
