"""`rustgrad.fx.experimental`: `optimization` folds normalisations, `const_fold` constants; `rewriter` records assertions."""

from __future__ import annotations

import importlib
from typing import Any

from ..._absent import getattr_of

__all__: list[str] = []
_SUBMODULES = ("const_fold", "optimization", "proxy_tensor", "rewriter", "symbolic_shapes")
_absent = getattr_of(__name__)


def __getattr__(name: str) -> Any:
    return importlib.import_module(f"{__name__}.{name}") if name in _SUBMODULES else _absent(name)


def __dir__() -> list[str]:
    return __all__
