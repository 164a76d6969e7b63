"""`rustgrad.cpu`: the CPU by the functions that other devices have. Ops run when they are called, so there is nothing to wait for."""

from __future__ import annotations

import os
import platform
from typing import Any

from .._absent import getattr_of
from .._typing import DeviceLike
from . import amp as amp

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "amp",
    "current_device",
    "current_stream",
    "device_count",
    "get_capabilities",
    "is_available",
    "is_initialized",
    "set_device",
    "stream",
    "synchronize",
]


class Stream:
    """The one order of calls on the CPU: programs written for any device need no case for it."""

    def __init__(self, priority: int = -1) -> None:
        pass

    def wait_stream(self, stream: Stream) -> None:
        """No effect: what was called has run."""

    def record_event(self) -> None:
        """No effect."""

    def wait_event(self, event: Event) -> None:
        """No effect."""

    def synchronize(self) -> None:
        """No effect."""


class Event:
    """A point in the order of calls; what lies before it has run."""

    def __init__(self, enable_timing: bool = False) -> None:
        pass

    def query(self) -> bool:
        """True: what lies before the event has run."""
        return True

    def record(self, stream: Stream | None = None) -> None:
        """No effect."""

    def synchronize(self) -> None:
        """No effect."""

    def wait(self, stream: Stream | None = None) -> None:
        """No effect."""


class StreamContext:
    """`with stream(s):` a block without effect."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        pass


_stream = Stream()


def stream(stream: Stream) -> StreamContext:
    """`with stream(s):` a block without effect."""
    return StreamContext(stream)


def current_stream(device: DeviceLike | None = None) -> Stream:
    """The one stream."""
    return _stream


def is_available() -> bool:
    """True."""
    return True


def is_initialized() -> bool:
    """True."""
    return True


def synchronize(device: DeviceLike | None = None) -> None:
    """No effect: what was called has run."""


def device_count() -> int:
    """1."""
    return 1


def current_device() -> str:
    """ "cpu"."""
    return "cpu"


def set_device(device: DeviceLike) -> None:
    """No effect: there is one CPU."""


def get_capabilities() -> dict[str, Any]:
    """The architecture, and the number of processors this process may use."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"architecture": platform.machine(), "num_processors": count}


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
