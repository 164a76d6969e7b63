"""The planners of `save` and `load`: each tensor is written once, and each rank reads what it asks for."""

from __future__ import annotations

import dataclasses
import io
import math
from typing import Any

from ..._C import Size, Tensor
from ._dedup_save_plans import dedup_save_plans
from ._nested_dict import FLATTEN_MAPPING, flatten_state_dict
from ._traverse import Key, set_element, visit_keys
from .metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorStorageMetadata,
)
from .planner import LoadPlan, LoadPlanner, ReadItem, SavePlan, SavePlanner, WriteItem, WriteItemType
from .planner_helpers import _create_read_items, _create_write_items, object_of
from .utils import find_state_dict_object

__all__ = [
    "DefaultLoadPlanner",
    "DefaultSavePlanner",
    "create_default_global_load_plan",
    "create_default_global_save_plan",
    "create_default_local_load_plan",
    "create_default_local_save_plan",
]

# The version of the format.
_VERSION = "1.0.0"


class DefaultSavePlanner(SavePlanner):
    """Writes what several ranks have once.

    Args:
        flatten_state_dict (bool): nested dicts and lists are written value by value, so that parts can be loaded.
        flatten_sharded_tensors (bool): accepted; there are no such tensors.
        dedup_replicated_tensors (bool): accepted, as in PyTorch.
        dedup_save_to_lowest_rank (bool): the first rank that has something writes it; else the work is shared.
        enable_plan_caching (bool): accepted; plans are made anew.
    """

    mappings: FLATTEN_MAPPING

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        dedup_replicated_tensors: bool | None = None,
        dedup_save_to_lowest_rank: bool = False,
        enable_plan_caching: bool = False,
    ) -> None:
        self.flatten_state_dict, self.flatten_sharded_tensors = flatten_state_dict, flatten_sharded_tensors
        self.dedup_save_to_lowest_rank = dedup_save_to_lowest_rank
        self.mappings = {}

    def set_up_planner(
        self, state_dict: dict[str, Any], storage_meta: StorageMeta | None = None, is_coordinator: bool = False
    ) -> None:
        """Begins a save of a state dict. ValueError: two values have one name."""
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict, self.is_coordinator = state_dict, is_coordinator

    def create_local_plan(self) -> SavePlan:
        """All that this rank has."""
        plan = create_default_local_save_plan(self.state_dict, self.is_coordinator)
        if self.flatten_state_dict:
            plan = dataclasses.replace(plan, planner_data=self.mappings)
        self.plan = plan
        return plan

    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """The plans without what is there twice, and the metadata. ValueError: pieces of a tensor overlap, or it has gaps."""
        all_plans = dedup_save_plans(all_plans, self.dedup_save_to_lowest_rank)
        plans, metadata = create_default_global_save_plan(all_plans)
        if self.flatten_state_dict:
            merged: dict[str, Any] = {}
            for plan in plans:
                merged.update(plan.planner_data or {})
            metadata = dataclasses.replace(metadata, planner_data=merged)
        problems = _validate_global_plan(plans, metadata)
        if problems:
            raise ValueError("Failed to validate global plan: " + "; ".join(problems))
        self.global_plan, self.metadata = plans, metadata
        return plans, metadata

    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """The plan as it is."""
        self.plan = new_plan
        return new_plan

    def resolve_data(self, write_item: WriteItem) -> Tensor | io.BytesIO:
        """The tensor of an item, or the bytes of its object."""
        return self.transform_object(write_item, self.lookup_object(write_item.index))

    def lookup_object(self, index: MetadataIndex) -> Any:
        """The value of an item: to be overridden."""
        return find_state_dict_object(self.state_dict, index)

    def transform_object(self, write_item: WriteItem, object: Any) -> Any:
        """What is written for a value: to be overridden."""
        if write_item.type is WriteItemType.BYTE_IO:
            from ...serialization import save

            file = io.BytesIO()
            save(object, file)
            return file
        return object


class DefaultLoadPlanner(LoadPlanner):
    """Reads what a state dict asks for into its tensors; objects that are no tensors take the places of those there.

    Args:
        flatten_state_dict (bool): as it was when the checkpoint was saved.
        flatten_sharded_tensors (bool): accepted; there are no such tensors.
        allow_partial_load (bool): what the checkpoint does not have stays as it is, instead of being an error.
    """

    def __init__(
        self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True, allow_partial_load: bool = False
    ) -> None:
        self.flatten_state_dict, self.flatten_sharded_tensors = flatten_state_dict, flatten_sharded_tensors
        self.allow_partial_load = allow_partial_load
        self.original_state_dict: dict[str, Any] = {}
        self.mappings: FLATTEN_MAPPING = {}

    def set_up_planner(
        self, state_dict: dict[str, Any], metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        """Begins a load into a state dict."""
        self.original_state_dict = state_dict
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict, self.metadata, self.is_coordinator = state_dict, metadata, is_coordinator
        for name, value in list(state_dict.items()):
            if isinstance(value, Tensor) and value.is_meta:
                self._take(name, _filled_in(value))

    def create_local_plan(self) -> LoadPlan:
        """What is read for each value. RuntimeError: the checkpoint does not have one."""
        if self.metadata is None:
            raise AssertionError("create_local_plan: expected metadata in set_up_planner, got None")
        return create_default_local_load_plan(self.state_dict, self.metadata, not self.allow_partial_load)

    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """The plans as they are."""
        return create_default_global_load_plan(global_plan)

    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        """The plan as it is."""
        return central_plan

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Puts an object in its place."""
        self._take(read_item.dest_index.fqn, object_of(value))

    def _take(self, name, made):
        """Puts a value in the place of that of a name, also in the nested state dict."""
        self.state_dict[name] = made
        if not self.flatten_state_dict:
            return
        if not hasattr(self, "_paths"):
            self._paths: dict[str, Any] = {}
            visit_keys(
                self.original_state_dict, lambda path, _: self._paths.__setitem__(".".join(map(str, path)), path)
            )
        path = self._paths.get(name)
        if path is None:
            set_element(self.original_state_dict, self.mappings[name], made)
            return
        *before, last = (k.value if isinstance(k, Key) else k for k in path)
        place: Any = self.original_state_dict
        for key in before:
            place = place[key]
        place[last] = made

    def resolve_tensor(self, read_item: ReadItem) -> Tensor:
        """The part of a tensor that is read."""
        tensor = self.transform_tensor(read_item, self.lookup_tensor(read_item.dest_index))
        return tensor

    def commit_tensor(self, read_item: ReadItem, tensor: Tensor) -> None:
        """Nothing: the tensor's memory was written."""

    def lookup_tensor(self, index: MetadataIndex) -> Tensor:
        """The tensor of a name: to be overridden."""
        return find_state_dict_object(self.state_dict, index)

    def transform_tensor(self, read_item: ReadItem, tensor: Tensor) -> Tensor:
        """The part of a tensor that is read: to be overridden."""
        for dim, (start, length) in enumerate(zip(read_item.dest_offsets, read_item.lengths, strict=True)):
            if tensor.shape[dim] != length:
                tensor = tensor.narrow(dim, start, length)
        return tensor


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Fills an empty dict with what a checkpoint has.

    Args:
        keys (set of str): only values whose names are these, or begin with one of them and a dot; None for all.
    """

    def __init__(self, keys: Any = None, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.keys = keys

    def _should_include_key(self, key: str, metadata: Metadata) -> bool:
        """Whether a value is read."""
        path = (metadata.planner_data or {}).get(key)
        names = {key} if path is None else {".".join(map(str, path[: i + 1])) for i in range(len(path))}
        return self.keys is None or bool(names & set(self.keys))

    def set_up_planner(
        self, state_dict: dict[str, Any], metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        """Fills the dict with tensors to read into. ValueError: it has values already."""
        if state_dict:
            raise AssertionError(f"set_up_planner: expected an empty state dict, got keys {list(state_dict)}")
        if metadata is None:
            raise AssertionError("set_up_planner: expected metadata, got None")
        for name, value in metadata.state_dict_metadata.items():
            if self._should_include_key(name, metadata):
                made = _empty_like(value) if isinstance(value, TensorStorageMetadata) else value
                path = (metadata.planner_data or {}).get(name)
                set_element(state_dict, (name,) if path is None else path, made)
        super().set_up_planner(state_dict, metadata, is_coordinator)


def _filled_in(tensor):
    """A tensor on the CPU in the place of one without memory."""
    from ... import empty_like

    return empty_like(tensor, device="cpu")


def _empty_like(metadata):
    from ... import empty

    return empty(metadata.size, dtype=metadata.properties.dtype)


def create_default_local_load_plan(state_dict: dict[str, Any], metadata: Metadata, strict: bool = True) -> LoadPlan:
    """What is read for the values of a flat state dict.

    Raises:
        RuntimeError: `strict`, and the checkpoint does not have one.
        ValueError: a tensor is of another size, or the value is no tensor.
    """
    items = []
    for name, value in state_dict.items():
        saved = metadata.state_dict_metadata.get(name)
        if saved is None:
            if strict:
                raise RuntimeError(f"Missing key in checkpoint state_dict: {name}.")
            continue
        if isinstance(saved, TensorStorageMetadata) and isinstance(value, Tensor) and saved.size != value.size():
            raise ValueError(f"Size mismatch between saved {saved.size} and current: {value.size()} for {name}")
        items += _create_read_items(name, saved, value)
    return LoadPlan(items)


def create_default_global_load_plan(all_plans: list[LoadPlan]) -> list[LoadPlan]:
    """The plans as they are."""
    return all_plans


def create_default_local_save_plan(state_dict: dict[str, Any], is_coordinator: bool) -> SavePlan:
    """What is written of the values of a flat state dict."""
    return SavePlan([item for name, value in state_dict.items() for item in _create_write_items(name, value)])


def create_default_global_save_plan(
    all_plans: list[SavePlan], rewrite_index_hints: bool = True
) -> tuple[list[SavePlan], Metadata]:
    """The plans, with the places of pieces as hints, and the metadata."""
    found: dict[str, Any] = {}
    plans = []
    for plan in all_plans:
        items = []
        for item in plan.items:
            if item.type is WriteItemType.BYTE_IO:
                found[item.index.fqn] = BytesStorageMetadata()
                items.append(item)
                continue
            data = item.tensor_data
            assert data is not None
            tensor = found.setdefault(item.index.fqn, TensorStorageMetadata(data.properties, data.size, []))
            if rewrite_index_hints:
                index = dataclasses.replace(item.index, index=len(tensor.chunks))
                item = dataclasses.replace(item, index=index)
            items.append(item)
            tensor.chunks.append(data.chunk)
        plans.append(dataclasses.replace(plan, items=items))
    return plans, Metadata(found, version=_VERSION)


def _check_box_overlap(box0: ChunkStorageMetadata, box1: ChunkStorageMetadata) -> bool:
    """Whether two pieces have elements in common."""
    from .resharding import _check_shard_metadata_pair_overlap

    return _check_shard_metadata_pair_overlap(box0, box1)


def _check_box_bounds(outer_box_size: Size, inner_box: ChunkStorageMetadata) -> bool:
    """Whether a piece lies in a tensor."""
    return all(
        0 <= start and 0 <= n and start + n <= outer
        for start, n, outer in zip(inner_box.offsets, inner_box.sizes, outer_box_size, strict=True)
    )


def _validate_global_plan(global_plan: list[SavePlan], metadata: Metadata) -> list[str]:
    """What is wrong with the pieces of tensors: they overlap, leave gaps, or lie outside."""
    problems = []
    for name, value in metadata.state_dict_metadata.items():
        if isinstance(value, BytesStorageMetadata) or not value.size:
            continue
        chunks = value.chunks
        if not all(_check_box_bounds(value.size, chunk) for chunk in chunks):
            problems.append(f"{name} of {value.size} has a piece outside of it")
        if any(_check_box_overlap(a, b) for i, a in enumerate(chunks) for b in chunks[i + 1 :]):
            problems.append(f"{name} has pieces that overlap")
        covered, whole = sum(math.prod(chunk.sizes) for chunk in chunks), math.prod(value.size)
        if covered != whole:
            problems.append(f"the pieces of {name} have {covered} elements, and it has {whole}")
    return problems
