"""`rustgrad.overrides`: `__torch_function__` for functions written in Python, and modes that override all functions.

Ops look for it by themselves. A function of a program that takes tensor-like objects asks `has_torch_function` and calls
`handle_torch_function`, as PyTorch's own functions do.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, TypeVar

from . import _C
from ._absent import getattr_of
from ._C import Size, Tensor
from ._typing import Self

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "enable_reentrant_dispatch",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]

F = TypeVar("F", bound=Callable[..., Any])
_disabled = _C._disabled_torch_function_impl
# Classes that override nothing, so that an ordinary call asks no further.
_PLAIN: set[type] = {Tensor, Size, _C.dtype, _C.device, bool, int, float, complex, str, type(None)}
_mode_entered = _C._is_torch_function_mode_enabled
# Whether it is a mode that is entered, or an argument's ops go to Python below autograd; set once that is loaded.
_asked_below: Callable[[Iterable[Any]], bool] | None = None


def _overrides(kind):
    """Whether a class has a `__torch_function__` that overrides anything."""
    found = getattr(kind, "__torch_function__", None)
    return kind is not Tensor and found is not None and found is not _disabled


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether an argument's class overrides functions, or a mode is entered."""
    if _mode_entered():
        return _asked_below is None or _asked_below(relevant_args)
    kinds = {*map(type, relevant_args)} - _PLAIN
    return bool(kinds) and _C._is_torch_function_enabled() and any(_overrides(kind) for kind in kinds)


def has_torch_function_unary(obj: Any) -> bool:
    """`has_torch_function((obj,))`."""
    return has_torch_function((obj,))


def has_torch_function_variadic(*args: Any) -> bool:
    """`has_torch_function(args)`."""
    return has_torch_function(args)


def _overriding(args):
    """The arguments whose classes override functions: one of each class, subclasses before their bases."""
    found: list[Any] = []
    for arg in args:
        if not _overrides(type(arg)) or any(type(arg) is type(other) for other in found):
            continue
        at = next((i for i, other in enumerate(found) if issubclass(type(arg), type(other))), len(found))
        found.insert(at, arg)
    return found


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """What the first `__torch_function__` that does not return NotImplemented makes of the call: the mode's, then the classes'.

    Args:
        public_api (callable): the function that was called.
        relevant_args (iterable): its arguments that may override it.
        args, kwargs: all its arguments.

    Raises:
        TypeError: all return NotImplemented.
    """
    overriding = _overriding(relevant_args) if _C._is_torch_function_enabled() else []
    types = tuple(type(arg) for arg in overriding)
    if _mode_entered():
        mode = _C._pop_torch_function_mode()
        try:
            result = mode.__torch_function__(public_api, types, args, kwargs)
        finally:
            _C._push_torch_function_mode(mode)
        if result is not NotImplemented:
            return result
    for arg in overriding:
        handler = arg.__torch_function__
        if getattr(handler, "__self__", None) is arg:
            warnings.warn(
                "Defining your `__torch_function__` as a plain method is deprecated and will be an error in future, please "
                "define it as a classmethod.",
                DeprecationWarning,
                stacklevel=2,
            )
        result = handler(public_api, types, args, kwargs)
        if result is not NotImplemented:
            return result
    name = f"{public_api.__module__}.{public_api.__name__}"
    raise TypeError(f"no implementation found for '{name}' on types that implement __torch_function__: {list(types)}")


class TorchFunctionMode:
    """A context in which calls of functions and methods go to `__torch_function__` of this object.

    A subclass defines it; what it calls itself goes to the mode around it, or runs. Modes are a thread's own. An attribute
    of a tensor is the function `Tensor.shape.__get__`.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: tuple[type[Any], ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """The result of `func(*args, **kwargs)`, or NotImplemented. `types`: classes of the arguments that override too."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        _C._push_torch_function_mode(self)
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _C._pop_torch_function_mode()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Self:
        """An instance; deprecated."""
        warnings.warn("`Mode.push()` is no longer necessary and can be replaced with just `with Mode()`", stacklevel=2)
        return cls(*args, **kwargs)


def _get_current_function_mode_stack():
    modes = (_C._get_function_stack_at(level) for level in range(_C._len_torch_function_stack()))
    # Dispatch below autograd has one of its own.
    return [mode for mode in modes if not hasattr(mode, "_is_of_dispatch")]


def _get_current_function_mode():
    return (_get_current_function_mode_stack() or [None])[-1]


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: tuple[type[Any], ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """`func(*args, **kwargs)`."""
        return func(*args, **(kwargs or {}))


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the function can be overridden by the arguments that `dispatcher` returns for a call."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorate


# Flags of a code object, as `inspect` has them: it takes *args, **kwargs.
_VARARGS, _VARKEYWORDS = 4, 8


def overridable(function: F) -> F:
    """A decorator for this package's functions: any argument, or item of a list, may override them, as it may an op.

    The override is given all arguments, as PyTorch's functions give them: those without a default by position.
    """
    return _overridable(function, False)  # type: ignore[return-value]


def overridable_by_name(function: F) -> F:
    """As `overridable`; the override is given all arguments by name."""
    return _overridable(function, True)  # type: ignore[return-value]


def _overridable(function: Callable[..., Any], by_name: bool) -> Callable[..., Any]:
    @functools.wraps(function)
    def public(*args: Any, **kwargs: Any) -> Any:
        if _C._overridden(args, kwargs):
            given = [*args, *kwargs.values()]
            lists = [item for value in given if isinstance(value, (list, tuple)) for item in value]
            try:
                args, kwargs = _with_defaults(function, args, kwargs, by_name)
            except TypeError:  # arguments that do not fit, of which the function says so itself
                return function(*args, **kwargs)
            return handle_torch_function(public, given + lists, *args, **kwargs)
        return function(*args, **kwargs)

    public._is_overridable = True  # type: ignore[attr-defined]
    return public


def _with_defaults(function, args, kwargs, by_name):
    """All arguments of a call. By the code object: `inspect` takes long, and code that follows a program's calls would see it."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    code, defaults = function.__code__, function.__defaults__ or ()
    count = code.co_argcount
    names, named_only = code.co_varnames[:count], code.co_varnames[count : count + code.co_kwonlyargcount]
    given, extra, rest = dict(zip(names, args, strict=False)), args[count:], {}
    for name, value in kwargs.items():
        known = name in names or name in named_only
        if name in given or not (known or code.co_flags & _VARKEYWORDS):
            raise TypeError(name)
        (given if known else rest)[name] = value
    usual = dict(zip(names[count - len(defaults) :], defaults, strict=True)) | (function.__kwdefaults__ or {})
    values = usual | given
    if extra and not code.co_flags & _VARARGS or any(name not in values for name in (*names, *named_only)):
        raise TypeError("arguments do not fit")
    first = count if extra else 0 if by_name else count - len(defaults)
    return (*(values[name] for name in names[:first]), *extra), {
        **{name: values[name] for name in (*names[first:], *named_only)},
        **rest,
    }


@contextlib.contextmanager
def _enable_torch_function():
    """A block in which classes and modes override calls again."""
    enabled = _C._EnableTorchFunction()
    try:
        yield
    finally:
        del enabled


@contextlib.contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """A block in `__torch_dispatch__` whose calls are recorded by autograd and dispatched as outside of it."""
    from ._dispatch import _classes

    with _classes.reentrant():
        yield


def is_tensor_like(inp: Any) -> bool:
    """Whether an object is a tensor, or of a class with `__torch_function__`."""
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


def get_default_nowrap_functions() -> set[Callable[..., Any]]:
    """Functions whose results keep their class in a subclass of `Tensor`: what a tensor holds, it gives as it is."""
    return {vars(Tensor)[name].__get__ for name in ("_base", "grad", "_grad")}


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """The functions that a class can override, by the namespace that they are in.

    A property of `Tensor` is represented by its `__get__`, and is a namespace of its own.
    """
    from . import _overridables

    return _overridables.overridable_functions()


def get_ignored_functions() -> set[Callable[..., Any]]:
    """Public functions that no class can override: they take no tensors, or make them."""
    from . import _overridables

    return _overridables.ignored_functions()


def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """For each function that can be overridden, one with the same parameters that returns -1: to test a class with."""
    from . import _overridables

    return _overridables.testing_overrides()


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether a function is a method of `Tensor`, or gets a property of it."""
    return func in _methods() or func.__name__ == "__get__"


@functools.cache
def _methods() -> set[Callable[..., Any]]:
    return set(get_overridable_functions()[Tensor])


def resolve_name(f: Callable[..., Any]) -> str | None:
    """The public name of a function: `torch.Tensor.add`, `torch.Tensor.shape.__get__`; None if it has none."""
    from . import _overridables

    return f if isinstance(f, str) else _overridables.names_of_functions().get(f)


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
