"""`rustgrad.compiler`: what programs ask and tell a compiler, for code that runs eagerly."""

from __future__ import annotations

import contextlib
from typing import Any, TypeVar

from .._absent import getattr_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "reset",
    "set_stance",
    "substitute_in_graph",
]

T = TypeVar("T")


def is_compiling() -> bool:
    """False: code runs eagerly."""
    return False


def is_dynamo_compiling() -> bool:
    """False: code runs eagerly."""
    return False


def is_exporting() -> bool:
    """False: code runs eagerly."""
    return False


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """The function itself, which is never compiled; without one, a decorator."""
    return _itself if fn is None else fn


def _itself(fn):
    return fn


def allow_in_graph(fn: T) -> T:
    """The function itself."""
    return fn


def assume_constant_result(fn: T) -> T:
    """The function itself."""
    return fn


def substitute_in_graph(
    original_fn: Callable[..., Any], *, can_constant_fold_through: bool = False, skip_signature_check: bool = False
) -> Callable[[T], T]:
    """A decorator that returns its function."""
    return _itself


def reset() -> None:
    """No effect: nothing is cached."""


def cudagraph_mark_step_begin() -> None:
    """No effect: there are no CUDA graphs."""


def list_backends(exclude_tags: Any = ()) -> list[str]:
    """The names of compilers: none but "eager"."""
    return ["eager"]


class set_stance(contextlib.ContextDecorator):
    """A setting, block or decorator without effect. ValueError for another name than those of PyTorch."""

    def __init__(
        self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: Any = None
    ) -> None:
        known = (
            "default",
            "eager_then_compile",
            "aot_eager_then_compile",
            "force_eager",
            "eager_on_recompile",
            "fail_on_recompile",
        )
        if stance not in known:
            raise ValueError(f"set_stance: expected one of {known}, got {stance!r}")

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        pass


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
