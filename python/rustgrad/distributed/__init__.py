"""`rustgrad.distributed`: process groups of one process.

There is no communication between processes, so `is_available()` is False, and a group has one member: collectives over it
leave each tensor as it is, as they do in PyTorch with a world size of 1. A larger world is an error.
"""

from __future__ import annotations

import datetime
import os

from .._absent import getattr_of as _getattr_of
from .collectives import (
    all_gather,
    all_gather_into_tensor,
    all_gather_object,
    all_reduce,
    all_to_all,
    all_to_all_single,
    barrier,
    batch_isend_irecv,
    broadcast,
    broadcast_object_list,
    gather,
    gather_object,
    irecv,
    isend,
    monitored_barrier,
    recv,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
    scatter,
    scatter_object_list,
    send,
)
from .group import (
    Backend,
    GroupMember,
    P2POp,
    ProcessGroup,
    ReduceOp,
    Work,
    destroy_process_group,
    get_backend,
    get_global_rank,
    get_group_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_initialized,
    new_group,
)

__all__ = [
    "Backend",
    "GroupMember",
    "P2POp",
    "ProcessGroup",
    "ReduceOp",
    "Work",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "default_pg_timeout",
    "destroy_process_group",
    "gather",
    "gather_object",
    "get_backend",
    "get_global_rank",
    "get_group_rank",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "irecv",
    "is_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
    "isend",
    "monitored_barrier",
    "new_group",
    "recv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
]

default_pg_timeout: datetime.timedelta = datetime.timedelta(minutes=30)


def is_available() -> bool:
    """False: processes cannot exchange tensors by collectives."""
    return False


def is_gloo_available() -> bool:
    """False: there is no Gloo."""
    return False


def is_mpi_available() -> bool:
    """False: there is no MPI."""
    return False


def is_nccl_available() -> bool:
    """False: there is no NCCL."""
    return False


def is_ucc_available() -> bool:
    """False: there is no UCC."""
    return False


def is_xccl_available() -> bool:
    """False: there is no XCCL."""
    return False


def is_torchelastic_launched() -> bool:
    """Whether `torchrun` started this process."""
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


__getattr__ = _getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
