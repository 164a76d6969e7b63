"""Memory-mapped files: a tensor's memory is the file, or a private copy-on-write mapping of it."""

from __future__ import annotations

import mmap
import os
import weakref
from os import PathLike

from . import _C
from ._C import Tensor, ops


class _Mapping(mmap.mmap):
    """A memory-mapped file with its path."""

    path = None


# By the address of the first byte, which is unique while the mapping lives.
_MAPPINGS = weakref.WeakValueDictionary()


def map_file(filename: str | PathLike[str], shared: bool, nbytes: int) -> Tensor:
    """The first bytes of a file as a uint8 tensor; see `UntypedStorage.from_file`."""
    path = os.fspath(filename)
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT if shared else os.O_RDONLY, 0o600)
    except OSError as error:
        mode = "read-write" if shared else "read-only"
        raise RuntimeError(f"unable to open file <{path}> in {mode} mode: {error.strerror} ({error.errno})") from None
    try:
        size = os.fstat(file).st_size
        if size < nbytes and not shared:
            raise RuntimeError(f"file <{path}> size <{size}> is smaller than the required mapping size <{nbytes}>")
        if size < nbytes:
            os.truncate(file, nbytes)
        if nbytes == 0:
            return ops["empty"](0, dtype=_C.uint8)
        mapping = _Mapping(file, nbytes, access=mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY)
    finally:
        os.close(file)
    tensor = _C.frombuffer(mapping, dtype=_C.uint8)
    if shared:
        mapping.path = path
        _MAPPINGS[tensor.data_ptr()] = mapping
    return tensor


def path_at(address: int) -> str | None:
    """The path of the file shared at an address, or None."""
    mapping = _MAPPINGS.get(address)
    return None if mapping is None else mapping.path
