"""Checkpoints in a directory: `.metadata`, and for each rank `__0_0.distcp`, in which each tensor is a file of `save`."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import uuid
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from ..._C import Tensor
from ...futures import Future
from . import _pickles
from ._file_system import FileSystem, FileSystemBase
from .metadata import Metadata, MetadataIndex, StorageMeta
from .planner import LoadItemType, LoadPlan, LoadPlanner, SavePlan, SavePlanner, WriteItem, WriteItemType
from .staging import BlockingAsyncStager
from .storage import StorageReader, StorageWriter, WriteResult
from .utils import _create_file_view

__all__ = ["FileSystem", "FileSystemBase", "FileSystemReader", "FileSystemWriter", "SerializationFormat"]

_metadata_fn = ".metadata"
DEFAULT_SUFFIX = ".distcp"


@dataclass
class _StorageInfo:
    """Where something is: a file of the directory, and the part of it."""

    relative_path: str
    offset: int
    length: int
    transform_descriptors: Sequence[str] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if v is not None}


@dataclass
class _StoragePrefix:
    """How the names of a rank's files begin."""

    prefix: str


class SerializationFormat(Enum):
    """How tensors are written."""

    TORCH_SAVE = "torch_save"
    SAFETENSORS = "safetensors"


def _metadata_name(rank: int | None) -> str:
    """The file of metadata, or that of one rank alone."""
    return _metadata_fn if rank is None else f"__{rank}{_metadata_fn}"


def _generate_uuid() -> str:
    """A name of one save or load."""
    return str(uuid.uuid4())


def _item_size(item: WriteItem) -> int:
    """The bytes of a tensor; zero of an object, whose bytes are not known yet."""
    return item.tensor_storage_size() or 0


def _split_by_size_and_type(bins: int, items: list[WriteItem]) -> list[list[WriteItem]]:
    """Items for several files of about the same size."""
    if bins == 1:
        return [items]
    made: list[list[WriteItem]] = [[] for _ in range(bins)]
    objects = [item for item in items if item.type is WriteItemType.BYTE_IO]
    tensors = sorted((i for i in items if i.type is not WriteItemType.BYTE_IO), key=_item_size, reverse=True)
    for n, item in enumerate(objects):
        made[n % bins].append(item)
    sizes = [0] * bins
    for item in tensors:
        least = sizes.index(min(sizes))
        made[least].append(item)
        sizes[least] += _item_size(item)
    return made


class _Directory:
    """What a writer and a reader of a directory tell of it."""

    path: str | os.PathLike[str]

    @property
    def checkpoint_id(self) -> str | os.PathLike[str]:
        """The directory."""
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Whether a path is one of this machine."""
        return FileSystem.validate_checkpoint_id(checkpoint_id)


class _FileSystemWriter(_Directory, StorageWriter):
    """`FileSystemWriter` without what `async_save` needs."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        single_file_per_rank: bool = True,
        sync_files: bool = True,
        thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000,
        overwrite: bool = True,
        _extensions: Sequence[Any] | None = None,
        serialization_format: SerializationFormat = SerializationFormat.TORCH_SAVE,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        if _extensions or serialization_format is not SerializationFormat.TORCH_SAVE:
            raise NotImplementedError(
                "FileSystemWriter: compressed files and files of safetensors are not written; expected the defaults. "
                "Hint: rustgrad.utils.safetensors writes the latter."
            )
        self.fs: FileSystemBase = FileSystem()
        self.path = self.fs.init_path(path)
        self.single_file_per_rank, self.sync_files, self.thread_count = single_file_per_rank, sync_files, thread_count
        self.per_thread_copy_ahead, self.overwrite = per_thread_copy_ahead, overwrite
        self.save_id, self.is_coordinator = _generate_uuid(), False
        self.rank: int | None = None

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Begins a save, into another directory if one is given."""
        if checkpoint_id:
            self.path = self.fs.init_path(checkpoint_id)
        self.save_id = _generate_uuid()

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Says whether this rank writes the metadata; with `use_collectives=False` each `rank` writes its own."""
        self.is_coordinator = is_coordinator
        self.rank = None if kwargs.get("use_collectives", True) else kwargs.get("rank")

    def _metadata_exists(self) -> bool:
        """Whether a checkpoint is there already."""
        return self.fs.exists(self._get_metadata_path())

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """Makes the directory. RuntimeError: a checkpoint is there, and `overwrite` is False."""
        self.fs.mkdir(self.path)
        if (self.is_coordinator or self.rank is not None) and self._metadata_exists():
            if not self.overwrite:
                raise RuntimeError("Checkpoint already exists and self.overwrite=False.")
            warnings.warn(
                f"Detected an existing checkpoint in {self.path}, overwriting since self.overwrite=True. Set this variable to "
                "False to raise when an existing checkpoint is found.",
                stacklevel=2,
            )
            # Its files are written anew: without this a save that fails would leave metadata of other files.
            self.fs.rm_file(self._get_metadata_path())
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Gives each rank its names of files."""
        first = self.rank or 0
        return [
            dataclasses.replace(plan, storage_data=_StoragePrefix(f"__{i}_")) for i, plan in enumerate(plans, first)
        ]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future:
        """Writes the items of a plan: one file, one for each thread, or one for each item."""
        prefix = plan.storage_data.prefix
        if self.single_file_per_rank:
            parts = _split_by_size_and_type(self.thread_count, plan.items)
        else:
            parts = [[item] for item in plan.items]
        files = [(f"{prefix}{i}{DEFAULT_SUFFIX}", part) for i, part in enumerate(parts) if part]
        if self.thread_count > 1 and len(files) > 1:
            with ThreadPoolExecutor(self.thread_count) as pool:
                written = list(pool.map(lambda file: self._write_file(*file, planner), files))
        else:
            written = [self._write_file(*file, planner) for file in files]
        done: Future = Future()
        done.set_result([result for results in written for result in results])
        return done

    def _write_file(self, name, items, planner):
        """Writes objects, then tensors, into a file."""
        results = []
        with self.fs.create_stream(self.fs.concat_path(self.path, name), "wb") as stream:
            for item in sorted(items, key=lambda i: i.type is not WriteItemType.BYTE_IO):
                results.append(_write_item(stream, planner.resolve_data(item), item, name))
            if self.sync_files:
                _sync(stream)
        return results

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Writes the metadata under another name, which becomes `.metadata` when all is written."""
        metadata.storage_data = {r.index: r.storage_data for of_rank in results for r in of_rank}
        metadata.storage_meta = self.storage_meta()
        path = self._get_metadata_path()
        temporary = self.fs.concat_path(self.path, f"{Path(path).name}.tmp")
        try:
            with self.fs.create_stream(temporary, "wb") as stream:
                _pickles.dump(metadata, stream)
                if self.sync_files:
                    _sync(stream)
            self.fs.rename(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                self.fs.rm_file(temporary)
            raise

    def storage_meta(self) -> StorageMeta | None:
        """The directory, and a name of this save."""
        return StorageMeta(checkpoint_id=self.checkpoint_id, save_id=self.save_id)

    def _get_metadata_path(self) -> Any:
        return self.fs.concat_path(self.path, _metadata_name(self.rank))


def _sync(stream):
    """Waits until a file is on the disk, where its system can say so."""
    stream.flush()
    with contextlib.suppress(AttributeError, io.UnsupportedOperation):
        os.fsync(stream.fileno())


def _write_item(stream, data, item, name):
    """Writes one item at the end of a file."""
    from ...serialization import save

    offset = stream.tell()
    if item.type is WriteItemType.BYTE_IO:
        if not isinstance(data, io.BytesIO):
            raise AssertionError(f"{item.index.fqn}: expected the bytes of an object, got {type(data).__name__}")
        stream.write(data.getbuffer())
    else:
        if not isinstance(data, Tensor):
            raise AssertionError(f"{item.index.fqn}: expected a tensor, got {type(data).__name__}")
        data = data.detach().cpu()
        if data.untyped_storage().nbytes() != data.numel() * data.element_size():
            data = data.clone()  # a view is written without the rest of its memory
        made = io.BytesIO()
        save(data, made)
        stream.write(made.getbuffer())
    length = stream.tell() - offset
    return WriteResult(item.index, length, _StorageInfo(name, offset, length))


class FileSystemReader(_Directory, StorageReader):
    """Reads a checkpoint in a directory.

    Args:
        path (str or PathLike): the directory.
    """

    def __init__(self, path: str | os.PathLike[str], _extension_registry: Any = None) -> None:
        super().__init__()
        self.fs: FileSystemBase = FileSystem()
        self.path = self.fs.init_path(path)
        self.storage_data: dict[MetadataIndex, _StorageInfo] = {}
        self.load_id = _generate_uuid()

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Begins a load, from another directory if one is given."""
        self.storage_data = {}
        if checkpoint_id:
            self.path = self.fs.init_path(checkpoint_id)
        self.load_id = _generate_uuid()

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """The metadata; of one rank alone if `rank` is given.

        Raises:
            OSError: there is none.
            pickle.UnpicklingError: the file is damaged, or names something that metadata does not have.
        """
        with self.fs.create_stream(self._get_metadata_path(kwargs.get("rank")), "rb") as file:
            metadata = _pickles.load(file)
        if metadata.storage_meta is None:
            metadata.storage_meta = StorageMeta()
        metadata.storage_meta.load_id = self.load_id
        return metadata

    def _get_metadata_path(self, rank: int | None = None) -> Any:
        return self.fs.concat_path(self.path, _metadata_name(rank))

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Says where things are."""
        if metadata.storage_data is None:
            raise AssertionError("set_up_storage_reader: expected metadata with storage_data, got None")
        self.storage_data = metadata.storage_data

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """The plan as it is."""
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """The plans as they are."""
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future:
        """Reads the items of a plan, file by file.

        Raises:
            NotImplementedError: a file is compressed.
            ValueError: a piece has not the size that is read.
        """
        files: dict[str, list[Any]] = {}
        for item in plan.items:
            info = self.storage_data[item.storage_index]
            if info.transform_descriptors:
                raise NotImplementedError(
                    f"{info.relative_path}: compressed files ({', '.join(info.transform_descriptors)}) are not read."
                )
            files.setdefault(self._checked(info.relative_path), []).append((info, item))
        for name, items in files.items():
            with self.fs.create_stream(self.fs.concat_path(self.path, name), "rb") as stream:
                for info, item in sorted(items, key=lambda pair: pair[0].offset):
                    self._read_item(stream, info, item, planner)
        done: Future = Future()
        done.set_result(None)
        return done

    @staticmethod
    def _checked(name):
        """A name of a file of the directory. ValueError: it leads out of it."""
        if os.path.isabs(name) or ".." in Path(name).parts:
            raise ValueError(f"checkpoint metadata: expected a file of the directory, got {name!r}")
        return name

    def _slice_file(self, file: Any, sinfo: _StorageInfo) -> Any:
        """The part of a file where something is."""
        return _create_file_view(file, sinfo.offset, sinfo.length)

    def _read_item(self, stream, info, item, planner):
        from ...autograd import no_grad
        from ...serialization import load

        data = io.BytesIO(self._slice_file(stream, info).read(info.length))
        if item.type is LoadItemType.BYTE_IO:
            planner.load_bytes(item, data)
            return
        tensor = load(data, map_location="cpu", weights_only=True)
        for dim, (start, length) in enumerate(zip(item.storage_offsets, item.lengths, strict=True)):
            if tensor.shape[dim] != length:
                tensor = tensor.narrow(dim, start, length)
        target = planner.resolve_tensor(item).detach()
        if target.size() != tensor.size():
            raise ValueError(f"req {item.storage_index} mismatch sizes {target.size()} vs {tensor.size()}")
        with no_grad():
            target.copy_(tensor)
        planner.commit_tensor(item, target)


class FileSystemWriter(_FileSystemWriter, BlockingAsyncStager):
    """Writes a checkpoint into a directory.

    Args:
        path (str or PathLike): the directory, which is made.
        single_file_per_rank (bool): one file for each rank (and thread); else one for each tensor.
        sync_files (bool): wait until files are on the disk.
        thread_count (int): how many threads write, each a file of its own.
        per_thread_copy_ahead (int): accepted; tensors are copied one by one.
        cache_staged_state_dict (bool): `async_save` keeps its copy for the next save.
        overwrite (bool): a checkpoint that is there is replaced, with a warning; else it is an error.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        single_file_per_rank: bool = True,
        sync_files: bool = True,
        thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000,
        cache_staged_state_dict: bool = False,
        overwrite: bool = True,
        _extensions: Sequence[Any] | None = None,
        serialization_format: SerializationFormat = SerializationFormat.TORCH_SAVE,
    ) -> None:
        _FileSystemWriter.__init__(
            self,
            path,
            single_file_per_rank,
            sync_files,
            thread_count,
            per_thread_copy_ahead,
            overwrite,
            _extensions,
            serialization_format,
        )
        BlockingAsyncStager.__init__(self, cache_staged_state_dict)

    def stage(self, state_dict: dict[str, Any]) -> dict[str, Any]:
        """A copy of the state dict, which is written while the program goes on."""
        return BlockingAsyncStager.stage(self, state_dict)
