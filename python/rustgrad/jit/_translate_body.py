"""One function of Python as code of TorchScript, statement by statement."""

from __future__ import annotations

import ast
import builtins
import contextlib
import inspect
import textwrap
import typing
from typing import Any

from .._base import Tensor
from .._sources import is_identifier
from ..nn.modules.module import Module
from ._contexts import context_of
from ._record import CannotRecord, Code, Recorder
from ._translate_expr import Expressions
from ._translate_values import (
    Bound,
    CannotTranslate,
    Known,
    Part,
    Table,
    changed_in,
    commented_types,
    is_library,
    is_taken,
    mark_of,
    names_in,
    value_type,
)

__all__ = ["Body"]

_LOOPS = (ast.Break, ast.Continue)


class _Writer(Recorder):
    """The part of a recorder that writes calls: into the lines of a body."""

    def __init__(self, body: Body) -> None:
        super().__init__({})
        self.body = body

    def assign(self, text: str) -> Code:
        self.body.temporaries += 1
        name = f"_t{self.body.temporaries}"
        self.body.line(f"{name} = {text}")
        return Code(name)

    def name_of(self, tensor: Any) -> str:
        return str(tensor) if isinstance(tensor, Code) else self.constant(tensor)

    def constant(self, tensor: Tensor) -> str:
        if tensor.requires_grad:
            raise CannotRecord(
                "it is a tensor that requires grad, which no constant does; make it a parameter or pass it"
            )
        self.body.program.constants.append(tensor.detach())
        return f"CONSTANTS.c{len(self.body.program.constants) - 1}"


class Body(Expressions):
    """Writes one function."""

    def __init__(self, program: Any, function: Any, module: Module | None) -> None:
        self.program, self.module = program, module
        self.function = inspect.unwrap(function)
        try:
            lines, self.first = inspect.getsourcelines(self.function)
            self.file = inspect.getsourcefile(self.function)
            self.source = textwrap.dedent("".join(lines))
            tree = _parsed(self.source)
        except (OSError, TypeError, SyntaxError) as error:
            raise CannotTranslate(f"the source of {function!r} cannot be read ({error})") from None
        if not isinstance(tree, ast.FunctionDef):
            raise CannotTranslate(f"{function.__qualname__} is no function with a name")
        self.tree = tree
        self.lines: list[str] = []
        self.indent, self.temporaries = 1, 0
        self.writer = _Writer(self)
        self.known: dict[str, Any] = {}
        self.locals: set[str] = set()
        self.stores = _stores(tree)
        self.changed = {n.id for n in changed_in(tree) if isinstance(n, ast.Name)}

    # --- frame
    def wrong(self, node: ast.AST, why: str) -> CannotTranslate:
        at = f"{self.file}:{self.first + getattr(node, 'lineno', 1) - 1}"
        return CannotTranslate(f"{at}: '{ast.unparse(node)[:100]}' has no form in TorchScript here: {why}")

    def line(self, text: str) -> None:
        self.lines.append("  " * self.indent + text)

    def code(self, name: str, owner: str | None) -> str:
        """The function's code."""
        given = self.tree.args
        if given.vararg or given.kwarg:
            raise self.wrong(self.tree, "it takes any number of arguments")
        hints = self.hints()
        signature = inspect.signature(self.function)
        shown = []
        for place, (parameter, value) in enumerate(signature.parameters.items()):
            if place == 0 and owner is not None:
                if self.module is None:
                    self.locals.add(parameter)
                    shown.append(f"{parameter}: {owner}")
                else:
                    self.known[parameter] = Part(self.module, "self")
                    shown.append(f"self: {owner}")
                continue
            self.locals.add(parameter)
            kind = self.program.annotation(hints[parameter]) if parameter in hints else "Tensor"
            default = (
                "" if value.default is inspect.Parameter.empty else f"={self.shown(Known(value.default), self.tree)}"
            )
            shown.append(f"{parameter}: {kind}{default}")
        if mark_of(self.function).startswith("unused"):
            self.line('assert False, "a function that jit.unused leaves out was called"')
        else:
            self.block(self.tree.body)
        returns = f" -> {self.program.annotation(hints['return'])}" if "return" in hints else ""
        returns = returns or (" -> NoneType" if name == "__init__" else "")
        return f"def {name}({', '.join(shown)}){returns}:\n" + "".join(
            line + "\n" for line in self.lines or ["  return None"]
        )

    def hints(self) -> dict[str, Any]:
        """The types of parameters and of the result: annotations, or a comment `# type: (int) -> Tensor`."""
        function = self.function
        scope = {**vars(typing), "Tensor": Tensor, **function.__globals__, **self.enclosed()}
        try:
            hints = typing.get_type_hints(function, scope)
        except Exception:
            hints = {n: h for n, h in function.__annotations__.items() if not isinstance(h, str)}
        if is_library(function.__module__):
            # What a container returns is not known.
            return {n: h for n, h in hints.items() if is_taken(h) and n != "return"}
        return hints or commented_types(self.tree, self.source, scope)

    def enclosed(self) -> dict[str, Any]:
        """The variables of enclosing functions that the function names."""
        names, cells = self.function.__code__.co_freevars, self.function.__closure__ or ()
        return {n: c.cell_contents for n, c in zip(names, cells, strict=True) if _is_set(c)}

    def block(self, statements: list[ast.stmt]) -> None:
        before = len(self.lines)
        for s in statements:
            handler = getattr(self, "do_" + type(s).__name__.lower(), None)
            if handler is None:
                raise self.wrong(s, "statements of this kind are not taken")
            if handler(s) == "end":
                break
        if len(self.lines) == before:
            self.line("pass")

    def inner(self, statements: list[ast.stmt]) -> None:
        self.indent += 1
        self.block(statements)
        self.indent -= 1

    # --- statements
    def do_pass(self, s: ast.Pass) -> None:
        pass

    def do_break(self, s: ast.Break) -> None:
        self.line("break")

    def do_continue(self, s: ast.Continue) -> None:
        self.line("continue")

    def do_expr(self, s: ast.Expr) -> None:
        value = self.expr(s.value)
        if not isinstance(value, Known):
            self.line(self.shown(value, s))

    def do_return(self, s: ast.Return) -> str:
        self.line("return None" if s.value is None else f"return {self.text(s.value)}")
        return "end"

    def do_assign(self, s: ast.Assign) -> None:
        if len(s.targets) == 1 and isinstance(s.targets[0], ast.Tuple) and isinstance(s.value, ast.Tuple):
            s = self.without_known(s.targets[0].elts, s.value.elts, s)
            if not s.targets:
                return
        value = self.expr(s.value)
        if getattr(s, "type_comment", None) and len(s.targets) == 1:
            kind = self.program.annotation(self.hint(ast.Constant(s.type_comment)))
            value = Code(f"annotate({kind}, {self.shown(value, s)})")
        if len(s.targets) > 1 and isinstance(value, Code):
            # What has an effect is computed once.
            value = self.writer.assign(str(value))
        for target in s.targets:
            self.store(target, value, s)

    def without_known(self, targets: list[ast.expr], values: list[ast.expr], s: ast.Assign) -> ast.Assign:
        """`a, b = x, y` without the names that stand for what is known and has no code: modules, functions."""
        if len(targets) != len(values) or any(isinstance(e, ast.Starred) for e in (*targets, *values)):
            return s
        left = []
        for target, node in zip(targets, values, strict=True):
            value = self.expr(node) if isinstance(node, (ast.Name, ast.Attribute)) else None
            is_code = (
                value is None or isinstance(value, (Code, Bound)) or isinstance(value, Known) and is_written(value)
            )
            if is_code or not isinstance(target, ast.Name):
                left.append((target, node))
            else:
                self.known[target.id] = value
        if len(left) == len(targets):
            return s
        made = [ast.Tuple([t for t, _ in left], ast.Store())] if len(left) > 1 else [t for t, _ in left]
        given = ast.Tuple([v for _, v in left], ast.Load()) if len(left) > 1 else s.value if not left else left[0][1]
        return ast.copy_location(ast.Assign(made, given), s)

    def do_annassign(self, s: ast.AnnAssign) -> None:
        if s.value is None or not isinstance(s.target, (ast.Name, ast.Attribute)):
            raise self.wrong(s, "expected a name with a value")
        kind = self.program.annotation(self.hint(s.annotation))
        value = self.text(s.value)
        self.line(f"{self.target(s.target)} = annotate({kind}, {value})")

    def hint(self, node: ast.expr) -> Any:
        """The type that an annotation of a variable names, which may be a string."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node = ast.parse(node.value, mode="eval").body
        scope = {**vars(builtins), "Tensor": Tensor, **self.function.__globals__, **self.enclosed()}
        try:
            return eval(compile(ast.Expression(node), "<annotation>", "eval"), scope)
        except Exception as error:
            raise self.wrong(node, f"the annotation cannot be read: {error}") from None

    def do_augassign(self, s: ast.AugAssign) -> None:
        sign = ast.unparse(ast.BinOp(ast.Name("a"), s.op, ast.Name("b"))).split(" ")[1]
        self.line(f"{self.target(s.target)} {sign}= {self.text(s.value)}")

    def store(self, target: ast.expr, value: Any, s: ast.AST) -> None:
        if isinstance(target, ast.Name) and (
            isinstance(value, (Part, Bound, Table)) or isinstance(value, Known) and self.once(target.id)
        ):
            self.known[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, Known):
            for t, v in zip(target.elts, value.value, strict=True):
                self.store(t, Known(v), s)
        else:
            self.line(f"{self.target(target)} = {self.shown(value, s)}")

    def once(self, name: str) -> bool:
        """Whether a name is assigned once, so that it stands for its value."""
        return self.stores.get(name) == 1 and name not in self.locals and name not in self.changed

    def target(self, node: ast.expr) -> str:
        if isinstance(node, ast.Name):
            self.locals.add(node.id)
            self.known.pop(node.id, None)
            return node.id
        if isinstance(node, (ast.Tuple, ast.List)):
            parts = [
                f"({self.target(e)})" if isinstance(e, (ast.Tuple, ast.List)) else self.target(e) for e in node.elts
            ]
            return ", ".join(parts) + "," * (len(parts) == 1)
        if isinstance(node, ast.Subscript):
            return f"{self.text(node.value)}[{self.index(node.slice)}]"
        if isinstance(node, ast.Attribute):
            owner = self.expr(node.value)
            if isinstance(owner, Part):
                self.field(owner.module, node.attr, node)
                return f"{owner.text}.{node.attr}"
            if isinstance(owner, Code):
                return f"{owner}.{node.attr}"
        raise self.wrong(node, "this cannot be assigned to")

    def field(self, module: Module, name: str, node: ast.AST) -> None:
        """Declares an attribute that is no constant."""
        if name in module._parameters or name in module._buffers or name == "training":
            return
        if not hasattr(module, name):
            raise self.wrong(node, f"the module has no attribute {name} before it runs")
        try:
            hint = typing.get_type_hints(type(module)).get(name)
            kind = (
                self.program.annotation(hint)
                if hint not in (None, Any)
                else value_type(self.program, getattr(module, name))
            )
        except CannotTranslate as error:
            raise self.wrong(node, str(error)) from None
        self.program.fields[id(module)][name] = kind

    def do_if(self, s: ast.If) -> Any:
        test = self.expr(s.test)
        if isinstance(test, (Known, Part)):
            chosen = s.body if isinstance(test, Part) or test.value else s.orelse
            if chosen:
                before = len(self.lines)
                self.block(chosen)
                if isinstance(chosen[-1], (ast.Return, ast.Raise)):
                    return "end"
                if self.lines[before:] == ["  " * self.indent + "pass"]:
                    del self.lines[before:]
            return None
        known = dict(self.known)
        self.line(f"if {self.shown(test, s)}:")
        self.inner(s.body)
        if s.orelse:
            self.known = dict(known)
            self.line("else:")
            self.inner(s.orelse)
        self.known = {n: v for n, v in self.known.items() if known.get(n) is v}
        return None

    def do_while(self, s: ast.While) -> None:
        if s.orelse:
            raise self.wrong(s, "a loop with else")
        self.line(f"while {self.text(s.test)}:")
        self.inner(s.body)

    def do_for(self, s: ast.For) -> None:
        if s.orelse:
            raise self.wrong(s, "a loop with else")
        values = self.walked(s.iter)
        if values is None:
            self.line(f"for {self.target(s.target)} in {self.text(s.iter)}:")
            self.inner(s.body)
            return
        if any(isinstance(n, _LOOPS) for b in s.body for n in ast.walk(b)):
            raise self.wrong(s, "break or continue in a loop over modules")
        for value in values:
            self.bind(s.target, value, s)
            self.block(s.body)

    def bind(self, target: ast.expr, value: Any, s: ast.AST) -> None:
        if isinstance(target, ast.Name):
            if isinstance(value, (Part, Known)):
                self.locals.discard(target.id)
                self.known[target.id] = value
            else:
                self.line(f"{self.target(target)} = {self.shown(value, s)}")
        elif isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, tuple):
            for t, v in zip(target.elts, value, strict=True):
                self.bind(t, v, s)
        else:
            raise self.wrong(s, "this cannot be unpacked")

    def walked(self, node: ast.expr) -> list[Any] | None:
        """The values of a loop that goes over modules; None for other loops."""
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("enumerate", "zip", "reversed")
        ):
            parts = [self.walked(a) for a in node.args]
            if all(p is None for p in parts):
                return None
            if node.func.id == "reversed":
                return (parts[0] or [])[::-1]
            if node.func.id == "enumerate":
                return [(Known(i), v) for i, v in enumerate(parts[0] or [])]
            length = min(len(p) for p in parts if p is not None)
            made = [
                p if p is not None else [Code(f"{self.text(a)}[{i}]") for i in range(length)]
                for p, a in zip(parts, node.args, strict=True)
            ]
            return list(zip(*made))
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("items", "values", "keys")
        ):
            inside = node.func.value
            is_table = isinstance(inside, ast.Attribute) and inside.attr == "_modules"
            owner = self.expr(inside.value if is_table else inside)  # type: ignore[attr-defined]
            if isinstance(owner, Part):
                pairs = [(Known(n), self.child(owner, n)) for n in names_in(owner.module)]
                return [{"items": p, "keys": p[0], "values": p[1]}[node.func.attr] for p in pairs]
            return None
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            owner = self.expr(node)
            if isinstance(owner, Part):
                return [self.child(owner, n) for n in names_in(owner.module)]
        return None

    def child(self, owner: Part, name: str) -> Any:
        """A submodule by name, or a parameter of a `ParameterList` or `ParameterDict`."""
        text = f"{owner.text}.{name}" if is_identifier(name) else f'getattr({owner.text}, "{name}")'
        if name not in owner.module._modules:
            return Code(text)
        return Part(owner.module._modules[name], text)  # type: ignore[arg-type]

    def do_with(self, s: ast.With) -> Any:
        indent, known = self.indent, dict(self.known)
        for item in s.items:
            value = self.entered(item.context_expr)
            if value is None:
                continue
            name = self.writer.assign(value)
            alias = "" if item.optional_vars is None else f" as {self.target(item.optional_vars)}"
            self.line(f"with {name}{alias}:")
            self.indent += 1
        self.block(s.body)
        if self.indent > indent:
            self.known = {n: v for n, v in self.known.items() if known.get(n) is v}
        self.indent = indent

    def entered(self, node: ast.expr) -> str | None:
        """The code of a block's object; None for one without effect."""
        function = self.expr(node.func) if isinstance(node, ast.Call) else None
        if isinstance(function, Known) and isinstance(node, ast.Call):
            from . import strict_fusion

            if function.value in (contextlib.nullcontext, strict_fusion):
                return None
            if is_library(getattr(function.value, "__module__", "")):
                kwargs = {str(k.arg): self.plain(self.expr(k.value), k.value) for k in node.keywords}
                found = context_of(function.value, [self.plain(self.expr(a), a) for a in node.args], kwargs)
                if found is None:
                    raise self.wrong(node, "TorchScript has no such block")
                name, text, given = found
                return (
                    f"{self.program.context(name, text)}({', '.join(self.shown(self.lifted(v), node) for v in given)})"
                )
        return self.text(node)

    @staticmethod
    def lifted(value: Any) -> Any:
        return value if isinstance(value, Code) else Known(value)

    def do_assert(self, s: ast.Assert) -> None:
        test = self.expr(s.test)
        if not isinstance(test, Known) or not test.value:
            message = "" if s.msg is None else f", {self.text(s.msg)}"
            self.line(f"assert {self.shown(test, s)}{message}")

    def do_raise(self, s: ast.Raise) -> str:
        call = s.exc
        kind = self.constant(call.func if isinstance(call, ast.Call) else call) if call is not None else RuntimeError
        message = self.text(call.args[0]) if isinstance(call, ast.Call) and call.args else '""'
        name = kind.__name__ if isinstance(kind, type) else "RuntimeError"
        text = message if message.startswith('"') else f"str({message})"
        self.line(f'assert False, "{name}: " + {text}')
        return "end"

    def do_delete(self, s: ast.Delete) -> None:
        for t in s.targets:
            if isinstance(t, ast.Subscript):
                self.line(f"torch.Delete({self.text(t.value)}, {self.index(t.slice)})")


def is_written(value: Known) -> bool:
    """Whether a value has a form in code."""
    return value.value is None or isinstance(value.value, (Tensor, bool, int, float, complex, str, list, tuple, dict))


def _parsed(source: str) -> ast.stmt:
    try:
        return ast.parse(source, type_comments=True).body[0]
    except SyntaxError:  # a comment `type:` that is none
        return ast.parse(source).body[0]


def _is_set(cell: Any) -> bool:
    try:
        return [cell.cell_contents] != []
    except ValueError:
        return False


def _stores(tree: ast.AST) -> dict[str, int]:
    found: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found[node.id] = found.get(node.id, 0) + 1
    return found
