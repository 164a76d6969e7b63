"""The only access to the extension module.

Every Python module of the package takes its tensor functions from here, by name:
`from .._base import Tensor, ops, zeros`. Undotted ops of the table are plain names of
this module (`_base.exp` is `ops["exp"]`); dotted ones stay in `ops`. Nothing else in
the package imports `_C`, except `autograd`, which drives the engine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _C
from ._C import Size, Tensor, device, dtype, ops

__all__ = ["Size", "Tensor", "device", "dtype", "is_grad_enabled", "ops", "optional_op", "profiled", "typename"]

globals().update({name: function for name, function in ops.items() if "." not in name})

is_grad_enabled = _C.is_grad_enabled
tensor = _C.tensor


def __getattr__(name: str) -> Any:
    # Natives (dtypes, constructors) resolve on first use, so that no list has to be maintained.
    try:
        value = getattr(_C, name)
    except AttributeError:
        raise AttributeError(f"module 'rustgrad' has no function '{name}'") from None
    globals()[name] = value
    return value


def optional_op(name: str) -> Callable[..., Any] | None:
    """The op called `name`, or None if the table does not have it."""
    return ops.get(name)


def typename(obj: Any) -> str:
    """The name of an object's type in error messages: `torch.FloatTensor`, `builtins.int`, `package.Class`."""
    if isinstance(obj, Tensor):
        return obj.type()
    module = getattr(obj, "__module__", "") or ""
    if hasattr(obj, "__qualname__"):
        name = obj.__qualname__
    elif hasattr(obj, "__name__"):
        name = obj.__name__
    else:
        module, name = type(obj).__module__ or "", type(obj).__qualname__
    if module in ("", "builtins"):
        return name
    return f"{module}.{name}"


def profiled(name: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """`function(*args, **kwargs)`, as an event of that name where a profiler records."""
    if not _C._profile_enter(name):
        return function(*args, **kwargs)
    try:
        return function(*args, **kwargs)
    finally:
        _C._profile_exit()
