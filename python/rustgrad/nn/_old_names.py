"""`nn.quantized` and its kin, and `quantization`: the old names of packages of `ao`, whose modules are the same objects."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import sys
from typing import Any

__all__ = ["install"]

_ROOT = __name__.rpartition(".")[0].rpartition(".")[0]
_PACKAGES = tuple(f"{_ROOT}.{p}" for p in ("nn.quantized", "nn.intrinsic", "nn.qat", "nn.quantizable", "quantization"))


def _new(name: str) -> str:
    """The name of today for a module of an old package."""
    return f"{_ROOT}.ao{name[len(_ROOT) :]}"


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds submodules of the old packages: those of the new ones."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        if not any(fullname.startswith(package + ".") for package in _PACKAGES):
            return None
        if importlib.util.find_spec(_new(fullname)) is None:
            return None
        return importlib.util.spec_from_loader(fullname, self)

    def create_module(self, spec: Any) -> Any:
        return importlib.import_module(_new(spec.name))

    def exec_module(self, module: Any) -> None:
        # The module was executed under its own name, which it keeps.
        new = importlib.util.find_spec(module.__name__) if module.__name__.startswith(f"{_ROOT}.ao.") else None
        if new is not None:
            module.__spec__, module.__loader__ = new, new.loader


def install(name: str) -> None:
    """Gives an old package the names of the new one."""
    new = importlib.import_module(_new(name))
    old = sys.modules[name]
    old.__dict__.update({k: v for k, v in vars(new).items() if k[:2] != "__"})
    old.__dict__["__all__"] = list(getattr(new, "__all__", ()))
    old.__dict__["__getattr__"] = lambda attribute: getattr(new, attribute)
    old.__dict__["__dir__"] = lambda: old.__all__
    for loaded in [
        n for n in sys.modules if n.startswith(new.__name__ + ".")
    ]:  # else they would become attributes when imported
        sys.modules.setdefault(name + loaded[len(new.__name__) :], sys.modules[loaded])
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
