"""Calls in code that is translated: of modules and their methods, of functions of the program, of ops and of Python's own."""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import warnings
from typing import Any

from .. import _C
from .._base import Tensor
from .._ops import OpOverload, OpOverloadPacket
from .._recording._keys import op_key
from ..nn.modules.module import Module
from ._record import CannotRecord, Code
from ._record_calls import BOUND, SPECIAL
from ._record_ops import emitter
from ._translate_classes import is_plain_class
from ._translate_values import Bound, Known, Part, Super, is_library, is_named, leaves

__all__ = ["Calls"]

_BUILTIN = ("len", "int", "float", "bool", "str", "range", "enumerate", "zip", "print", "min", "max", "abs", "sorted", "sum", "any",
            "all", "round", "list", "ord", "chr")  # fmt: skip


class Calls:
    """Mixed into what translates a function."""

    program: Any
    writer: Any
    known: dict[str, Any]
    expr: Any
    text: Any
    shown: Any
    constant: Any
    wrong: Any
    of_part: Any
    line: Any
    function: Any
    enclosed: Any

    def of_call(self, node: ast.Call) -> Any:
        node = self.unpacked(node)
        function = self.expr(node.func)
        if isinstance(function, Part):
            return self.of_method(function, "forward", node)
        if isinstance(function, Bound) and isinstance(function.owner, Part):
            return self.of_method(function.owner, function.name, node)
        if isinstance(function, Bound) and isinstance(function.owner, Super):
            name = self.program.inherited(function.owner.part.module, function.name, function.owner.below)
            return Code(f"{function.owner.part.text}.{name}({self.given(node)})")
        if isinstance(function, Bound):
            return Code(f"{function.owner}.{function.name}({self.given(node)})")
        if not isinstance(function, Known):
            raise self.wrong(node, "what is called is not known")
        return self.of_function(function.value, node)

    def unpacked(self, node: ast.Call) -> ast.Call:
        """A call whose `*values` are known, with the values themselves."""
        if any(k.arg is None for k in node.keywords):
            raise self.wrong(node, "** in a call")
        args: list[ast.expr] = []
        for a in node.args:
            if isinstance(a, ast.Starred):
                values = self.constant(a.value)
                for v in values:
                    name = f" {len(self.known)}"
                    self.known[name] = Known(v)
                    args.append(ast.Name(name, ast.Load()))
            else:
                args.append(a)
        return ast.copy_location(ast.Call(node.func, args, node.keywords), node)

    def given(self, node: ast.Call) -> str:
        return ", ".join([*map(self.text, node.args), *(f"{k.arg}={self.text(k.value)}" for k in node.keywords)])

    def of_method(self, owner: Part, name: str, node: ast.Call) -> Any:
        if isinstance(owner.module, Module) and name not in ("forward",) and hasattr(Module, name):
            values = [self.expr(a) for a in node.args]
            if all(isinstance(v, Known) for v in values) and not node.keywords:
                return Known(getattr(owner.module, name)(*(v.value for v in values)))
        if name.startswith("_") and not node.args and not node.keywords and is_library(type(owner.module).__module__):
            found = getattr(owner.module, name)()
            if not any(isinstance(v, (Tensor, Module)) for v in leaves(found)):
                return Known(found)
        self.program.method(owner.module, name)
        return Code(f"{owner.text}.{name}({self.given(node)})")

    def of_function(self, function: Any, node: ast.Call) -> Any:
        from .. import _assert
        from . import annotate, is_scripting, is_tracing
        from . import isinstance as is_of

        if function is is_of:
            function = isinstance
        if function in (is_scripting, is_tracing):
            return Known(function is is_scripting)
        if function is _assert:
            message = f", {self.text(node.args[1])}" if len(node.args) > 1 else ""
            test = self.expr(node.args[0])
            if not isinstance(test, Known) or not test.value:
                self.line(f"assert {self.shown(test, node)}{message}")
            return Known(None)
        if function is warnings.warn:
            return Code(f"torch.warn({self.text(node.args[0])})")
        if function is annotate:
            return Code(f"annotate({self.program.annotation(self.constant(node.args[0]))}, {self.text(node.args[1])})")
        if function in (isinstance, getattr, hasattr, len, type, super):
            found = self.of_question(function, node)
            if found is not None:
                return found
        if (
            getattr(builtins, getattr(function, "__name__", ""), None) is function
            or getattr(math, getattr(function, "__name__", ""), None) is function
        ):
            return self.of_builtin(function, node)
        if is_plain_class(function):
            return Code(f"{self.program.named(function)}({self.given(node)})")
        if is_named(function):
            return self.of_named(function, node)
        if is_library(getattr(function, "__module__", "")) or not inspect.isfunction(function):
            return self.of_op(function, node)
        name = self.program.function(function)
        return Code(f"{name}({self.given(node)})")

    def of_named(self, cls: Any, node: ast.Call) -> Any:
        """A named tuple: all of its fields in order, since archives have no defaults."""
        values = dict(zip(cls._fields, node.args, strict=False)) | {str(k.arg): k.value for k in node.keywords}
        defaults = cls._field_defaults
        if any(n not in values and n not in defaults for n in cls._fields):
            raise self.wrong(node, "a field of the named tuple is missing")
        texts = [self.text(values[n]) if n in values else self.shown(Known(defaults[n]), node) for n in cls._fields]
        return Code(f"{self.program.named(cls)}({', '.join(texts)})")

    def of_question(self, function: Any, node: ast.Call) -> Any:
        """`isinstance`, `len` and their like of what is known."""
        if function is super:
            return self.of_super(node)
        first = self.expr(node.args[0]) if node.args else None
        rest = [self.expr(a) for a in node.args[1:]]
        if isinstance(first, Part) and function is len:
            return Known(len(first.module))  # type: ignore[arg-type]
        if isinstance(first, Part) and function in (getattr, hasattr) and all(isinstance(r, Known) for r in rest):
            if function is hasattr:
                return Known(hasattr(first.module, rest[0].value))
            return self.of_part(first, rest[0].value, node)
        if isinstance(first, Known) and function in (getattr, hasattr) and all(isinstance(r, Known) for r in rest):
            return Known(function(first.value, *(r.value for r in rest)))
        if function is isinstance and isinstance(first, (Part, Known)) and isinstance(rest[0], Known):
            value = first.module if isinstance(first, Part) else first.value
            from . import isinstance as is_of

            return Known(is_of(value, rest[0].value))
        if function is isinstance:
            kinds = rest[0].value if isinstance(rest[0].value, tuple) else (rest[0].value,)
            names = ", ".join({list: "list", tuple: "tuple"}.get(k) or self.program.annotation(k) for k in kinds)
            return Code(f"isinstance({self.shown(first, node)}, {names if len(kinds) == 1 else f'({names})'})")
        return None

    def of_super(self, node: ast.Call) -> Any:
        """`super()` or `super(Class, self)` in a method of a module."""
        own = next(iter(self.function.__code__.co_varnames), "")
        part = self.expr(node.args[1]) if len(node.args) > 1 else self.known.get(own)
        below = self.constant(node.args[0]) if node.args else self.enclosed().get("__class__")
        if not isinstance(part, Part) or below is None:
            raise self.wrong(node, "super() in what is no method of a module")
        return Super(part, below)

    def of_dict_call(self, node: ast.Call) -> Any:
        """`dict(pairs, name=value)`: a display, or a copy to which items are added."""
        if not node.args:
            return Code("{" + ", ".join(f'"{k.arg}": {self.text(k.value)}' for k in node.keywords) + "}")
        made = Code(f"torch.dict({self.text(node.args[0])})")
        if node.keywords:
            made = self.writer.assign(str(made))
            for k in node.keywords:
                self.line(f'{made}["{k.arg}"] = {self.text(k.value)}')
        return made

    def of_builtin(self, function: Any, node: ast.Call) -> Any:
        if function is dict:
            return self.of_dict_call(node)
        values = [self.expr(a) for a in node.args]
        if (
            all(isinstance(v, Known) and not isinstance(v.value, Tensor) for v in values)
            and not node.keywords
            and function is not print
        ):
            found = function(*(v.value for v in values))
            if not isinstance(found, (range, zip, enumerate)):
                return Known(found)
        if getattr(math, function.__name__, None) is function:
            return Code(f"torch.{function.__name__}({self.given(node)})")
        if function.__name__ not in _BUILTIN:
            raise self.wrong(node, "the function is not taken")
        return Code(f"{function.__name__}({self.given(node)})")

    def of_op(self, function: Any, node: ast.Call) -> Any:
        """A call of a function of this package."""
        packet = function.overloadpacket if isinstance(function, OpOverload) else function
        if isinstance(packet, OpOverloadPacket) and packet._namespace != "aten":
            return Code(f"ops.{packet._namespace}.{packet.__name__}({self.given(node)})")
        key = op_key(function)
        args = [self.plain(self.expr(a), a) for a in node.args]
        kwargs = {str(k.arg): self.plain(self.expr(k.value), k.value) for k in node.keywords}
        if not any(isinstance(v, Code) for v in leaves([*args, *kwargs.values()])) and not callable(
            getattr(function, "__torch_function__", None)
        ):
            is_helper = inspect.isfunction(function) and function.__name__.startswith("_") and key not in _C.ops
            if is_helper or key in ("device", "finfo", "iinfo") or isinstance(function, type):
                return Known(function(*args, **kwargs))
        if inspect.isfunction(function) and ".ao." in function.__module__:
            # Quantised functions have the names of ops that are others.
            return Code(f"{self.program.function(function)}({self.given(node)})")
        if (
            not str(getattr(function, "__module__", "")).endswith(".nn.functional")
            and key not in BOUND
            and key not in SPECIAL
            and key in _C.ops
        ):
            return Code(f"torch.{key}({self.given(node)})")
        if key in ("tensor", "as_tensor"):
            return Code(f"torch.{key}({self.given(node)})")
        emit = emitter(key, function)
        try:
            if emit is None:
                inner = inspect.unwrap(function)
                if not inspect.isfunction(inner):
                    raise CannotRecord("the function is not known")
                return Code(f"{self.program.function(inner)}({self.given(node)})")
            return Code(emit(self.writer, key, function, args, kwargs, None))
        except (AttributeError, TypeError, CannotRecord) as error:
            raise self.wrong(node, str(error)) from None

    def plain(self, value: Any, node: ast.AST) -> Any:
        if isinstance(value, Known):
            return value.value
        return value if isinstance(value, Code) else Code(self.shown(value, node))
