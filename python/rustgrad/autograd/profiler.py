"""The former names of `rustgrad.profiler`."""

from __future__ import annotations

from ..profiler import kineto_available
from ..profiler._events import EventList, FunctionEvent, FunctionEventAvg
from ..profiler._profile import legacy_profile as profile
from ..profiler._profile import record_function

__all__ = [
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "emit_nvtx",
    "kineto_available",
    "profile",
    "record_function",
]


class emit_nvtx:
    """A context that would mark ops for NVIDIA's profiler: it refuses to be entered, unless `enabled` is False.

    Args:
        enabled, record_shapes (bool): as in PyTorch.
    """

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled, self.record_shapes = enabled, record_shapes

    def __enter__(self) -> emit_nvtx | None:
        if not self.enabled:
            return None
        raise RuntimeError("emit_nvtx: there is no NVTX in rustgrad. Hint: profiler.profile records calls and times.")

    def __exit__(self, exc_type: object, exc_val: object, exc_tb: object) -> None: ...
