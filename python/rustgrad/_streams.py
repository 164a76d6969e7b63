"""`Stream` and `Event` of any device: work is done in the order in which it was called, so there is one stream.

On the CPU everything called has run. `cuda.Stream` and `cuda.Event` are classes of these.
"""

from __future__ import annotations

import time
from typing import Any

from . import _C
from ._C import device
from ._typing import DeviceLike, Self

__all__ = ["Event", "Stream"]


def _of(which: DeviceLike | None) -> device:
    """A device, by default the accelerator if there is one; RuntimeError for a GPU that is not there."""
    if which is None:
        which = "gpu" if _C._gpu_is_available() else "cpu"
    found = _C.device("gpu", which) if isinstance(which, int) else _C.device(which)
    if found.type == "gpu":
        _C._gpu_synchronize()
    return found


class Stream:
    """The order in which a device works. `with stream:` is a block without effect.

    Args:
        device: the accelerator by default, or the CPU where there is none.
        priority (int): accepted; there is nothing to go before.

    Raises:
        RuntimeError: there is no such GPU.
    """

    def __init__(self, device: DeviceLike | None = None, *, priority: int = 0) -> None:
        self.device = _of(device)

    def synchronize(self) -> None:
        """Waits for the device."""
        if self.device.type == "gpu":
            _C._gpu_synchronize()

    def query(self) -> bool:
        """Whether all work is done: True, after waiting for it."""
        self.synchronize()
        return True

    def wait_stream(self, stream: Stream) -> None:
        """No effect: there is one order."""

    def wait_event(self, event: Event) -> None:
        """No effect: there is one order."""

    def record_event(self, event: Event | None = None) -> Event:
        """An event after the work so far."""
        event = event or Event(self.device)
        event.record(self)
        return event

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        pass


class Event:
    """A point in the work of a device. Recording one with `enable_timing` waits for the device, so that time can be told.

    Raises:
        RuntimeError: there is no such GPU.
    """

    def __init__(
        self,
        device: DeviceLike | None = None,
        *,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
    ) -> None:
        self.device = _of(device)
        self._timed = enable_timing
        self._at: float | None = None

    def record(self, stream: Any = None) -> None:
        """Sets the point to where the work is now."""
        if self._timed:
            self.synchronize()
        self._at = time.perf_counter()

    def wait(self, stream: Any = None) -> None:
        """No effect: there is one order."""

    def query(self) -> bool:
        """Whether the work before the point is done: True, after waiting for it."""
        self.synchronize()
        return True

    def synchronize(self) -> None:
        """Waits for the work before the point."""
        if self.device.type == "gpu":
            _C._gpu_synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this point to another one.

        Raises:
            ValueError: an event was not recorded, or has no `enable_timing`.
        """
        if not (self._timed and end_event._timed):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._at is None or end_event._at is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return (end_event._at - self._at) * 1000
