"""Uninitialised memory under `use_deterministic_algorithms`."""

from __future__ import annotations

import sys
import types

from .. import _settings


class _Module(types.ModuleType):
    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether `empty`, `resize_` and others fill memory under `use_deterministic_algorithms`. Default: True."""
        return _settings._asked["fill"]

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> bool:
        if not isinstance(mode, bool):
            raise TypeError(f"fill_uninitialized_memory must be a bool, not {type(mode).__name__}")
        _settings._set("fill", mode)


sys.modules[__name__].__class__ = _Module
