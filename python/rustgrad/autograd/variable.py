"""`rustgrad.autograd.variable`: the legacy `Variable`, which is a tensor."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from .. import _C
from .._absent import getattr_of
from .._base import Tensor

__all__ = ["Variable"]


class VariableMeta(type):
    def __instancecheck__(cls, other: object) -> bool:
        return isinstance(other, Tensor)


class _Engine:
    """What programs reach as `Variable._execution_engine`."""

    @staticmethod
    def queue_callback(callback: Callable[[], Any]) -> None:
        """Calls a function at the end of the running backward pass."""
        _C._queue_callback(callback)

    @staticmethod
    def run_backward(*args: Any, **kwargs: Any) -> Any:
        """The engine's pass: see `autograd._names`."""
        from ._names import _engine_run_backward

        return _engine_run_backward(*args, **kwargs)


class Variable(metaclass=VariableMeta):
    """`Variable(tensor, requires_grad=False)` gives a tensor that shares the data; `volatile` has no effect."""

    _execution_engine = _Engine()

    def __new__(cls, data: Any = None, requires_grad: bool = False, volatile: bool | None = None) -> Tensor:
        if data is None:
            data = _C.ops["empty"](0)
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        if volatile is not None:
            text = "volatile was removed and now has no effect. Use `with torch.no_grad():` instead."
            warnings.warn(text, UserWarning, stacklevel=2)
        if not requires_grad:
            return data.detach()
        return data.detach().requires_grad_()


__getattr__ = getattr_of(__name__)
