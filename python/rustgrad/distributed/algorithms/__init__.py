"""`rustgrad.distributed.algorithms`: `Join`, and communication hooks of `DistributedDataParallel`."""

from . import ddp_comm_hooks as ddp_comm_hooks
from . import join as join

__all__ = ["ddp_comm_hooks", "join"]


def __dir__() -> list[str]:
    return __all__
