"""The records of a checkpoint file, by name: a reader and a writer."""

from __future__ import annotations

import ctypes
import functools
import os
import zipfile
from typing import IO, Any

from ._archive import add_entry, entry_bytes
from ._checkpoint_files import Sink
from .storage import TypedStorage, UntypedStorage, lend

__all__ = ["PyTorchFileReader", "PyTorchFileWriter"]


class PyTorchFileReader:
    """The records of a file that `save` has written. Their names are those in the archive without its first folder.

    Args:
        name (path or file): the file.

    Raises:
        RuntimeError: it is not a zip archive, or is empty.
    """

    def __init__(self, name: str | os.PathLike[str] | IO[bytes]) -> None:
        try:
            self._archive = zipfile.ZipFile(name)
        except zipfile.BadZipFile as error:
            raise RuntimeError(f"PytorchStreamReader failed reading zip archive: {error}") from None
        names = self._archive.namelist()
        if not names:
            raise RuntimeError("PytorchStreamReader failed reading zip archive: it has no records")
        self._root = names[0].split("/", 1)[0] + "/"

    def get_all_records(self) -> list[str]:
        """The names of the records."""
        return [name.removeprefix(self._root) for name in self._archive.namelist()]

    def has_record(self, name: str) -> bool:
        """Whether there is a record of that name."""
        return self._root + name in self._archive.NameToInfo

    def get_record(self, name: str) -> bytes:
        """The bytes of a record. RuntimeError if there is none of that name."""
        if not self.has_record(name):
            raise RuntimeError(f"PytorchStreamReader failed locating file {name}: file not found")
        return entry_bytes(self._archive, self._root + name)


class PyTorchFileWriter:
    """Writes a file of records one by one, as `save` does at once. `write_end_of_file` ends it.

    Args:
        file (path or binary file): a file needs only `write`.
        compute_crc32 (bool): False writes no checksums.
        storage_alignment (int): the bytes of a record start at a multiple of it.
    """

    def __init__(
        self, file: str | os.PathLike[str] | IO[bytes], compute_crc32: bool = True, storage_alignment: int = 64
    ) -> None:
        is_path = isinstance(file, (str, os.PathLike))
        self._root = os.path.splitext(os.path.basename(os.fspath(file)))[0] if is_path else "archive"
        self._add = functools.partial(add_entry, checked=None if compute_crc32 else False, align=storage_alignment)
        self._archive = zipfile.ZipFile(file if is_path else Sink(file), "w", zipfile.ZIP_STORED)
        self._records: set[str] = set()
        self._version, self._ended = 3, False

    def archive_name(self) -> str:
        """The folder of the records in the archive."""
        return self._root

    def set_min_version(self, version: int) -> None:
        """The file's version is at least this."""
        self._version = max(self._version, version)

    def get_all_written_records(self) -> set[str]:
        """The names of the records so far."""
        return set(self._records)

    def write_record(self, name: str, data: str | bytes | TypedStorage | UntypedStorage | int, size: int) -> None:
        """Adds a record: the first `size` bytes of a text, of bytes, of a storage, or of memory by its address.

        Raises:
            RuntimeError: the file has ended, or has a record of that name.
            ValueError: `data` has fewer bytes.
        """
        if self._ended or name in self._records:
            problem = "the file has ended" if self._ended else f"Tried to serialize file twice: {name}"
            raise RuntimeError(f"write_record: {problem}; expected a new name, got {name!r}. Hint: use another writer.")

        def add(found: Any) -> None:
            view = memoryview(found).cast("B")
            if len(view) < size:
                raise ValueError(
                    f"write_record: too few bytes; expected {size}, got {len(view)}. Hint: pass their count."
                )
            self._add(self._archive, f"{self._root}/{name}", view[:size])

        if isinstance(data, (TypedStorage, UntypedStorage)):
            lend(data.untyped(), add)
        elif isinstance(data, int):
            add((ctypes.c_char * size).from_address(data))
        else:
            add(data.encode() if isinstance(data, str) else data)
        self._records.add(name)

    def write_end_of_file(self) -> None:
        """Adds the version and the order of bytes, and ends the file."""
        # Packages and archives of TorchScript in them keep what is no resource in `.data`.
        hidden = ".data/" if any(name.startswith(".data/") for name in self._records) else ""
        for name, text in (f"{hidden}version", f"{self._version}\n"), ("byteorder", "little"):
            if name not in self._records:
                self.write_record(name, text, len(text))
        self._archive.close()
        self._ended = True
