"""Finds the overload of ATen that a call of a function is, and writes its arguments as PyTorch's graphs do."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._base import Tensor, device, dtype
from .._formats import layout, memory_format
from .._schema import Argument, Schema, overloads

__all__ = ["Call", "fit", "fit_schema"]

# Functions that take a number in the place of a tensor.
_NUMBERS = {n + end for n in "add sub mul div true_divide divide multiply subtract floor_divide".split() for end in ("", "_")}  # fmt: skip
# Where several overloads fit a call, in which order Python tries them.
_ORDER = dict.fromkeys(("var", "std", "var_mean", "std_mean"), ("dim", "correction", "default"))
_ALSO = {"input": "self", "axis": "dim", "keepdims": "keepdim", "x1": "self", "x2": "other", "axes": "dim", "tensor": "self"}  # fmt: skip
_PYTHON_TYPES = {float: "float64", int: "int64", bool: "bool", complex: "complex128"}
_NO = object()


class Call:
    """A call of an overload: its name, the schema, and arguments in its order without those that are defaults."""

    def __init__(self, name: str, schema: Schema, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.name, self.schema, self.args, self.kwargs = name, schema, args, kwargs


def fit(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
    """The call of an op of `aten`; None where no overload takes these arguments."""
    known = overloads(name)
    order = [n for n in _ORDER.get(name, ()) if n in known]
    if name in _NUMBERS:
        order = [n for n in ("Tensor", "Tensor_mode", "default") if n in known]
    for gather in (False, True):
        for key in [*order, *(n for n in known if n not in order)]:
            call = fit_schema(name, known[key], args, kwargs, gather)
            if call is not None:
                return call
    return None


def fit_schema(
    name: str, schema: Schema, args: tuple[Any, ...], kwargs: dict[str, Any], gather: bool = True
) -> Call | None:
    """The call of one overload; None where it does not take these arguments. With `gather`, sizes may be given one by one."""
    positional = [a for a in schema.arguments if not a.keyword_only]
    args = _gathered(positional, args) if gather else args
    if len(args) > len(positional):
        return None
    values: dict[str, Any] = dict(zip((a.name for a in positional), args))
    names = {a.name for a in schema.arguments}
    for key, value in kwargs.items():
        key = key if key in names else _ALSO.get(key, key)
        if key not in names or key in values:
            return None
        values[key] = value
    numbers = name in _NUMBERS
    for a in schema.arguments:
        if a.name not in values:
            if not a.has_default:
                return None
            continue
        value = _converted(a, values[a.name], numbers)
        if value is _NO:
            return None
        values[a.name] = value
    _fill_factory(schema, values)
    return _written(name, schema, values)


def _gathered(positional: list[Argument], args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Sizes, or tensors, that are given one by one, as a list."""
    for i, a in enumerate(positional[:2]):
        rest = args[i:]
        if not a.listed or not rest or isinstance(rest[0], (list, tuple)) or rest[0] is None:
            continue
        kind = int if a.kind == "int" and a.size == 0 else Tensor if a.kind == "Tensor" else None
        if kind is None:
            continue
        count = len(rest)
        while count and not (isinstance(rest[count - 1], kind) and not isinstance(rest[count - 1], bool)):
            count -= 1
        if count and (count == len(rest) or a.kind == "Tensor"):
            return (*args[:i], list(rest[:count]), *rest[count:])
    return args


def _converted(a: Argument, value: Any, numbers: bool) -> Any:
    """A value as the type that is declared; `_NO` where it is none."""
    if value is None:
        return None if a.optional or (a.has_default and a.default_value is None) else _NO
    if a.listed:
        if isinstance(value, Tensor):
            return _NO
        if not isinstance(value, (list, tuple)):
            one = _single(a.kind, value, numbers) if a.size else _NO
            return _NO if one is _NO else [one] * a.size
        found = [None if v is None and a.element_optional else _single(a.kind, v, numbers) for v in value]
        if a.size > 1 and len(found) == 1 and a.kind == "int":
            found = found * a.size
        return _NO if any(v is _NO for v in found) else found
    return _single(a.kind, value, numbers)


def _single(kind: str, value: Any, numbers: bool) -> Any:
    number = isinstance(value, (int, float, complex))
    if kind == "Tensor":
        return value if isinstance(value, Tensor) or (numbers and number) else _NO
    if kind == "Scalar":
        return value if number else _NO
    if kind == "int":
        return value if isinstance(value, int) and not isinstance(value, bool) else _NO
    if kind == "float":
        # A size keeps what it is computed from.
        exact = isinstance(value, int) and type(value) is not int and not isinstance(value, bool)
        return (value if exact else float(value)) if isinstance(value, (int, float)) else _NO
    if kind == "bool":
        return value if isinstance(value, bool) else _NO
    if kind == "ScalarType":
        value = getattr(_C, _PYTHON_TYPES[value]) if value in _PYTHON_TYPES else value
        return value if isinstance(value, dtype) else _NO
    if kind == "Device":
        return device(value) if isinstance(value, (str, int, device)) and not isinstance(value, bool) else _NO
    plain: dict[str, Any] = {"str": str, "Layout": layout, "MemoryFormat": memory_format, "Generator": _C.Generator}
    return value if kind in plain and isinstance(value, plain[kind]) else _NO


def _fill_factory(schema: Schema, values: dict[str, Any]) -> None:
    """Ops that make a tensor say where, and whether in pinned memory."""
    names = [a.name for a in schema.arguments]
    if "pin_memory" not in names or schema.name in ("aten::to", "aten::_to_copy"):
        return
    if not any(a.kind == "Tensor" for a in schema.arguments) and values.get("device") is None:
        values["device"] = _C.ops["empty"](0).device
    if values.get("pin_memory") is None:
        values["pin_memory"] = False


def _written(name: str, schema: Schema, values: dict[str, Any]) -> Call:
    positional = [a for a in schema.arguments if not a.keyword_only]
    while positional and _is_default(positional[-1], values):
        positional.pop()
    args = tuple(values[a.name] if a.name in values else a.default_value for a in positional)
    named = [a for a in schema.arguments if a.keyword_only and not _is_default(a, values)]
    return Call(name, schema, args, {a.name: values[a.name] for a in named})


def _is_default(a: Argument, values: dict[str, Any]) -> bool:
    if a.name not in values:
        return True
    value, usual = values[a.name], a.default_value
    if not a.has_default or isinstance(value, Tensor) or type(value) is not type(usual):
        return False
    if isinstance(value, list):
        return len(value) == len(usual) and all(type(v) is type(u) and v == u for v, u in zip(value, usual))
    return bool(value == usual)
