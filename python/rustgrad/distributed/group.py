"""The process group of one process: `init_process_group`, and what programs ask about it."""

from __future__ import annotations

import enum
import os
from typing import Any

from .._C import Tensor

__all__ = [
    "Backend",
    "GroupMember",
    "P2POp",
    "ProcessGroup",
    "ReduceOp",
    "Work",
    "destroy_process_group",
    "get_backend",
    "get_global_rank",
    "get_group_rank",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "is_initialized",
    "new_group",
]


class ReduceOp(enum.Enum):
    """How `all_reduce` and its kin combine the tensors of the processes."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7


class Work:
    """The handle of a collective with `async_op=True`, which is complete when it returns."""

    def wait(self, timeout: Any = None) -> bool:
        """True: it is complete."""
        return True

    def is_completed(self) -> bool:
        """True: it is complete."""
        return True

    def is_success(self) -> bool:
        """True: it did not fail."""
        return True

    def exception(self) -> None:
        """None: it did not fail."""


class Backend(str):
    """The name of a way in which processes communicate, in lower case; a name is all that it is here."""

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    MPI = "mpi"
    XCCL = "xccl"

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return super().__new__(cls, name.lower())


class ProcessGroup:
    """A group of one process."""

    def __init__(self, backend: str) -> None:
        self._backend = backend

    def rank(self) -> int:
        """0: the number of this process."""
        return 0

    def size(self) -> int:
        """1: the number of processes."""
        return 1

    def name(self) -> str:
        """The name that `init_process_group` was given."""
        return self._backend


class _GroupMeta(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The default group; None before `init_process_group`."""
        return _default


class group(metaclass=_GroupMeta):
    """`group.WORLD`: the default process group."""


class GroupMember(metaclass=_GroupMeta):
    """`GroupMember.WORLD`: the default process group; `NON_GROUP_MEMBER` stands for a group without this process."""

    NON_GROUP_MEMBER = -100


class P2POp:
    """A transfer between two processes, of which there are none.

    Raises:
        RuntimeError: always.
    """

    def __init__(self, op: Any, tensor: Tensor, peer: int | None = None, group: Any = None, tag: int = 0) -> None:
        raise RuntimeError("P2POp: the process group has one process; expected a peer. Transfers are not supported.")


_default: ProcessGroup | None = None


def is_initialized() -> bool:
    """Whether `init_process_group` was called."""
    return _default is not None


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: Any = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Creates the default process group, of this process alone.

    Args:
        backend (str): a name, which `get_backend` returns. No library of that name is used.
        world_size, rank (int): by default the environment variables WORLD_SIZE and RANK, or 1 and 0.
        The other arguments are about communication, of which there is none.

    Raises:
        ValueError: there is a group already, or the rank is out of range.
        NotImplementedError: the world size is larger than 1.
    """
    global _default
    if _default is not None:
        raise ValueError("trying to initialize the default process group twice!")
    size = int(os.environ.get("WORLD_SIZE", "1")) if world_size < 0 else world_size
    number = int(os.environ.get("RANK", "0")) if rank < 0 else rank
    if size != 1:
        raise NotImplementedError(
            f"init_process_group: there is no communication between processes; expected a world size of 1, got {size}. "
            "Use rustgrad.multiprocessing and shared memory on one machine."
        )
    if number != 0:
        raise ValueError(f"init_process_group: rank {number} is out of range; expected 0 in a world of 1.")
    _default = ProcessGroup(str(backend or "undefined").lower())


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Ends a group; without an argument the default one. ValueError if there is none."""
    global _default
    ended = _checked(group)
    if ended is _default:
        _default = None


def _checked(group):
    """The group itself, or the default one; ValueError if there is none."""
    if group is None:
        if _default is None:
            raise ValueError(
                "Default process group has not been initialized, please make sure to call init_process_group."
            )
        return _default
    if not isinstance(group, ProcessGroup):
        raise TypeError(f"expected a ProcessGroup, got {type(group).__name__}")
    return group


def get_rank(group: ProcessGroup | None = None) -> int:
    """0: the number of this process; ValueError without a group."""
    return _checked(group).rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """1: the number of processes; ValueError without a group."""
    return _checked(group).size()


def get_backend(group: ProcessGroup | None = None) -> str:
    """The name that `init_process_group` was given; ValueError without a group."""
    return _checked(group).name()


def new_group(
    ranks: list[int] | None = None,
    timeout: Any = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
) -> ProcessGroup | int:
    """A group of the processes `ranks`: of this one, or a group without it if the list is empty.

    Raises:
        ValueError: no default group, or a rank that is not 0.
    """
    world = _checked(None)
    for r in ranks or ():
        if r != 0:
            raise ValueError(f"new_group: rank {r} is out of range; expected 0 in a world of 1.")
    return GroupMember.NON_GROUP_MEMBER if ranks == [] else ProcessGroup(str(backend or world.name()))


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """[0]: the processes of a group; ValueError without one."""
    _checked(group)
    return [0]


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The number in a group of a process of the world; ValueError for any but 0."""
    _checked(group)
    if global_rank != 0:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return 0


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The number in the world of a process of a group; ValueError for any but 0."""
    _checked(group)
    if group_rank != 0:
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return 0
