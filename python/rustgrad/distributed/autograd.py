"""`rustgrad.distributed.autograd`: gradients through calls of other processes, which are not here; `is_available` says so."""

from __future__ import annotations

from typing import Any, NoReturn

from .._absent import getattr_of

__all__ = ["DistAutogradContext", "backward", "context", "get_gradients", "is_available"]


def is_available() -> bool:
    """False."""
    return False


def _refuse(name: str) -> NoReturn:
    raise NotImplementedError(
        f"distributed.autograd.{name}: processes do not call each other here. Hint: use autograd."
    )


class DistAutogradContext:
    """The class of what `context` gives in PyTorch, of which there is none here: it refuses to be called."""

    def __new__(cls) -> NoReturn:
        _refuse("DistAutogradContext")


class context:
    """NotImplementedError: processes do not call each other here."""

    def __new__(cls) -> NoReturn:
        _refuse("context")


def backward(context_id: int, roots: Any, retain_graph: bool = False) -> NoReturn:
    """NotImplementedError: processes do not call each other here."""
    _refuse("backward")


def get_gradients(context_id: int) -> NoReturn:
    """NotImplementedError: processes do not call each other here."""
    _refuse("get_gradients")


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
