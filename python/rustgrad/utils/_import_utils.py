"""Whether `dill` is there: with it, pipes that hold lambdas and local functions are pickled too."""

from __future__ import annotations

import functools
import importlib.util
import types

__all__ = ["dill_available", "import_dill"]


@functools.lru_cache
def dill_available() -> bool:
    """Whether `dill` is installed."""
    return importlib.util.find_spec("dill") is not None


@functools.lru_cache
def import_dill() -> types.ModuleType | None:
    """The module `dill`, or None. `pickle` itself stays as it is."""
    if not dill_available():
        return None
    import dill

    dill.extend(use_dill=False)
    return dill
