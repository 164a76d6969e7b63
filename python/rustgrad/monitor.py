"""`rustgrad.monitor`: figures of a program over windows of time, and events that handlers of the program receive."""

from __future__ import annotations

import contextlib
import datetime
import enum
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ._absent import getattr_of

__all__ = [
    "STAT_EVENT",
    "Aggregation",
    "Event",
    "EventHandlerHandle",
    "Stat",
    "TensorboardEventHandler",
    "data_value_t",
    "log_event",
    "register_event_handler",
    "unregister_event_handler",
]

STAT_EVENT = "torch.monitor.Stat"
_UNBOUNDED = (1 << 63) - 1


class Aggregation(enum.Enum):
    """What a `Stat` makes of the numbers of a window."""

    VALUE = 1
    MEAN = 2
    COUNT = 3
    SUM = 4
    MAX = 5
    MIN = 6

    def __repr__(self) -> str:
        return f"<Aggregation.{self.name}: {self.value}>"


class data_value_t:
    """The type of what an event holds: str, float, int or bool."""


class Event:
    """Something that happened.

    Args:
        name (str): what it is.
        timestamp (datetime): when it happened.
        data (dict): {name: str, float or int}; a bool becomes a float.

    TypeError for other types.
    """

    def __init__(self, name: str, timestamp: datetime.datetime, data: Mapping[str, Any]) -> None:
        if not isinstance(name, str) or not isinstance(timestamp, datetime.datetime):
            raise TypeError(
                f"Event: expected a str and a datetime, got {type(name).__name__}, {type(timestamp).__name__}"
            )
        for key, value in data.items():
            if not isinstance(key, str) or not isinstance(value, (str, float, int)):
                raise TypeError(
                    f"Event: expected str, float or int as the value of {key!r}, got {type(value).__name__}"
                )
        self.name, self.timestamp = name, timestamp
        self.data = {k: float(v) if isinstance(v, bool) else v for k, v in data.items()}


class EventHandlerHandle:
    """What `register_event_handler` returns, for `unregister_event_handler`."""

    def __init__(self, handler: Callable[[Event], Any]) -> None:
        self._handler = handler


_handlers: list[EventHandlerHandle] = []


def register_event_handler(callback: Callable[[Event], Any]) -> EventHandlerHandle:
    """Has `callback(event)` called with each event from now on, in the thread that logs it."""
    handle = EventHandlerHandle(callback)
    _handlers.append(handle)
    return handle


def unregister_event_handler(handler: EventHandlerHandle) -> None:
    """Has a handler called no more."""
    if handler in _handlers:
        _handlers.remove(handler)


def log_event(event: Event) -> None:
    """Gives an event to all handlers; what they raise comes out here. TypeError for what is no event."""
    if not isinstance(event, Event):
        raise TypeError(f"log_event: expected an Event, got {type(event).__name__}")
    for handle in list(_handlers):
        handle._handler(event)


class Stat:
    """Numbers, put together over windows of time. A window that ends is logged as an event with `"name.sum"` and the like.

    Args:
        name (str): the name of the figure.
        aggregations (iterable of Aggregation): what is made of the numbers.
        window_size (timedelta): how long a window is.
        max_samples (int): after so many numbers a window is logged, and takes no more until the next begins.

    ValueError for a window without length, TypeError for another kind of aggregation.
    """

    def __init__(
        self,
        name: str,
        aggregations: Iterable[Aggregation],
        window_size: datetime.timedelta,
        max_samples: int = _UNBOUNDED,
    ) -> None:
        self.name, self._kinds = name, frozenset(aggregations)
        if not all(isinstance(kind, Aggregation) for kind in self._kinds):
            raise TypeError("Stat: expected aggregations of the class Aggregation")
        self._length = window_size.total_seconds()
        if self._length <= 0:
            raise ValueError(f"Stat: window_size has no length; expected more than zero, got {window_size}")
        self._most, self._lock = max_samples, threading.RLock()
        self._window, self._logged = self._now(), -1
        self._values: list[float] = []
        self._figures = self._made([])

    def _now(self) -> int:
        return int(time.monotonic() / self._length)

    def _made(self, values: list[float]) -> dict[Aggregation, float]:
        """What a window comes to; a last value has no figure."""
        total = math.fsum(values)
        figures = {
            Aggregation.MIN: min(values, default=0.0),
            Aggregation.MAX: max(values, default=0.0),
            Aggregation.SUM: total,
            Aggregation.COUNT: float(len(values)),
            Aggregation.MEAN: total / len(values) if values else 0.0,
        }
        return {kind: value for kind, value in figures.items() if kind in self._kinds}

    @property
    def count(self) -> int:
        """How many numbers the window has that is open."""
        return len(self._values)

    def add(self, v: float) -> None:
        """Takes a number; logs the window before if that has ended."""
        with self._lock:
            now = self._now()
            if now != self._window:
                self._close()
                self._window = now
            if self._logged == now:
                return
            self._values.append(float(v))
            if len(self._values) >= self._most:
                self._close()
                self._logged = now

    def get(self) -> dict[Aggregation, float]:
        """The figures of the last window that was closed."""
        return dict(self._figures)

    def _close(self) -> None:
        """Ends the window and logs it, if there is anything in it."""
        if not self._values:
            return
        self._figures, self._values = self._made(self._values), []
        data = {f"{self.name}.{kind.name.lower()}": value for kind, value in self._figures.items()}
        log_event(Event(STAT_EVENT, datetime.datetime.now(), data))

    def __del__(self) -> None:
        if getattr(self, "_values", None):
            self._close()


class TensorboardEventHandler:
    """A handler that writes the figures of `Stat`s as scalars.

    Args:
        writer (SummaryWriter): of `utils.tensorboard`.
    """

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def __call__(self, event: Event) -> None:
        if event.name == STAT_EVENT:
            for name, value in event.data.items():
                self._writer.add_scalar(name, value, walltime=event.timestamp.timestamp())


class _WaitCounter:
    """A counter of waiting times, which nobody reads."""

    def __init__(self, key: str) -> None:
        self._key = key

    @contextlib.contextmanager
    def guard(self) -> Iterator[None]:
        """A block that is waited for."""
        yield


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
