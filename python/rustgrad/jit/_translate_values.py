"""What code is translated with: values that are known when it is written, and the types of annotations."""

from __future__ import annotations

import ast
import enum
import re
import types
import typing
from collections.abc import Callable
from typing import Any

from .. import _C
from .._base import Tensor
from .._quantized._script_object import ScriptObject
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
    "Super",
    "Table",
    "annotation_text",
    "changed_in",
    "commented_types",
    "is_library",
    "is_named",
    "is_taken",
    "leaves",
    "mark_of",
    "names_in",
    "plain_attributes",
    "value_type",
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


class Super:
    """A module as `super()` sees it: with the methods of the classes that `below` derives from."""

    def __init__(self, part: Part, below: type) -> None:
        self.part, self.below = part, below


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


def annotation_text(hint: Any, named: Callable[[type], str] | None = None) -> str:
    """The type of TorchScript for an annotation; `named` gives the name of a class of the program."""

    def inner(hint: Any) -> str:
        return annotation_text(hint, named)

    if hint in _PLAIN:
        return _PLAIN[hint]
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        rest = [a for a in args if a is not type(None)]
        text = inner(rest[0]) if len(rest) == 1 else f"Union[{', '.join(map(inner, rest))}]"
        return f"Optional[{text}]" if len(rest) < len(args) else text
    names = {list: "List", dict: "Dict", tuple: "Tuple"}
    if origin in names and args and Ellipsis not in args:
        return f"{names[origin]}[{', '.join('()' if a == () else inner(a) for a in args)}]"
    if origin is typing.Final:
        return inner(args[0])
    if isinstance(hint, type) and issubclass(hint, Tensor):
        return "Tensor"
    if hint is Any and named is not None:
        return "Any"
    if (
        named is not None
        and isinstance(hint, type)
        and not is_library(hint.__module__)
        and hint.__module__ != "builtins"
    ):
        return named(hint)
    raise CannotTranslate(f"the annotation {hint!r} is no type of TorchScript")


def is_named(cls: Any) -> bool:
    """Whether a class is one of named tuples."""
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields")


def value_type(program: Any, value: Any) -> str:
    """The type of TorchScript of a value, which may have objects of the program's classes in it."""
    if isinstance(value, ScriptObject):
        return f"__torch__.torch.classes.{value._held.qualified}"
    if isinstance(value, enum.Enum) or is_named(type(value)):
        return program.named(type(value))
    if isinstance(value, (list, tuple)) and value:
        kinds = [value_type(program, v) for v in value]
        if isinstance(value, tuple):
            return f"Tuple[{', '.join(kinds)}]"
        if len(set(kinds)) == 1:
            return f"List[{kinds[0]}]"
    if isinstance(value, dict) and value:
        kinds = [{value_type(program, v) for v in part} for part in (value, value.values())]
        if all(len(k) == 1 for k in kinds):
            return f"Dict[{', '.join(k.pop() for k in kinds)}]"
    if not isinstance(value, (*_SCRIPTED, _C.dtype)) and program.is_class(type(value)):
        return program.named(type(value))
    return repr(type_of_value(value))


def commented_types(tree: ast.FunctionDef, source: str, scope: dict[str, Any]) -> dict[str, Any]:
    """The types that comments of a definition give: one for all parameters and the result, or one beside each parameter."""
    given, text = [*tree.args.posonlyargs, *tree.args.args], tree.type_comment

    def read(text: str) -> Any:
        return eval(text, scope)

    try:
        if text is not None:
            kinds, _, result = text.rpartition("->")
            values = read(kinds.strip()[:-1] + ",)") if kinds.strip() != "()" else ()
            own = given[len(given) - len(values) :]
            return {a.arg: v for a, v in zip(own, values, strict=True)} | {"return": read(result.strip())}
        found = {a.arg: read(a.type_comment) for a in given if a.type_comment}
        result = re.search(r"^\s*#\s*type:\s*\(\.\.\.\)\s*->\s*(.+)$", source, re.MULTILINE)
        return found | ({"return": read(result[1])} if found and result else {})
    except (NameError, SyntaxError, TypeError, ValueError):
        return {}


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


def plain_attributes(program: Any, module: Module) -> dict[str, str]:
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
        if not isinstance(value, (*_SCRIPTED, enum.Enum)) or isinstance(value, tuple) and not value:
            continue
        if any(isinstance(v, int) and not -(2**63) <= v < 2**63 for v in leaves(value)):
            continue
        if any(isinstance(v, enum.Enum) and is_library(type(v).__module__) for v in leaves(value)):
            continue
        kind = _kind(program, hints.get(name, Any), value)
        empty = isinstance(value, (list, dict)) and not value and name not in hints
        if not empty and not re.search(r"\bAny\b", kind):
            found[name] = kind
    return found


def _kind(program: Any, hint: Any, value: Any) -> str:
    if hint is not Any:
        try:
            return program.annotation(hint)
        except CannotTranslate:
            pass
    return value_type(program, value)


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
