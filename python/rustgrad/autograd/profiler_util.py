"""Where PyTorch keeps the events of its profiler and how their times are written: those of `profiler`."""

from __future__ import annotations

from ..profiler._events import EventList, FunctionEvent, FunctionEventAvg
from ..profiler._events import format_time as _format_time  # noqa: F401

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "Interval"]


def _format_time_share(time_us: float, total_time_us: float) -> str:
    """A time in percent of a total."""
    if total_time_us == 0:
        if time_us != 0:
            raise AssertionError(f"Expected time_us == 0 but got {time_us}")
        return "NaN"
    return f"{time_us * 100.0 / total_time_us:.2f}%"


def _format_memory(nbytes: int) -> str:
    """Bytes with a unit that fits."""
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(nbytes) >= size:
            return f"{nbytes / size:.2f} {unit}"
    return f"{nbytes} B"


class Interval:
    """A time from `start` to `end`, in microseconds."""

    def __init__(self, start: float, end: float) -> None:
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        """Its length."""
        return self.end - self.start


def __dir__() -> list[str]:
    return __all__
