"""`save` and `async_save`."""

from __future__ import annotations

import os
import warnings
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ._storage_utils import _alone, _storage_setup
from .default_planner import DefaultSavePlanner
from .metadata import Metadata
from .planner import SavePlanner
from .staging import AsyncStager, copied
from .stateful import Stateful
from .storage import StorageWriter
from .utils import _DistWrapper

__all__ = ["AsyncCheckpointerType", "AsyncSaveResponse", "async_save", "save", "save_state_dict"]


class AsyncCheckpointerType(Enum):
    """Who writes in `async_save`: a thread. A process is accepted, and a thread writes."""

    THREAD = "thread"
    PROCESS = "process"


def save_state_dict(
    state_dict: dict[str, Any],
    storage_writer: StorageWriter,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: SavePlanner | None = None,
) -> Metadata:
    """`save` by its older name."""
    warnings.warn(
        "`save_state_dict` is deprecated and will be removed in future versions. Please use `save` instead.",
        FutureWarning,
        stacklevel=2,
    )
    storage_writer.reset()
    return _save_state_dict(state_dict, storage_writer, process_group, coordinator_rank, no_dist, planner)


def save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: StorageWriter | None = None,
    planner: SavePlanner | None = None,
    process_group: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Metadata:
    """Saves a state dict, of all ranks of a group together. Tensors that several ranks have under one name are written once.

    Args:
        state_dict (dict): nested dicts and lists of tensors and other values; of an object with `state_dict()` that is saved.
        checkpoint_id (str or PathLike): the directory.
        storage_writer (StorageWriter): instead of a `FileSystemWriter` for the directory.
        planner (SavePlanner): instead of a `DefaultSavePlanner`.
        process_group: the ranks that take part; by default all.
        no_dist (bool): this process saves alone, as it does without a process group.
        use_collectives (bool): False for checkpoints of each rank in one directory, without a word to the others: what several
            ranks have is written by each, and each loads its own.

    Raises:
        CheckpointException: on all ranks, where one has failed; there is no valid checkpoint then.
        RuntimeError: there is neither `checkpoint_id` nor `storage_writer`.
    """
    no_dist = _alone(no_dist, "save")
    storage_writer = _storage_setup(storage_writer, checkpoint_id)
    state_dict = _stateful_to_state_dict(state_dict)
    return _save_state_dict(state_dict, storage_writer, process_group, 0, no_dist, planner, use_collectives)


@dataclass
class AsyncSaveResponse:
    """What `async_save` gives where the copy is made on a thread too.

    Args:
        staging_completion (Future): when the state dict may change again.
        upload_completion (Future): when the checkpoint is written.
    """

    staging_completion: Future
    upload_completion: Future


def async_save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: StorageWriter | None = None,
    planner: SavePlanner | None = None,
    process_group: Any = None,
    async_checkpointer_type: AsyncCheckpointerType = AsyncCheckpointerType.THREAD,
    async_stager: AsyncStager | None = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Future | AsyncSaveResponse:
    """Copies a state dict, and saves it on a thread. Collectives of the thread use the process group: a program that has others
    meanwhile gives this call a group of its own.

    Args:
        async_checkpointer_type (AsyncCheckpointerType): a thread writes in any case.
        async_stager (AsyncStager): who copies; by default the storage writer, if it can, or a copy on the CPU.

    The other arguments are those of `save`.

    Returns:
        A future of the metadata, whose `result()` raises what `save` would; an `AsyncSaveResponse` where the copy is made on a
        thread.
    """
    if not isinstance(async_checkpointer_type, AsyncCheckpointerType):
        raise ValueError(f"async_save: expected an AsyncCheckpointerType, got {async_checkpointer_type!r}")
    storage_writer = _storage_setup(storage_writer, checkpoint_id)
    state_dict = _stateful_to_state_dict(state_dict)
    if async_stager is None and isinstance(storage_writer, AsyncStager):
        async_stager = storage_writer
    staged = copied(state_dict) if async_stager is None else async_stager.stage(state_dict)

    def write() -> Metadata:
        found = staged.result() if isinstance(staged, Future) else staged
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return save(
                found,
                storage_writer=storage_writer,
                planner=planner,
                process_group=process_group,
                no_dist=no_dist,
                use_collectives=use_collectives,
            )

    pool = ThreadPoolExecutor(1)
    done = pool.submit(write)
    pool.shutdown(wait=False)
    if isinstance(staged, Future):
        return AsyncSaveResponse(staged, done)
    if async_stager is not None and async_stager.should_synchronize_after_execute:
        async_stager.synchronize_staging()
    return done


def _stateful_to_state_dict(state_dict: dict[str, Any]) -> dict[str, Any]:
    """The values, of an object with `state_dict()` what that returns."""
    return {k: v.state_dict() if isinstance(v, Stateful) else v for k, v in state_dict.items()}


def _save_state_dict(
    state_dict: dict[str, Any],
    storage_writer: StorageWriter,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: SavePlanner | None = None,
    use_collectives: bool = True,
) -> Metadata:
    """The steps of `save`: each rank plans, the coordinator decides, each rank writes, the coordinator writes the metadata."""
    ranks = _DistWrapper(process_group, not no_dist, coordinator_rank)
    alone = {} if use_collectives else {"rank": ranks.rank, "use_collectives": False}
    if alone:
        ranks = _DistWrapper(None, False, 0)
    plans = planner or DefaultSavePlanner()
    found: list[Metadata] = []

    def plan():
        plans.set_up_planner(state_dict, storage_writer.storage_meta(), ranks.is_coordinator)
        storage_writer.set_up_storage_writer(ranks.is_coordinator, **alone)
        return storage_writer.prepare_local_plan(plans.create_local_plan())

    def decide(every):
        every, metadata = plans.create_global_plan(every)
        found.append(metadata)
        return storage_writer.prepare_global_plan(every)

    central = ranks.reduce_scatter("plan", plan, decide)

    def write():
        writing = storage_writer.write_data(plans.finish_plan(central), plans)
        writing.wait()
        return writing.value()

    def finish(results):
        storage_writer.finish(found[0], results)
        return found[0]

    return ranks.all_reduce("write", write, finish)
