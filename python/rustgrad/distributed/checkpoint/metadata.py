"""What a checkpoint says of its tensors and objects: shapes, pieces, and the files they are in."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ... import _C, _formats
from ..._C import Size, Tensor
from .stateful import StatefulT

__all__ = [
    "BytesStorageMetadata",
    "ChunkStorageMetadata",
    "Metadata",
    "MetadataIndex",
    "StorageMeta",
    "TensorProperties",
    "TensorStorageMetadata",
]


@dataclass
class ChunkStorageMetadata:
    """A piece of a tensor: where it begins in each dimension, and its sizes."""

    offsets: Size
    sizes: Size


class _MEM_FORMAT_ENCODING(Enum):
    """Memory formats in files."""

    TORCH_CONTIGUOUS_FORMAT = 0
    TORCH_CHANNELS_LAST = 1
    TORCH_PRESERVE_FORMAT = 2


_FORMATS = (_formats.contiguous_format, _formats.channels_last, _formats.preserve_format)


@dataclass
class TensorProperties:
    """What a tensor is beside its shape."""

    dtype: _C.dtype = field(default_factory=_C.get_default_dtype)
    layout: _formats.layout = field(default=_formats.strided)
    requires_grad: bool = False
    memory_format: _formats.memory_format = field(default=_formats.contiguous_format)
    pin_memory: bool = False
    strides: tuple[int, ...] | None = None

    def __getstate__(self) -> tuple[Any, ...]:
        place = next((i for i, f in enumerate(_FORMATS) if f is self.memory_format), None)
        if place is None:
            raise RuntimeError(f"Invalid torch.memory_format: {self.memory_format}")
        encoded = list(_MEM_FORMAT_ENCODING)[place]
        return (self.dtype, self.layout, self.requires_grad, encoded, self.pin_memory, self.strides)

    def __setstate__(self, state: Any) -> None:
        # Older files have no strides.
        names = ("dtype", "layout", "requires_grad", "memory_format", "pin_memory", "strides")
        values = (*state, None)[: len(names)]
        self.__dict__.update(zip(names, values, strict=True))
        self.memory_format = _FORMATS[self.memory_format.value]  # type: ignore[attr-defined]

    @staticmethod
    def create_from_tensor(tensor: Tensor) -> TensorProperties:
        """The properties of a tensor."""
        strided = tensor.layout is _formats.strided
        return TensorProperties(
            dtype=tensor.dtype,
            layout=tensor.layout,
            requires_grad=tensor.requires_grad,
            memory_format=_formats.contiguous_format,
            pin_memory=strided and tensor.is_pinned(),
            strides=tuple(tensor.stride()) if strided else None,
        )


@dataclass
class TensorStorageMetadata:
    """A tensor of a checkpoint: its shape and the pieces that were saved."""

    properties: TensorProperties
    size: Size
    chunks: list[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """An object of a checkpoint that is no tensor."""


STORAGE_TYPES = TensorStorageMetadata | BytesStorageMetadata
STATE_DICT_TYPE = dict[str, StatefulT | Any]


@dataclass
class StorageMeta:
    """What a storage says of a checkpoint as a whole."""

    checkpoint_id: str | os.PathLike[str] | None = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list[str] = field(default_factory=list)


@dataclass
class Metadata:
    """A whole checkpoint.

    Args:
        state_dict_metadata (dict): what there is, by name.
        planner_data: what the planner that saved wants to know when it loads: the paths of names in nested dicts.
        storage_data: where the storage has put things: `MetadataIndex` -> file and place.
        storage_meta (StorageMeta): of the checkpoint as a whole.
        version (str): of the format.
    """

    state_dict_metadata: dict[str, STORAGE_TYPES]
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: StorageMeta | None = None
    version: str | None = None


@dataclass(frozen=True)
class MetadataIndex:
    """Which piece of which tensor, or which object.

    Args:
        fqn (str): the name.
        offset (sequence of int): where the piece begins; None of an object.
        index (int): a hint, the place among the pieces; it is not compared.
    """

    fqn: str
    offset: Size | None = None
    index: int | None = field(hash=False, compare=False, default=None)

    def __init__(self, fqn: str, offset: Sequence[int] | None = None, index: int | None = None) -> None:
        object.__setattr__(self, "fqn", fqn)
        object.__setattr__(self, "index", index)
        if offset is not None:
            object.__setattr__(self, "offset", Size(offset))
