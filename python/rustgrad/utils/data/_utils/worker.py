"""`get_worker_info` and `WorkerInfo` under the module name of PyTorch."""

from ...._absent import getattr_of
from .._worker import WorkerInfo as WorkerInfo
from .._worker import get_worker_info as get_worker_info

__all__ = ["WorkerInfo", "get_worker_info"]

__getattr__ = getattr_of(__name__)
