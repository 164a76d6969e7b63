"""Whether a class, function or module is this package's, whose name is `torch` where a program runs under `python -m rustgrad`."""

from __future__ import annotations

import sys

__all__ = ["OWN", "at_home", "is_own", "own_module", "stands_for_torch"]

OWN = __name__.partition(".")[0]


def stands_for_torch() -> bool:
    """Whether `import torch` gives this package."""
    return sys.modules.get("torch") is sys.modules[__package__]


def is_own(value: object) -> bool:
    """Whether a class or function says that it is of this package."""
    root = (getattr(value, "__module__", None) or "").partition(".")[0]
    return root == __package__ or root == "torch" and stands_for_torch()


def own_module(value: object) -> str:
    """The module of a class of this package by this package's name, and of another as it says."""
    module: str = getattr(value, "__module__", None) or ""
    return OWN + module.removeprefix("torch") if is_own(value) and module.partition(".")[0] == "torch" else module


def at_home(module: str, *classes: type) -> None:
    """Makes classes of private files those of the module that PyTorch has them in: pickles look there, and it is printed."""
    for cls in classes:
        file, cls.__module__ = own_module(cls), module
        for value in vars(cls).values():
            if isinstance(value, staticmethod) and own_module(value.__func__) == file:
                value.__func__.__module__ = module
