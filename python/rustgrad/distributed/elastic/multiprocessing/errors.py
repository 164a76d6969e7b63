"""What `distributed.run` tells of a process that failed."""

from __future__ import annotations

import dataclasses
import signal
from collections.abc import Callable
from typing import Any, TypeVar

from ...._absent import getattr_of

__all__ = ["ChildFailedError", "ProcessFailure", "record"]

_F = TypeVar("_F", bound=Callable[..., Any])


@dataclasses.dataclass
class ProcessFailure:
    """A process that failed: its number on its machine, its id, and its exit code, negative for a signal."""

    local_rank: int
    pid: int
    exitcode: int

    def signal_name(self) -> str:
        """The name of the signal that ended it, or "<N/A>"."""
        try:
            return signal.Signals(-self.exitcode).name if self.exitcode < 0 else "<N/A>"
        except ValueError:
            return f"<Unknown signal {-self.exitcode}>"

    def __repr__(self) -> str:
        how = f"signal {self.signal_name()}" if self.exitcode < 0 else f"exit code {self.exitcode}"
        return f"local_rank {self.local_rank} (pid {self.pid}) ended with {how}"


class ChildFailedError(Exception):
    """Processes of a job have failed.

    Args:
        name (str): what ran.
        failures (dict): for each rank its `ProcessFailure`; empty where they are on other machines.
    """

    def __init__(self, name: str = "", failures: dict[int, ProcessFailure] | None = None) -> None:
        self.name, self.failures = name, failures or {}
        told = [f"rank {rank}, {failure}" for rank, failure in self.failures.items()]
        super().__init__(f"{name} FAILED: {'; '.join(told) or 'on another machine'}")


def record(fn: _F, error_handler: Any = None) -> _F:
    """The function itself: what it raises goes to its caller."""
    return fn


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
