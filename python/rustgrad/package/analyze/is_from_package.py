"""Whether an object comes from a package."""

from types import ModuleType
from typing import Any

from .._mangling import is_mangled

__all__ = ["is_from_package"]


def is_from_package(obj: Any) -> bool:
    """Whether `obj` is a module that was loaded from a package, or an instance of a class of such a module."""
    return is_mangled(obj.__name__ if type(obj) is ModuleType else type(obj).__module__)
