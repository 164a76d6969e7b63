"""The storage of a call of `save` or `load`."""

from __future__ import annotations

import os
import warnings
from typing import Any

from .. import is_available, is_initialized
from .filesystem import FileSystemReader, FileSystemWriter


def _alone(no_dist: bool, intent: str) -> bool:
    """Whether this process works alone, which its caller's caller is warned of."""
    alone = no_dist or not is_available() or not is_initialized()
    if alone:
        warnings.warn(
            f"torch.distributed is disabled, unavailable or uninitialized, assuming the intent is to {intent} in a single process.",
            stacklevel=3,
        )
    return alone


def _storage_setup(storage: Any, checkpoint_id: str | os.PathLike[str] | None, reader: bool = False) -> Any:
    """The storage that was given, or that of a directory.

    Raises:
        RuntimeError: neither is given, or the name is none of a directory.
    """
    if storage is not None:
        if checkpoint_id is not None:
            storage.reset(checkpoint_id)
        return storage
    if not checkpoint_id:
        raise RuntimeError("`checkpoint_id` must be specified if storage_reader/storage_writer is None.")
    if "://" in str(checkpoint_id):
        raise RuntimeError(
            f"Cannot detect which StorageReader or StorageWriter to use for {checkpoint_id}; expected a directory. Hint: pass "
            "storage_reader or storage_writer."
        )
    return FileSystemReader(checkpoint_id) if reader else FileSystemWriter(checkpoint_id)
