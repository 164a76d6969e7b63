"""Backends of programs by their names, and the errors about them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ._watch import TorchDynamoException

__all__ = ["BackendCompilerFailed", "InvalidBackend", "list_backends", "lookup_backend", "register_backend"]

_registered: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {}
_OWN = ("rustgrad", "eager")
# Packages announce backends in this group of entry points.
_GROUP = "torch_dynamo_backends"


class BackendCompilerFailed(TorchDynamoException):
    """A backend has raised `inner_exception`."""

    def __init__(self, backend_fn: Any, inner_exception: BaseException) -> None:
        self.backend_name: str = getattr(backend_fn, "__name__", "?")
        self.inner_exception = inner_exception
        super().__init__(f"backend={self.backend_name!r} raised:\n{type(inner_exception).__name__}: {inner_exception}")


class InvalidBackend(TorchDynamoException):
    """There is no backend of this name."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"Invalid backend: {name!r}. See `torch._dynamo.list_backends()` for available backends, expected one of "
            f"{', '.join(list_backends())}"
        )


def register_backend(
    compiler_fn: Callable[..., Any] | None = None, name: str | None = None, tags: Sequence[str] = ()
) -> Any:
    """Gives a backend a name, by default its own; without a backend, a decorator.

    Args:
        compiler_fn (callable): `compiler_fn(graph_module, example_inputs)` returns what is called with the inputs.
        name (str, optional): the name for `compile(backend=..)`.
        tags (sequence of str): words by which `list_backends` leaves it out.

    Raises:
        AssertionError: the name is taken by another one.
    """
    if compiler_fn is None:
        return functools.partial(register_backend, name=name, tags=tags)
    if not callable(compiler_fn):
        raise AssertionError(f"register_backend: expected a callable, got {type(compiler_fn).__name__}")
    name = name or compiler_fn.__name__
    if name in _registered and _registered[name][0] is not compiler_fn:
        raise AssertionError(f"duplicate name: {name}")
    _registered[name] = (compiler_fn, tuple(tags))
    return compiler_fn


register_debug_backend = functools.partial(register_backend, tags=("debug",))
register_experimental_backend = functools.partial(register_backend, tags=("experimental",))


def lookup_backend(compiler_fn: Any) -> Callable[..., Any]:
    """The backend of a name; a callable is returned as it is. InvalidBackend where there is none."""
    if not isinstance(compiler_fn, str):
        return compiler_fn  # type: ignore[no-any-return]
    if compiler_fn in _registered:
        return _registered[compiler_fn][0]
    from .._dynamo.backends import debugging

    if compiler_fn in debugging.BACKENDS:
        return getattr(debugging, compiler_fn)  # type: ignore[no-any-return]
    from importlib.metadata import entry_points

    for entry in entry_points(group=_GROUP):
        if entry.name == compiler_fn:
            return register_backend(entry.load(), name=entry.name)  # type: ignore[no-any-return]
    raise InvalidBackend(compiler_fn)


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """The names of backends, without those that have one of the tags."""
    left_out = set(exclude_tags or ())
    return [*_OWN, *sorted(n for n, (_, tags) in _registered.items() if not left_out & set(tags) and n not in _OWN)]
