"""`load`."""

from __future__ import annotations

import os
import warnings
from typing import Any

from .. import is_available, is_initialized
from ._storage_utils import _alone, _storage_setup
from .default_planner import DefaultLoadPlanner, _EmptyStateDictLoadPlanner
from .planner import LoadPlanner
from .stateful import Stateful
from .storage import StorageReader
from .utils import _all_gather_keys, _DistWrapper

__all__ = ["load", "load_state_dict"]


def load_state_dict(
    state_dict: dict[str, Any],
    storage_reader: StorageReader,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: LoadPlanner | None = None,
) -> None:
    """`load` by its older name."""
    warnings.warn(
        "`load_state_dict` is deprecated and will be removed in future versions. Please use `load` instead.",
        FutureWarning,
        stacklevel=2,
    )
    storage_reader.reset()
    _load_state_dict(state_dict, storage_reader, process_group, coordinator_rank, no_dist, planner)


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_reader: StorageReader | None = None,
    planner: LoadPlanner | None = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Loads a checkpoint into the tensors of a state dict, in place. Other values take the places of those there.

    Objects that are no tensors are pickles of any class: files must be trusted.

    Args:
        state_dict (dict): what is loaded; an object with `load_state_dict()` is given what was loaded into its `state_dict()`.
        checkpoint_id (str or PathLike): the directory.
        storage_reader (StorageReader): instead of a `FileSystemReader` for the directory.
        planner (LoadPlanner): instead of a `DefaultLoadPlanner`.
        process_group: the ranks that take part; by default all.
        no_dist (bool): this process loads alone, as it does without a process group.

    Raises:
        CheckpointException: on all ranks, where one has failed: the checkpoint has no such value, or a tensor is of another size.
        RuntimeError: there is neither `checkpoint_id` nor `storage_reader`.
    """
    no_dist = _alone(no_dist, "load")
    storage_reader = _storage_setup(storage_reader, checkpoint_id, reader=True)
    # The state dicts of objects may need all ranks, so all ask in one order.
    keys = list(state_dict) if no_dist else sorted(_all_gather_keys(state_dict, process_group))
    own = [key for key in keys if key in state_dict]
    found = {k: state_dict[k].state_dict() if isinstance(state_dict[k], Stateful) else state_dict[k] for k in own}
    _load_state_dict(found, storage_reader, process_group, 0, no_dist, planner)
    for key in own:
        if isinstance(state_dict[key], Stateful):
            state_dict[key].load_state_dict(found[key])
        else:
            state_dict[key] = found[key]


def _load_state_dict(
    state_dict: dict[str, Any],
    storage_reader: StorageReader,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: LoadPlanner | None = None,
) -> None:
    """The steps of `load`: each rank plans, the coordinator decides, each rank reads."""
    ranks = _DistWrapper(process_group, not no_dist, coordinator_rank)
    plans = planner or DefaultLoadPlanner()

    def plan():
        metadata = _metadata_of(storage_reader, ranks.rank)
        plans.set_up_planner(state_dict, metadata, ranks.is_coordinator)
        storage_reader.set_up_storage_reader(metadata, ranks.is_coordinator)
        return storage_reader.prepare_local_plan(plans.create_local_plan())

    def decide(every):
        return storage_reader.prepare_global_plan(plans.create_global_plan(every))

    central = ranks.reduce_scatter("plan", plan, decide)

    def read():
        storage_reader.read_data(plans.finish_plan(central), plans).wait()

    ranks.all_gather("read", read)


def _metadata_of(storage_reader, rank):
    """The metadata of a checkpoint, or of this rank alone. AssertionError: there is neither."""
    try:
        return storage_reader.read_metadata()
    except Exception as error:
        first = error
    try:
        return storage_reader.read_metadata(rank=rank)
    except Exception as error:
        raise AssertionError(
            f"metadata is None; global metadata read failed: {first}; rank local metadata read failed: {error}"
        ) from first


def _load_state_dict_from_keys(
    keys: set[str] | str | None = None,
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_reader: StorageReader | None = None,
    process_group: Any = None,
) -> dict[str, Any]:
    """What a checkpoint has under some names, such as that of a model; all of it by default."""
    no_dist = not is_available() or not is_initialized()
    storage_reader = _storage_setup(storage_reader, checkpoint_id, reader=True)
    found: dict[str, Any] = {}
    names = {keys} if isinstance(keys, str) else keys
    _load_state_dict(found, storage_reader, process_group, 0, no_dist, _EmptyStateDictLoadPlanner(names or None))
    return found
