"""Classes of the program in code that is translated: named tuples, enumerations, and plain classes with their methods."""

from __future__ import annotations

import ast
import dataclasses
import enum
import inspect
import textwrap
import typing
from typing import Any

from .._base import Tensor
from .._quantized._script_object import ScriptObject
from ._translate_values import CannotTranslate, is_library, is_named, value_type, written
from ._types import Type

__all__ = ["archived", "class_text", "is_plain_class"]


def is_plain_class(cls: Any) -> bool:
    """Whether a class of the program is one that code can make objects of."""
    return (
        isinstance(cls, type)
        and not is_library(cls.__module__)
        and cls.__module__ not in ("builtins", "typing", "collections")
        and not issubclass(cls, (BaseException, tuple, dict, list, enum.Enum, Tensor))
    )


def class_text(program: Any, cls: type, name: str) -> list[str]:
    """The lines of a class of the program; `name` is its qualified name in the archive."""
    if is_named(cls):
        hints = _hints(cls)
        fields = [(n, program.annotation(hints[n]) if n in hints else "Tensor") for n in cls._fields]  # type: ignore[attr-defined]
        return [f"class {cls.__name__}(NamedTuple):", *(f"  {n} : {kind}" for n, kind in fields)]
    if issubclass(cls, enum.Enum):
        return [f"class {cls.__name__}(Enum):", *(f"  {n} = {written(m.value)}" for n, m in cls.__members__.items())]
    if len([c for c in cls.__mro__ if c is not object and c is not typing.Generic]) > 1:
        raise CannotTranslate(f"the class {cls.__qualname__} derives from another one")
    return _plain(program, cls, name)


def _hints(cls: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls)
    except Exception:  # a name that only a function knows
        return {n: h for n, h in vars(cls).get("__annotations__", {}).items() if not isinstance(h, str)}


def _plain(program: Any, cls: type, name: str) -> list[str]:
    from ._translate_body import Body

    fields, methods = _fields(program, cls), []
    for key, value in vars(cls).items():
        if isinstance(value, property):
            for function, suffix in ((value.fget, "getter"), (value.fset, "setter")):
                if function is not None:
                    methods.append(Body(program, function, None).code(f"__{key}_{suffix}", name))
        elif (
            inspect.isfunction(value) and inspect.unwrap(value).__code__.co_filename != "<string>" and key != "__repr__"
        ):
            if not (dataclasses.is_dataclass(cls) and _is_made(value)):
                methods.append(Body(program, value, None).code(key, name))
    if dataclasses.is_dataclass(cls) and "__init__" not in _written(cls):
        methods.append(_init_of(program, cls, name, fields))
    if dataclasses.is_dataclass(cls) and cls.__dataclass_params__.eq and "__eq__" not in _written(cls):  # type: ignore[attr-defined]
        same = " and ".join(f"(self.{n} == other.{n})" for n in fields) or "True"
        methods.append(f"def __eq__(self: {name}, other: {name}) -> bool:\n  return {same}\n")
    if dataclasses.is_dataclass(cls) and cls.__dataclass_params__.order:  # type: ignore[attr-defined]
        methods += [_order(name, fields, special) for special in _ORDERS]
    lines = [f"class {cls.__name__}:", *(f"  {n} : {kind}" for n, kind in fields.items())]
    return lines + ["  " + line for text in methods for line in text.splitlines()]


def _is_made(function: Any) -> bool:
    """Whether `dataclass` made a method."""
    try:
        return not inspect.getsource(function)
    except (OSError, TypeError):
        return True


def _written(cls: type) -> set[str]:
    """The methods that a class has in its source."""
    return {n for n, v in vars(cls).items() if inspect.isfunction(v) and not _is_made(v)}


# Method -> the sign by which the first fields that differ are compared, and the answer where none does.
_ORDERS = {"__lt__": ("<", False), "__le__": ("<", True), "__gt__": (">", False), "__ge__": (">", True)}


def _order(name: str, fields: dict[str, str], special: str) -> str:
    """A comparison of a dataclass: that of its fields in order."""
    sign, answer = _ORDERS[special]
    lines = [f"  if self.{n} != other.{n}:\n    return self.{n} {sign} other.{n}\n" for n in fields]
    return f"def {special}(self: {name}, other: {name}) -> bool:\n{''.join(lines)}  return {answer}\n"


def _init_of(program: Any, cls: type, name: str, fields: dict[str, str]) -> str:
    """The `__init__` of a dataclass."""
    given, lines = [f"self: {name}"], []
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        if field.default_factory is not dataclasses.MISSING:
            raise CannotTranslate(f"the field {field.name} of {cls.__qualname__} has a default_factory")
        default = "" if field.default is dataclasses.MISSING else f"={program.constant_text(field.default)}"
        if field.init:
            given.append(f"{field.name}: {fields[field.name]}{default}")
        lines.append(f"  self.{field.name} = {field.name if field.init else default[1:]}")
    if hasattr(cls, "__post_init__"):
        lines.append("  _0 = self.__post_init__()")
    return f"def __init__({', '.join(given)}) -> NoneType:\n" + "\n".join([*lines, "  return None"]) + "\n"


# --- attributes


def _fields(program: Any, cls: type) -> dict[str, str]:
    """The attributes of a class and their types: those of annotations, else of what `__init__` assigns."""
    found = {n: program.annotation(h) for n, h in _hints(cls).items()}
    function = vars(cls).get("__init__")
    if not inspect.isfunction(function) or _is_made(function):
        return found
    tree: Any = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    own, hints = tree.args.args[0].arg, _function_hints(function)
    parameters = {a.arg: program.annotation(hints[a.arg]) if a.arg in hints else "Tensor" for a in tree.args.args[1:]}
    scope = {**function.__globals__, **inspect.getclosurevars(function).nonlocals}
    for node in ast.walk(tree):
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        for target in targets:
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == own:
                if isinstance(node, ast.AnnAssign):
                    kind = program.annotation(eval(compile(ast.Expression(node.annotation), "<hint>", "eval"), scope))
                else:
                    kind = _kind(program, node.value, parameters, scope)
                found.setdefault(target.attr, kind)
    return found


def _function_hints(function: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function)
    except Exception:
        return {n: h for n, h in function.__annotations__.items() if not isinstance(h, str)}


def _kind(program: Any, node: ast.expr, parameters: dict[str, str], scope: dict[str, Any]) -> str:
    """The type of what `__init__` assigns, as far as the text shows it; what is not known is a tensor."""
    if isinstance(node, ast.Name) and node.id in parameters:
        return parameters[node.id]
    if isinstance(node, ast.Constant) and node.value is not None:
        return value_type(program, node.value)
    if isinstance(node, (ast.BinOp, ast.UnaryOp)):
        parts = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.operand]
        kinds = {_kind(program, p, parameters, scope) for p in parts}
        order = ["Tensor", "complex", "float", "int", "bool"]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and kinds <= {"int", "float"}:
            return "float"
        return next((k for k in order if k in kinds), kinds.pop())
    if isinstance(node, ast.Compare):
        return "bool"
    if isinstance(node, ast.List):
        return f"List[{_kind(program, node.elts[0], parameters, scope) if node.elts else 'Tensor'}]"
    if isinstance(node, ast.Tuple):
        return f"Tuple[{', '.join(_kind(program, e, parameters, scope) for e in node.elts)}]"
    if isinstance(node, ast.Dict):
        if not node.keys or node.keys[0] is None:
            return "Dict[str, Tensor]"
        return f"Dict[{_kind(program, node.keys[0], parameters, scope)}, {_kind(program, node.values[0], parameters, scope)}]"
    if isinstance(node, ast.Call):
        return _kind_of_call(program, node, parameters, scope)
    return "Tensor"


def _kind_of_call(program: Any, node: ast.Call, parameters: dict[str, str], scope: dict[str, Any]) -> str:
    try:
        function = eval(compile(ast.Expression(node.func), "<called>", "eval"), scope)
    except Exception:  # a method of a parameter
        return "Tensor"
    from . import annotate

    if function is annotate:
        return program.annotation(eval(compile(ast.Expression(node.args[0]), "<hint>", "eval"), scope))
    if function in (int, float, bool, str, len):
        return "int" if function is len else function.__name__
    if is_plain_class(function) or is_named(function):
        return program.named(function)
    returns = _function_hints(function).get("return") if inspect.isfunction(function) else None
    return "Tensor" if returns is None or is_library(function.__module__) else program.annotation(returns)


# --- values


def archived(kind: Type | None, value: Any) -> Any:
    """An attribute's value with objects of the archive's classes in the place of the program's."""
    if kind is None or not kind.has_classes() or value is None or isinstance(value, ScriptObject):
        return value
    if kind.name in ("Optional", "List") and len(kind.args) == 1:
        inner = kind.args[0]
        return [archived(inner, v) for v in value] if isinstance(value, list) else archived(inner, value)
    if kind.name == "Dict":
        return {archived(kind.args[0], k): archived(kind.args[1], v) for k, v in value.items()}
    if kind.name == "Tuple":
        return tuple(map(archived, kind.args, value))
    if kind.cls is None or isinstance(value, enum.Enum):
        return kind.taken(value)
    cls = kind.cls()
    if cls.kind == "NamedTuple":
        return cls.named(tuple(map(archived, cls.fields.values(), value)))
    if cls.kind:
        return value
    made = cls.new()
    for name, of in cls.fields.items():
        setattr(made, name, archived(of, getattr(value, name)))
    return made
