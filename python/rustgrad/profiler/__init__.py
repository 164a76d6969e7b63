"""`rustgrad.profiler`: which ops a block of code calls, how often, and for how long."""

from __future__ import annotations

from .._absent import getattr_of
from ._events import EventList, FunctionEvent, FunctionEventAvg
from ._profile import (
    ProfilerAction,
    ProfilerActivity,
    profile,
    record_function,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

__all__ = [
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


def kineto_available() -> bool:
    """False: the profiler is rustgrad's own."""
    return False


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
