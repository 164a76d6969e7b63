"""`rustgrad.nn.parallel`: wrappers for several devices, with one, and for several processes.

`DistributedDataParallel` is imported when it is asked for: it needs the modules of `distributed`.
"""

from typing import TYPE_CHECKING

from ..._absent import getattr_of
from .data_parallel import DataParallel, data_parallel
from .parallel_apply import parallel_apply
from .replicate import replicate
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


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
