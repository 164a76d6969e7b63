"""Another name of `_fsspec_filesystem`."""

from ._fsspec_filesystem import FsspecReader as FsspecReader
from ._fsspec_filesystem import FsspecWriter as FsspecWriter

__all__ = ["FsspecReader", "FsspecWriter"]


def __dir__() -> list[str]:
    return __all__
