"""The types of TorchScript: read from annotations, asked of values, and applied to what callers pass.

Code in an archive is typed, and what it does depends on that where Python's numbers do not: a `float` parameter
makes a float of an int, `annotate(int, t)` a number of a tensor.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Callable
from typing import Any

from .._base import Tensor
from .._C import device as _device
from ._objects import Object, ScriptClass

__all__ = ["Type", "type_of", "type_of_value"]

_PLAIN: dict[str, tuple[type, ...]] = {
    "Tensor": (Tensor,),
    "int": (int,),
    "float": (float,),
    "bool": (bool,),
    "str": (str,),
    "complex": (complex,),
    "number": (int, float, complex),
    "Scalar": (int, float, complex),
    "NoneType": (type(None),),
    "None": (type(None),),
    "Device": (_device, str),
}
# Types whose values are not looked at.
_OPAQUE = (
    "Any",
    "Layout",
    "MemoryFormat",
    "Generator",
    "Stream",
    "Storage",
    "AnyType",
    "Capsule",
    "t",
    "Future",
    "Await",
    "RRef",
)
_OF_OTHERS = ("List", "Dict", "Tuple", "Optional", "Union", "Final", "Future", "Await", "RRef")


class Type:
    """A type: its name, its arguments, and for a class of the archive the class."""

    __slots__ = ("args", "cls", "name")

    def __init__(self, name: str, args: tuple[Type, ...] = (), cls: Any = None) -> None:
        self.name, self.args, self.cls = name, args, cls

    def __repr__(self) -> str:
        if not self.args and self.name != "Tuple":
            return self.name
        return f"{self.name}[{', '.join(map(repr, self.args)) or '()'}]"

    def has_classes(self) -> bool:
        """Whether it is a class of the archive, or has one in it."""
        return self.cls is not None or any(t.has_classes() for t in self.args)

    def has(self, value: Any) -> bool:
        """Whether a value is of this type."""
        name = self.name
        if name == "float" and isinstance(value, bool):
            return False
        if name in _PLAIN:
            return isinstance(value, _PLAIN[name]) and not (name == "int" and isinstance(value, bool))
        if name in ("Optional", "Union"):
            return (name == "Optional" and value is None) or any(t.has(value) for t in self.args)
        if name == "List":
            return isinstance(value, list) and all(self.args[0].has(v) for v in value)
        if name == "Dict":
            of_key, of_value = self.args
            return isinstance(value, dict) and all(of_key.has(k) and of_value.has(v) for k, v in value.items())
        if name == "Tuple":
            return isinstance(value, tuple) and len(value) == len(self.args) and all(map(Type.has, self.args, value))
        if self.cls is not None:
            return self.cls().has(value)
        return True

    def taken(self, value: Any) -> Any:
        """`value` as this type, with the conversions of a call; TypeError where it is none."""
        name = self.name
        if name == "Tensor" and isinstance(value, (int, float, complex)):
            raise TypeError(f"Expected a value of type 'Tensor' but instead found type '{type(value).__name__}'")
        if isinstance(value, Tensor) and name in ("int", "float", "bool", "complex", "number", "Scalar"):
            return value.item()
        if name in ("float", "complex") and type(value) in (int, float):
            return float(value) if name == "float" else complex(value)
        if name == "Device" and isinstance(value, str):
            return _device(value)
        if name in ("int", "Any") and (code := _code_of(value)) is not None:
            return code
        if name == "Optional":
            return None if value is None else self.args[0].taken(value)
        if name == "List" and isinstance(value, (list, tuple)):
            return self._list(value)
        if name == "Dict" and isinstance(value, dict):
            of_key, of_value = self.args
            return {of_key.taken(k): of_value.taken(v) for k, v in value.items()}
        if name == "Tuple" and isinstance(value, (tuple, list)) and len(value) == len(self.args):
            made = [t.taken(v) for t, v in zip(self.args, value, strict=True)]
            return value if isinstance(value, tuple) and all(map(_same, made, value)) else tuple(made)
        if self.cls is not None and isinstance(value, tuple):
            return self.cls().named(value)
        if self.cls is not None and isinstance(value, enum.Enum):
            return self.cls().member(value)
        if self.cls is not None and (made := self.cls().copied(value)) is not None:
            return made
        if not self.has(value):
            raise TypeError(f"Expected a value of type '{self!r}' but instead found type '{_found(value)}'")
        return value

    def _list(self, values: Any) -> Any:
        element = self.args[0]
        made = [element.taken(v) for v in values]
        # A list that needs nothing is the caller's own, so that the code can add to it.
        return values if type(values) is list and all(map(_same, made, values)) else made


def _same(a, b):
    return a is b


def _code_of(value):
    from ._codes import code_of

    return None if isinstance(value, (int, float, str, Tensor)) else code_of(value)


def _found(value: Any) -> str:
    if isinstance(value, Object):
        return value._class.name
    return "Tensor" if isinstance(value, Tensor) else type(value).__name__


def type_of(node: ast.expr | None, resolve: Callable[[str], Callable[[], ScriptClass]]) -> Type:
    """The type that an annotation names.

    Args:
        node: the annotation.
        resolve: gives a function that returns the class of a name that starts with `__torch__.`.
    """
    if node is None:
        return Type("Tensor")
    if isinstance(node, ast.Constant) and node.value is None:
        return Type("NoneType")
    if isinstance(node, ast.Name):
        if node.id in _PLAIN or node.id in _OPAQUE:
            return Type(node.id)
        if node.id == "list":
            return Type("List", (Type("Any"),))
        if node.id == "tuple":
            return Type("Any")
    elif isinstance(node, ast.Attribute):
        text = ast.unparse(node)
        if text.startswith("__torch__."):
            return Type(text, (), resolve(text))
    elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in _OF_OTHERS:
        inner = node.slice
        parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
        args = tuple(type_of(p, resolve) for p in parts)
        if node.value.id in ("Dict",) and len(args) != 2 or node.value.id in ("List", "Optional") and len(args) != 1:
            raise SyntaxError(f"the type {ast.unparse(node)[:100]} has {len(args)} parts")
        return args[0] if node.value.id == "Final" else Type(node.value.id, args)
    raise SyntaxError(f"unknown type {ast.unparse(node)[:100]}")


def type_of_value(value: Any) -> Type:
    """The type that a value of a program has."""
    if isinstance(value, Tensor):
        return Type("Tensor")
    if isinstance(value, (list, tuple)) and not hasattr(type(value), "_fields_of_script"):
        kinds = tuple(map(type_of_value, value))
        if isinstance(value, tuple):
            return Type("Tuple", kinds)
        return Type("List", (_common(kinds),))
    if isinstance(value, dict):
        return Type(
            "Dict", (_common(tuple(map(type_of_value, value))), _common(tuple(map(type_of_value, value.values()))))
        )
    cls = getattr(value, "_class", None)
    if isinstance(cls, ScriptClass):
        return Type(cls.name, (), lambda: cls)
    for kind, classes in (
        ("bool", bool),
        ("int", int),
        ("float", float),
        ("complex", complex),
        ("str", str),
        ("Device", _device),
    ):
        if isinstance(value, classes):
            return Type(kind)
    return Type("NoneType" if value is None else "Any")


def _common(kinds: tuple[Type, ...]) -> Type:
    """The type of elements: Optional where some are None."""
    shown = {repr(k): k for k in kinds}
    none = shown.pop("NoneType", None)
    if len(shown) != 1:
        return Type("Tensor" if not shown else "Any")
    only = next(iter(shown.values()))
    return Type("Optional", (only,)) if none is not None else only
