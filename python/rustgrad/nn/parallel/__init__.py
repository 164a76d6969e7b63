"""`rustgrad.nn.parallel`: wrappers for several devices, with one, and for several processes.

`DistributedDataParallel` is imported when it is asked for: it needs the modules of `distributed`.
"""

import importlib
from typing import TYPE_CHECKING

from ..._absent import getattr_of as _getattr_of
from .data_parallel import DataParallel, data_parallel
from .replicate import parallel_apply, replicate
from .scatter_gather import gather, scatter

if TYPE_CHECKING:
    from .distributed import DistributedDataParallel

__all__ = [
    "DataParallel",
    "DistributedDataParallel",
    "data_parallel",
    "gather",
    "parallel_apply",
    "replicate",
    "scatter",
]


def __getattr__(name: str) -> object:
    if name in ("DistributedDataParallel", "distributed"):
        module = importlib.import_module(f"{__name__}.distributed")
        globals()["DistributedDataParallel"] = module.DistributedDataParallel
        return module if name == "distributed" else module.DistributedDataParallel
    return _elsewhere(name)


_elsewhere = _getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
