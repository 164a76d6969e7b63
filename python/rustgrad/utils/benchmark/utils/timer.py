"""`Timer`, where PyTorch keeps it."""

from .._timer import Language, Timer, timer

__all__ = ["Language", "Timer", "timer"]
