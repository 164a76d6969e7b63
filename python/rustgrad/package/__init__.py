"""Packages: archives of pickled objects together with the code of their classes, in PyTorch's format.

Each of the two libraries reads the other's packages; `torch` in a package means the library that loads it. A package
holds code, which loading runs: load only what you trust.
"""

from .analyze.is_from_package import is_from_package
from .glob_group import Directory, GlobGroup
from .importer import Importer, ObjMismatchError, ObjNotFoundError, OrderedImporter, sys_importer
from .package_exporter import EmptyMatchError, PackageExporter, PackagingError
from .package_importer import PackageImporter

__all__ = ["Directory", "EmptyMatchError", "GlobGroup", "Importer", "ObjMismatchError", "ObjNotFoundError",
           "OrderedImporter", "PackageExporter", "PackageImporter", "PackagingError", "is_from_package",
           "sys_importer"]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
