"""The bytes of the entries of a zip archive, which a checkpoint is: of files too that were written without checksums."""

from __future__ import annotations

import os
import struct
import zipfile

from ._unpickler import CheckpointError

# At byte 26 of an entry's local header: of its name, and of what stands between that and its bytes.
LENGTHS = struct.Struct("<HH")


def _start(file, info):
    """Where the bytes of an entry start, behind its local header."""
    file.seek(info.header_offset + 26)
    return info.header_offset + 30 + sum(LENGTHS.unpack(exactly(file, 4)))


def entry_bytes(archive, entry):
    """The bytes of an entry. One that was written without a checksum has zero there."""
    try:
        info = entry if isinstance(entry, zipfile.ZipInfo) else archive.getinfo(entry)
        plain = info.compress_type == zipfile.ZIP_STORED and info.compress_size == info.file_size
        if info.CRC or not plain or info.flag_bits & 1:
            return archive.read(entry)
        at = _start(archive.fp, info)
        if at + info.file_size > archive.fp.seek(0, os.SEEK_END):
            raise EOFError("it reaches past the end of the file")
        archive.fp.seek(at)
        return exactly(archive.fp, info.file_size)
    except (EOFError, OSError, OverflowError, MemoryError, ValueError, RuntimeError) as error:
        name = getattr(entry, "filename", entry)
        raise CheckpointError(f"the entry {name} cannot be read ({type(error).__name__}: {error})") from None


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
