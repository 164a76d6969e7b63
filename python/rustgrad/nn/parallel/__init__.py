"""`rustgrad.nn.parallel`: wrappers for several devices, with one."""

from ..._absent import getattr_of
from .data_parallel import DataParallel, data_parallel
from .distributed import DistributedDataParallel
from .replicate import parallel_apply, replicate
from .scatter_gather import gather, scatter

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
