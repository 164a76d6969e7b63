"""Where PyTorch keeps the parts of its loaders, for programs that import them from there."""

import atexit
import importlib.util

from .._processes import STATUS_INTERVAL as MP_STATUS_CHECK_INTERVAL
from . import collate, fetch, pin_memory, signal_handling, worker

__all__ = ["MP_STATUS_CHECK_INTERVAL", "collate", "fetch", "pin_memory", "signal_handling", "worker"]

HAS_NUMPY = importlib.util.find_spec("numpy") is not None
# Whether Python is ending: loaders then leave their workers alone.
python_exit_status = False


@atexit.register
def _set_python_exit_flag() -> None:
    global python_exit_status
    python_exit_status = True
