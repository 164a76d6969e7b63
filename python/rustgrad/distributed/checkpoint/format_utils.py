"""Checkpoints of one file as checkpoints in a directory, and back.

python -m rustgrad.distributed.checkpoint.format_utils dcp_to_torch DIRECTORY FILE
python -m rustgrad.distributed.checkpoint.format_utils torch_to_dcp FILE DIRECTORY
"""

from __future__ import annotations

import argparse
import os
from enum import Enum
from typing import Any

from ..._C import Tensor
from ...futures import Future
from ._nested_dict import flatten_state_dict
from .default_planner import DefaultLoadPlanner, _EmptyStateDictLoadPlanner
from .filesystem import FileSystemReader, FileSystemWriter
from .metadata import Metadata, TensorStorageMetadata
from .planner import LoadItemType, LoadPlan, LoadPlanner
from .planner_helpers import _create_chunk_from_tensor, _create_write_items
from .state_dict_loader import _load_state_dict
from .state_dict_saver import _save_state_dict
from .storage import StorageReader

__all__ = ["BroadcastingTorchSaveReader", "DynamicMetaLoadPlanner", "dcp_to_torch_save", "torch_save_to_dcp"]


class BroadcastingTorchSaveReader(StorageReader):
    """Reads a file of `save` on one rank, which sends its tensors to the others. Use it with `DynamicMetaLoadPlanner`.

    Args:
        checkpoint_id (str or PathLike): the file.
        coordinator_rank (int): the rank that reads.
    """

    def __init__(self, checkpoint_id: str | os.PathLike[str] | None = None, coordinator_rank: int = 0) -> None:
        self.checkpoint_id, self.coordinator_rank = checkpoint_id, coordinator_rank

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """Nothing: the planner asks the state dict."""
        return Metadata(state_dict_metadata={})

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future:
        """Reads the file on the coordinator, and copies its tensors on all ranks. KeyError: the file has no such value."""
        from ...serialization import load
        from .. import broadcast, get_rank, is_initialized

        several = is_initialized()
        here = not several or get_rank() == self.coordinator_rank
        names = planner.state_dict  # type: ignore[attr-defined]
        saved: dict[str, Any] = {}
        if here:
            assert self.checkpoint_id is not None
            saved, _ = flatten_state_dict(load(self.checkpoint_id, map_location="cpu", weights_only=False))
        for item in plan.items:
            if item.type is LoadItemType.BYTE_IO:
                raise RuntimeError(
                    f"Non-tensor value identified at {item.storage_index.fqn}. At this time BroadcastingTorchSaveReader only "
                    "supports loading Tensors."
                )
            name = item.storage_index.fqn
            value = names[name]
            tensor = saved[name].to(value.dtype).contiguous() if here else value.new_empty(value.shape)
            if several:
                broadcast(tensor, src=self.coordinator_rank)
            target = planner.resolve_tensor(item)
            target.detach().copy_(tensor)
            planner.commit_tensor(item, target)
        done: Future = Future()
        done.set_result(None)
        return done

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Checks that a file was given."""
        if self.checkpoint_id is None:
            raise AssertionError("BroadcastingTorchSaveReader: expected checkpoint_id, got None")

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """The plan as it is."""
        return plan

    def prepare_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:  # type: ignore[override]
        """The plans as they are."""
        return global_plan

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Begins a load, of another file if one is given."""
        self.checkpoint_id = checkpoint_id or self.checkpoint_id

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Whether there is a file."""
        return os.path.isfile(checkpoint_id)


class DynamicMetaLoadPlanner(DefaultLoadPlanner):
    """Makes metadata of the tensors of the state dict, for files that have none."""

    def set_up_planner(
        self, state_dict: dict[str, Any], metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        """Begins a load into a state dict. RuntimeError: it has a value that is no tensor."""
        super().set_up_planner(state_dict, metadata, is_coordinator)
        found: dict[str, Any] = {}
        for name, value in self.state_dict.items():
            if not isinstance(value, Tensor):
                raise RuntimeError(
                    f"Non-tensor value identified at {name}. At this time DynamicMetaLoadPlanner only supports loading Tensors."
                )
            data = _create_write_items(name, value)[0].tensor_data
            assert data is not None
            found[name] = TensorStorageMetadata(data.properties, value.size(), [_create_chunk_from_tensor(value)])
        self.metadata = Metadata(state_dict_metadata=found)


def dcp_to_torch_save(dcp_checkpoint_dir: str | os.PathLike[str], torch_save_path: str | os.PathLike[str]) -> None:
    """Saves a checkpoint in a directory as one file of `save`.

    Args:
        dcp_checkpoint_dir: the directory.
        torch_save_path: the file, which is written.
    """
    from ...serialization import save

    found: dict[str, Any] = {}
    _load_state_dict(found, FileSystemReader(dcp_checkpoint_dir), planner=_EmptyStateDictLoadPlanner(), no_dist=True)
    save(found, torch_save_path)


def torch_save_to_dcp(torch_save_path: str | os.PathLike[str], dcp_checkpoint_dir: str | os.PathLike[str]) -> None:
    """Saves a file of `save`, which must be trusted, as a checkpoint in a directory.

    Args:
        torch_save_path: the file.
        dcp_checkpoint_dir: the directory, which is made.
    """
    from ...serialization import load

    found = load(torch_save_path, map_location="cpu", weights_only=False)
    _save_state_dict(found, FileSystemWriter(dcp_checkpoint_dir), no_dist=True)


class FormatMode(Enum):
    """What the program does."""

    TORCH_TO_DCP = "torch_to_dcp"
    DCP_TO_TORCH = "dcp_to_torch"


def _main() -> None:
    parser = argparse.ArgumentParser(description="Converts checkpoints of one file and checkpoints in a directory.")
    parser.add_argument("mode", choices=[m.value for m in FormatMode], help="what is converted to what")
    parser.add_argument("src", help="the file or directory that is read")
    parser.add_argument("dst", help="the directory or file that is written")
    args = parser.parse_args()
    print(f"Converting checkpoint from {args.src} to {args.dst} using method: '{args.mode}'")
    convert, kind = (
        (torch_save_to_dcp, os.path.isfile) if args.mode == "torch_to_dcp" else (dcp_to_torch_save, os.path.isdir)
    )
    if kind(args.src):
        convert(args.src, args.dst)
    else:
        print(f"There is nothing to convert at {args.src}.")


if __name__ == "__main__":
    _main()
