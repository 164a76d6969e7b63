"""The former names of `rustgrad.profiler`."""

from ..profiler._events import EventList, FunctionEvent, FunctionEventAvg
from ..profiler._profile import legacy_profile as profile
from ..profiler._profile import record_function

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "kineto_available", "profile", "record_function"]


def kineto_available() -> bool:
    """False: the profiler is rustgrad's own."""
    return False
