"""Decorators of pipes: their functional form, whether they are deterministic, and checks of types."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, get_args, get_type_hints

from ._typing import _class_of, datapipe_type, issubinstance, issubtype
from .datapipe import IterDataPipe, MapDataPipe

__all__ = [
    "argument_validation",
    "functional_datapipe",
    "guaranteed_datapipes_determinism",
    "non_deterministic",
    "runtime_validation",
    "runtime_validation_disabled",
]

_Class = TypeVar("_Class")
_Function = TypeVar("_Function", bound=Callable[..., Any])


class functional_datapipe:
    """Registers a class of pipes as a method of all pipes: `@functional_datapipe("batch")` gives `pipe.batch(...)`.

    Args:
        name (str): of the method.
        enable_df_api_tracing (bool): the method returns a traced data frame.
    """

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name = name
        self.enable_df_api_tracing = enable_df_api_tracing

    def __call__(self, cls: _Class) -> _Class:
        made = cls.cls if isinstance(cls, non_deterministic) else cls
        if isinstance(made, type) and issubclass(made, MapDataPipe):
            MapDataPipe.register_datapipe_as_function(self.name, cls)
        elif isinstance(made, type) and issubclass(made, IterDataPipe):
            IterDataPipe.register_datapipe_as_function(self.name, cls, enable_df_api_tracing=self.enable_df_api_tracing)
        return cls


_determinism = False


@contextmanager
def guaranteed_datapipes_determinism() -> Iterator[None]:
    """Within it, making a pipe that is not deterministic raises TypeError."""
    global _determinism
    before, _determinism = _determinism, True
    try:
        yield
    finally:
        _determinism = before


class non_deterministic:
    """Marks a class of pipes as not deterministic: `@non_deterministic`, or `@non_deterministic(fn)` where `fn`,
    called with the arguments of the constructor, says whether it is not.

    Raises:
        TypeError: what is decorated is no class of pipes; a pipe is made within `guaranteed_datapipes_determinism`.
    """

    def __init__(self, arg: Any) -> None:
        self.cls: type | None = None
        self.deterministic_fn: Callable[..., bool] | None = None
        if isinstance(arg, type):
            self._take(arg)
        elif callable(arg):
            self.deterministic_fn = arg
        else:
            raise TypeError(f"{arg} can not be decorated by non_deterministic")

    def _take(self, cls):
        if not (isinstance(cls, type) and issubclass(cls, IterDataPipe)):
            name = getattr(cls, "__name__", cls)
            raise TypeError(f"Only `IterDataPipe` can be decorated with `non_deterministic`, but {name} is found")
        self.cls = cls
        functools.update_wrapper(self, cls, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.cls is None:
            marked = non_deterministic(self.deterministic_fn)
            marked._take(args[0])
            return marked
        if self.deterministic_fn is not None:
            differs, with_inputs = self.deterministic_fn(*args, **kwargs), " with the inputs"
            if not isinstance(differs, bool):
                raise TypeError(
                    "deterministic_fn of `non_deterministic` decorator is required to return a boolean value, "
                    f"but {type(differs)} is found"
                )
        else:
            differs, with_inputs = True, ""
        if differs and _determinism:
            raise TypeError(
                f"{self.cls.__name__} is non-deterministic{with_inputs}, but you set 'guaranteed_datapipes_determinism'. "
                "You can turn off determinism for this DataPipe if that is acceptable for your application"
            )
        return self.cls(*args, **kwargs)


def argument_validation(f: _Function) -> _Function:
    """Checks arguments that are annotated as pipes: that they are, and that their samples have the type.

    Raises:
        TypeError (in the call): an argument is no pipe, or one of samples of another type. A pipe that declares no type fits.
    """
    signature, hints = inspect.signature(f), None

    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        nonlocal hints
        if hints is None:
            hints = get_type_hints(f)
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            kind = _class_of(hints.get(name))
            if isinstance(kind, type) and issubclass(kind, IterDataPipe):
                _check_argument(name, value, hints[name])
        return f(*args, **kwargs)

    return wrapper  # type: ignore[return-value]


def _check_argument(name, value, hint):
    if not isinstance(value, IterDataPipe):
        raise TypeError(f"Expected argument '{name}' as an IterDataPipe, but found {type(value)}")
    found, expected = datapipe_type(value), datapipe_type(hint)
    if get_args(hint) and found is not Any and not isinstance(found, TypeVar) and not issubtype(found, expected):
        raise TypeError(
            f"Expected type of argument '{name}' as a subtype of hint {hint}, but found {found} of {type(value).__name__}"
        )


_runtime_validation = True


@contextmanager
def runtime_validation_disabled() -> Iterator[None]:
    """Within it, `runtime_validation` checks nothing."""
    global _runtime_validation
    before, _runtime_validation = _runtime_validation, False
    try:
        yield
    finally:
        _runtime_validation = before


def runtime_validation(f: _Function) -> _Function:
    """Checks that the samples of `__iter__` have the type that the pipe declares.

    Raises:
        TypeError: the function is not `__iter__`.
        RuntimeError (while iterating): a sample has another type.
    """
    if f.__name__ != "__iter__":
        raise TypeError(f"Can not decorate function {f.__name__} with 'runtime_validation'")

    @functools.wraps(f)
    def wrapper(self: Any) -> Iterator[Any]:
        declared = datapipe_type(self)
        for sample in f(self):
            if _runtime_validation and not issubinstance(sample, declared):
                raise RuntimeError(f"Expected an instance as subtype of {declared}, but found {sample}({type(sample)})")
            yield sample

    return wrapper  # type: ignore[return-value]
