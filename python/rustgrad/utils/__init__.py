"""`rustgrad.utils`: data loading, DLPack and hook handles. Submodules load on first use."""

import importlib

__all__ = ["data", "dlpack", "hooks"]


def __getattr__(name):
    if name in __all__:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
