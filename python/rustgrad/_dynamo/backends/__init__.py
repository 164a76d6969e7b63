"""The place where programs look for backends of the compiler; see `rustgrad.compiler.list_backends`."""

from __future__ import annotations

import importlib
from typing import Any

from ..._absent import getattr_of

__all__: list[str] = []

_absent = getattr_of(__name__)


def __getattr__(name: str) -> Any:
    if name in ("common", "debugging", "registry"):
        return importlib.import_module(f"{__name__}.{name}")
    return _absent(name)
