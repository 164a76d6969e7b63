"""The process groups of this process: `init_process_group`, `new_group`, and what programs ask about groups."""

from __future__ import annotations

import atexit
import datetime
import hashlib
import os
import warnings
from typing import Any

from . import rendezvous as _rendezvous
from .process_group import ProcessGroup
from .reductions import ReduceOp
from .stores import HashStore, PrefixStore, Store
from .work import Work

__all__ = [
    "Backend",
    "GroupMember",
    "ProcessGroup",
    "ReduceOp",
    "Work",
    "default_pg_timeout",
    "destroy_process_group",
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
    "is_initialized",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "split_group",
]

default_pg_timeout: datetime.timedelta = datetime.timedelta(minutes=30)


class Backend(str):
    """The name of a way in which processes communicate, in lower case. "gloo" stands for the sockets of this package."""

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    MPI = "mpi"
    XCCL = "xccl"
    backend_list = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI]
    default_device_backend_map = {"cpu": GLOO, "cuda": NCCL, "mps": GLOO}

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return super().__new__(cls, name.lower())


class _GroupMeta(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The default group; None before `init_process_group`."""
        return _world.default

    @WORLD.setter
    def WORLD(cls, value: ProcessGroup | None) -> None:
        _world.default = value


class group(metaclass=_GroupMeta):
    """`group.WORLD`: the default process group."""


class GroupMember(metaclass=_GroupMeta):
    """`GroupMember.WORLD`: the default process group; `NON_GROUP_MEMBER` stands for a group without this process."""

    NON_GROUP_MEMBER = -100


class _World:
    """The groups of this process, the default one and the store by which it was made."""

    def __init__(self) -> None:
        self.default: ProcessGroup | None = None
        self.store: Store | None = None
        self.groups: list[ProcessGroup] = []
        self.made = 0
        self.made_locally: dict[str, int] = {}

    def close(self) -> None:
        """Ends all groups."""
        groups, self.groups = self.groups, []
        self.default = self.store = None
        self.made, self.made_locally = 0, {}
        for each in reversed(groups):
            each._close()

    def forget(self) -> None:
        """In a forked process: the groups are its parent's."""
        groups, self.groups = self.groups, []
        self.default = self.store = None
        for each in groups:
            each._forget()


_world = _World()
atexit.register(_world.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_world.forget)


def is_initialized() -> bool:
    """Whether `init_process_group` was called."""
    return _world.default is not None


def _checked_backend(backend: str | None, size: int) -> str:
    """The name of the backend of tensors of the CPU; RuntimeError for one that is not here, unless it has nothing to do."""
    if backend is None:
        return "gloo"
    name = str(Backend(backend))
    if ":" in name:  # "cpu:gloo,cuda:nccl": a backend for each kind of device.
        pairs = dict(pair.split(":", 1) for pair in name.split(","))
        name = pairs.get("cpu", next(iter(pairs.values())))
    if name in ("gloo", "undefined", "fake"):
        return "gloo" if name == "undefined" else name
    if name in ("nccl", "mpi", "ucc", "xccl"):
        if size == 1:
            return name
        raise RuntimeError(
            f"Distributed package doesn't have {name.upper()} built in. Hint: use the backend 'gloo', whose sockets also "
            "carry tensors of a GPU."
        )
    raise AssertionError(f"Unknown backend type {backend}")


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: datetime.timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Creates the default process group; every process of the world calls it.

    Args:
        backend (str, optional): "gloo", the only one: sockets of this package. One process may name any.
        init_method (str, optional): how processes find each other: "env://" (the default), "tcp://host:port",
            "file:///path".
        timeout (timedelta, optional): how long a collective may take; 30 minutes.
        world_size, rank (int): the number of processes and of this one, where `init_method` does not say.
        store (Store, optional): a store that all processes share, in place of `init_method`.
        group_name, pg_options, device_id: accepted.

    Raises:
        ValueError: there is a group already, or a rank, size or address is missing or out of range.
        RuntimeError: the backend is not here.
        DistStoreError, DistNetworkError, DistBackendError: the other processes did not come in time.
    """
    if _world.default is not None:
        raise ValueError("trying to initialize the default process group twice!")
    limit = default_pg_timeout if timeout is None else timeout
    if not isinstance(limit, datetime.timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")
    name = _checked_backend(backend, int(os.environ.get("WORLD_SIZE", "-1")) if world_size < 0 else world_size)
    if store is not None and init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    if store is not None:
        if world_size <= 0:
            raise AssertionError("world_size must be positive if using store")
        if rank < 0:
            raise AssertionError("rank must be non-negative if using store")
    elif init_method is None and world_size == 1 and rank <= 0 and "MASTER_ADDR" not in os.environ:
        store, rank = HashStore(), 0  # One process needs no address.
    else:
        store, rank, world_size = next(_rendezvous.rendezvous(init_method or "env://", rank, world_size, timeout=limit))
    if not 0 <= rank < world_size:
        raise ValueError(f"init_process_group: rank {rank} is out of range for a world of {world_size}.")
    store.set_timeout(limit)
    # A store may serve one default group after another: each has keys of its own.
    turn = (store.add("default_pg/joined", 1) - 1) // world_size
    _world.store = PrefixStore(f"default_pg/{turn}", store)
    own = PrefixStore("world", _world.store)
    _world.default = ProcessGroup(list(range(world_size)), rank, own, limit, name, "0", "default_pg")
    _world.groups.append(_world.default)
    _world.default.bound_device_id = device_id


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Ends a group, without an argument the default one and with it all others.

    Raises:
        AssertionError: there is no default group. ValueError: the group has been ended before.
    """
    if group == GroupMember.NON_GROUP_MEMBER:
        return
    ended = _world.default if group is None else group
    if ended is None:
        raise AssertionError("Process group cannot be None")
    if ended is _world.default:
        _world.close()
    elif ended in _world.groups:
        _world.groups.remove(ended)
        ended._close()
    else:
        raise ValueError("Invalid process group specified")


def _checked(group):
    """The group itself, or the default one; ValueError if there is none."""
    if group is None:
        if _world.default is None:
            raise ValueError(
                "Default process group has not been initialized, please make sure to call init_process_group."
            )
        return _world.default
    if not isinstance(group, ProcessGroup):
        if group == GroupMember.NON_GROUP_MEMBER:
            raise ValueError("Invalid process group specified: this process is not in it")
        raise TypeError(f"expected a ProcessGroup, got {type(group).__name__}")
    return group


def _not_in_group(group: Any) -> bool:
    """Whether a group is one without this process."""
    return group is not None and not isinstance(group, ProcessGroup) and group == GroupMember.NON_GROUP_MEMBER


def _outside(group: Any, name: str) -> bool:
    """Whether this process is not in the group of a call of `name`, which a warning at the caller says."""
    if not _not_in_group(group):
        return False
    warnings.warn(f"Running {name} on global rank {get_rank()} which does not belong to the given group.", stacklevel=3)
    return True


def get_rank(group: ProcessGroup | None = None) -> int:
    """The number of this process in a group, -1 where it is not in it; ValueError without a default group."""
    if _not_in_group(group):
        return -1
    return _checked(group).rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """The number of processes in a group, -1 where this one is not in it; ValueError without a default group."""
    if _not_in_group(group):
        return -1
    return _checked(group).size()


def get_backend(group: ProcessGroup | None = None) -> Backend:
    """The name of the backend of a group; ValueError without a default group."""
    return Backend(_checked(group).name())


def get_backend_config(group: ProcessGroup | None = None) -> str:
    """The backend of each kind of device: "cpu:gloo,cuda:gloo"."""
    name = _checked(group).name()
    return f"cpu:{name},cuda:{name}"


def get_default_backend_for_device(device: Any) -> str:
    """The backend for tensors of a device: "gloo"."""
    return "gloo"


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The number of this process on its machine, which LOCAL_RANK says; RuntimeError without it and a fallback."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is None:
        raise RuntimeError(
            "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to work."
        )
    return int(fallback_rank)


def new_group(
    ranks: list[int] | None = None,
    timeout: datetime.timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    group_name: str | None = None,
) -> Any:
    """A group of the processes `ranks`, by default of all. Every process of the world calls it, in the same order.

    Args:
        use_local_synchronization (bool): only the members call it.

    Returns:
        The group, or `GroupMember.NON_GROUP_MEMBER` where this process is not in it.

    Raises:
        ValueError: no default group, a rank twice, or out of range.
    """
    world = _checked(None)
    name = world.name() if backend is None else _checked_backend(backend, world.size())
    members = sorted(world.ranks if ranks is None else ranks)
    if len(set(members)) != len(members):
        raise ValueError(f"new_group: a rank occurs twice in {members}.")
    if members and not 0 <= members[0] <= members[-1] < world.size():
        raise ValueError(
            "The new group's rank should be within the world_size set by init_process_group: "
            f"{members} for a world of {world.size()}"
        )
    if use_local_synchronization:
        key = hashlib.sha1(repr(members).encode(), usedforsecurity=False).hexdigest()
        count = _world.made_locally[key] = _world.made_locally.get(key, 0) + 1
        label = f"local-{key}-{count}"
    else:
        _world.made += 1
        label = str(_world.made)
    if world.rank() not in members:
        return None if use_local_synchronization else GroupMember.NON_GROUP_MEMBER
    store = None if _world.store is None else PrefixStore(f"group/{label}", _world.store)
    limit = world.timeout if timeout is None else timeout
    made = ProcessGroup(
        members, members.index(world.rank()), store, limit, name, group_name or label, group_desc or "undefined"
    )
    _world.groups.append(made)
    return made


def new_subgroups(
    group_size: int | None = None,
    group: ProcessGroup | None = None,
    timeout: datetime.timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Groups of `group_size` neighbours each, by default of the processes of a machine.

    Returns:
        The group of this process, and all groups.

    Raises:
        ValueError: a size larger than the world's, or one that does not divide it.
    """
    size = get_world_size(group)
    per = int(os.environ.get("LOCAL_WORLD_SIZE", size)) if group_size is None else group_size
    if per <= 0:
        raise ValueError(f"The arg 'group_size' ({per}) must be positive")
    if size < per:
        raise ValueError(f"The arg 'group_size' ({per}) must not exceed the world size ({size})")
    if size % per:
        raise ValueError(f"The world size ({size}) must be divisible by 'group_size={per}'")
    ranks = _checked(group).ranks
    parts = [ranks[at : at + per] for at in range(0, size, per)]
    return new_subgroups_by_enumeration(parts, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: list[list[int]],
    timeout: datetime.timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """A group of each list of ranks; the group of this process (None if it is in none), and all groups.

    Raises:
        ValueError: no lists, or a rank in two of them.
    """
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    flat = [rank for ranks in ranks_per_subgroup_list for rank in ranks]
    if len(set(flat)) != len(flat):
        raise ValueError("A rank belongs to two of the subgroups; expected each in one at most.")
    made = [new_group(ranks, timeout, backend, pg_options, group_desc=group_desc) for ranks in ranks_per_subgroup_list]
    own = next((each for each in made if isinstance(each, ProcessGroup)), None)
    return own, made


def split_group(
    parent_pg: ProcessGroup | None = None,
    split_ranks: list[list[int]] | None = None,
    timeout: datetime.timedelta | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> ProcessGroup | None:
    """The group of this process, of those that the lists of ranks make; None if it is in none. All processes call it."""
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    return new_subgroups_by_enumeration(split_ranks, timeout, None, pg_options, group_desc)[0]


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """The processes of a group, by their numbers in the world."""
    return list(_checked(group).ranks)


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The number in a group of a process of the world; ValueError for one that is not in it."""
    ranks = _checked(group).ranks
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return ranks.index(global_rank)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The number in the world of a process of a group; ValueError for one that is not in it."""
    ranks = _checked(group).ranks
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return ranks[group_rank]
