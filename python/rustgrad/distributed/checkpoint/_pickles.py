"""The file `.metadata`: a pickle with PyTorch's names of classes. Reading one makes only what such a file has."""

from __future__ import annotations

import os
import pathlib
import pickle
import types
from collections import OrderedDict
from typing import Any

from ... import _C, _formats
from ..._C import Size
from ..._safe_globals import torch_name
from . import metadata

__all__ = ["dump", "load"]

_HOME = "torch.distributed.checkpoint."
_CLASSES = (
    "BytesStorageMetadata ChunkStorageMetadata Metadata MetadataIndex StorageMeta TensorProperties TensorStorageMetadata "
    "_MEM_FORMAT_ENCODING"
).split()
# Older files have the properties of sharded tensors' module.
_OLDER = "torch.distributed._shard.sharded_tensor.metadata"
_PATHS = ("PosixPath", "WindowsPath", "PurePosixPath", "PureWindowsPath", "Path", "PurePath")
_PROTOCOL = 4


def _path(name):
    """A class of paths; of another system's one that opens nothing."""
    here = "PosixPath" if os.name == "posix" else "WindowsPath"
    foreign = name in ("PosixPath", "WindowsPath") and name != here
    return getattr(pathlib, f"Pure{name}" if foreign else name)


def _known():
    """(module, name) in a file -> the object here."""
    from .filesystem import _StorageInfo

    known = {(f"{_HOME}metadata", name): getattr(metadata, name) for name in _CLASSES}
    known[f"{_HOME}filesystem", "_StorageInfo"] = _StorageInfo
    known[_OLDER, "TensorProperties"] = metadata.TensorProperties
    known[_OLDER, "MEM_FORMAT_ENCODING"] = metadata._MEM_FORMAT_ENCODING
    known |= {("torch", str(d).rpartition(".")[2]): d for d in vars(_C).values() if isinstance(d, _C.dtype)}
    known |= {("torch", "Size"): Size, ("torch.serialization", "_get_layout"): _formats.get_layout}
    known |= {(module, name): _path(name) for module in ("pathlib", "pathlib._local") for name in _PATHS}
    known |= {
        ("collections", "OrderedDict"): OrderedDict,
        ("builtins", "set"): set,
        ("builtins", "frozenset"): frozenset,
    }
    return known


class _Reader(pickle.Unpickler):
    def __init__(self, file, known):
        super().__init__(file)
        self.known = known

    def find_class(self, module, name):
        if (module, name) not in self.known:
            raise pickle.UnpicklingError(
                f"checkpoint metadata: the file names {module}.{name}, which metadata does not have; it is not loaded."
            )
        return self.known[module, name]


def load(file: Any) -> Any:
    """The metadata in a file.

    Raises:
        pickle.UnpicklingError: the file is damaged, or names something that metadata does not have.
    """
    try:
        found = _Reader(file, _known()).load()
    except pickle.UnpicklingError:
        raise
    except Exception as error:
        raise pickle.UnpicklingError(f"checkpoint metadata: {type(error).__name__}: {error}") from error
    if not isinstance(found, metadata.Metadata):
        raise pickle.UnpicklingError(f"checkpoint metadata: expected Metadata, got {type(found).__name__}")
    return found


class _Writer(pickle._Pickler):  # type: ignore[name-defined]
    def __init__(self, file):
        super().__init__(file, _PROTOCOL)
        # Older files' names and paths are read alone.
        self.names = {
            id(value): where
            for where, value in _known().items()
            if where[0] not in (_OLDER, "pathlib", "pathlib._local")
        }

    def reducer_override(self, obj):
        if isinstance(obj, Size):
            return Size, (tuple(obj),)
        if isinstance(obj, _formats.layout):
            return _formats.get_layout, (str(obj).replace("rustgrad.", "torch."),)
        if isinstance(obj, _C.dtype):
            return str(obj).rpartition(".")[2]
        # Without this, functions would bypass `save_global` below.
        return obj.__qualname__ if isinstance(obj, types.FunctionType) else NotImplemented

    def save_global(self, obj, name=None):
        where = self.names.get(id(obj))
        if where is None:
            name = name or getattr(obj, "__qualname__", None) or obj.__name__
            where = (torch_name(obj.__module__), name)
        self.save(where[0])
        self.save(where[1])
        self.write(pickle.STACK_GLOBAL)
        self.memoize(obj)


def dump(found: metadata.Metadata, file: Any) -> None:
    """Writes metadata, as PyTorch reads it."""
    _Writer(file).dump(found)
