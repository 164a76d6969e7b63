"""Under `python -m rustgrad`: classes of layers and optimizers say that they are of `torch.nn.modules.linear` and so on.

Programs print `type(layer)`, and libraries look at its module. The modules are loaded on demand, so their classes are
renamed when they are. Pickles of instances keep this package's names, so that they can be read where `torch` is not it;
checkpoints of `torch.save` have PyTorch's, as ever.
"""

from __future__ import annotations

import copyreg
import importlib
import importlib.abc
import importlib.machinery
import operator
import sys
import types
from typing import Any

from ._C import Size, device, dtype
from ._own import OWN, own_module

__all__ = ["install", "is_renamed"]

_SPACES = tuple(f"{OWN}.{space}" for space in ("nn", "optim"))
_renamed: set[type] = set()


def is_renamed(cls: type) -> bool:
    """Whether instances of a class are pickled under a name that is not the class's."""
    return cls in _renamed


def _belongs(module: str) -> bool:
    return any(module == space or module.startswith(space + ".") for space in _SPACES)


def made(module: str, name: str, function: Any, arguments: Any) -> Any:
    """What a pickle calls: `function` with the class as first argument."""
    return function(operator.attrgetter(name)(importlib.import_module(module)), *arguments)


def named(name: str) -> Any:
    """What a pickle of a dtype calls."""
    return getattr(sys.modules[OWN], name)


def _call(cls: Any, *arguments: Any) -> Any:
    return cls(*arguments)


def _reduced(obj: Any) -> Any:
    reduced = obj.__reduce_ex__(2)
    if isinstance(reduced, str):
        return named, (reduced,)
    function, arguments, *rest = reduced
    cls, arguments = (function, arguments) if isinstance(function, type) else (arguments[0], arguments[1:])
    run = _call if cls is function else function
    return made, (own_module(cls), cls.__qualname__, run, tuple(arguments)), *rest


def _by_own_name(cls: type) -> None:
    _renamed.add(cls)
    copyreg.pickle(cls, _reduced)  # type: ignore[arg-type]


def _rename(module: types.ModuleType) -> None:
    name = "torch" + module.__name__.removeprefix(OWN)
    sys.modules.setdefault(name, module)
    for cls in [value for value in vars(module).values() if isinstance(value, type)]:
        if cls.__module__ == module.__name__:
            cls.__module__ = name
            # Instances of a metaclass are classes, which have names.
            plain = cls.__reduce_ex__ is object.__reduce_ex__ and cls.__reduce__ is object.__reduce__
            if plain and not issubclass(cls, type):
                _by_own_name(cls)


class _Loader(importlib.abc.Loader):
    """Another loader, after which classes are renamed."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def create_module(self, spec: Any) -> Any:
        return self.loader.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        _rename(module)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if not _belongs(name):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


def install() -> None:
    """Renames the classes of modules that are loaded, and of others when they are."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    for cls in (Size, device, dtype):
        _by_own_name(cls)
    for name, module in list(sys.modules.items()):
        if _belongs(name) and isinstance(module, types.ModuleType) and module.__name__ == name:
            _rename(module)
