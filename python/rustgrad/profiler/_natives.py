"""`torch._C._profiler`: names that libraries import."""

from __future__ import annotations

from typing import Any

__all__: list[str] = []


class _ExperimentalConfig:
    """Settings of PyTorch's tracer. A profiler takes them, records nothing of the kind, and warns of it.

    Args:
        settings: by name, kept as attributes.
    """

    def __init__(self, *values: Any, **settings: Any) -> None:
        self.values = values
        vars(self).update(settings)
