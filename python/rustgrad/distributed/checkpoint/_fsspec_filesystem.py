"""Names that libraries import: storages over the package fsspec, of which there are none here."""

from .._refusals import refusing_class

__all__ = ["FsspecReader", "FsspecWriter"]

_HINT = "save into a directory and copy it, or write a StorageWriter and a StorageReader."
FsspecReader = refusing_class(__name__, "FsspecReader", _HINT)
FsspecWriter = refusing_class(__name__, "FsspecWriter", _HINT)


def __dir__() -> list[str]:
    return __all__
