"""Where PyTorch keeps `collate`, `pin_memory` and `worker`, for programs that import them from there."""

from .._processes import STATUS_INTERVAL as MP_STATUS_CHECK_INTERVAL
from . import collate, pin_memory, worker

__all__ = ["MP_STATUS_CHECK_INTERVAL", "collate", "pin_memory", "worker"]
