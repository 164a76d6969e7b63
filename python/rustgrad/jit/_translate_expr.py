"""Expressions in code that is translated: computed where all of it is known, else taken over."""

from __future__ import annotations

import ast
import builtins
import enum
import re
import types
from typing import Any

from .._base import Tensor
from .._quantized._script_object import ScriptObject
from ._record import CannotRecord, Code, _quoted
from ._translate_calls import Calls
from ._translate_values import Bound, Known, Part, Super, Table, is_library, is_named, names_in

__all__ = ["Expressions"]


class Expressions(Calls):
    """Mixed into what translates a function."""

    function: Any
    locals: set[str]
    walked: Any
    bind: Any
    target: Any
    child: Any
    field: Any

    def text(self, node: ast.expr) -> str:
        return self.shown(self.expr(node), node)

    def shown(self, value: Any, node: ast.AST) -> str:
        """The code of a value."""
        if isinstance(value, Code):
            return str(value)
        if isinstance(value, Part):
            return value.text
        if isinstance(value, Bound) and not isinstance(value.owner, Part):
            return f"{value.owner}.{value.name}"
        if isinstance(value, Known):
            value = value.value
        if isinstance(value, enum.Enum) and not is_library(type(value).__module__) or is_named(type(value)):
            return self.program.constant_text(value)
        if isinstance(value, tuple):
            parts = [self.shown(v, node) for v in value]
            return f"({', '.join(parts)}{',' * (len(parts) == 1)})"
        if isinstance(value, dict):
            return "{" + ", ".join(f"{self.shown(k, node)}: {self.shown(v, node)}" for k, v in value.items()) + "}"
        if isinstance(value, list):
            return f"[{', '.join(self.shown(v, node) for v in value)}]"
        try:
            return self.writer.text(value)
        except CannotRecord as error:
            raise self.wrong(node, str(error)) from None

    def constant(self, node: ast.expr) -> Any:
        value = self.expr(node)
        if not isinstance(value, Known):
            raise self.wrong(node, "expected something that is known when the code is written")
        return value.value

    def expr(self, node: ast.expr) -> Any:
        handler = getattr(self, "of_" + type(node).__name__.lower(), None)
        if handler is None:
            raise self.wrong(node, "expressions of this kind are not taken")
        return handler(node)

    def of_constant(self, node: ast.Constant) -> Any:
        return Known(node.value)

    def of_name(self, node: ast.Name) -> Any:
        if node.id in self.known:
            return self.known[node.id]
        if node.id in self.locals:
            return Code(node.id)
        function = self.function
        names = function.__code__.co_freevars
        if node.id in names:
            return Known(function.__closure__[names.index(node.id)].cell_contents)
        for scope in (function.__globals__, vars(builtins)):
            if node.id in scope:
                return Known(scope[node.id])
        raise self.wrong(node, "the name is not known")

    def of_attribute(self, node: ast.Attribute) -> Any:
        owner = self.expr(node.value)
        if isinstance(owner, Part):
            return self.of_part(owner, node.attr, node)
        if isinstance(owner, Super):
            return Bound(owner, node.attr)
        if isinstance(owner, Known) and not isinstance(owner.value, (Tensor, str, list, dict)):
            if not hasattr(owner.value, node.attr):
                raise self.wrong(node, "there is no such attribute")
            return Known(getattr(owner.value, node.attr))
        return Bound(Code(self.shown(owner, node)), node.attr)

    def of_part(self, owner: Part, name: str, node: ast.AST) -> Any:
        module = owner.module
        if name in ("_parameters", "_buffers"):
            return Table(owner, getattr(module, name))
        if name in module._modules and module._modules[name] is not None:
            return self.child(owner, name)
        getter = getattr(type(module), name, None)
        if isinstance(getter, property) and not is_library(getter.fget.__module__):
            return Code(f"{owner.text}.{self.program.getter(module, name, getter.fget)}()")
        value = getattr(module, name)
        if isinstance(value, types.MethodType) and value.__self__ is module:
            return Bound(owner, name)
        dynamic = isinstance(value, Tensor) or name == "training" or name in self.program.mutable(module)
        if isinstance(value, (list, tuple)) and any(isinstance(v, Tensor) for v in value):
            dynamic = True
        dynamic = dynamic or isinstance(value, ScriptObject) or self.program.is_class(type(value))
        if not dynamic:
            return Known(value)
        self.program.class_of(module)
        self.field(module, name, node)
        return Code(f"{owner.text}.{name}")

    def of_tuple(self, node: ast.Tuple) -> Any:
        values = [self.expr(e) for e in node.elts]
        if all(isinstance(v, Known) for v in values):
            return Known(tuple(v.value for v in values))
        texts = [self.shown(v, node) for v in values]
        return Code(f"({', '.join(texts)}{',' * (len(texts) == 1)})")

    def of_list(self, node: ast.List) -> Any:
        return Code(f"[{', '.join(map(self.text, node.elts))}]")

    def of_dict(self, node: ast.Dict) -> Any:
        if None in node.keys:
            raise self.wrong(node, "** in a dict")
        return Code(
            "{"
            + ", ".join(f"{self.text(k)}: {self.text(v)}" for k, v in zip(node.keys, node.values, strict=True) if k)
            + "}"
        )

    def of_binop(self, node: ast.BinOp) -> Any:
        return self.folded(node, node.left, node.right)

    def of_unaryop(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not) and isinstance(self.expr(node.operand), Part):
            return Known(False)
        return self.folded(node, node.operand)

    def of_compare(self, node: ast.Compare) -> Any:
        values = [self.expr(n) for n in (node.left, *node.comparators)]
        if isinstance(node.ops[0], (ast.Is, ast.IsNot)) and any(isinstance(v, Part) for v in values):
            return Known(isinstance(node.ops[0], ast.IsNot))
        if isinstance(node.ops[0], (ast.In, ast.NotIn)) and isinstance(values[1], Table):
            return Known((self.constant(node.left) in values[1].entries) is isinstance(node.ops[0], ast.In))
        return self.folded(node, node.left, *node.comparators)

    def folded(self, node: ast.expr, *operands: ast.expr) -> Any:
        """An operation: its value where all operands are known, else its code."""
        values = [self.expr(o) for o in operands]
        new = _with_operands(node, [ast.Name(f"_p{i}_", ast.Load()) for i in range(len(values))])
        if all(isinstance(v, Known) and not isinstance(v.value, Tensor) for v in values):
            code = compile(ast.fix_missing_locations(ast.Expression(new)), "<known>", "eval")
            return Known(eval(code, {f"_p{i}_": v.value for i, v in enumerate(values)}))
        texts = [self.shown(v, o) for v, o in zip(values, operands, strict=True)]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) and texts[0].startswith("in"):
            # PyTorch reads `not input` as `not in put`.
            texts = [f"({texts[0]})"]
        text = re.sub(r"_p(\d+)_", lambda m: texts[int(m[1])], ast.unparse(new))
        return Code(f"({text})")

    def of_boolop(self, node: ast.BoolOp) -> Any:
        is_and, texts = isinstance(node.op, ast.And), []
        for part in node.values:
            value = self.expr(part)
            if isinstance(value, Part):
                value = Known(True)
            if isinstance(value, Known):
                if bool(value.value) != is_and:
                    if not texts:
                        return value
                    texts.append(repr(bool(value.value)))
                    break
                continue
            texts.append(self.shown(value, part))
        if not texts:
            return Known(is_and)
        return Code(f"({(' and ' if is_and else ' or ').join(texts)})")

    def of_ifexp(self, node: ast.IfExp) -> Any:
        test = self.expr(node.test)
        if isinstance(test, Known):
            return self.expr(node.body if test.value else node.orelse)
        return Code(f"({self.text(node.body)} if {self.shown(test, node)} else {self.text(node.orelse)})")

    def of_subscript(self, node: ast.Subscript) -> Any:
        owner = self.expr(node.value)
        if isinstance(owner, Table):
            return self.of_part(owner.owner, self.constant(node.slice), node)
        if isinstance(owner, Part):
            index = self.constant(node.slice)
            names = names_in(owner.module)
            if index not in (range(-len(names), len(names)) if isinstance(index, int) else names):
                raise self.wrong(node, "there is no such item")
            return self.child(owner, names[index] if isinstance(index, int) else index)
        if isinstance(owner, Known) and not isinstance(owner.value, Tensor):
            index = self.expr(node.slice) if not isinstance(node.slice, ast.Slice) else None
            if isinstance(index, Known):
                return Known(owner.value[index.value])
        return Code(f"{self.shown(owner, node)}[{self.index(node.slice)}]")

    def index(self, node: ast.expr) -> str:
        if isinstance(node, ast.Tuple):
            return ", ".join(map(self.index, node.elts))
        if isinstance(node, ast.Slice):
            bounds = ["" if b is None else self.text(b) for b in (node.lower, node.upper)]
            return ":".join(bounds) + ("" if node.step is None else f":{self.text(node.step)}")
        if isinstance(node, ast.Constant) and node.value is Ellipsis:
            return "..."
        return self.text(node)

    def of_joinedstr(self, node: ast.JoinedStr) -> Any:
        parts, values = [], []
        for part in node.values:
            if isinstance(part, ast.Constant):
                parts.append(str(part.value))
            elif isinstance(part, ast.FormattedValue) and part.format_spec is None and part.conversion == -1:
                value = self.expr(part.value)
                if isinstance(value, Known) and isinstance(value.value, (str, int)):
                    parts.append(str(value.value))
                    continue
                parts.append("{}")
                values.append(self.shown(value, node))
            else:
                raise self.wrong(node, "a format")
        return (
            Code(f"torch.format({', '.join([_quoted(''.join(parts)), *values])})") if values else Known("".join(parts))
        )

    def of_listcomp(self, node: ast.ListComp) -> Any:
        return self.comprehension(node, lambda: self.text(node.elt), "[]")

    def of_dictcomp(self, node: ast.DictComp) -> Any:
        return self.comprehension(node, lambda: f"{self.text(node.key)}: {self.text(node.value)}", "{}")

    def comprehension(self, node: Any, element: Any, brackets: str) -> Any:
        if len(node.generators) != 1 or node.generators[0].ifs:
            raise self.wrong(node, "a comprehension with conditions or several loops")
        loop, before = node.generators[0], dict(self.known)
        values = self.walked(loop.iter)
        if values is None:
            source, target = self.text(loop.iter), self.looped(loop.target)
            parts = [f"{element()} for {target} in {source}"]
        else:
            parts = []
            for value in values:
                self.bind(loop.target, value, node)
                parts.append(element())
        self.known = before
        return Code(brackets[0] + ", ".join(parts) + brackets[1])

    def looped(self, target: ast.expr) -> str:
        """The variable of a comprehension; several are items of one, since PyTorch's reader takes no more."""
        if not isinstance(target, ast.Tuple) or not all(isinstance(e, ast.Name) for e in target.elts):
            return str(self.target(target))
        self.writer.body.temporaries += 1
        name = f"_t{self.writer.body.temporaries}"
        for place, e in enumerate(target.elts):
            self.known[e.id] = Code(f"{name}[{place}]")  # type: ignore[attr-defined]
        return name


def _with_operands(node: ast.expr, names: list[ast.Name]) -> ast.expr:
    if isinstance(node, ast.BinOp):
        return ast.BinOp(names[0], node.op, names[1])
    if isinstance(node, ast.UnaryOp):
        return ast.UnaryOp(node.op, names[0])
    assert isinstance(node, ast.Compare)
    return ast.Compare(names[0], node.ops, list(names[1:]))
