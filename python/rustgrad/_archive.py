"""The bytes of the entries of a zip archive, which a checkpoint is: of files too that were written without checksums."""

from __future__ import annotations

import contextlib
import io
import os
import struct
import zipfile

from . import _C
from ._save_options import get_crc32_options
from ._unpickler import CheckpointError

# At byte 26 of an entry's local header: of its name, and of what stands between that and its bytes.
LENGTHS = struct.Struct("<HH")


def _start(file, info):
    """Where the bytes of an entry start, behind its local header."""
    file.seek(info.header_offset + 26)
    return info.header_offset + 30 + sum(LENGTHS.unpack(exactly(file, 4)))


def entry_bytes(archive, entry):
    """The bytes of an entry. One that was written without a checksum has zero there."""
    with _naming(entry):
        info = entry if isinstance(entry, zipfile.ZipInfo) else archive.getinfo(entry)
        if info.CRC or not is_plain(info):
            return archive.read(entry)
        _find(archive.fp, info)
        return exactly(archive.fp, info.file_size)


def is_plain(info):
    """Whether the bytes of an entry stand in the archive as they are."""
    stored = info.compress_type == zipfile.ZIP_STORED and info.compress_size == info.file_size
    return stored and not info.flag_bits & 1


def entry_into(archive, info, make):
    """What `make(fill)` returns: it calls `fill(view)` with a view of as many bytes as a plain entry has, once the file has them."""

    def fill(view):
        fill_exactly(archive.fp, view)
        if info.CRC and _C._crc32(view) != info.CRC:
            raise zipfile.BadZipFile(f"Bad CRC-32 for file {info.filename!r}")

    with _naming(info):
        _find(archive.fp, info)
        return make(fill)


def _find(file, info):
    """Goes to the first byte of an entry."""
    at = _start(file, info)
    if at + info.file_size > file.seek(0, os.SEEK_END):
        raise EOFError("it reaches past the end of the file")
    file.seek(at)


@contextlib.contextmanager
def _naming(entry):
    """Adds the name of an entry to errors."""
    try:
        yield
    except (EOFError, OSError, OverflowError, MemoryError, ValueError, RuntimeError) as error:
        if isinstance(error, CheckpointError):
            raise
        name = getattr(entry, "filename", entry)
        raise CheckpointError(f"the entry {name} cannot be read ({type(error).__name__}: {error})") from None


def fill_exactly(file, view):
    """Reads as many bytes as a view has, into it."""
    at = 0
    while at < len(view):
        try:
            got = file.readinto(view[at:])
        except io.UnsupportedOperation:
            data = file.read(len(view) - at)
            got = len(data)
            view[at : at + got] = data
        if not got:
            raise CheckpointError("the file is cut short")
        at += got


def exactly(file, count):
    """`count` bytes; a file without a buffer may give fewer at a time (Linux reads 2 GiB at most)."""
    data = file.read(count)
    if len(data) < count:
        parts = [data]
        while parts[-1] and sum(map(len, parts)) < count:
            parts.append(file.read(count - sum(map(len, parts))))
        data = b"".join(parts)
    if len(data) != count:
        raise CheckpointError("the file is cut short")
    return data


def add_entry(archive, name, data, checked=None, align=64):
    """Adds an entry with these bytes; with a checksum if `checked`, which None leaves to the options of `save`."""
    # As `writestr` does, with a faster checksum, or with none.
    checked = get_crc32_options() if checked is None else checked
    _head(archive, name, len(data), _C._crc32(data) if checked else 0, align)
    archive.fp.write(data)
    archive.start_dir = archive.fp.tell()


def add_room(archive, name, nbytes, block=1 << 20):
    """Adds an entry of `nbytes` zeros, without a checksum: bytes that are filled in later would not fit to it."""
    _head(archive, name, nbytes, 0)
    for start in range(0, nbytes, block):
        archive.fp.write(bytes(min(block, nbytes - start)))
    archive.start_dir = archive.fp.tell()


def _head(archive, name, nbytes, checksum, align=64):
    """Starts an entry whose bytes start at a multiple of `align`, so that a mapped file can be used as it is."""
    info = zipfile.ZipInfo(name)
    at = archive.fp.tell() + 30 + len(name.encode()) + 4
    info.extra = struct.pack("<HH", 0x4246, -at % align) + b"Z" * (-at % align)
    info.CRC = checksum
    info.file_size = info.compress_size = nbytes
    info.external_attr = 0o600 << 16
    info.header_offset = archive.fp.tell()
    archive.fp.write(info.FileHeader())
    archive.filelist.append(info)
    archive.NameToInfo[name] = info
    archive._didModify = True
