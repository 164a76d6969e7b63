"""The items of plans."""

from __future__ import annotations

import io
import warnings
from typing import Any

from ..._C import Size, Tensor
from .metadata import (
    STORAGE_TYPES,
    BytesStorageMetadata,
    ChunkStorageMetadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from .planner import LoadItemType, ReadItem, TensorWriteData, WriteItem, WriteItemType
from .resharding import _shards_get_overlap_region_wrt_saved_tensor

__all__ = ["create_read_items_for_chunk_list"]


def _create_chunk_from_tensor(tensor: Tensor) -> ChunkStorageMetadata:
    """The whole of a tensor as a piece."""
    return ChunkStorageMetadata(offsets=Size([0] * tensor.dim()), sizes=Size(tensor.shape))


def _create_write_item_for_tensor(fqn: str, tensor: Tensor) -> WriteItem:
    """What is written of a tensor."""
    chunk = _create_chunk_from_tensor(tensor)
    data = TensorWriteData(chunk, TensorProperties.create_from_tensor(tensor), Size(tensor.shape))
    return WriteItem(MetadataIndex(fqn, chunk.offsets), WriteItemType.TENSOR, tensor_data=data)


def _create_write_item_for_bytesio(fqn: str, bytes: Any) -> WriteItem:
    """What is written of an object."""
    return WriteItem(MetadataIndex(fqn), WriteItemType.BYTE_IO)


def _create_write_items(fqn: str, object: Any) -> list[WriteItem]:
    """What is written of a value. NotImplementedError: it is a tensor of another layout."""
    if not isinstance(object, Tensor):
        return [_create_write_item_for_bytesio(fqn, object)]
    _check_dense(fqn, object)
    return [_create_write_item_for_tensor(fqn, object)]


def _check_dense(fqn, tensor):
    if str(tensor.layout) != "torch.strided" or tensor.is_nested or hasattr(tensor, "_masked_mask"):
        raise NotImplementedError(
            f"distributed.checkpoint: {fqn} is a {type(tensor).__name__}; expected a dense tensor. Hint: save its parts."
        )


def _create_read_item_for_byteio(
    dest_index: MetadataIndex, dest_offset: int, storage_index: MetadataIndex, storage_offset: int, length: int
) -> ReadItem:
    """What is read of an object."""
    places = (Size((n,)) for n in (dest_offset, storage_offset, length))
    dest, storage, lengths = places
    return ReadItem(LoadItemType.BYTE_IO, dest_index, dest, storage_index, storage, lengths)


def _create_read_item_for_tensor(
    dest_index: MetadataIndex, dest_offsets: Any, storage_index: MetadataIndex, storage_offsets: Any, lengths: Any
) -> ReadItem:
    """What is read of a piece of a tensor."""
    return ReadItem(
        LoadItemType.TENSOR, dest_index, Size(dest_offsets), storage_index, Size(storage_offsets), Size(lengths)
    )


def create_read_items_for_chunk_list(
    fqn: str, checkpoint_md: TensorStorageMetadata, local_chunks: list[ChunkStorageMetadata]
) -> list[ReadItem]:
    """What is read into pieces of a tensor: their common parts with the pieces that were saved.

    Args:
        fqn (str): the tensor's name.
        checkpoint_md (TensorStorageMetadata): the pieces that were saved.
        local_chunks (list): the pieces that are wanted.
    """
    items = []
    for i, wanted in enumerate(local_chunks):
        for j, saved in enumerate(checkpoint_md.chunks):
            common = _shards_get_overlap_region_wrt_saved_tensor(saved, wanted)
            if any(length == 0 for _, _, _, length in common):
                continue
            items.append(
                _create_read_item_for_tensor(
                    MetadataIndex(fqn, wanted.offsets, i),
                    [to for _, _, to, _ in common],
                    MetadataIndex(fqn, saved.offsets, j),
                    [start for _, start, _, _ in common],
                    [length for _, _, _, length in common],
                )
            )
    return items


def _create_read_items(fqn: str, md: STORAGE_TYPES, obj: Any) -> list[ReadItem]:
    """What is read for a value. ValueError: a tensor was saved, and the value is none."""
    if isinstance(md, BytesStorageMetadata):
        return [_create_read_item_for_byteio(MetadataIndex(fqn), 0, MetadataIndex(fqn), 0, 0)]
    if not isinstance(obj, Tensor):
        raise ValueError(
            f"Invalid checkpoint metadata for {fqn}, expected BytesStorageMetadata but found {type(md)}; the state dict has "
            f"{type(obj).__name__} there"
        )
    _check_dense(fqn, obj)
    return create_read_items_for_chunk_list(fqn, md, [_create_chunk_from_tensor(obj)])


def object_of(value: io.BytesIO) -> Any:
    """An object of a checkpoint, of any class, as `rustgrad.load(..., weights_only=False)` makes it: files must be trusted."""
    from ...serialization import load

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return load(value, weights_only=False)
