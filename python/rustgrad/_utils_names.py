"""Private names of `_utils` and `_tensor` that libraries use: buckets of tensors, names to objects, states of objects, subclasses."""

from __future__ import annotations

import copyreg
import functools
import importlib
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from . import _utils
from ._base import Tensor, ops
from .overrides import handle_torch_function, has_torch_function

__all__: list[str] = []


def _take_tensors(tensors: Iterable[Tensor], size_limit: int) -> Iterator[list[Tensor]]:
    """Lists of tensors of one type, each of at least `size_limit` bytes but the last ones."""
    buckets: dict[str, list[Any]] = defaultdict(lambda: [[], 0])
    for tensor in tensors:
        size = tensor.numel() * tensor.element_size()
        kind = tensor.type()
        bucket = buckets[kind]
        if bucket[0] and bucket[1] + size > size_limit:
            yield bucket[0]
            bucket = buckets[kind] = [[], 0]
        bucket[0].append(tensor)
        bucket[1] += size
    yield from (tensors for tensors, _ in buckets.values() if tensors)


def _reorder_tensors_as(tensors: Iterable[Tensor], ordered_tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """Tensors, in order within each type, in the order of types of others."""
    by_type: dict[str, list[Tensor]] = defaultdict(list)
    for tensor in tensors:
        by_type[tensor.type()].append(tensor)
    streams = {kind: iter(found) for kind, found in by_type.items()}
    return tuple(next(streams[tensor.type()]) for tensor in ordered_tensors)


def _import_dotted_name(name: str) -> Any:
    """The object that `package.module.attribute` names."""
    first, *rest = name.split(".")
    found: Any = __import__(first)
    for part in rest:
        found = getattr(found, part)
    return found


def try_import(module_name: str) -> Any:
    """A module, or None where it is not installed."""
    from .utils._import_utils import _check_module_exists

    return importlib.import_module(module_name) if _check_module_exists(module_name) else None


def _type(self: Tensor, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
    """`tensor.type(dtype)`; the name of its type without one."""
    return f"{type(self).__module__}.{type(self).__name__}" if dtype is None else self.type(dtype, non_blocking)


def _to(self: Any, device: Any, non_blocking: bool = False) -> Any:
    """A tensor or storage on a device."""
    return self.to(device=device, non_blocking=non_blocking)


def _handle_complex(tensor: Any) -> Any:
    """The real view of a complex tensor; others as they are."""
    return ops["view_as_real"](tensor) if isinstance(tensor, Tensor) and tensor.is_complex() else tensor


def _get_available_device_type() -> str | None:
    """The kind of device beside the CPU that programs know; None if there is none."""
    from . import cuda

    return "cuda" if cuda.is_available() else None


def _get_device_module(device_type: str) -> Any:
    """The module of a kind of device: `torch.cuda`, `torch.cpu`."""
    module = getattr(importlib.import_module(__package__), device_type, None)
    if module is None:
        text = f"Device '{device_type}' does not have a corresponding module registered as 'torch.{device_type}'."
        raise RuntimeError(text)
    return module


def _get_device_attr(get_member: Callable[[Any], Any]) -> Any:
    """`get_member(torch.cuda)` where there is such a device, else None."""
    from . import cuda

    return get_member(cuda) if _get_available_device_type() else None


def _get_all_device_indices() -> list[int] | None:
    """The numbers of all such devices; None without one."""
    found: list[int] | None = _get_device_attr(lambda module: [*range(module.device_count())])
    return found


def _get_current_device_index() -> int | None:
    """The number of the current one; None without one."""
    found: int | None = _get_device_attr(lambda module: module.current_device())
    return found


def is_compiling() -> bool:
    """`compiler.is_compiling()`."""
    from .compiler import is_compiling

    return is_compiling()


def cpu_count() -> int | None:
    """The number of CPUs that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count()


class _ClassPropertyDescriptor:
    """A property of a class."""

    def __init__(self, fget: Any, fset: Any = None) -> None:
        self.fget = fget

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        owner = type(instance) if owner is None else owner
        return self.fget.__get__(instance, owner)()


def classproperty(func: Any) -> _ClassPropertyDescriptor:
    """A decorator of methods that makes them properties of the class."""
    return _ClassPropertyDescriptor(func if isinstance(func, (classmethod, staticmethod)) else classmethod(func))


def _get_obj_state(obj: Any) -> Any:
    """What a pickle holds of an object: its attributes, and its slots beside them if the class has some."""
    own = getattr(obj, "__getstate__", None)
    # Python 3.11 gives every object one.
    if own is not None and type(obj).__getstate__ is not getattr(object, "__getstate__", None):
        return own()
    slots = {name: getattr(obj, name) for name in copyreg._slotnames(type(obj)) if hasattr(obj, name)}  # type: ignore[attr-defined]
    attributes: Any = obj.__dict__
    return (attributes, slots) if slots else attributes


def _set_obj_state(obj: Any, state: Any) -> Any:
    """Gives an object the state that `_get_obj_state` returned."""
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    if isinstance(state, tuple) and len(state) != 2:
        raise RuntimeError(f"Invalid serialized state: {state}")
    for name, value in {**(attributes or {}), **(slots or {})}.items():
        setattr(obj, name, value)
    return obj


def render_call(fn: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """A call as text, with tensors by their shapes."""
    from .overrides import resolve_name

    def shown(value: Any) -> str:
        return f"tensor([...], size={tuple(value.shape)})" if isinstance(value, Tensor) else repr(value)

    given = [*map(shown, args), *(f"{name}={shown(value)}" for name, value in kwargs.items())]
    return f"{resolve_name(fn) or str(fn)}({', '.join(given)})"


def _convert(ret: Any, cls: Any) -> Any:
    """Tensors as objects of a subclass, in tuples and lists too."""
    if cls is Tensor:
        return ret
    if isinstance(ret, Tensor) and not isinstance(ret, cls):
        return ret.as_subclass(cls)
    if isinstance(ret, (tuple, list)):
        mapped = [_convert(item, cls) for item in ret]
        return type(ret)(*mapped) if hasattr(ret, "_fields") else type(ret)(mapped)
    return ret


def _handle_torch_function_and_wrap_type_error_to_not_implemented(f: Callable[..., Any]) -> Callable[..., Any]:
    """A method of an operator that overrides, and gives NotImplemented where types do not fit."""

    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            if has_torch_function(args):
                return handle_torch_function(wrapped, args, *args, **kwargs)
            return f(*args, **kwargs)
        except TypeError:
            return NotImplemented

    return wrapped


def _rebuild_from_type(func: Callable[..., Any], type: type, args: Any, dict: dict[str, Any]) -> Any:  # noqa: A002
    """A tensor of a subclass, with attributes."""
    return _utils._rebuild_from_type_v2(func, type, args, dict)


def set_vital(vital: str, attr: str, value: str) -> None:
    """No effect: nothing is reported of a run."""
