"""The pickler of packages."""

from __future__ import annotations

import pickle
from typing import IO, TYPE_CHECKING, Any

from ..serialization import _Writer
from .importer import ObjMismatchError, ObjNotFoundError, attribute

if TYPE_CHECKING:
    from .package_exporter import PackageExporter


class PackagePickler(_Writer, pickle._Pickler):  # type: ignore[misc, name-defined]
    """A checkpoint's pickler, which finds classes through an importer and notes what it names."""

    def __init__(self, exporter: PackageExporter, file: IO[bytes], protocol: int) -> None:
        super().__init__(file, protocol)
        self.exporter, self.storages = exporter, exporter._storages
        self.named: dict[str, list[str]] = {}

    def persistent_id(self, obj: Any) -> Any:
        if not isinstance(obj, type) and hasattr(type(obj), "__reduce_package__"):
            reduced = self.exporter._reduced
            if id(obj) not in reduced:
                # With the object, so that no other gets its id.
                reduced[id(obj)] = (("reduce_package", id(obj), *obj.__reduce_package__(self.exporter)), obj)
            return reduced[id(obj)][0]
        return super().persistent_id(obj)

    def save_global(self, obj: Any, name: str | None = None) -> None:
        where = self.place_of(obj, name)
        if where is None:
            try:
                where = self.exporter.importer.get_name(obj, name)
            except (ObjNotFoundError, ObjMismatchError) as error:
                raise pickle.PicklingError(f"Can't pickle {obj}: {error}") from error
        # Names of Python 2 are for checkpoints, whose pickles are of protocol 2.
        module, name = where[0].replace("__builtin__", "builtins").replace("copy_reg", "copyreg"), where[1]
        self.named.setdefault(module, []).append(name)
        parent, _, last = name.rpartition(".")
        if parent:
            found = attribute(self.exporter.importer.import_module(module), parent)
            self.save_reduce(getattr, (found, last))
        else:
            self.write(b"c" + f"{module}\n{name}\n".encode())
        self.memoize(obj)
