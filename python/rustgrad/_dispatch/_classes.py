"""Subclasses of `Tensor` with `__torch_dispatch__`, and tensors of them that have no memory of their own."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Iterator
from typing import Any

from .. import _C, _formats, _ops, overrides
from .._C import Tensor, ops
from ..autograd import _engine
from ..autograd.grad_mode import set_grad_enabled
from ._stack import (
    DisableTorchFunction,
    DisableTorchFunctionSubclass,
    entry,
    is_all_disabled,
    is_mode_enabled,
    place,
    state,
)

__all__ = ["disabled", "dispatches", "install", "is_wrapper", "make_wrapper", "register", "takers"]

_default = _C._disabled_torch_dispatch_impl
_no_functions = _C._disabled_torch_function_impl
# Where a tensor without memory of its own says that it is.
PLACE = "_wrapped_device"
# In a view, the version of its memory when it was taken.
VIEW = "_wrapped_view"
# Where it says which questions its class answers.
ASKED = "_wrapped_asked"


@classmethod  # type: ignore[misc]
def _handler(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """The `__torch_function__` of classes that define only `__torch_dispatch__`: the call goes on below autograd."""
    from ._entry import of_class

    return of_class(func, types, args, kwargs or {})


_function = _handler.__func__


def overrides_functions(cls: Any) -> bool:
    """Whether a class has a `__torch_function__` of its own."""
    return getattr(getattr(cls, "__torch_function__", None), "__func__", None) is not _function


def dispatches(cls: Any) -> bool:
    """Whether a class has a `__torch_dispatch__` of its own."""
    return getattr(cls, "__torch_dispatch__", _default) is not _default


def register(cls: type[Tensor]) -> None:
    """Prepares a class with `__torch_dispatch__` when it is defined."""
    install()
    found = getattr(cls.__torch_function__, "__func__", cls.__torch_function__)
    if found is _no_functions or found is Tensor.__torch_function__.__func__:
        cls.__torch_function__ = _handler  # type: ignore[assignment]
    for name, slot in [*vars(cls).items()]:
        if isinstance(slot, types.MemberDescriptorType):
            setattr(cls, name, _Slot(name))
    for name, value in _PROPERTIES.items():
        # What a class of the program defines itself stays.
        if getattr(cls, name) is getattr(Tensor, name):
            setattr(cls, name, value)


class _Slot:
    """A slot of a class whose value is kept in the `__dict__`, which a tensor in a graph keeps when Python drops the object."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        try:
            return instance.__dict__[self.name]
        except KeyError:
            raise AttributeError(f"{type(instance).__name__!r} object has no attribute {self.name!r}") from None

    def __set__(self, instance: Any, value: Any) -> None:
        instance.__dict__[self.name] = value

    def __delete__(self, instance: Any) -> None:
        del instance.__dict__[self.name]


def install() -> None:
    """Lets ops that are called by name, and blocks without overrides, know of dispatch."""
    if _ops.below is None:
        from . import _held
        from ._calls import called

        _ops.below, _engine.dispatched, _engine.holder = called, dispatched, _held
        overrides._asked_below = asked_below
        _engine.Opaque.wraps = staticmethod(is_wrapper)
        _engine.Opaque.declare()
        Tensor._make_subclass = staticmethod(make_subclass)
        _C.DisableTorchFunctionSubclass = DisableTorchFunctionSubclass  # type: ignore[misc, assignment]
        _C.DisableTorchFunction = DisableTorchFunction  # type: ignore[misc, assignment]
        _C._is_torch_function_all_disabled = is_all_disabled
        _C._is_torch_function_mode_enabled = is_mode_enabled


def dispatched(tensors: Any) -> bool:
    """Whether ops on these tensors go to a mode or a class."""
    return not state.disabled and (bool(state.modes) or any(dispatches(type(t)) for t in tensors))


def asked_below(values: Any) -> bool:
    """Whether a mode of functions is asked, or ops on these arguments go to a mode or a class."""
    return is_mode_enabled() or dispatched(values)


def is_wrapper(value: Any) -> bool:
    """Whether a tensor has no memory of its own."""
    return isinstance(value, Tensor) and PLACE in value.__dict__


def takers(tensors: list[Any]) -> list[Any]:
    """Tensors whose classes are asked: one of each class, subclasses before their bases."""
    found: list[Any] = []
    for t in tensors:
        kind = type(t)
        if kind is Tensor or not dispatches(kind) or any(kind is type(other) for other in found):
            continue
        at = next((i for i, other in enumerate(found) if issubclass(kind, type(other))), len(found))
        found.insert(at, t)
    return found


@contextlib.contextmanager
def disabled() -> Iterator[None]:
    """A block in which neither modes nor classes are asked."""
    state.disabled += 1
    try:
        yield
    finally:
        state.disabled -= 1


@contextlib.contextmanager
def reentrant() -> Iterator[None]:
    """A block in which autograd and dispatch are as they were around the call that is answered."""
    left, state.disabled = state.disabled, 0
    try:
        with set_grad_enabled(state.records):
            yield
    finally:
        state.disabled = left


def call_disabled(func: Any, args: Any, kwargs: Any) -> Any:
    """The default `__torch_dispatch__`: the op on the memory of the tensors."""
    with disabled():
        return func(*args, **(kwargs or {}))


def _asking(self: Any, name: str) -> bool:
    return name in self.__dict__.get(ASKED, ()) and not state.disabled


def _answer(self: Any, name: str) -> Any:
    from ._calls import below

    return below(getattr(_ops.ops.prim, name).default, (self,), {}, [self])


def _device(self: Any) -> Any:
    if _asking(self, "device"):
        return _answer(self, "device")
    found = self.__dict__.get(PLACE)
    # The body of a fake tensor is what ops run on.
    body = found is None or (state.disabled and "fake_mode" in self.__dict__)
    return _get(self, "device") if body else found


def _layout(self: Any) -> Any:
    if _asking(self, "layout"):
        return _answer(self, "layout")
    return self.__dict__.get("_wrapped_layout") or _get(self, "layout")


def _get(self: Any, name: str) -> Any:
    return vars(Tensor)[name].__get__(self)


def _as_subclass(self: Any, cls: Any) -> Any:
    """RuntimeError: the tensor is an object of its class, which no other can be."""
    if is_wrapper(self) and type(self) is not cls and not state.disabled:
        raise RuntimeError(associated(cls, self))
    with disabled():
        return _C._as_subclass(self, cls)


def _is_on(*kinds: str) -> property:
    return property(lambda self: _device(self).type in kinds)


_PROPERTIES: dict[str, Any] = {
    "device": property(_device),
    "layout": property(_layout),
    "as_subclass": _as_subclass,
    "is_cpu": _is_on("cpu"),
    "is_meta": _is_on("meta"),
    "is_gpu": _is_on("gpu"),
    "is_cuda": property(lambda self: _device(self).type == "gpu" and _get(ops["empty"](0, device="gpu"), "is_cuda")),
}


def make_wrapper(
    cls: type[Tensor],
    size: Any,
    strides: Any = None,
    storage_offset: Any = None,
    memory_format: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    dispatch_sizes_strides_policy: str | None = None,
    dispatch_device: bool = False,
    dispatch_layout: bool = False,
    _extra_dispatch_keys: Any = None,
    storage_size: int | None = None,
) -> Tensor:
    """A tensor of a class with `__torch_dispatch__` that has a shape, dtype and device, and no memory.

    Raises:
        TypeError: `cls` is no subclass of `Tensor`, or has no `__torch_dispatch__`.
        RuntimeError: `dispatch_sizes_strides_policy` is unknown.
    """
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(f"_make_wrapper_subclass(): argument 'cls' must be a subclass of Tensor, not {cls!r}")
    if not dispatches(cls):
        raise TypeError(
            f"{cls.__name__} must define __torch_dispatch__: its tensors have no memory, and no op would know what to do"
        )
    given = _C.device(device) if device is not None else ops["empty"](0).device
    kind = {} if dtype is None else {"dtype": dtype}
    with disabled():
        if strides is None:
            form = {} if memory_format is None else {"memory_format": memory_format}
            body = ops["empty"](tuple(size), device="meta", **kind, **form)
        else:
            body = ops["empty_strided"](tuple(size), tuple(strides), device="meta", **kind)
        if storage_offset:
            body = _moved(body, storage_offset)
        made = _C._make_subclass(cls, body, requires_grad)
    made.__dict__[PLACE] = given
    if layout is not None and layout is not _formats.strided:
        made.__dict__["_wrapped_layout"] = layout
    _ask(made, dispatch_sizes_strides_policy, dispatch_device, dispatch_layout)
    return made


def _ask(made: Tensor, policy: str | None, device: bool, layout: bool) -> None:
    """Notes which questions about a tensor go to its class."""
    if policy not in (None, "sizes", "strides"):
        raise RuntimeError(f"Unknown sizes_strides_policy: {policy}; expected strides or sizes")
    asked = {
        name
        for name, on in (("device", device), ("layout", layout), ("strides", policy), ("sizes", policy == "sizes"))
        if on
    }
    if asked:
        made.__dict__[ASKED] = asked


def make_subclass(
    cls: Any,
    data: Any,
    requires_grad: bool = False,
    *,
    dispatch_sizes_strides_policy: str | None = None,
    dispatch_device: bool = False,
    dispatch_layout: bool = False,
) -> Any:
    """`Tensor._make_subclass`.

    Raises:
        RuntimeError: `data` is of a class with `__torch_dispatch__`, whose `detach` gives an object of that class.
    """
    if isinstance(data, Tensor) and dispatches(type(data)) and not state.disabled and type(data) is not cls:
        raise RuntimeError(associated(cls, data))
    made = _C._make_subclass(cls, data, requires_grad)
    _ask(made, dispatch_sizes_strides_policy, dispatch_device, dispatch_layout)
    return made


def associated(cls: Any, data: Any) -> str:
    """The error where a tensor of another class is to become one of `cls`."""
    return (
        f"Creating a new Tensor subclass {cls.__name__} but the raw Tensor object is already associated to a python object of type "
        f"{type(data).__name__}"
    )


def _moved(body: Tensor, offset: int) -> Tensor:
    """A tensor on meta of the same form that starts at an offset."""
    extent = sum((n - 1) * s for n, s in zip(body.shape, body.stride())) + 1 if body.numel() else 0
    whole = ops["empty"](offset + extent, dtype=body.dtype, device="meta")
    return ops["as_strided"](whole, tuple(body.shape), body.stride(), offset)


def enter(mode: Any) -> None:
    """Enters a mode.

    Raises:
        RuntimeError: its `__torch_dispatch__` is a classmethod.
    """
    install()
    if isinstance(getattr(mode.__torch_dispatch__, "__self__", None), type):
        raise RuntimeError(
            "Defining your mode's `__torch_dispatch__` as a classmethod is not supported, please make it a plain method"
        )
    state.modes.append(mode)
    if not (_C._len_torch_function_stack() and _C._get_function_stack_at(0) is entry):
        place(True)


def leave() -> Any:
    """Leaves the innermost mode."""
    mode = state.modes.pop()
    if not state.modes and _C._is_torch_function_enabled():
        place(False)
    return mode
