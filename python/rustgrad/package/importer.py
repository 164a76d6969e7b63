"""Where modules are found: in the process, in a package, or in several of these in turn."""

from __future__ import annotations

import importlib
import logging
import pickle
import sys
from abc import ABC, abstractmethod
from types import ModuleType
from typing import Any

from .._own import OWN, stands_for_torch
from ._mangling import demangle, get_mangle_prefix, is_mangled

__all__ = ["Importer", "ObjMismatchError", "ObjNotFoundError", "OrderedImporter", "sys_importer"]

_log = logging.getLogger(__name__)


class ObjNotFoundError(Exception):
    """No object of that name is where the object says that it is."""


class ObjMismatchError(Exception):
    """Another object has the object's name."""


def import_here(name: str) -> ModuleType:
    """A module of the process. `torch` is this package, also where the process has PyTorch beside it."""
    if (name == "torch" or name.startswith("torch.")) and not stands_for_torch():
        name = OWN + name.removeprefix("torch")
    return importlib.import_module(name)


def attribute(obj: Any, path: str) -> Any:
    """`obj.a.b` for the path "a.b"."""
    for part in path.split("."):
        obj = getattr(obj, part)
    return obj


class Importer(ABC):
    """A set of modules by name. A class derived from it defines `import_module`, and has a dict `modules`."""

    modules: dict[str, ModuleType]

    @abstractmethod
    def import_module(self, module_name: str) -> ModuleType:
        """The module of that name. ModuleNotFoundError if there is none."""

    def get_name(self, obj: Any, name: str | None = None) -> tuple[str, str]:
        """The module and the name in it under which `import_module` gives this object.

        Args:
            obj: a class or function, or an object whose `__reduce__` returns its name.
            name (str): instead of the object's own name.

        Raises:
            ObjNotFoundError: there is no object of that name.
            ObjMismatchError: it is another object.
        """
        name = name or _name_of(obj)
        written = self.whichmodule(obj, name)
        module_name = demangle(written)
        try:
            found = attribute(self.import_module(module_name), name)
        except (ImportError, KeyError, AttributeError):
            raise ObjNotFoundError(f"{obj} was not found as {module_name}.{name}") from None
        if found is obj:
            return module_name, name
        other = self.whichmodule(found, name)
        (place, who), (other_place, other_who) = _described(written), _described(other)
        raise ObjMismatchError(
            f"\n\nThe object provided is from '{written}', which is coming from {place}."
            f"\nHowever, when we import '{other}', it's coming from {other_place}."
            f"\nTo fix this, make sure this 'PackageExporter's importer lists {who} before {other_who}."
        )

    def whichmodule(self, obj: Any, name: str) -> str:
        """The name of the module that an object says it is of, or of one of `modules` that holds it."""
        module = getattr(obj, "__module__", None)
        if module is not None:
            return str(module)
        for module_name, module in list(self.modules.items()):
            if module is not None and module_name not in ("__main__", "__mp_main__"):
                try:
                    if attribute(module, name) is obj:
                        return module_name
                except AttributeError:
                    pass
        return "__main__"


def _name_of(obj: Any) -> str:
    if obj is not None and not isinstance(obj, type) and hasattr(obj, "__reduce__"):
        try:
            reduced = obj.__reduce__()
            if isinstance(reduced, str):
                return reduced
        except Exception:  # What cannot be reduced may have a name all the same.
            pass
    return getattr(obj, "__qualname__", None) or obj.__name__


def _described(module: str) -> tuple[str, str]:
    if is_mangled(module):
        return get_mangle_prefix(module), f"the importer for {get_mangle_prefix(module)}"
    return "the current Python environment", "'sys_importer'"


class _SysImporter(Importer):
    """The modules of the process."""

    modules = sys.modules

    def import_module(self, module_name: str) -> ModuleType:
        return import_here(module_name)

    def whichmodule(self, obj: Any, name: str) -> str:
        return getattr(obj, "__module__", None) or pickle.whichmodule(obj, name)


sys_importer = _SysImporter()


class OrderedImporter(Importer):
    """Several importers; the first that has a module or object gives it."""

    def __init__(self, *args: Importer) -> None:
        self._importers = list(args)

    def get_name(self, obj: Any, name: str | None = None) -> tuple[str, str]:
        for importer in self._importers:
            try:
                return importer.get_name(obj, name)
            except (ObjNotFoundError, ObjMismatchError) as error:
                _log.warning(
                    "Tried to call get_name with obj %s, and name %s on %s and got %s", obj, name, importer, error
                )
        raise ObjNotFoundError(f"Could not find obj {obj} and name {name} in any of the importers {self._importers}")

    def import_module(self, module_name: str) -> ModuleType:
        last: ModuleNotFoundError | None = None
        for importer in self._importers:
            if not isinstance(importer, Importer):
                raise TypeError(
                    f"{importer} is not an Importer. All importers in OrderedImporter must inherit from Importer."
                )
            try:
                module = importer.import_module(module_name)
            except ModuleNotFoundError as error:
                last = error
                continue
            # A folder of a package without a file of its own hides no real module of that name.
            folder = hasattr(module, "__path__") and getattr(module, "__file__", None) is None
            if not (getattr(module, "__torch_package__", False) and folder):
                return module
        raise last or ModuleNotFoundError(module_name)

    def whichmodule(self, obj: Any, name: str) -> str:
        found = (importer.whichmodule(obj, name) for importer in self._importers)
        return next((module for module in found if module != "__main__"), "__main__")
