"""`rustgrad.cpu`: the functions of a device module, for programs that treat the CPU as one among several devices."""

from __future__ import annotations

from contextlib import nullcontext as _nullcontext

from . import amp as amp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Any

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "amp",
    "current_device",
    "current_stream",
    "device_count",
    "is_available",
    "is_initialized",
    "set_device",
    "stream",
    "synchronize",
]


class Stream:
    """The CPU's only stream: work is done when a call returns."""

    def __init__(self, priority: int = -1) -> None:
        pass

    def wait_stream(self, stream: Stream) -> None:
        """Returns: nothing is ever pending."""

    def record_event(self) -> None:
        """Returns: nothing is ever pending."""

    def wait_event(self, event: Event) -> None:
        """Returns: nothing is ever pending."""


class Event:
    """A point of the CPU's stream: always passed."""

    def query(self) -> bool:
        """True."""
        return True

    def record(self, stream: Stream | None = None) -> None:
        """Returns: nothing is ever pending."""

    def synchronize(self) -> None:
        """Returns: nothing is ever pending."""

    def wait(self, stream: Stream | None = None) -> None:
        """Returns: nothing is ever pending."""


StreamContext = _nullcontext
_stream = Stream()


def is_available() -> bool:
    """True."""
    return True


def is_initialized() -> bool:
    """True."""
    return True


def device_count() -> int:
    """1."""
    return 1


def current_device() -> str:
    """The string `"cpu"`."""
    return "cpu"


def set_device(device: Any) -> None:
    """Accepts any device: there is one CPU."""


def synchronize(device: Any = None) -> None:
    """Returns: calls on the CPU are done when they return."""


def current_stream(device: Any = None) -> Stream:
    """The only stream."""
    return _stream


def stream(stream: Stream) -> AbstractContextManager[Any]:
    """A context in which nothing changes."""
    return StreamContext(stream)


def __dir__() -> list[str]:
    return __all__
