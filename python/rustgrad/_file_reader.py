"""The records of a checkpoint file, by name."""

from __future__ import annotations

import os
import zipfile
from typing import IO

__all__ = ["PyTorchFileReader"]


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
        return self._archive.read(self._root + name)
