"""Functions and modules of Python as code of TorchScript, for `save` of what `script` was given.

TorchScript is a subset of Python, so code is taken over but for its names: what is known when it is written (attributes of a
module, globals, settings of layers) is put in its place, branches on it are decided, modules are walked, calls of functions become
calls of ops, and methods and functions that are called are written too. Types are those of annotations, `Tensor` where there are none.
"""

from __future__ import annotations

import ast
import enum
import inspect
import math
import textwrap
from collections.abc import Callable
from typing import Any

from .. import _C
from .._base import Tensor
from .._sources import is_identifier
from ..nn.modules.module import Module
from . import _scripted_classes
from ._codes import code_of
from ._layers import layer_code, parts_called
from ._trace import _Classes, _packed, _texts
from ._translate_body import Body
from ._translate_classes import archived, class_text, is_plain_class
from ._translate_values import (
    CannotTranslate,
    annotation_text,
    changed_in,
    is_library,
    is_named,
    leaves,
    mark_of,
    plain_attributes,
    written,
)
from ._unit import Unit

__all__ = ["translated_function", "translated_module"]


class _Program:
    """What is written: functions, and a class for each module."""

    def __init__(self) -> None:
        self.classes = _Classes()
        self.constants: list[Tensor] = []
        self.functions: dict[Any, str] = {}
        self.texts: dict[str, list[str]] = {}
        self.names: dict[int, str] = {}
        self.methods: dict[tuple[int, str], Any] = {}
        self.fields: dict[int, dict[str, str]] = {}
        self.modules: dict[int, Module] = {}
        self.types: dict[type, str] = {}

    # --- classes that are no modules
    def is_class(self, cls: type) -> bool:
        """Whether a class is one of the program that `script` was given, or that has a name in the code."""
        return cls in self.types or cls in _scripted_classes and is_plain_class(cls)

    def named(self, cls: type) -> str:
        """The qualified name of a named tuple, an enumeration or a class of the program, which is written once."""
        if cls not in self.types:
            if not (is_plain_class(cls) or is_named(cls) or issubclass(cls, enum.Enum)) or not is_identifier(
                cls.__name__
            ):
                raise CannotTranslate(f"the class {cls!r} is no type of TorchScript")
            if issubclass(cls, Module):
                raise CannotTranslate(f"the module {cls.__qualname__} is no type of an argument")
            name = self.classes._name(cls)
            self.classes.texts[name], self.types[cls] = [], name
            self.classes.plain[name] = class_text(self, cls, name)
        return self.types[cls]

    def context(self, name: str, text: str) -> str:
        """The qualified name of a class of the library, whose text is given."""
        self.classes.texts.setdefault(name, [])
        self.classes.plain[name] = text.splitlines()
        return name

    def annotation(self, hint: Any) -> str:
        """The type of TorchScript for an annotation of the program."""
        return annotation_text(hint, self.named)

    def constant_text(self, value: Any) -> str:
        """The code of a constant."""
        if isinstance(value, enum.Enum):
            return f"{self.named(type(value))}.{value.name}"
        if is_named(type(value)):
            return f"{self.named(type(value))}({', '.join(map(self.constant_text, value))})"
        return "None" if value is None else written(value)

    # --- modules
    def class_of(self, module: Module) -> str:
        """The qualified name of the class of a module."""
        if id(module) not in self.names:
            name = self.classes._name(type(module))
            self.classes.texts[name] = []
            self.names[id(module)], self.modules[id(module)] = name, module
            self.fields[id(module)] = {
                n: f"__torch__.torch.classes.{v._held.qualified}" for n, v in _packed(module).items()
            }
            for child in module._modules.values():
                if child is not None:
                    self.class_of(child)
        return self.names[id(module)]

    def inherited(self, module: Module, name: str, below: type) -> str:
        """Writes the method of a class that `below` derives from, as `super()` finds it; returns its name in the code."""
        order = type(module).__mro__
        cls = next((c for c in order[order.index(below) + 1 :] if name in vars(c)), None)
        if cls is None or not inspect.isfunction(vars(cls)[name]):
            raise CannotTranslate(f"super() of {below.__name__} has no method {name}")
        return self._under(f"_{cls.__name__}_{name}", module, vars(cls)[name])

    def getter(self, module: Module, name: str, function: Any) -> str:
        """Writes a property of a module; returns the name of the method that reads it."""
        return self._under(f"__{name}_getter", module, function)

    def _under(self, written: str, module: Module, function: Any) -> str:
        """Writes a function as a method of a module by another name."""
        if (id(module), written) not in self.methods:
            owner, self.methods[id(module), written] = self.class_of(module), None
            self.methods[id(module), written] = Body(self, function, module).code(written, owner)
        return written

    def method(self, module: Module, name: str) -> None:
        """Writes a method of a module, once."""
        owner = self.class_of(module)
        if (id(module), name) in self.methods:
            return
        self.methods[id(module), name] = None
        if name == "forward" and self.layer(module, owner):
            return
        function = getattr(type(module), name, None)
        if name == "forward" and "forward" in vars(module):
            function = vars(module)["forward"]
        if not inspect.isfunction(function):
            raise CannotTranslate(f"{type(module).__name__}.{name} is no function of Python")
        if mark_of(function).startswith("ignore"):
            raise CannotTranslate(
                f"{type(module).__name__}.{name} is ignored by jit.ignore, so that code which calls it cannot be saved"
            )
        body = Body(self, function, module)
        self.methods[id(module), name] = body.code(name, owner)

    def layer(self, module: Module, owner: str) -> bool:
        """Writes the `forward` of a layer of the library that has code of its own."""
        try:
            text = layer_code(module, owner)
        except NotImplementedError as error:
            raise CannotTranslate(str(error)) from None
        if text is None:
            return False
        self.methods[id(module), "forward"] = text
        for part in parts_called(module):
            self.method(part, "forward")
        return True

    def function(self, function: Any) -> str:
        """The qualified name of a function, which is written once."""
        if function not in self.functions:
            name = function.__name__ if is_identifier(function.__name__) else "function"
            while f"__torch__.{name}" in self.functions.values():
                name += "_"
            self.functions[function] = f"__torch__.{name}"
            self.texts[name] = Body(self, function, None).code(name, None).splitlines()
        return self.functions[function]

    def mutable(self, module: Module) -> set[str]:
        """The attributes that methods of a module assign."""
        found: set[str] = set()
        for cls in type(module).__mro__:
            if is_library(cls.__module__) or cls is object:
                continue
            for value in vars(cls).values():
                if inspect.isfunction(value) and value.__name__ != "__init__":
                    found |= _assigned_attributes(value)
        return found

    def attributes(self, module: Module) -> list[str]:
        """Attributes that callers can read: the code has those that stay the same as values, so these are constants of the class."""
        lines, fields, mutable = [], self.fields[id(module)], self.mutable(module)
        for name, kind in plain_attributes(self, module).items():
            value = getattr(module, name)
            if name in fields:
                continue
            plain = "__torch__" not in kind and all(
                isinstance(v, (bool, int, str)) or isinstance(v, float) and math.isfinite(v) for v in leaves(value)
            )
            if name in mutable or not plain:
                fields[name] = kind
            else:
                lines.append(f"  {name} : Final[{kind}] = {written(value)}")
        return lines

    def files(self) -> dict[str, str]:
        """The code of all classes and functions, by path."""
        for number, module in self.modules.items():
            body = self.classes.texts[self.names[number]]
            body += self.attributes(module)
            params, buffers = (
                [n for n, v in t.items() if v is not None] for t in (module._parameters, module._buffers)
            )
            body += [f"  __parameters__ = [{_texts(params)}]", f"  __buffers__ = [{_texts(buffers)}]"]
            fields = {n: "Tensor" for n in [*params, *buffers]} | {"training": "bool"} | self.fields[number]
            fields |= {n: self.names[id(c)] for n, c in module._modules.items() if c is not None}
            for name, kind in fields.items():
                body.append(f"  {name} : {kind}" if is_identifier(name) else f'  __annotations__["{name}"] = {kind}')
            for (owner, _), text in self.methods.items():
                if owner == number:
                    body += ["  " + line for line in text.splitlines()]
        files = self.classes.files()
        lines = [line for text in self.texts.values() for line in text]
        if lines:
            files["__torch__.py"] = files.get("__torch__.py", "") + "\n".join(lines) + "\n"
        return files


def _assigned_attributes(function: Any) -> set[str]:
    """The attributes of its first argument that a method assigns, or whose items it changes."""
    try:
        tree: Any = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
        own = tree.args.args[0].arg
    except (OSError, TypeError, SyntaxError, AttributeError, IndexError):
        return set()
    assigned = [n for n in ast.walk(tree) if isinstance(n, ast.Attribute) and not isinstance(n.ctx, ast.Load)]
    return {
        n.attr
        for n in [*assigned, *changed_in(tree)]
        if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == own
    }


def _number(value: Any) -> Any:
    """A dtype as the number that stands for it."""
    return code_of(value) if isinstance(value, _C.dtype) else value


# --- what `save` writes


def translated_function(function: Callable[..., Any]) -> Any:
    """A function as code of TorchScript."""
    from ._script import LoadedFunction

    program = _Program()
    name = program.function(function)
    unit = Unit(program.files(), tuple(program.constants))
    made = LoadedFunction(unit.function(name), unit)
    unit.check()
    return made


def translated_module(module: Module) -> Any:
    """A module as code of TorchScript, with its parameters and buffers."""
    from ._script import RecursiveScriptModule

    program = _Program()
    program.class_of(module)
    program.method(module, "forward")
    for part in list(program.modules.values()):
        for name in dir(type(part)):
            if name != "forward" and mark_of(getattr(type(part), name, None)).startswith("export"):
                program.method(part, name)
    unit = Unit(program.files(), tuple(program.constants))
    made: dict[int, Any] = {}

    def build(part: Module) -> Any:
        if id(part) in made:
            return made[id(part)]
        new = made[id(part)] = RecursiveScriptModule(unit.script_class(program.names[id(part)]), unit)
        state: dict[str, Any] = {n: v for t in (part._parameters, part._buffers) for n, v in t.items() if v is not None}
        own = new._class.fields
        state |= {n: archived(own.get(n), _number(getattr(part, n))) for n in program.fields[id(part)]}
        new._take(state | {"training": part.training})
        for name, child in part._modules.items():
            if child is not None:
                new._modules[name] = build(child)
        return new

    result = build(module)
    unit.check()
    return result
