"""Dispatch to Python below autograd: modes and wrappers, and what their `__torch_dispatch__` is written with."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any

from .._base import Tensor
from .._typing import Self

__all__ = [
    "BaseTorchDispatchMode",
    "TorchDispatchMode",
    "is_traceable_wrapper_subclass",
    "is_traceable_wrapper_subclass_type",
    "return_and_correct_aliasing",
    "transform_subclass",
]


class TorchDispatchMode:
    """A context in which ops go to `__torch_dispatch__` of this object: those of ATen that functions consist of, below autograd.

    A subclass defines it; what it calls itself goes to the mode around it, then to classes, then runs. Modes are a thread's own.
    """

    def __init__(self, _dispatch_key: Any = None) -> None:
        self._dispatch_key = _dispatch_key

    def __torch_dispatch__(
        self, func: Any, types: tuple[type[Any], ...], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """The result of `func(*args, **kwargs)`, an overload of `torch.ops`. `types`: classes of the arguments that are asked too."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        from .._dispatch import _classes

        _classes.enter(self)
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        from .._dispatch import _classes

        _classes.leave()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Self:
        """An instance; deprecated."""
        warnings.warn("`Mode.push()` is no longer necessary and can be replaced with just `with Mode()`", stacklevel=2)
        return cls(*args, **kwargs)

    @classmethod
    def is_infra_mode(cls) -> bool:
        """False: the mode is a program's."""
        return False


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that changes nothing."""

    def __torch_dispatch__(
        self, func: Any, types: tuple[type[Any], ...], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """`func(*args, **kwargs)`."""
        return func(*args, **(kwargs or {}))


def _modes() -> list[Any]:
    loaded = sys.modules.get("rustgrad._dispatch._stack")
    return [] if loaded is None else loaded.state.modes


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether this thread is in a mode; those whose `is_infra_mode` says so count only if asked for."""
    return any(include_infra_modes or not mode.is_infra_mode() for mode in _modes())


def is_in_any_mode_without_ignore_compile_internals() -> bool:
    """Whether this thread is in a mode."""
    return bool(_modes())


def _get_current_dispatch_mode() -> Any:
    """The innermost mode; None if there is none."""
    return (_modes() or [None])[-1]


def _get_current_dispatch_mode_stack() -> list[Any]:
    """The modes, innermost last."""
    return list(_modes())


def _len_torch_dispatch_stack() -> int:
    """How many modes this thread is in."""
    return len(_modes())


def _push_mode(mode: TorchDispatchMode) -> None:
    """Enters a mode."""
    from .._dispatch import _classes

    _classes.enter(mode)


def _pop_mode(k: Any = None) -> Any:
    """Leaves the innermost mode and returns it."""
    from .._dispatch import _classes

    return _classes.leave()


@contextlib.contextmanager
def _pop_mode_temporarily(k: Any = None) -> Iterator[Any]:
    """A block in which the innermost mode is left."""
    mode = _pop_mode()
    try:
        yield mode
    finally:
        _push_mode(mode)


@contextlib.contextmanager
def _disable_current_modes() -> Iterator[list[Any]]:
    """A block in which this thread is in no mode; yields those that it leaves."""
    left = list(_modes())
    for _ in left:
        _pop_mode()
    try:
        yield left
    finally:
        for mode in left:
            _push_mode(mode)


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether a tensor says of which tensors it consists: by `__tensor_flatten__` and `__tensor_unflatten__`."""
    return isinstance(t, Tensor) and type(t) is not Tensor and is_traceable_wrapper_subclass_type(type(t))


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Whether the tensors of a class say of which tensors they consist."""
    both = hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")
    return issubclass(t, Tensor) and t is not Tensor and both


def transform_subclass(
    t: Any, callback: Callable[[str, Any], Any], outer_size: Any = None, outer_stride: Any = None
) -> Any:
    """A wrapper made anew of its tensors, each replaced by `callback(name, tensor)`.

    Raises:
        RuntimeError: the new wrapper is not of the size or stride that is asked for.
    """
    size = t.size() if outer_size is None else outer_size
    stride = t.stride() if outer_stride is None else outer_stride
    names, context = t.__tensor_flatten__()
    parts = {name: callback(name, getattr(t, name)) for name in names}
    made = type(t).__tensor_unflatten__(parts, context, size, stride)
    if tuple(made.shape) != tuple(size):
        raise RuntimeError(
            f"Expected return value from {type(t)}__tensor_unflatten__() to have shape equal to {size}, but got: {made.shape}"
        )
    if tuple(made.stride()) != tuple(stride):
        raise RuntimeError(
            f"Expected return value from {type(t)}__tensor_unflatten__() to have stride equal to {stride}, but got: {made.stride()}"
        )
    return made


def return_and_correct_aliasing(func: Any, args: Any, kwargs: Any, out: Any) -> Any:
    """What `__torch_dispatch__` returns: of an op that writes, the tensor that is written; a view shares memory with its base.

    Args:
        func (OpOverload): the op.
        args, kwargs: what it was called with.
        out: what was computed, with tensors of the classes of the arguments.
    """
    from .._dispatch import _aliasing

    return _aliasing.corrected(func, args, kwargs or {}, out)


def _detect_infra_mode(key: Any) -> None:
    """None: there are no such modes."""


def autograd_would_have_decomposed(func: Any, flat_args: Sequence[Any]) -> bool:
    """Whether autograd would take an op apart: False, where this is asked it has."""
    return False
