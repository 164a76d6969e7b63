"""`rustgrad.overrides`: `__torch_function__` for functions written in Python.

Ops look for it by themselves. A function of a program that takes tensor-like objects asks `has_torch_function` and calls
`handle_torch_function`, as PyTorch's own functions do.
"""

from __future__ import annotations

import functools
import warnings

from . import _C
from ._absent import getattr_of
from ._C import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, NoReturn

__all__ = [
    "TorchFunctionMode",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]

_disabled = _C._disabled_torch_function_impl


class TorchFunctionMode:
    """A base class of contexts that would see every call of an op: it can be derived from and refuses to be entered."""

    def __enter__(self) -> NoReturn:
        raise NotImplementedError(
            f"{type(self).__name__}: calls can be overridden by the class of an argument only (`__torch_function__` of a "
            "subclass of Tensor), not by a context."
        )

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None: ...

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Called for each op, in a class derived from this one."""
        raise NotImplementedError


def _handler(value):
    """The `__torch_function__` of an object's class, if it overrides anything."""
    kind = type(value)
    found = getattr(kind, "__torch_function__", None)
    if kind is Tensor or found is None or found is _disabled:
        return None
    return found


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether an argument's class overrides functions."""
    return _C._torch_function_enabled() and any(_handler(arg) is not None for arg in relevant_args)


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
        if _handler(arg) is None or any(type(arg) is type(other) for other in found):
            continue
        at = next((i for i, other in enumerate(found) if issubclass(type(arg), type(other))), len(found))
        found.insert(at, arg)
    return found


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """What the first `__torch_function__` that does not return NotImplemented makes of the call.

    Args:
        public_api (callable): the function that was called.
        relevant_args (iterable): its arguments that may override it.
        args, kwargs: all its arguments.

    Raises:
        TypeError: all return NotImplemented.
    """
    overriding = _overriding(relevant_args)
    types = tuple(type(arg) for arg in overriding)
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


def is_tensor_like(inp: Any) -> bool:
    """Whether an object is a tensor, or of a class with `__torch_function__`."""
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether a function is a method of `Tensor`, or gets a property of it."""
    return func in _methods() or func.__name__ == "__get__"


@functools.cache
def _methods():
    return {value for name in dir(Tensor) if callable(value := getattr(Tensor, name)) and value.__hash__ is not None}


def resolve_name(f: Callable[..., Any]) -> str | None:
    """The public name of a function: `torch.Tensor.add`, `torch.sum`; None if it has none."""
    if isinstance(f, str):
        return f
    name = getattr(f, "__name__", None)
    if name is None:
        return None
    import rustgrad

    from .nn import functional

    if getattr(Tensor, name, None) is f:
        return f"torch.Tensor.{name}"
    for where, space in (("torch", rustgrad), ("torch.nn.functional", functional)):
        if getattr(space, name, None) is f:
            return f"{where}.{name}"
    return None


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
