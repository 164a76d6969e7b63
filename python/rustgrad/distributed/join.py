"""`Join`: a context for processes that have different numbers of inputs.

In each iteration every process says whether it still has inputs. One that has none calls the `main_hook` of each object in
the context in place of an iteration, until all have none.
"""

from __future__ import annotations

import abc
import warnings
from types import TracebackType
from typing import Any

from .._base import int32, tensor
from .collectives import all_reduce

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """What a process without inputs does."""

    def main_hook(self) -> None:
        """In each iteration of the others: the collectives that they call."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Once, when no process has inputs."""


class Joinable(abc.ABC):
    """A class whose objects may be in a `Join`."""

    _join_config: Any = None

    @abc.abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook of this object."""

    @property
    @abc.abstractmethod
    def join_device(self) -> Any:
        """The device of the tensors that are exchanged."""

    @property
    @abc.abstractmethod
    def join_process_group(self) -> Any:
        """The processes."""


class Join:
    """Lets some processes go on while others have no inputs left.

    Args:
        joinables (list of Joinable): each calls `Join.notify_join_context` once before its collectives of an iteration.
        enable (bool): False: does nothing.
        throw_on_early_termination (bool): raise in all processes as soon as one has no inputs.
        **kwargs: for the `join_hook` of each object.

    Raises:
        ValueError: no objects. RuntimeError: a process has no inputs, and `throw_on_early_termination` is True.
    """

    def __init__(
        self,
        joinables: list[Joinable],
        enable: bool = True,
        throw_on_early_termination: bool = False,
        **kwargs: Any,
    ) -> None:
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        self._joinables, self._enable, self._throw = joinables, enable, throw_on_early_termination
        self._hooks = [joinable.join_hook(**kwargs) for joinable in joinables]
        self._group = joinables[0].join_process_group
        self._last = 0

    def __enter__(self) -> Join:
        if self._enable:
            for joinable in self._joinables:
                joinable._join_config = self
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for joinable in self._joinables:
            joinable._join_config = None
        if not self._enable or kind is not None:
            return
        mine, iterations = True, 0
        for joinable in self._joinables:
            joinable._join_config = self  # For `source_rank`, which the hooks ask.
        try:
            while self._count(False):
                mine = False  # Others had inputs when this process had none.
                iterations += 1
                if self._throw:
                    raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
                if iterations == 1000:
                    warnings.warn(
                        "Detected uneven input skew of greater than 1000. This means that this process has at least 1000 "
                        "fewer inputs than others.",
                        stacklevel=2,
                    )
                for hook in self._hooks:
                    hook.main_hook()
            for hook in self._hooks:
                hook.post_hook(mine)
        finally:
            for joinable in self._joinables:
                joinable._join_config = None

    def _count(self, has_inputs):
        """How many processes have inputs in this iteration; the first of them is the one whose buffers count."""
        rank, size = self._group.rank(), self._group.size()
        flags = tensor([int(has_inputs and i == rank) for i in range(size)], dtype=int32)
        all_reduce(flags, group=self._group)
        active = [i for i, flag in enumerate(flags.tolist()) if flag]
        if active:
            self._last = active[0]
        return len(active)

    @staticmethod
    def notify_join_context(joinable: Joinable) -> None:
        """Says that this process has inputs. Of the objects of a context the first one speaks for all."""
        context = joinable._join_config
        if context is None or context._joinables[0] is not joinable:
            return
        if context._count(True) < context._group.size() and context._throw:
            raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")

    @staticmethod
    def source_rank(joinable: Joinable) -> int:
        """A process of the group that has inputs, or had some last."""
        context = joinable._join_config
        return 0 if context is None else context._last
