"""Where calls of functions, methods and operators come in, and become ops of ATen."""

from __future__ import annotations

import functools
import sys
from typing import Any

from .. import _C, return_types
from .._C import Tensor
from .._ops import OpOverload, OpOverloadPacket, ops
from .._recording._calls import inside, plain_number
from .._recording._keys import ASKS, OF_DATA, SIZES, op_key
from .._recording._trace import map_arguments
from .._schema import overloads
from ..export._fit import fit
from ..export._indexing import get_item, set_item
from ..export._lowering_table import lowering
from . import _answers, _classes
from ._calls import called, dispatch, tensors_in
from ._runner import runner
from ._stack import NoOverrides, entered, state

__all__ = ["of_class", "of_mode"]

_CONVERTS: dict[str, Any] = {
    "__bool__": bool, "__int__": int, "__float__": float, "__complex__": complex, "is_nonzero": bool, "item": lambda n: n,
}  # fmt: skip


@functools.lru_cache(4096)
def _key(function: Any) -> str:
    if function.__class__.__name__ == "method-wrapper" and hasattr(function.__self__, "__name__"):
        return f"{function.__self__.__name__}.{function.__name__}"
    return op_key(function)


def _key_of(function: Any) -> str:
    try:
        return _key(function)
    except TypeError:
        return op_key(function)


def of_mode(func: Any, types: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call that no mode of functions has taken; NotImplemented where a class with a `__torch_function__` is to be asked first."""
    if state.hidden:
        if _C._is_torch_function_enabled():
            # In a block that enables what the one around it disables.
            return func(*args, **kwargs)
        if not state.active() and not _classes.takers(tensors_in(args, kwargs)):
            with NoOverrides():
                return func(*args, **kwargs)
    if any(_classes.overrides_functions(kind) for kind in types):
        return NotImplemented
    if not state.active() and not _classes.takers(tensors_in(args, kwargs)):
        return func(*args, **kwargs)
    return _translated(func, args, kwargs)


def of_class(func: Any, types: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call with a tensor of a class that has `__torch_dispatch__`."""
    if any(_classes.overrides_functions(kind) for kind in types):
        return NotImplemented
    if state.disabled:
        with NoOverrides():
            return func(*args, **kwargs)
    return _translated(func, args, kwargs)


def _translated(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if isinstance(func, (OpOverload, OpOverloadPacket)):
        return called(func, args, kwargs)
    key = _key_of(func)
    answer = _answers.find(key)
    if answer is not None:
        with entered():
            result = answer(func, *args, **kwargs)
        if result is not NotImplemented:
            return result
    # Properties that are ops have lowerings: `T`, `real`.
    question = key.endswith("__get__") and lowering(key) is None
    if key in ASKS or key in SIZES or question or key.endswith("__set__"):
        with NoOverrides():
            return func(*args, **kwargs)
    args, kwargs = map_arguments((args, kwargs), plain_number)
    if key in _CONVERTS:
        return _number(key, func, *args, **kwargs)
    return _named(key, _ops_of(key, func, args, kwargs))


def _named(key: str, result: Any) -> Any:
    """Several results with their names, as the function has them."""
    if type(result) is not tuple:
        return result
    kind = getattr(return_types, key.replace(".", "_"), None)
    return result if kind is None or len(kind._fields) != len(result) else kind(result)


def _number(key: str, func: Any, self: Tensor) -> Any:
    if self.numel() != 1:
        with NoOverrides():
            return func(self)
    return _CONVERTS[key](dispatch(ops.aten._local_scalar_dense.default, (self,), {}))


def _ops_of(key: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function as the ops that it is in ATen."""
    runner.function = key
    if key == "__getitem__":
        return get_item(runner, *args)
    if key == "__setitem__":
        return set_item(runner, *args)
    if key in OF_DATA or key == "from_numpy":
        return runner.constant(*args, **kwargs) if key != "scalar_tensor" else runner(key, *args, **kwargs)
    found = lowering(key)
    if found is not None:
        return found(runner, *args, **kwargs)
    name = key.replace(".", "_")
    if not key.startswith(("nn.init.", "nn.functional.")) and overloads(name):
        given = {k: v for k, v in kwargs.items() if k not in ("out", "requires_grad")}
        if fit(name, args, given) is not None:
            return runner(name, *args, **kwargs)
    inner = inside(func)
    if inner is not None:
        with entered():
            return inner(*args, **kwargs)
    return _unknown(key, func, args, kwargs)


def _each(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """An op of lists of tensors as one op for each."""
    name = "linalg_vector_norm" if name == "norm" else name
    found = []
    for i in range(len(args[0])):
        given = (a[i] if isinstance(a, (list, tuple)) else a for a in args)
        found.append(runner(name, *given, **kwargs))
    return None if name.endswith("_") else found


def _unknown(key: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function that is no op of ATen: it runs as it is, unseen, on tensors that have memory."""
    if key.startswith("_foreach_") and args and isinstance(args[0], (list, tuple)):
        return _each(key.removeprefix("_foreach_"), args, kwargs)
    wrapped = sorted({type(t).__name__ for t in tensors_in(args, kwargs) if _classes.is_wrapper(t)})
    if wrapped:
        raise NotImplementedError(
            f"{key}: not dispatched to Python: no op of ATen is called with these arguments, and {', '.join(wrapped)} has no memory "
            "of its own. Hint: define __torch_function__"
        )
    if "rustgrad._dispatch._tracing" in sys.modules:
        from ._tracing import refuse

        refuse(key, tensors_in(args, kwargs))
    with NoOverrides():
        return func(*args, **kwargs)
