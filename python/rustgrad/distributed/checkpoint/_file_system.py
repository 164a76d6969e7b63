"""Places of files: what a storage in a directory asks of them."""

from __future__ import annotations

import contextlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["FileSystem", "FileSystemBase"]


class FileSystemBase(ABC):
    """What a place of files can do."""

    @abstractmethod
    def create_stream(self, path: str | os.PathLike[str], mode: str) -> Any:
        """An open file, as a context."""

    @abstractmethod
    def concat_path(self, path: str | os.PathLike[str], suffix: str) -> str | os.PathLike[str]:
        """The path of a file in a directory."""

    @abstractmethod
    def rename(self, path: str | os.PathLike[str], new_path: str | os.PathLike[str]) -> None:
        """Gives a file another name; a file of that name is replaced."""

    @abstractmethod
    def init_path(self, path: str | os.PathLike[str]) -> str | os.PathLike[str]:
        """A path as this class has it."""

    @abstractmethod
    def mkdir(self, path: str | os.PathLike[str]) -> None:
        """Makes a directory, and those above it."""

    @classmethod
    @abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Whether a path may be that of a checkpoint."""

    @abstractmethod
    def exists(self, path: str | os.PathLike[str]) -> bool:
        """Whether there is a file."""

    @abstractmethod
    def rm_file(self, path: str | os.PathLike[str]) -> None:
        """Removes a file."""


class FileSystem(FileSystemBase):
    """Files of this machine, or what is mounted there."""

    @contextlib.contextmanager
    def create_stream(self, path: str | os.PathLike[str], mode: str) -> Iterator[Any]:
        """An open file, as a context."""
        with open(path, mode) as stream:
            yield stream

    def concat_path(self, path: str | os.PathLike[str], suffix: str) -> str | os.PathLike[str]:
        """The path of a file in a directory."""
        return Path(path) / suffix

    def init_path(self, path: str | os.PathLike[str]) -> str | os.PathLike[str]:
        """A path."""
        return Path(path)

    def rename(self, path: str | os.PathLike[str], new_path: str | os.PathLike[str]) -> None:
        """Gives a file another name; a file of that name is replaced."""
        os.replace(path, new_path)

    def mkdir(self, path: str | os.PathLike[str]) -> None:
        """Makes a directory, and those above it."""
        Path(path).mkdir(parents=True, exist_ok=True)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Whether a path is one of this machine, and there is a directory above it."""
        if isinstance(checkpoint_id, Path):
            return True
        if "://" in str(checkpoint_id):
            return False
        return any(p.exists() and os.access(str(p), os.W_OK) for p in Path(checkpoint_id).absolute().parents)

    def exists(self, path: str | os.PathLike[str]) -> bool:
        """Whether there is a file."""
        return Path(path).exists()

    def rm_file(self, path: str | os.PathLike[str]) -> None:
        """Removes a file."""
        Path(path).unlink()

    def ls(self, path: str | os.PathLike[str]) -> list[str]:
        """The files in a directory."""
        return sorted(os.listdir(path))
