"""`rustgrad.distributed`: training over several processes, on one machine or several, which communicate over sockets.

`init_process_group` finds the other processes through a store (`stores.py`, `tcp_store.py`, `rendezvous.py`) and connects to
them (`connections.py`); collectives (`collectives.py`, `schedules.py`) and messages (`point_to_point.py`, `messages.py`)
then move the memory of tensors. `python -m rustgrad.distributed.run` starts the processes. See `docs/decisions/distributed.md`.
"""

from __future__ import annotations

import os
import warnings as _warnings

from .._absent import getattr_of as _getattr_of
from .barriers import (
    barrier,
    monitored_barrier,
)
from .collectives import (
    all_gather,
    all_gather_into_tensor,
    all_reduce,
    all_reduce_coalesced,
    all_to_all,
    all_to_all_single,
    broadcast,
    gather,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
    scatter,
)
from .errors import (
    DistBackendError,
    DistError,
    DistNetworkError,
    DistQueueEmptyError,
    DistStoreError,
)
from .group import (
    Backend,
    GroupMember,
    ProcessGroup,
    ReduceOp,
    Work,
    default_pg_timeout,
    destroy_process_group,
    get_backend,
    get_backend_config,
    get_default_backend_for_device,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_initialized,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
    split_group,
)
from .objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from .point_to_point import (
    P2POp,
    batch_isend_irecv,
    irecv,
    isend,
    recv,
    send,
)
from .rendezvous import (
    register_rendezvous_handler,
    rendezvous,
)
from .stores import (
    FileStore,
    HashStore,
    PrefixStore,
    Store,
)
from .tcp_store import (
    TCPStore,
)

__all__ = [
    "Backend",
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistQueueEmptyError",
    "DistStoreError",
    "FileStore",
    "GroupMember",
    "HashStore",
    "P2POp",
    "PrefixStore",
    "ProcessGroup",
    "ReduceOp",
    "Store",
    "TCPStore",
    "Work",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_reduce_coalesced",
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
    "get_backend_config",
    "get_default_backend_for_device",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
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
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "register_rendezvous_handler",
    "rendezvous",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
    "split_group",
]


def is_available() -> bool:
    """True: processes can exchange tensors."""
    return True


def is_gloo_available() -> bool:
    """True: the backend "gloo" is here, as sockets of this package."""
    return True


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


_refuse = _getattr_of(__name__)


def __getattr__(name):
    if name == "reduce_op":  # the old name, of which programs for PyTorch 1 read the members
        _warnings.warn(
            "`torch.distributed.reduce_op` is deprecated, please use `torch.distributed.ReduceOp` instead",
            FutureWarning,
            stacklevel=2,
        )
        return ReduceOp
    return _refuse(name)


def __dir__() -> list[str]:
    return __all__
