"""The files that checkpoints are read from and written to: Python's own, and objects that have some of their methods."""

from __future__ import annotations

import contextlib
import io
import os

__all__ = ["Sink", "opened"]


class Sink:
    """A file written sequentially: a compressing or sending file cannot seek."""

    def __init__(self, file):
        self.file, self.at = file, 0

    def write(self, data):
        self.file.write(data)
        self.at += len(data)
        return len(data)

    def tell(self):
        return self.at

    def flush(self):
        getattr(self.file, "flush", lambda: None)()


def _reads_into(f):
    """Whether an object of another kind than Python's files, whose decompressors are slow to seek, can be used as a file."""
    methods = ("read", "readinto", "readline", "seek", "tell")
    return not isinstance(f, io.IOBase) and all(callable(getattr(f, name, None)) for name in methods)


class _Seekable:
    """A file that can seek, and says so."""

    def __init__(self, file):
        self._file = file

    def __getattr__(self, name):
        return getattr(self._file, name)

    def seekable(self):
        return True


@contextlib.contextmanager
def opened(f):
    """`f` as a seekable file; one that cannot seek (a decompressor) is read into memory."""
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            yield file
    elif isinstance(f, (io.BytesIO, io.BufferedReader, io.BufferedRandom, io.FileIO)):
        yield f
    elif _reads_into(f):
        yield f if hasattr(f, "seekable") else _Seekable(f)
    else:
        start = f.tell()
        whole = io.BytesIO(f.read())
        yield whole
        f.seek(start + whole.tell())
