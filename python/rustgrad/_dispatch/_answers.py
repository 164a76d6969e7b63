"""Functions that are no ops: how dispatch answers them."""

from __future__ import annotations

import copy as copying
import sys
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from .. import _utils
from .._C import Size, Tensor
from .._formats import preserve_format, strided
from .._ops import ops
from .._recording._keys import op_key
from ..autograd import _engine
from ..autograd.grad_mode import no_grad
from ..storage import UntypedStorage
from ..utils.hooks import RemovableHandle
from . import _classes
from ._calls import below, dispatch
from ._held import held, released
from ._stack import NoOverrides

__all__ = ["find"]

_table: dict[str, Callable[..., Any]] = {}


def find(key: str) -> Callable[..., Any] | None:
    """What answers a function; None where it is an op or a question about a body."""
    return _table.get(key)


def _answers(*keys: str) -> Callable[..., Any]:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for key in keys:
            _table[key] = function
        return function

    return add


def _ones(self: Tensor) -> Any:
    return dispatch(ops.aten.ones_like.default, (self,), {"pin_memory": False, "memory_format": preserve_format})


@_answers("backward")
def _backward(func: Any, self: Tensor, gradient: Any = None, *rest: Any, **named: Any) -> Any:
    if gradient is None and self.requires_grad and self.numel() == 1:
        gradient = _ones(self)
    if _engine.traced is not None and _engine.traced() is not None and gradient is not None:
        return _engine.backward(self, gradient, *rest, **named)
    return getattr(func, "__wrapped__", func)(self, gradient, *rest, **named)


@_answers("device.__get__", "layout.__get__", "is_cpu.__get__", "is_meta.__get__", "is_gpu.__get__", "is_cuda.__get__")
def _place(func: Any, self: Tensor) -> Any:
    name = getattr(func.__self__, "__name__", "")
    return getattr(self, name) if _classes.is_wrapper(self) else NotImplemented


@_answers("get_device")
def _get_device(func: Any, self: Tensor) -> Any:
    if not _classes.is_wrapper(self):
        return NotImplemented
    return -1 if self.device.type in ("cpu", "meta") else self.device.index or 0


@_answers("grad.__get__", "_grad.__get__")
def _grad_of(func: Any, self: Tensor) -> Any:
    with NoOverrides():
        return _shown(self, released(func(self)))


def _shown(self: Any, grad: Any) -> Any:
    """A gradient of a fake tensor, which the core may have made."""
    loaded = sys.modules.get("rustgrad._dispatch._fake")
    return grad if loaded is None or grad is None else loaded.shown(self, grad)


@_answers("grad.__set__", "_grad.__set__")
def _set_grad(func: Any, self: Tensor, grad: Any) -> None:
    if isinstance(grad, Tensor) and tuple(grad.shape) == tuple(self.shape):
        grad = held(grad, _classes.is_wrapper(self))
    with NoOverrides():
        func(self, grad)


@_answers("data.__get__")
def _data(func: Any, self: Tensor) -> Any:
    if not _classes.takers([self]):
        return NotImplemented
    # Unlike `detach` it counts its own writes.
    return below(ops.aten.detach.default, (self,), {}, [self], shares=False)


@_answers("numpy", "__array__", "tolist", "__dlpack__", "data_ptr")
def _memory(func: Any, self: Tensor, *args: Any, **kwargs: Any) -> Any:
    if not _classes.is_wrapper(self):
        with NoOverrides():
            return func(self, *args, **kwargs)
    name = func.__name__
    if name == "data_ptr":
        self.numel()
        return 0
    if name == "tolist" and "fake_mode" in self.__dict__:
        return dispatch(ops.aten._local_scalar_dense.default, (self,), {})
    raise RuntimeError(
        f"{name}: .{name}() is not supported for tensor subclasses. Hint: convert the parts of {type(self).__name__}"
    )


@_answers("__iter__")
def _iter(func: Any, self: Tensor) -> Any:
    if self.dim() == 0:
        return NotImplemented
    return iter(dispatch(ops.aten.unbind.int, (self,), {}))


@_answers("__repr__", "__str__")
def _repr(func: Any, self: Tensor, **kwargs: Any) -> Any:
    if not _classes.is_wrapper(self):
        with _classes.disabled(), NoOverrides():
            return func(self, **kwargs)
    if "fake_mode" in self.__dict__:
        return sys.modules["rustgrad._dispatch._fake"].described(self)
    return _described(self, kwargs.get("tensor_contents"))


@_answers("__format__")
def _format(func: Any, self: Tensor, spec: str) -> Any:
    return object.__format__(self, spec) if _classes.is_wrapper(self) else NotImplemented


def _described(self: Tensor, contents: str | None = None) -> str:
    given = [f"size={tuple(self.shape)}", f"dtype={self.dtype}"] if contents is None else [contents]
    if self.device.type != "cpu":
        given.append(f"device={str(self.device)!r}")
    if self.grad_fn is not None:
        given.append(f"grad_fn=<{self.grad_fn.name()}>")
    elif self.requires_grad:
        given.append("requires_grad=True")
    return f"{type(self).__name__}({', '.join(given)})"


@_answers("__deepcopy__")
def _deepcopy(func: Any, self: Tensor, memo: Any) -> Any:
    if not _classes.takers([self]):
        return NotImplemented
    if id(self) in memo:
        return memo[id(self)]
    if not self.is_leaf:
        with NoOverrides():
            return func(self, memo)
    with no_grad():
        made = dispatch(ops.aten.clone.default, (self,), {})
    if type(made) is not type(self):
        raise RuntimeError(
            "The default implementation of __deepcopy__() for wrapper subclasses only works for subclass types that properly "
            f"implement clone() or new_empty(); expected {type(self).__name__} from clone(), got {type(made).__name__}"
        )
    made.requires_grad_(self.requires_grad)
    memo[id(self)] = made
    for name, value in self.__dict__.items():
        if name not in made.__dict__:
            made.__dict__[name] = copying.deepcopy(value, memo)
    if self.grad is not None:
        made.grad = copying.deepcopy(self.grad, memo)
    return made


@_answers("__reduce_ex__")
def _reduce(func: Any, self: Tensor, protocol: Any) -> Any:
    if not _classes.is_wrapper(self):
        return NotImplemented
    made = (
        type(self), self.dtype, tuple(self.shape), self.stride(), self.storage_offset(), self.layout, self.device, self.requires_grad,
    )  # fmt: skip
    state = _utils._state_of(self, {k: v for k, v in self.__dict__.items() if not k.startswith("_wrapped_")})
    return (_utils._rebuild_from_type_v2, (_utils._rebuild_wrapper_subclass, type(self), made, state))


@_answers("untyped_storage", "storage", "_typed_storage")
def _storage(func: Any, self: Tensor) -> Any:
    with _classes.disabled(), NoOverrides():
        found = func(self)
    if _classes.is_wrapper(self) and isinstance(found, UntypedStorage):
        found.__class__ = _NoMemory
    return found


class _NoMemory(UntypedStorage):
    """The storage of a wrapper, which has a size and no bytes."""

    @property
    def _bytes(self) -> Any:
        raise RuntimeError("Attempted to access the data pointer on an invalid python storage.")

    _whole = _bytes

    def data_ptr(self) -> int:
        """RuntimeError: there are no bytes."""
        return int(self._bytes)

    def resize_(self, size: Any) -> Any:
        """RuntimeError: there are no bytes."""
        return self._bytes


@_answers("data.__set__")
def _set_data(func: Any, self: Tensor, other: Any) -> Any:
    wraps = [isinstance(t, Tensor) and _classes.is_wrapper(t) for t in (self, other)]
    if wraps[0] != wraps[1]:
        raise RuntimeError("data: a tensor with memory and one that wraps others do not take each other's place")
    with NoOverrides():
        func(self, other)
    if wraps[0]:
        kept = self.__dict__
        for name, value in other.__dict__.items():
            kept[name] = value
    return None


@_answers("requires_grad_")
def _requires_grad(func: Any, self: Tensor, requires_grad: bool = True) -> Any:
    with NoOverrides():
        func(self, requires_grad)
    return self


@_answers("as_subclass")
def _as_subclass(func: Any, self: Tensor, cls: Any) -> Any:
    if _classes.is_wrapper(self) and type(self) is not cls:
        raise RuntimeError(_classes.associated(cls, self))
    with _classes.disabled(), NoOverrides():
        return func(self, cls)


@_answers("autograd.grad", "grad")
def _grad(func: Any, outputs: Any, inputs: Any, grad_outputs: Any = None, **named: Any) -> Any:
    keys = list(inputs) if isinstance(inputs, dict) else None
    chosen = tuple(inputs.values()) if isinstance(inputs, dict) else _engine.as_tuple(inputs)
    flags = ("retain_graph", "create_graph", "allow_unused", "is_grads_batched", "materialize_grads")
    outputs = _engine.as_tuple(outputs)
    if grad_outputs is None and all(isinstance(t, Tensor) and t.requires_grad and t.numel() == 1 for t in outputs):
        grad_outputs = tuple(map(_ones, outputs))
    found = _engine.gradients(outputs, chosen, keys, grad_outputs, *(named.get(name) for name in flags))
    if isinstance(found, dict):
        return {k: _shown(inputs[k], released(g)) for k, g in found.items()}
    return tuple(_shown(t, released(g)) for t, g in zip(chosen, found))


@_answers("register_hook", "retain_grad")
def _hook(func: Any, self: Tensor, *args: Any) -> Any:
    mode = None if _engine.traced is None else _engine.traced()
    if mode is not None and not self.is_leaf:
        node = self.grad_fn
        hook = args[0] if args else lambda grad: setattr(self, "grad", grad)
        mode.hooks.setdefault(((node._sequence_nr(), node.name()), self.output_nr), []).append(hook)
        return RemovableHandle(OrderedDict())
    with NoOverrides():
        return func(self, *args)


@_answers("full", "full_like", "new_full")
def _filled(func: Any, *args: Any, **kwargs: Any) -> Any:
    """A value in a tensor is read, as PyTorch's parser does."""
    at = 2 if func.__name__ == "new_full" else 1
    value = args[at] if len(args) > at else kwargs.get("fill_value")
    if not isinstance(value, Tensor) or value.dim():
        return NotImplemented
    number = dispatch(ops.aten._local_scalar_dense.default, (value,), {})
    if len(args) > at:
        args = (*args[:at], number, *args[at + 1 :])
    else:
        kwargs = {**kwargs, "fill_value": number}
    return func(*args, **kwargs)


@_answers("to_dense")
def _to_dense(func: Any, self: Tensor, *args: Any, **kwargs: Any) -> Any:
    # The engine asks for all elements of a gradient.
    return self if _classes.is_wrapper(self) and self.layout is strided and not args and not kwargs else NotImplemented


@_answers(
    "shape.__get__",
    "size",
    "numel",
    "nelement",
    "dim",
    "ndim.__get__",
    "__len__",
    "stride",
    "is_contiguous",
    "storage_offset",
)
def _form(func: Any, self: Tensor, *args: Any, **kwargs: Any) -> Any:
    """The form of a tensor whose class is asked for it."""
    if _classes.ASKED not in self.__dict__:
        return NotImplemented
    key = op_key(func).partition(".")[0] if not hasattr(func, "__self__") else func.__self__.__name__
    name, kind = _FORMS[key]
    if kind not in self.__dict__[_classes.ASKED]:
        return NotImplemented
    found = below(getattr(ops.aten, name).default, (self,), {}, [self])
    if found is None:
        return NotImplemented
    if key in ("shape", "size"):
        found = Size(found)
    if key == "__len__":
        return found[0]
    index = args[0] if args else kwargs.get("dim")
    return found[index] if key in ("size", "stride") and isinstance(index, int) else found


_FORMS = {
    "shape": ("sym_size", "sizes"), "size": ("sym_size", "sizes"), "__len__": ("sym_size", "sizes"), "numel": ("numel", "sizes"),
    "nelement": ("numel", "sizes"), "dim": ("dim", "sizes"), "ndim": ("dim", "sizes"), "stride": ("sym_stride", "strides"),
    "is_contiguous": ("is_contiguous", "strides"), "storage_offset": ("sym_storage_offset", "strides"),
}  # fmt: skip


@_answers("set_")
def _set(func: Any, self: Tensor, *args: Any, **kwargs: Any) -> Any:
    if _classes.takers([self]) and args and isinstance(args[0], Tensor) and len(args) == 1:
        return dispatch(ops.aten.set_.source_Tensor, (self, *args), kwargs)
    with NoOverrides():
        return func(self, *args, **kwargs)


def _kept_out(func: Any, *args: Any, **kwargs: Any) -> Any:
    with NoOverrides():
        return func(*args, **kwargs)


for _name in (
    "_make_subclass",
    "manual_seed",
    "is_tensor",
    "get_default_dtype",
    "_use_count",
    "resize_",
    "share_memory_",
):
    _table[_name] = _kept_out
