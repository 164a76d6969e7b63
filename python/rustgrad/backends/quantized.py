"""`backends.quantized`: which library computes quantised products. All names mean the same products here, which are exact integers."""

from __future__ import annotations

import sys
import types

__all__: list[str] = []

_ENGINES = ["qnnpack", "onednn", "x86", "fbgemm"]


class _Quantized(types.ModuleType):
    """The module: `engine` is one of `supported_engines`.

    Raises:
        RuntimeError: another engine is set.
    """

    _engine = "x86"

    @property
    def engine(self) -> str:
        """The name that was set."""
        return self._engine

    @engine.setter
    def engine(self, name: str) -> None:
        if name not in _ENGINES:
            raise RuntimeError(f"quantized engine {name} is not supported; expected one of {_ENGINES}")
        type(self)._engine = name

    @property
    def supported_engines(self) -> list[str]:
        """The names that `engine` may have."""
        return list(_ENGINES)


sys.modules[__name__].__class__ = _Quantized
