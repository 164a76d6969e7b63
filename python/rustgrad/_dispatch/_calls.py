"""A call of an op: taken apart, recorded by autograd, offered to modes and classes, and at last run."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from .. import _C
from .._C import Tensor
from .._ops import OpOverload, OpOverloadPacket, items_of, renamed_self
from ..autograd import _engine
from ..autograd.grad_mode import no_grad, set_grad_enabled
from ..overrides import handle_torch_function
from . import _classes
from ._stack import NoOverrides, entered, is_mode_enabled, state

__all__ = ["called", "dispatch", "run", "tensors_in"]


def tensors_in(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
    """The tensors among arguments and in their lists."""
    found: list[Tensor] = []
    for value in (*args, *kwargs.values()):
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found.extend(v for v in value if isinstance(v, Tensor))
    return found


def called(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of an op by its name in `torch.ops`: functions may be overridden, then it is dispatched."""
    tensors = tensors_in(args, kwargs)
    given = (*items_of(args, kwargs), *tensors)
    if is_mode_enabled() or _overriding(given):
        return handle_torch_function(op, given, *args, **kwargs)
    if isinstance(op, OpOverloadPacket):
        if not state.active() and not _dispatching(tensors):
            return run(op, args, kwargs)
        from ._runner import resolve

        return resolve(op, args, kwargs)
    return dispatch(op, args, kwargs)


def _overriding(values: tuple[Any, ...]) -> bool:
    if not _C._is_torch_function_enabled():
        return False
    return any(_has_function(type(v)) for v in values)


def _has_function(kind: type) -> bool:
    if kind is Tensor:
        return False
    found = getattr(kind, "__torch_function__", None)
    return found is not None and found is not _C._disabled_torch_function_impl and _classes.overrides_functions(kind)


def _dispatching(tensors: list[Tensor]) -> bool:
    return not state.disabled and any(type(t) is not Tensor and _classes.dispatches(type(t)) for t in tensors)


def dispatch(op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of an op: taken apart where PyTorch does so, recorded, offered to modes and classes."""
    tensors = tensors_in(args, kwargs)
    wraps = _dispatching(tensors)
    if not wraps and not state.active() and not state.through:
        return run(op, args, kwargs)
    records, state.records = state.records, _C.is_grad_enabled()
    try:
        return _taken_apart(op, args, kwargs, tensors, wraps)
    finally:
        state.records = records


def _taken_apart(
    op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[Tensor], wraps: bool
) -> Any:
    from . import _composites

    parts = _composites.find(op)
    if parts is not None:
        state.through += wraps
        try:
            result = parts(*args, **kwargs)
        finally:
            state.through -= wraps
        if result is not NotImplemented:
            return result
    if _C.is_grad_enabled() and any(t.requires_grad for t in tensors):
        from ._nodes import record

        return record(op, args, kwargs, tensors)
    return below(op, args, kwargs, tensors)


def below(
    op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[Tensor], shares: bool = True
) -> Any:
    """The result of an op below autograd: the innermost mode's, or a class's, or its own.

    Args:
        shares (bool): whether what `detach` gives counts writes with its argument.
    """
    modes = state.active()
    taking = [] if state.disabled else _classes.takers(tensors)
    if not modes and not taking:
        return run(op, args, kwargs)
    types, refused = tuple(type(t) for t in taking), []
    args, kwargs = _without_defaults(op, args, kwargs)
    if modes:
        mode = modes.pop()
        try:
            result = _asked(_rule(op, type(mode), mode) or mode.__torch_dispatch__, op, types, args, kwargs)
        finally:
            modes.append(mode)
        if result is not NotImplemented:
            return _checked(op, result)
        refused.append(f"mode object {mode!r}")
    for t in taking:
        result = _asked(_rule(op, type(t), type(t)) or t.__torch_dispatch__, op, types, args, kwargs)
        if result is not NotImplemented:
            result = _checked(op, result)
            return _aliased(op, args, result) if shares else result
        refused.append(f"tensor subclass {type(t)}")
    listed = "".join(f"\n  - {text}" for text in refused)
    raise TypeError(
        f"Multiple dispatch failed for 'torch.ops.{op}'; all __torch_dispatch__ handlers returned NotImplemented:\n{listed}\n\n"
        "For more information, try re-running with TORCH_LOGS=not_implemented"
    )


def _rule(op: OpOverload, kind: type, answering: Any) -> Any:
    """What a program has registered for an op of its own and a class or mode."""
    rules = getattr(op.overloadpacket._function, "_dispatch_rules", None)
    rule = rules.get(kind) if rules else None
    return rule and functools.partial(rule, answering)


def _checked(op: Any, result: Any) -> Any:
    """A result of `__torch_dispatch__` of an op that returns one tensor.

    Raises:
        RuntimeError: it is something else.
    """
    schema = op._schema
    if (
        schema is not None
        and len(schema.returns) == 1
        and schema.returns[0].startswith("Tensor")
        and "[" not in schema.returns[0]
    ):
        if not isinstance(result, Tensor) and result is not None and op.namespace == "aten":
            raise RuntimeError(
                f"Unable to cast {result!r} to Tensor: {op} returns a tensor, and __torch_dispatch__ returned {type(result).__name__}"
            )
    return result


def _without_defaults(op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """Arguments without those at the end, and by name, that are defaults."""
    schema = op._schema
    if schema is None:
        return args, kwargs
    named = {a.name: a for a in schema.arguments}
    kwargs = {k: v for k, v in kwargs.items() if k not in named or not _is_default(named[k], v)}
    positional = [a for a in schema.arguments if not a.keyword_only]
    if kwargs and any(k in named and not named[k].keyword_only for k in kwargs):
        # Positional ones that were given by name.
        values = {**dict(zip((a.name for a in positional), args)), **kwargs}
        count = 1 + max(i for i, a in enumerate(positional) if a.name in values)
        if all(a.name in values or a.has_default for a in positional[:count]):
            args = tuple(values[a.name] if a.name in values else a.default_value for a in positional[:count])
            kwargs = {k: v for k, v in kwargs.items() if k not in named or named[k].keyword_only}
    count = len(args)
    while count and count <= len(positional) and _is_default(positional[count - 1], args[count - 1]):
        count -= 1
    return args[:count], kwargs


def _is_default(argument: Any, value: Any) -> bool:
    if not argument.has_default or isinstance(value, Tensor):
        return False
    usual = argument.default_value
    if value is None or usual is None or isinstance(value, bool) or isinstance(usual, bool):
        return value is usual
    if isinstance(value, (list, tuple)):
        return isinstance(usual, list) and list(value) == usual and not any(isinstance(v, Tensor) for v in value)
    # Zero as a float is no default of 0, of whatever number a Scalar is.
    same = argument.kind == "float" or type(value) is type(usual)
    return same and isinstance(value, (int, float, complex, str)) and bool(value == usual)


def _asked(handler: Callable[..., Any], op: Any, types: Any, args: Any, kwargs: Any) -> Any:
    through, state.through = state.through, 0
    try:
        with no_grad(), entered():
            return handler(op, types, args, kwargs)
    finally:
        state.through = through


def _aliased(op: Any, args: Any, result: Any) -> Any:
    """A result of a class: a write counts in the version of the tensor, and `detach` shares it."""
    if not args or not _classes.is_wrapper(args[0]) or "fake_mode" in args[0].__dict__:
        return result
    name = op.overloadpacket.__name__
    if name == "detach" and _classes.is_wrapper(result) and result is not args[0]:
        from . import _aliasing

        _aliasing.share(args[0], result)
    elif name.endswith("_") and not name.endswith("__") and op.namespace == "aten":
        with _classes.disabled(), NoOverrides():
            _C._increment_version(args[0])
    elif op._schema is not None and op._schema.is_view and name != "_unsafe_view":
        for t in results_in(result):
            if _classes.is_wrapper(t) and t is not args[0]:
                t.__dict__[_classes.VIEW] = t._version
    return result


_NAMED = "rustgrad.return_types"


class Frame:
    """A call whose op is recorded by autograd itself when it runs with the same tensors."""

    def __init__(self, op: Any, tensors: list[Tensor]) -> None:
        self.op, self.tensors, self.result = op, tensors, None
        self.done = False

    def takes(self, op: Any, tensors: list[Tensor]) -> bool:
        """Whether a call is the one that is recorded."""
        same = not self.done and op is self.op and len(tensors) == len(self.tensors)
        return same and all(a is b for a, b in zip(tensors, self.tensors))


def _own_rules(tensors: list[Tensor]) -> bool:
    """Whether a tensor has a layout whose rules are written in Python."""
    return bool(_engine.sparse) and any(isinstance(t, _engine.sparse) for t in tensors)


def run(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The op itself."""
    packet = op.overloadpacket if isinstance(op, OpOverload) else op
    if "self" in kwargs:
        args, kwargs = renamed_self(packet._function, args, kwargs)
    tensors = tensors_in(args, kwargs)
    if not state.disabled and any(_classes.is_wrapper(t) for t in tensors):
        kinds = sorted({type(t).__name__ for t in tensors if _classes.is_wrapper(t)})
        raise NotImplementedError(
            f"{op}: no implementation found for {', '.join(kinds)}, which has no memory of its own"
        )
    frame = state.frames[-1] if state.frames and not state.disabled else None
    if frame is not None and frame.takes(op, tensors):
        frame.done = True
        with set_grad_enabled(True):
            frame.result = _plainly(packet._function, args, kwargs, tensors)
        return frame.result
    return _plainly(packet._function, args, kwargs, tensors)


def _plainly(function: Any, args: Any, kwargs: Any, tensors: list[Tensor]) -> Any:
    if _own_rules(tensors):
        return function(*args, **kwargs)
    with NoOverrides():
        result = function(*args, **kwargs)
    # Results of ops have no names; those of functions get them back in `_entry`.
    return (
        tuple(result)
        if isinstance(result, tuple) and type(result) is not tuple and type(result).__module__ == _NAMED
        else result
    )


def quietly(op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[Tensor]) -> Any:
    """`below` without recording: autograd is above it."""
    with no_grad():
        return below(op, args, kwargs, tensors)


def results_in(result: Any) -> Iterator[Tensor]:
    """The tensors among results."""
    for value in result if isinstance(result, (list, tuple)) else (result,):
        if isinstance(value, Tensor):
            yield value
