"""Pipes that make several streams of one: all samples for each (`fork`), or each sample for one of them (`demux`).

The children of one call share a main pipe, which reads the source once and keeps what some of them have not read yet. So they
share the rule of one live iterator too: a second iterator of a child starts the main pipe again, and with it all children.
"""

from __future__ import annotations

import copy
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeVar

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import StreamWrapper, _check_unpickable_fn

__all__ = ["DemultiplexerIterDataPipe", "ForkerIterDataPipe"]

_T_co = TypeVar("_T_co", covariant=True)


def _check_count(num_instances):
    if num_instances < 1:
        raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")


def _check_size(buffer_size, form):
    if buffer_size < 0:
        warnings.warn(
            f"Unlimited buffer size is set for `{form}`, please be aware of OOM at random places", stacklevel=4
        )


def _no_op(x):
    return x


class _MainDataPipe(IterDataPipe[Any]):
    """What the children share: the iterator of the source, and which children are being read."""

    # A copy starts from the beginning.
    _transient = ("_datapipe_iterator", "_child_stop", "_exhausted", "buffer", "_positions")

    def __init__(self, datapipe: IterDataPipe[Any], num_instances: int, buffer_size: int) -> None:
        self.main_datapipe = datapipe
        self.num_instances = num_instances
        self.buffer_size = buffer_size
        self._start_anew()

    def _start_anew(self):
        self._datapipe_iterator: Iterator[Any] | None = None
        self._child_stop = [True] * self.num_instances
        self._exhausted = False
        self._clear()

    def _clear(self):
        raise NotImplementedError

    def _next_of(self, instance_id):
        """The next sample of a child; StopIteration after the last one."""
        raise NotImplementedError

    def get_next_element_by_instance(self, instance_id: int) -> Iterator[Any]:
        """The stream of a child, which reads the source as far as it needs."""
        if self._datapipe_iterator is None and self._child_stop[instance_id]:
            self._datapipe_iterator = iter(self.main_datapipe)
            self._child_stop = [False] * self.num_instances
        # The list of this round: an iterator of a former one may be closed at any time.
        stop = self._child_stop
        try:
            while not stop[instance_id]:
                try:
                    sample = self._next_of(instance_id)
                except StopIteration:
                    break
                yield sample
        finally:
            stop[instance_id] = True
            if stop is self._child_stop and all(stop):
                self._datapipe_iterator = None
                self._clear()

    def _read(self):
        """The next sample of the source; StopIteration after the last one."""
        if self._exhausted or self._datapipe_iterator is None:
            raise StopIteration
        try:
            return next(self._datapipe_iterator)
        except StopIteration:
            self._exhausted = True
            raise

    def is_every_instance_exhausted(self) -> bool:
        """Whether all children have read their last sample."""
        return self._exhausted and all(self._child_stop)

    def reset(self) -> None:
        self._start_anew()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start_anew()


class _ChildDataPipe(IterDataPipe[Any]):
    """One of the streams."""

    _is_child_datapipe = True

    def __init__(self, main_datapipe: _MainDataPipe, instance_id: int) -> None:
        self.main_datapipe = main_datapipe
        self.instance_id = instance_id

    def __iter__(self) -> Iterator[Any]:
        return self.main_datapipe.get_next_element_by_instance(self.instance_id)

    def __len__(self) -> int:
        return len(self.main_datapipe)

    def _set_main_datapipe_valid_iterator_id(self):
        """The number of the children's round: a new one if this child is in the present one."""
        main = self.main_datapipe
        if main._valid_iterator_id is None:
            main._valid_iterator_id = 0
            main.reset()
        elif main._valid_iterator_id == self._valid_iterator_id:
            main._valid_iterator_id += 1
            if not main.is_every_instance_exhausted():
                warnings.warn(
                    "Some child DataPipes are not exhausted when __iter__ is called. We are resetting "
                    "the buffer and each child DataPipe will read from the start again.",
                    stacklevel=2,
                )
            main.reset()
        self.reset()
        self._valid_iterator_id = main._valid_iterator_id
        return self._valid_iterator_id

    def _check_valid_iterator_id(self, iterator_id):
        return iterator_id == self._valid_iterator_id == self.main_datapipe._valid_iterator_id


class _ForkerIterDataPipe(_MainDataPipe):
    """The main pipe of `fork`: samples that the slowest child has not read yet are kept."""

    def __init__(
        self,
        datapipe: IterDataPipe[Any],
        num_instances: int,
        buffer_size: int = 1000,
        copy: Literal["shallow", "deep"] | None = None,
    ) -> None:
        super().__init__(datapipe, num_instances, buffer_size)
        self.copy_fn = _copy_function(copy)

    def _clear(self):
        StreamWrapper.close_streams(list(getattr(self, "buffer", ())))
        self.buffer: deque[Any] = deque()
        # How far each child is ahead of the first sample in the buffer.
        self._positions = [0] * self.num_instances

    def _next_of(self, instance_id):
        position = self._positions[instance_id]
        if position == len(self.buffer):
            self.buffer.append(self._read())
        sample = self.buffer[position]
        self._positions[instance_id] += 1
        if min(self._positions) > 0:
            self.buffer.popleft()
            self._positions = [p - 1 for p in self._positions]
        if 0 <= self.buffer_size < len(self.buffer):
            raise BufferError(f"ForkerIterDataPipe buffer overflow, buffer size {self.buffer_size} is insufficient.")
        return self.copy_fn(sample)

    def __len__(self) -> int:
        return len(self.main_datapipe)


def _copy_function(kind):
    functions = {None: _no_op, "shallow": copy.copy, "deep": copy.deepcopy}
    if kind not in functions:
        raise ValueError(f"Unknown copy method `{kind}` requested, choose one of None, `shallow` or `deep`.")
    return functions[kind]


@functional_datapipe("fork")
class ForkerIterDataPipe(IterDataPipe[Any]):
    """Several pipes with all samples of one (functional name: ``fork``).

    Args:
        datapipe (IterDataPipe): the source.
        num_instances (int): number of pipes; for 1 the source itself is returned.
        buffer_size (int): how far a pipe may be ahead of the slowest; negative for any distance.
        copy (str, optional): "shallow" or "deep" copies of the samples; by default all pipes yield the same objects.

    Raises:
        ValueError: `num_instances` is not positive, or `copy` is something else.
        BufferError (while iterating): a pipe is too far ahead.

    Example:
        >>> a, b = IterableWrapper(range(3)).fork(num_instances=2)
        >>> list(a), list(b)
        ([0, 1, 2], [0, 1, 2])
    """

    def __new__(  # type: ignore[misc]
        cls,
        datapipe: IterDataPipe[Any],
        num_instances: int,
        buffer_size: int = 1000,
        copy: Literal["shallow", "deep"] | None = None,
    ) -> IterDataPipe[Any] | list[_ChildDataPipe]:
        _check_count(num_instances)
        if num_instances == 1:
            return datapipe
        _check_size(buffer_size, "fork")
        main = _ForkerIterDataPipe(datapipe, num_instances, buffer_size, copy)
        return [_ChildDataPipe(main, i) for i in range(num_instances)]


class _DemultiplexerIterDataPipe(_MainDataPipe):
    """The main pipe of `demux`: samples wait for the child that they belong to."""

    def __init__(
        self,
        datapipe: IterDataPipe[Any],
        num_instances: int,
        classifier_fn: Callable[[Any], int | None],
        drop_none: bool,
        buffer_size: int,
    ) -> None:
        super().__init__(datapipe, num_instances, buffer_size)
        self.classifier_fn = classifier_fn
        self.drop_none = drop_none

    def _clear(self):
        for waiting in getattr(self, "buffer", ()):
            StreamWrapper.close_streams(list(waiting))
        self.buffer: list[deque[Any]] = [deque() for _ in range(self.num_instances)]

    def _next_of(self, instance_id):
        if self.buffer[instance_id]:
            return self.buffer[instance_id].popleft()
        while True:
            sample = self._read()
            which = self.classifier_fn(sample)
            if which is None and self.drop_none:
                StreamWrapper.close_streams(sample)
                continue
            if which is None or which < 0 or which >= self.num_instances:
                raise ValueError(
                    f"Output of the classification fn should be between 0 and {self.num_instances - 1}. "
                    f"{which} is returned."
                )
            if which == instance_id:
                return sample
            self.buffer[which].append(sample)
            if 0 <= self.buffer_size < sum(map(len, self.buffer)):
                raise BufferError(
                    f"DemultiplexerIterDataPipe buffer overflow, buffer size {self.buffer_size} is insufficient."
                )

    def __len__(self) -> int:
        raise TypeError("the children of `demux` have no length: which samples they get is not known")


@functional_datapipe("demux")
class DemultiplexerIterDataPipe(IterDataPipe[Any]):
    """Several pipes, each with the samples that a function gives it (functional name: ``demux``).

    Args:
        datapipe (IterDataPipe): the source.
        num_instances (int): number of pipes.
        classifier_fn (callable): of a sample, the number of the pipe that gets it, or None.
        drop_none (bool): leave out samples for which it returns None.
        buffer_size (int): how many samples may wait for their pipe to be read; negative for any number.

    Raises:
        ValueError: `num_instances` is not positive; while iterating, there is no such pipe.
        BufferError (while iterating): too many samples wait.

    Example:
        >>> even, odd = IterableWrapper(range(5)).demux(num_instances=2, classifier_fn=lambda x: x % 2)
        >>> list(even), list(odd)
        ([0, 2, 4], [1, 3])
    """

    def __new__(  # type: ignore[misc]
        cls,
        datapipe: IterDataPipe[Any],
        num_instances: int,
        classifier_fn: Callable[[Any], int | None],
        drop_none: bool = False,
        buffer_size: int = 1000,
    ) -> list[_ChildDataPipe]:
        _check_count(num_instances)
        _check_unpickable_fn(classifier_fn)
        _check_size(buffer_size, "demux")
        main = _DemultiplexerIterDataPipe(datapipe, num_instances, classifier_fn, drop_none, buffer_size)
        return [_ChildDataPipe(main, i) for i in range(num_instances)]
