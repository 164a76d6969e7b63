"""What TorchScript computes on values that are no tensors: numbers, strings, lists and dictionaries, by names of ops.

`OPS` are those whose name is no op on tensors; for names of both (`add`, `eq`, `slice`) `_resolve` decides by the arguments.
Strings are formatted here and not by `str.format`, whose fields reach attributes.
"""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Callable
from typing import Any

from .._base import Tensor

__all__ = ["OPS", "format_text"]


def format_text(text: str, *values: Any) -> str:
    """`text` with each `{}` replaced by the next value."""
    parts = text.split("{}")
    if len(parts) - 1 > len(values):
        raise RuntimeError(f"Too few arguments for format string: {text}")
    if len(parts) - 1 < len(values):
        raise RuntimeError(f"Too many arguments for format string: {text}")
    made = [parts[0]]
    for value, part in zip(values, parts[1:], strict=True):
        made += [text_of(value), part]
    return "".join(made)


def text_of(value: Any) -> str:
    """A value as TorchScript prints it: `39.`, `[a, b]`."""
    if isinstance(value, float):
        text = f"{value:.17g}"
        return text if not value.is_integer() or "e" in text else text + "."
    if isinstance(value, complex):
        sign = "" if text_of(value.imag).startswith("-") else "+"
        return f"{text_of(value.real)}{sign}{text_of(value.imag)}j"
    if type(value) is list:
        return f"[{', '.join(map(text_of, value))}]"
    if type(value) is tuple:
        return f"({', '.join(map(text_of, value))}{',' * (len(value) == 1)})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{text_of(k)}: {text_of(v)}" for k, v in value.items()) + "}"
    return str(value)


class _Shown:
    """A value that `%s` prints as TorchScript does, and that other formats take as a number."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __str__(self) -> str:
        return text_of(self.value)

    def __int__(self) -> int:
        return int(self.value)

    __index__ = __int__

    def __float__(self) -> float:
        return float(self.value)


def _percent(text: str, *values: Any) -> str:
    given = values[0] if len(values) == 1 and isinstance(values[0], tuple) else values
    return text % tuple(map(_Shown, given))


def _pow(a, b):
    """A power is a float, whatever its operands, unless one is complex."""
    return float(a) ** b if isinstance(a, (int, float)) and isinstance(b, (int, float)) else a**b


def _divide(a, b):
    if isinstance(a, complex) or isinstance(b, complex):
        return a / b
    if b == 0:
        # As floats are divided by a processor.
        return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1.0, b)
    return a / b


def _slice(values, *bounds):
    """`values[start:end:step]`."""
    start, end, step = (*bounds, *(None, None, 1)[len(bounds) :])
    return values[slice(start, end, 1 if step is None else step)]


def _range_length(low, high, step):
    return len(range(low, high, step))


def _derive_index(index, start, step):
    return start + index * step


def _find(text, part, start=0, end=-1):
    return text.find(part, start, len(text) if end == -1 else end)


def _round(value, digits=None):
    return float(round(value)) if digits is None else round(value, digits)


def _index(values, element, *bounds):
    if isinstance(values, str):
        return values.index(element, *bounds[:1], *(len(values) if b == -1 else b for b in bounds[1:]))
    return next(i for i, v in enumerate(values) if _equal(v, element)) if _holds(values, element) else _absent(element)


def _absent(element):
    raise ValueError(f"'{element}' is not in list")


def _equal(a, b):
    same = a == b
    return bool(same.all()) if isinstance(same, Tensor) else bool(same)


def _holds(values, element):
    if not isinstance(values, (list, tuple)):
        return element in values
    return any(_equal(v, element) for v in values)


def _get(table, key, default=None):
    return table.get(key, default)


def _pop(values, *key):
    return values.pop(*key)


def _sorted_in_place(values, reverse=False):
    values.sort(reverse=reverse)


def _delete(values, key):
    del values[key]


def _set_item(values, key, value):
    values[key] = value


def _warn(message, category="UserWarning", stacklevel=2):
    warnings.warn(str(message), stacklevel=3)


def _copysign(a, b):
    return math.copysign(a, b)


def _floor_div(a, b):
    if b == 0 and isinstance(a, float):
        return _divide(a, float(b))
    return a // b


def _splitlines(text, keepends=False):
    return text.splitlines(keepends)


def _split(text, separator=None, maxsplit=-1):
    return text.split(separator, maxsplit)


def _int_of(text, base=10):
    return int(text, base) if isinstance(text, str) else int(text)


_METHODS_OF_TEXT = (
    "upper lower capitalize title swapcase isupper islower isdigit isspace isalpha isalnum isidentifier isprintable istitle "
    "isdecimal isnumeric startswith endswith replace strip lstrip rstrip center ljust rjust zfill partition rpartition rsplit "
    "expandtabs join rfind rindex"
)
_MATH = (
    "sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp expm1 log log2 log10 log1p gamma lgamma erf erfc "
    "floor ceil trunc fabs degrees radians isnan isinf isfinite gcd atan2 fmod hypot ldexp frexp modf factorial"
)


def _method(name: str) -> Callable[..., Any]:
    """A method of strings: nothing that is no string is asked for it."""

    def call(text: Any, *args: Any) -> Any:
        if not isinstance(text, str):
            raise TypeError(f"{name}: expected a str, got {type(text).__name__}")
        return getattr(text, name)(*args)

    return call


def _math(name: str) -> Callable[..., Any]:
    function = getattr(math, name)

    def call(value: Any, *rest: Any) -> Any:
        if isinstance(value, complex):
            import cmath

            function_ = getattr(cmath, name)
            return function_(value, *rest)
        try:
            return function(value, *rest)
        except ValueError:
            # Where Python raises, the C library gives NaN or, for the logarithm of zero, minus infinity.
            return -math.inf if value == 0 and name.startswith("log") else math.nan
        except OverflowError:
            return math.inf

    return call


def _first(name: str) -> Callable[..., Any]:
    """A method of lists or dictionaries."""

    def call(values: Any, *args: Any) -> Any:
        if not isinstance(values, (list, dict)):
            raise TypeError(f"{name}: expected a list or a dict, got {type(values).__name__}")
        return getattr(values, name)(*args)

    return call


def _copied(values):
    return dict(values) if isinstance(values, dict) else list(values)


def _listed(name: str) -> Callable[..., Any]:
    return lambda table: list(getattr(table, name)()) if isinstance(table, dict) else _absent(table)


def _largest(choose: Callable[..., Any]) -> Callable[..., Any]:
    def call(a: Any, *rest: Any) -> Any:
        if rest and isinstance(a, (int, float)) and type(a) is not type(rest[0]):
            return choose(float(a), float(rest[0]))
        return choose(a, *rest)

    return call


OPS: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": _divide, "floordiv": _floor_div,
    "remainder": operator.mod, "fmod": math.fmod, "pow": _pow, "neg": operator.neg, "abs": abs,
    "add_": operator.iadd, "mul_": operator.imul, "sub_": operator.isub, "div_": _divide,
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "__and__": operator.and_, "__or__": operator.or_, "__xor__": operator.xor, "__not__": operator.not_,
    "__lshift__": operator.lshift, "__rshift__": operator.rshift, "bitwise_not": operator.invert,
    "__is__": operator.is_, "__isnot__": operator.is_not, "__contains__": _holds,
    "__range_length": _range_length, "__derive_index": _derive_index, "__getitem__": operator.getitem,
    "len": len, "size": len, "slice": _slice, "list": _copied, "dict": dict, "copy": _copied, "sum": sum, "any": any, "all": all,
    "append": _first("append"), "extend": _first("extend"), "insert": _first("insert"), "clear": _first("clear"),
    "reverse": _first("reverse"), "remove": _first("remove"), "update": _first("update"), "setdefault": _first("setdefault"),
    "popitem": _first("popitem"), "pop": _pop, "sort": _sorted_in_place, "sorted": sorted, "index": _index,
    "count": lambda values, element: values.count(element), "keys": _listed("keys"), "values": _listed("values"),
    "items": _listed("items"), "get": _get, "Delete": _delete, "_set_item": _set_item,
    "format": format_text, "percentFormat": _percent, "find": _find, "split": _split, "splitlines": _splitlines,
    "ord": ord, "chr": chr, "hex": hex, "oct": oct, "bin": bin, "str": text_of, "warn": _warn,
    "round": _round, "divmod": divmod, "max": _largest(max), "min": _largest(min), "copysign": _copysign,
    "Int": _int_of, "Float": float, "Bool": bool, "Complex": complex, "IntImplicit": int, "FloatImplicit": float,
    "ScalarImplicit": lambda value: value, "complex": complex, "real": lambda z: z.real, "imag": lambda z: z.imag,
    "angle": lambda z: math.atan2(z.imag, z.real), "mathremainder": math.remainder,
}  # fmt: skip
OPS |= {name: _method(name) for name in _METHODS_OF_TEXT.split()}
OPS |= {name: _math(name) for name in _MATH.split()}
