"""`skip_init`: a module whose parameters are not initialised."""

from __future__ import annotations

import inspect
from typing import Any, TypeVar

from ..modules.module import Module

_M = TypeVar("_M", bound=Module)

__all__ = ["skip_init"]


def skip_init(module_cls: type[_M], *args: Any, **kwargs: Any) -> _M:
    """`module_cls(*args, **kwargs)` with uninitialised parameters and buffers, on `kwargs["device"]` ("cpu" by default).

    Raises:
        RuntimeError: `module_cls` is not a module class, or its constructor has no `device`.
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    final = kwargs.pop("device", "cpu")
    return module_cls(*args, **kwargs, device="meta").to_empty(device=final)


def __dir__() -> list[str]:
    return __all__
