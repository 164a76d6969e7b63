"""`rustgrad.autograd`: running the graph backwards, custom functions, checks of gradients."""

from __future__ import annotations

import importlib
from typing import Any

from .._absent import getattr_of as _getattr_of
from .._C import SavedTensor
from ._engine import backward, grad
from .grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled

_LAZY = {
    "Function": "function",
    "Variable": "variable",
    "detect_anomaly": "anomaly_mode",
    "set_detect_anomaly": "anomaly_mode",
    "set_anomaly_enabled": "anomaly_mode",
    "is_multithreading_enabled": "grad_mode",
    "set_multithreading_enabled": "grad_mode",
    "gradcheck": "gradcheck",
    "gradgradcheck": "gradcheck",
    "GradcheckError": "gradcheck",
}
_SUBMODULES = ("anomaly_mode", "forward_ad", "function", "functional", "grad_mode", "graph", "profiler", "variable")

__all__ = [
    "Function",
    "GradcheckError",
    "SavedTensor",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "functional",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
    "variable",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
        # `gradcheck` is both a function here and a submodule: the name means the function.
        globals()[name] = value
        return value
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    return _elsewhere(name)


_elsewhere = _getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
