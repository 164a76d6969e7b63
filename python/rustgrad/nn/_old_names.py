"""`nn.quantized` and its kin: the old names of packages of `ao.nn`, whose modules are the same objects."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import sys
from typing import Any

__all__ = ["install"]

_ROOT = __name__.rpartition(".")[0].rpartition(".")[0]
_OLD, _NEW = f"{_ROOT}.nn.", f"{_ROOT}.ao.nn."
_PACKAGES = ("quantized", "intrinsic", "qat", "quantizable")


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds submodules of the old packages: those of the new ones."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        if not fullname.startswith(_OLD) or fullname[len(_OLD) :].partition(".")[0] not in _PACKAGES:
            return None
        if "." not in fullname[len(_OLD) :] or importlib.util.find_spec(_NEW + fullname[len(_OLD) :]) is None:
            return None
        return importlib.util.spec_from_loader(fullname, self)

    def create_module(self, spec: Any) -> Any:
        return importlib.import_module(_NEW + spec.name[len(_OLD) :])

    def exec_module(self, module: Any) -> None:
        # The module was executed under its own name, which it keeps.
        new = importlib.util.find_spec(module.__name__) if module.__name__.startswith(_NEW) else None
        if new is not None:
            module.__spec__, module.__loader__ = new, new.loader


def install(name: str) -> None:
    """Gives an old package the names of the new one."""
    new = importlib.import_module(_NEW + name[len(_OLD) :])
    old = sys.modules[name]
    old.__dict__.update({k: v for k, v in vars(new).items() if k[:2] != "__"})
    old.__dict__["__all__"] = list(getattr(new, "__all__", ()))
    old.__dict__["__getattr__"] = lambda attribute: getattr(new, attribute)
    old.__dict__["__dir__"] = lambda: old.__all__
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
