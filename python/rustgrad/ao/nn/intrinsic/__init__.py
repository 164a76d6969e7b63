"""`rustgrad.ao.nn.intrinsic`: layers that follow each other, as one module."""

from __future__ import annotations

from ...._absent import getattr_of
from .modules import *  # noqa: F403
from .modules import __all__ as __all__
from .modules import _FusedModule as _FusedModule

_found = getattr_of(__name__)


def __getattr__(name: str) -> object:
    if name in ("qat", "quantized"):
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    return _found(name)


def __dir__() -> list[str]:
    return __all__
