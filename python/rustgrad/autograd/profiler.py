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

    _profiler = "NVTX"

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled, self.record_shapes = enabled, record_shapes

    def __enter__(self) -> emit_nvtx | None:
        if not self.enabled:
            return None
        raise RuntimeError(
            f"{type(self).__name__}: there is no {self._profiler} in rustgrad. Hint: profiler.profile records calls and times."
        )

    def __exit__(self, exc_type: object, exc_val: object, exc_tb: object) -> None: ...


class emit_itt(emit_nvtx):
    """`emit_nvtx` for Intel's profiler."""

    _profiler = "ITT"


class KinetoStepTracker:
    """Counts the steps of optimizers and loops, each under its name; the current step is the greatest of them."""

    _current = 0
    _steps: dict[str, int] = {}

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        """Counts for another name, from the current step on."""
        cls._steps[requester] = cls._current

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        """Forgets a name; False if it was not there."""
        return cls._steps.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester: str) -> int:
        """Counts a step of a name; returns the current step."""
        cls._steps[requester] = cls._steps.get(requester, cls._current) + 1
        cls._current = max(cls._current, *cls._steps.values())
        return cls._current

    @classmethod
    def current_step(cls) -> int:
        """The current step."""
        return cls._current
