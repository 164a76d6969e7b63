"""What code is translated with: values that are known when it is written, and the types of annotations."""

from __future__ import annotations

import ast
import enum
import re
import types
import typing
from typing import Any

from .. import _C
from .._base import Tensor
from .._sources import is_identifier
from ..nn.modules.module import Module
from ..nn.modules.parameter_container import ParameterDict, ParameterList
from ._objects import RESERVED
from ._record import _quoted
from ._types import type_of_value

__all__ = [
    "Bound",
    "CannotTranslate",
    "Known",
    "Part",
    "Table",
    "annotation_text",
    "changed_in",
    "is_library",
    "is_taken",
    "leaves",
    "mark_of",
    "names_in",
    "plain_attributes",
    "written",
]


class CannotTranslate(RuntimeError):
    """Code of Python that has no form in TorchScript here."""


class Known:
    """A value that is known when the code is written."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Part:
    """A module, and the code that reads it."""

    def __init__(self, module: Module, text: str) -> None:
        self.module, self.text = module, text


class Table:
    """The parameters or the buffers of a module, by name: what is read of it is an attribute of the module."""

    def __init__(self, owner: Part, entries: dict[str, Any]) -> None:
        self.owner, self.entries = owner, entries


class Bound:
    """A method of a module, or of a value of the code."""

    def __init__(self, owner: Any, name: str) -> None:
        self.owner, self.name = owner, name


_PLAIN = {int: "int", float: "float", bool: "bool", str: "str", complex: "complex", Tensor: "Tensor", type(None): "NoneType", None: "NoneType",
          _C.device: "Device", _C.dtype: "int"}  # fmt: skip


# Of the values of attributes, those that may have a type there. Others are not looked at: they may be anything.
_SCRIPTED = (Tensor, bool, int, float, complex, str, list, tuple, dict, type(None), _C.device)


def annotation_text(hint: Any) -> str:
    """The type of TorchScript for an annotation."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        rest = [a for a in args if a is not type(None)]
        inner = annotation_text(rest[0]) if len(rest) == 1 else f"Union[{', '.join(map(annotation_text, rest))}]"
        return f"Optional[{inner}]" if len(rest) < len(args) else inner
    names = {list: "List", dict: "Dict", tuple: "Tuple"}
    if origin in names and args and Ellipsis not in args:
        return f"{names[origin]}[{', '.join(map(annotation_text, args))}]"
    if isinstance(hint, type) and issubclass(hint, Tensor):
        return "Tensor"
    raise CannotTranslate(f"the annotation {hint!r} is no type of TorchScript")


def is_library(name: str | None) -> bool:
    """Whether a module is this package's, under its own name or as `torch`."""
    return (name or "").split(".")[0] in ("rustgrad", "torch")


def leaves(value: Any) -> list[Any]:
    """The items of lists and tuples."""
    if isinstance(value, (list, tuple)):
        return [leaf for v in value for leaf in leaves(v)]
    return [value]


def mark_of(function: Any) -> str:
    """What `jit.export`, `jit.ignore` or `jit.unused` say of a function."""
    return str(getattr(function, "_torchscript_modifier", ""))


def is_taken(hint: Any) -> bool:
    """Whether an annotation of the library is a type of TorchScript."""
    try:
        annotation_text(hint)
    except CannotTranslate:
        return False
    return True


_CHANGING = frozenset("append clear extend insert pop popitem remove reverse setdefault sort update".split())


def changed_in(tree: ast.AST) -> list[ast.expr]:
    """The lists and dicts in code whose items are assigned, deleted or changed by a method."""
    found = []
    for n in ast.walk(tree):
        if isinstance(n, ast.Subscript) and not isinstance(n.ctx, ast.Load):
            found.append(n.value)
        elif isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in _CHANGING:
            found.append(n.func.value)
    return found


def names_in(module: Module) -> list[str]:
    """What a container holds: modules, or parameters."""
    return list(module._parameters if isinstance(module, (ParameterList, ParameterDict)) else module._modules)


def plain_attributes(module: Module) -> dict[str, str]:
    """The attributes of a module that TorchScript has types for, and these types; parameters, buffers and modules are not among them."""
    try:
        hints = typing.get_type_hints(type(module))
    except Exception:  # an annotation that cannot be evaluated
        hints = {}
    named = {n: getattr(module, n, None) for n in getattr(type(module), "__constants__", ())}
    found = {}
    for name, value in {**vars(module), **named}.items():
        if name in RESERVED or name.startswith("__") or name == "training" or not is_identifier(name):
            continue
        if name in module._modules or name in module._parameters or name in module._buffers:
            continue
        if not isinstance(value, _SCRIPTED) or isinstance(value, tuple) and not value:
            continue
        if any(isinstance(v, enum.Enum) or isinstance(v, int) and not -(2**63) <= v < 2**63 for v in leaves(value)):
            continue
        kind = annotation_text(hints[name]) if is_taken(hints.get(name, Any)) else repr(type_of_value(value))
        empty = isinstance(value, (list, dict)) and not value and name not in hints
        if not empty and not re.search(r"\bAny\b", kind):
            found[name] = kind
    return found


def written(value: Any) -> str:
    """The code of a constant: a number, a string or a tuple of them."""
    if isinstance(value, tuple):
        return f"({', '.join(map(written, value))}{',' * (len(value) == 1)})"
    if isinstance(value, list):
        return f"[{', '.join(map(written, value))}]"
    if isinstance(value, str):
        return _quoted(value)
    # Of a number of a derived class, NumPy's or an enumeration's, the number.
    return next(kind for kind in (bool, int, float) if isinstance(value, kind)).__repr__(value)
