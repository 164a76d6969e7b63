"""`rustgrad.profiler`: which ops a block of code calls, how often, and for how long."""

from __future__ import annotations

import importlib
from typing import Any

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


def __getattr__(name: str) -> Any:
    if name == "itt":
        return importlib.import_module(f"{__name__}.itt")
    return _elsewhere(name)


_elsewhere = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
