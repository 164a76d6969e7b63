"""`rustgrad._dynamo`: what programs tell and ask a compiler under its private name; see `rustgrad.compiler`."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from .. import compiler as _compiler
from .._absent import getattr_of as _getattr_of
from .._options import Options as _Options
from ..compiler import allow_in_graph as allow_in_graph
from ..compiler import assume_constant_result as assume_constant_result
from ..compiler import disable as disable
from ..compiler import is_compiling as is_compiling
from ..compiler import list_backends as list_backends
from ..compiler import reset as reset

config: Any = _Options(f"{__name__}.config")
sys.modules[config.__name__] = config


def is_dynamo_supported() -> bool:
    """False: bytecode is not compiled."""
    return False


def graph_break(msg: str = "") -> None:
    """No effect."""


def disallow_in_graph(fn: Any) -> Any:
    """The function itself."""
    return fn


def mark_dynamic(t: Any, index: Any, **options: Any) -> None:
    """No effect."""


def maybe_mark_dynamic(t: Any, index: Any) -> None:
    """No effect."""


def mark_static(t: Any, index: Any = None) -> None:
    """No effect."""


def mark_static_address(t: Any, guard: bool = True) -> None:
    """No effect."""


def __getattr__(name: str) -> Any:
    if name in ("backends", "eval_frame", "exc", "testing", "utils"):
        return importlib.import_module(f"{__name__}.{name}")
    if name in ("lookup_backend", "register_backend"):
        return getattr(importlib.import_module("rustgrad.compiler._backends"), name)
    if name == "optimize":
        return importlib.import_module(f"{__name__}.external_utils").optimize
    if name in _compiler.__all__:
        return getattr(_compiler, name)
    return _elsewhere(name)


_elsewhere = _getattr_of(__name__)
