"""Whether modules can be imported; with `dill`, pipes that hold lambdas and local functions are pickled too."""

from __future__ import annotations

import functools
import importlib.util
from types import ModuleType

__all__ = ["dill_available", "import_dill"]


def _check_module_exists(name: str) -> bool:
    """Whether a module can be found; it is not imported, but packages above it are."""
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False


@functools.cache
def dill_available() -> bool:
    """Whether `dill` is installed."""
    return _check_module_exists("dill")


@functools.cache
def import_dill() -> ModuleType | None:
    """The module `dill`, or None. `pickle` itself stays as it is."""
    if not dill_available():
        return None
    import dill

    dill.extend(use_dill=False)
    return dill
