"""`Join`: a block in which processes may have inputs of different lengths. One process joins at the end, and no other works on."""

from __future__ import annotations

import abc
from types import TracebackType
from typing import Any

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """What a class does for the processes that have more inputs: nothing, unless a subclass defines it."""

    def main_hook(self) -> None:
        """Called for each further iteration of another process."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Called when all processes are at the end; the last one to get there may have what others need."""


class Joinable(abc.ABC):
    """What takes part in a `Join`."""

    @abc.abstractmethod
    def __init__(self) -> None:
        super().__init__()

    @abc.abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook of this object; it gets the keyword arguments of `Join`."""

    @property
    @abc.abstractmethod
    def join_device(self) -> Any:
        """The device of its collectives."""

    @property
    @abc.abstractmethod
    def join_process_group(self) -> Any:
        """The group of its collectives."""


class Join:
    """A block whose end calls the `post_hook` of each object.

    Args:
        joinables (list of Joinable): the objects.
        enable (bool): False for inputs of equal lengths: nothing is called.
        throw_on_early_termination (bool): accepted; there is no process that could be early.
        **kwargs: what `join_hook` of each object gets.

    Raises:
        ValueError: no objects.
    """

    def __init__(
        self, joinables: list[Joinable], enable: bool = True, throw_on_early_termination: bool = False, **kwargs: Any
    ) -> None:
        if len(joinables) == 0:
            raise ValueError("The join context manager requires at least one joinable")
        self._hooks = [joinable.join_hook(**kwargs) for joinable in joinables]
        self._enable = enable

    def __enter__(self) -> None: ...

    def __exit__(
        self, type: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._enable and type is None:
            for hook in self._hooks:
                hook.post_hook(True)

    @staticmethod
    def notify_join_context(joinable: Joinable) -> None:
        """None: there is no process that would have to be told of an iteration."""


def __dir__() -> list[str]:
    return __all__
