"""Functions and modules of Python as code of TorchScript, for `save` of what `script` was given.

TorchScript is a subset of Python, so code is taken over but for its names: what is known when it is written (attributes of a
module, globals, settings of layers) is put in its place, branches on it are decided, modules are walked, calls of functions become
calls of ops, and methods and functions that are called are written too. Types are those of annotations, `Tensor` where there are none.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import textwrap
import types
import typing
from collections.abc import Callable
from typing import Any

from .. import _C
from .._base import Tensor
from ..nn.modules.module import Module
from ..onnx._keys import op_key
from ._layers import layer_code, parts_called
from ._record import CannotRecord, Code, Recorder, _is_plain, _quoted
from ._record_ops import _BOUND, _SPECIAL, emitter
from ._trace import _Classes, _texts
from ._types import type_of_value
from ._unit import Unit

__all__ = ["CannotTranslate", "translated_function", "translated_module"]


class CannotTranslate(RuntimeError):
    """Code of Python that has no form in TorchScript here."""


class _Known:
    """A value that is known when the code is written."""

    def __init__(self, value: Any) -> None:
        self.value = value


class _Part:
    """A module, and the code that reads it."""

    def __init__(self, module: Module, text: str) -> None:
        self.module, self.text = module, text


class _Bound:
    """A method of a module, or of a value of the code."""

    def __init__(self, owner: Any, name: str) -> None:
        self.owner, self.name = owner, name


_PLAIN = {int: "int", float: "float", bool: "bool", str: "str", complex: "complex", Tensor: "Tensor", type(None): "NoneType", None: "NoneType",
          _C.device: "Device", _C.dtype: "int"}  # fmt: skip
_BUILTIN = ("len", "int", "float", "bool", "str", "range", "enumerate", "zip", "print", "min", "max", "abs", "sorted", "sum", "any",
            "all", "round", "list", "ord", "chr")  # fmt: skip
_LOOPS = (ast.Break, ast.Continue)


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

    def class_of(self, module: Module) -> str:
        """The qualified name of the class of a module."""
        if id(module) not in self.names:
            name = self.classes._name(type(module))
            self.classes.texts[name] = []
            self.names[id(module)], self.modules[id(module)] = name, module
            self.fields[id(module)] = {}
            for child in module._modules.values():
                if child is not None:
                    self.class_of(child)
        return self.names[id(module)]

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
        if _mark(function).startswith("ignore"):
            raise CannotTranslate(f"{type(module).__name__}.{name} is ignored by jit.ignore, so that code which calls it cannot be saved")
        body = _Body(self, function, module)
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
            name = function.__name__ if _is_plain(function.__name__) else "function"
            while f"__torch__.{name}" in self.functions.values():
                name += "_"
            self.functions[function] = f"__torch__.{name}"
            self.texts[name] = _Body(self, function, None).code(name, None).splitlines()
        return self.functions[function]

    def mutable(self, module: Module) -> set[str]:
        """The attributes that methods of a module assign."""
        found: set[str] = set()
        for cls in type(module).__mro__:
            if cls.__module__.startswith("rustgrad") or cls is object:
                continue
            for value in vars(cls).values():
                if inspect.isfunction(value) and value.__name__ != "__init__":
                    found |= _assigned_attributes(value)
        return found

    def files(self) -> dict[str, str]:
        """The code of all classes and functions, by path."""
        for number, module in self.modules.items():
            body = self.classes.texts[self.names[number]]
            params, buffers = ([n for n, v in t.items() if v is not None] for t in (module._parameters, module._buffers))
            body += [f"  __parameters__ = [{_texts(params)}]", f"  __buffers__ = [{_texts(buffers)}]"]
            fields = {n: "Tensor" for n in [*params, *buffers]} | {"training": "bool"} | self.fields[number]
            fields |= {n: self.names[id(c)] for n, c in module._modules.items() if c is not None}
            for name, kind in fields.items():
                body.append(f"  {name} : {kind}" if _is_plain(name) else f'  __annotations__["{name}"] = {kind}')
            for (owner, _), text in self.methods.items():
                if owner == number:
                    body += ["  " + line for line in text.splitlines()]
        files = self.classes.files()
        lines = [line for text in self.texts.values() for line in text]
        if lines:
            files["__torch__.py"] = files.get("__torch__.py", "") + "\n".join(lines) + "\n"
        return files


def _assigned_attributes(function: Any) -> set[str]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return set()
    return {
        n.attr
        for n in ast.walk(tree)
        if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store) and isinstance(n.value, ast.Name) and n.value.id == "self"
    }


class _Writer(Recorder):
    """The part of a recorder that writes calls: into the lines of a body."""

    def __init__(self, body: _Body) -> None:
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
        self.body.program.constants.append(tensor.detach())
        return f"CONSTANTS.c{len(self.body.program.constants) - 1}"


class _Body:
    """Writes one function."""

    def __init__(self, program: _Program, function: Any, module: Module | None) -> None:
        self.program, self.module = program, module
        self.function = inspect.unwrap(function)
        try:
            lines, self.first = inspect.getsourcelines(self.function)
            self.file = inspect.getsourcefile(self.function)
            tree = ast.parse(textwrap.dedent("".join(lines))).body[0]
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
        try:
            hints = typing.get_type_hints(self.function)
        except Exception:
            hints = {}
        if self.function.__module__.startswith("rustgrad."):
            hints = {n: h for n, h in hints.items() if _is_taken(h)}
        signature = inspect.signature(self.function)
        shown = []
        for place, (parameter, value) in enumerate(signature.parameters.items()):
            if place == 0 and owner is not None:
                self.known[parameter] = _Part(self.module, "self")  # type: ignore[arg-type]
                shown.append(f"self: {owner}")
                continue
            self.locals.add(parameter)
            kind = annotation_text(hints[parameter]) if parameter in hints else "Tensor"
            default = "" if value.default is inspect.Parameter.empty else f"={self.writer.text(value.default)}"
            shown.append(f"{parameter}: {kind}{default}")
        if _mark(self.function).startswith("unused"):
            self.line('assert False, "a function that jit.unused leaves out was called"')
        else:
            self.block(self.tree.body)
        returns = f" -> {annotation_text(hints['return'])}" if "return" in hints else ""
        return f"def {name}({', '.join(shown)}){returns}:\n" + "".join(line + "\n" for line in self.lines or ["  return None"])

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
        if not isinstance(s.value, ast.Constant):
            self.line(self.text(s.value))

    def do_return(self, s: ast.Return) -> str:
        self.line("return None" if s.value is None else f"return {self.text(s.value)}")
        return "end"

    def do_assign(self, s: ast.Assign) -> None:
        value = self.expr(s.value)
        for target in s.targets:
            self.store(target, value, s)

    def do_annassign(self, s: ast.AnnAssign) -> None:
        if s.value is None or not isinstance(s.target, ast.Name):
            raise self.wrong(s, "expected a name with a value")
        kind = annotation_text(self.constant(s.annotation))
        self.locals.add(s.target.id)
        self.line(f"{s.target.id} = annotate({kind}, {self.text(s.value)})")

    def do_augassign(self, s: ast.AugAssign) -> None:
        sign = ast.unparse(ast.BinOp(ast.Name("a"), s.op, ast.Name("b"))).split(" ")[1]
        self.line(f"{self.target(s.target)} {sign}= {self.text(s.value)}")

    def store(self, target: ast.expr, value: Any, s: ast.AST) -> None:
        if isinstance(target, ast.Name) and (isinstance(value, (_Part, _Bound)) or isinstance(value, _Known) and self.once(target.id)):
            self.known[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, _Known):
            for t, v in zip(target.elts, value.value, strict=True):
                self.store(t, _Known(v), s)
        else:
            self.line(f"{self.target(target)} = {self.shown(value, s)}")

    def once(self, name: str) -> bool:
        """Whether a name is assigned once, so that it stands for its value."""
        return self.stores.get(name) == 1 and name not in self.locals

    def target(self, node: ast.expr) -> str:
        if isinstance(node, ast.Name):
            self.locals.add(node.id)
            self.known.pop(node.id, None)
            return node.id
        if isinstance(node, (ast.Tuple, ast.List)):
            return ", ".join(map(self.target, node.elts))
        if isinstance(node, ast.Subscript):
            return f"{self.text(node.value)}[{self.index(node.slice)}]"
        if isinstance(node, ast.Attribute):
            owner = self.expr(node.value)
            if isinstance(owner, _Part):
                self.field(owner.module, node.attr, node)
                return f"{owner.text}.{node.attr}"
        raise self.wrong(node, "this cannot be assigned to")

    def field(self, module: Module, name: str, node: ast.AST) -> None:
        """Declares an attribute that is no constant."""
        if name in module._parameters or name in module._buffers or name == "training":
            return
        if not hasattr(module, name):
            raise self.wrong(node, f"the module has no attribute {name} before it runs")
        try:
            hint = typing.get_type_hints(type(module)).get(name)
            kind = annotation_text(hint) if hint is not None else repr(type_of_value(getattr(module, name)))
        except CannotTranslate as error:
            raise self.wrong(node, str(error)) from None
        self.program.fields[id(module)][name] = kind

    def do_if(self, s: ast.If) -> Any:
        test = self.expr(s.test)
        if isinstance(test, (_Known, _Part)):
            chosen = s.body if isinstance(test, _Part) or test.value else s.orelse
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
            if isinstance(value, (_Part, _Known)):
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
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("enumerate", "zip", "reversed"):
            parts = [self.walked(a) for a in node.args]
            if all(p is None for p in parts):
                return None
            if node.func.id == "reversed":
                return (parts[0] or [])[::-1]
            if node.func.id == "enumerate":
                return [(_Known(i), v) for i, v in enumerate(parts[0] or [])]
            length = min(len(p) for p in parts if p is not None)
            made = [p if p is not None else [Code(f"{self.text(a)}[{i}]") for i in range(length)] for p, a in zip(parts, node.args, strict=True)]
            return list(zip(*made))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("items", "values", "keys"):
            inside = node.func.value
            is_table = isinstance(inside, ast.Attribute) and inside.attr == "_modules"
            owner = self.expr(inside.value if is_table else inside)  # type: ignore[attr-defined]
            if isinstance(owner, _Part):
                pairs = [(_Known(n), self.child(owner, n)) for n in owner.module._modules]
                return [{"items": p, "keys": p[0], "values": p[1]}[node.func.attr] for p in pairs]
            return None
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            owner = self.expr(node)
            if isinstance(owner, _Part):
                return [self.child(owner, n) for n in owner.module._modules]
        return None

    def child(self, owner: _Part, name: str) -> _Part:
        text = f"{owner.text}.{name}" if _is_plain(name) else f'getattr({owner.text}, "{name}")'
        return _Part(owner.module._modules[name], text)  # type: ignore[arg-type]

    def do_assert(self, s: ast.Assert) -> None:
        test = self.expr(s.test)
        if not isinstance(test, _Known) or not test.value:
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

    # --- expressions
    def text(self, node: ast.expr) -> str:
        return self.shown(self.expr(node), node)

    def shown(self, value: Any, node: ast.AST) -> str:
        """The code of a value."""
        if isinstance(value, Code):
            return str(value)
        if isinstance(value, _Part):
            return value.text
        if isinstance(value, _Bound) and not isinstance(value.owner, _Part):
            return f"{value.owner}.{value.name}"
        if isinstance(value, _Known):
            value = value.value
        if isinstance(value, tuple) and not hasattr(value, "_fields"):
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
        if not isinstance(value, _Known):
            raise self.wrong(node, "expected something that is known when the code is written")
        return value.value

    def expr(self, node: ast.expr) -> Any:
        handler = getattr(self, "of_" + type(node).__name__.lower(), None)
        if handler is None:
            raise self.wrong(node, "expressions of this kind are not taken")
        return handler(node)

    def of_constant(self, node: ast.Constant) -> Any:
        return _Known(node.value)

    def of_name(self, node: ast.Name) -> Any:
        if node.id in self.known:
            return self.known[node.id]
        if node.id in self.locals:
            return Code(node.id)
        function = self.function
        names = function.__code__.co_freevars
        if node.id in names:
            return _Known(function.__closure__[names.index(node.id)].cell_contents)
        for scope in (function.__globals__, vars(builtins)):
            if node.id in scope:
                return _Known(scope[node.id])
        raise self.wrong(node, "the name is not known")

    def of_attribute(self, node: ast.Attribute) -> Any:
        owner = self.expr(node.value)
        if isinstance(owner, _Part):
            return self.of_part(owner, node.attr, node)
        if isinstance(owner, _Known) and not isinstance(owner.value, (Tensor, str, list, dict)):
            if not hasattr(owner.value, node.attr):
                raise self.wrong(node, "there is no such attribute")
            return _Known(getattr(owner.value, node.attr))
        return _Bound(Code(self.shown(owner, node)), node.attr)

    def of_part(self, owner: _Part, name: str, node: ast.AST) -> Any:
        module = owner.module
        if name in module._modules and module._modules[name] is not None:
            return self.child(owner, name)
        value = getattr(module, name)
        if isinstance(value, types.MethodType) and value.__self__ is module:
            return _Bound(owner, name)
        dynamic = isinstance(value, Tensor) or name == "training" or name in self.program.mutable(module)
        if isinstance(value, (list, tuple)) and any(isinstance(v, Tensor) for v in value):
            dynamic = True
        if not dynamic:
            return _Known(value)
        self.program.class_of(module)
        self.field(module, name, node)
        return Code(f"{owner.text}.{name}")

    def of_tuple(self, node: ast.Tuple) -> Any:
        values = [self.expr(e) for e in node.elts]
        if all(isinstance(v, _Known) for v in values):
            return _Known(tuple(v.value for v in values))
        texts = [self.shown(v, node) for v in values]
        return Code(f"({', '.join(texts)}{',' * (len(texts) == 1)})")

    def of_list(self, node: ast.List) -> Any:
        return Code(f"[{', '.join(map(self.text, node.elts))}]")

    def of_dict(self, node: ast.Dict) -> Any:
        if None in node.keys:
            raise self.wrong(node, "** in a dict")
        return Code("{" + ", ".join(f"{self.text(k)}: {self.text(v)}" for k, v in zip(node.keys, node.values, strict=True) if k) + "}")

    def of_binop(self, node: ast.BinOp) -> Any:
        return self.folded(node, node.left, node.right)

    def of_unaryop(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not) and isinstance(self.expr(node.operand), _Part):
            return _Known(False)
        return self.folded(node, node.operand)

    def of_compare(self, node: ast.Compare) -> Any:
        values = [self.expr(n) for n in (node.left, *node.comparators)]
        if isinstance(node.ops[0], (ast.Is, ast.IsNot)) and any(isinstance(v, _Part) for v in values):
            return _Known(isinstance(node.ops[0], ast.IsNot))
        return self.folded(node, node.left, *node.comparators)

    def folded(self, node: ast.expr, *operands: ast.expr) -> Any:
        """An operation: its value where all operands are known, else its code."""
        values = [self.expr(o) for o in operands]
        names = [ast.Name(f"p{i}", ast.Load()) for i in range(len(values))]
        new = _with_operands(node, names)
        if all(isinstance(v, _Known) and not isinstance(v.value, Tensor) for v in values):
            code = compile(ast.fix_missing_locations(ast.Expression(new)), "<known>", "eval")
            return _Known(eval(code, {f"p{i}": v.value for i, v in enumerate(values)}))
        text = ast.unparse(new)
        for i, (v, o) in reversed(list(enumerate(zip(values, operands, strict=True)))):
            text = text.replace(f"p{i}", f"\0{i}\0")
        for i, (v, o) in enumerate(zip(values, operands, strict=True)):
            text = text.replace(f"\0{i}\0", self.shown(v, o))
        return Code(f"({text})")

    def of_boolop(self, node: ast.BoolOp) -> Any:
        is_and, texts = isinstance(node.op, ast.And), []
        for part in node.values:
            value = self.expr(part)
            if isinstance(value, _Part):
                value = _Known(True)
            if isinstance(value, _Known):
                if bool(value.value) != is_and:
                    if not texts:
                        return value
                    texts.append(repr(bool(value.value)))
                    break
                continue
            texts.append(self.shown(value, part))
        if not texts:
            return _Known(is_and)
        return Code(f"({(' and ' if is_and else ' or ').join(texts)})")

    def of_ifexp(self, node: ast.IfExp) -> Any:
        test = self.expr(node.test)
        if isinstance(test, _Known):
            return self.expr(node.body if test.value else node.orelse)
        return Code(f"({self.text(node.body)} if {self.shown(test, node)} else {self.text(node.orelse)})")

    def of_subscript(self, node: ast.Subscript) -> Any:
        owner = self.expr(node.value)
        if isinstance(owner, _Part):
            index = self.constant(node.slice)
            return self.child(owner, list(owner.module._modules)[index] if isinstance(index, int) else index)
        if isinstance(owner, _Known) and not isinstance(owner.value, Tensor):
            index = self.expr(node.slice) if not isinstance(node.slice, ast.Slice) else None
            if isinstance(index, _Known):
                return _Known(owner.value[index.value])
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
                parts.append("{}")
                values.append(self.text(part.value))
            else:
                raise self.wrong(node, "a format")
        return Code(f"torch.format({', '.join([_quoted(''.join(parts)), *values])})") if values else _Known("".join(parts))

    def of_listcomp(self, node: ast.ListComp) -> Any:
        if len(node.generators) != 1 or node.generators[0].ifs:
            raise self.wrong(node, "a comprehension with conditions or several loops")
        loop = node.generators[0]
        values = self.walked(loop.iter)
        if values is None:
            source = self.text(loop.iter)
            return Code(f"[{(self.target(loop.target), self.text(node.elt))[1]} for {self.target(loop.target)} in {source}]")
        texts = []
        for value in values:
            self.bind(loop.target, value, node)
            texts.append(self.text(node.elt))
        return Code(f"[{', '.join(texts)}]")

    # --- calls
    def of_call(self, node: ast.Call) -> Any:
        node = self.unpacked(node)
        function = self.expr(node.func)
        if isinstance(function, _Part):
            return self.of_method(function, "forward", node)
        if isinstance(function, _Bound) and isinstance(function.owner, _Part):
            return self.of_method(function.owner, function.name, node)
        if isinstance(function, _Bound):
            return Code(f"{function.owner}.{function.name}({self.given(node)})")
        if not isinstance(function, _Known):
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
                    self.known[name] = _Known(v)
                    args.append(ast.Name(name, ast.Load()))
            else:
                args.append(a)
        return ast.copy_location(ast.Call(node.func, args, node.keywords), node)

    def given(self, node: ast.Call) -> str:
        return ", ".join([*map(self.text, node.args), *(f"{k.arg}={self.text(k.value)}" for k in node.keywords)])

    def of_method(self, owner: _Part, name: str, node: ast.Call) -> Any:
        if isinstance(owner.module, Module) and name not in ("forward",) and hasattr(Module, name):
            values = [self.expr(a) for a in node.args]
            if all(isinstance(v, _Known) for v in values) and not node.keywords:
                return _Known(getattr(owner.module, name)(*(v.value for v in values)))
        if name.startswith("_") and not node.args and not node.keywords and type(owner.module).__module__.startswith("rustgrad."):
            found = getattr(owner.module, name)()
            if not any(isinstance(v, (Tensor, Module)) for v in _leaves(found)):
                return _Known(found)
        self.program.method(owner.module, name)
        return Code(f"{owner.text}.{name}({self.given(node)})")

    def of_function(self, function: Any, node: ast.Call) -> Any:
        from . import annotate, is_scripting, is_tracing

        if function in (is_scripting, is_tracing):
            return _Known(function is is_scripting)
        if function is annotate:
            return Code(f"annotate({annotation_text(self.constant(node.args[0]))}, {self.text(node.args[1])})")
        if function in (isinstance, getattr, hasattr, len, type, super):
            found = self.of_question(function, node)
            if found is not None:
                return found
        if getattr(builtins, getattr(function, "__name__", ""), None) is function or getattr(math, getattr(function, "__name__", ""), None) is function:
            return self.of_builtin(function, node)
        if getattr(function, "__module__", "").split(".")[0] in ("rustgrad", "torch") or not inspect.isfunction(function):
            return self.of_op(function, node)
        name = self.program.function(function)
        return Code(f"{name}({self.given(node)})")

    def of_question(self, function: Any, node: ast.Call) -> Any:
        """`isinstance`, `len` and their like of what is known."""
        first = self.expr(node.args[0]) if node.args else None
        rest = [self.expr(a) for a in node.args[1:]]
        if isinstance(first, _Part) and function is len:
            return _Known(len(first.module))  # type: ignore[arg-type]
        if isinstance(first, _Part) and function in (getattr, hasattr) and all(isinstance(r, _Known) for r in rest):
            if function is hasattr:
                return _Known(hasattr(first.module, rest[0].value))
            return self.of_part(first, rest[0].value, node)
        if function is isinstance and isinstance(first, (_Part, _Known)) and isinstance(rest[0], _Known):
            value = first.module if isinstance(first, _Part) else first.value
            return _Known(isinstance(value, rest[0].value))
        if function is isinstance:
            kinds = rest[0].value if isinstance(rest[0].value, tuple) else (rest[0].value,)
            names = ", ".join({list: "list", tuple: "tuple"}.get(k) or annotation_text(k) for k in kinds)
            return Code(f"isinstance({self.shown(first, node)}, {names if len(kinds) == 1 else f'({names})'})")
        return None

    def of_builtin(self, function: Any, node: ast.Call) -> Any:
        values = [self.expr(a) for a in node.args]
        if all(isinstance(v, _Known) and not isinstance(v.value, Tensor) for v in values) and not node.keywords and function is not print:
            found = function(*(v.value for v in values))
            if not isinstance(found, (range, zip, enumerate)):
                return _Known(found)
        if getattr(math, function.__name__, None) is function:
            return Code(f"torch.{function.__name__}({self.given(node)})")
        if function.__name__ not in _BUILTIN:
            raise self.wrong(node, "the function is not taken")
        return Code(f"{function.__name__}({self.given(node)})")

    def of_op(self, function: Any, node: ast.Call) -> Any:
        """A call of a function of this package."""
        key = op_key(function)
        args = [self.plain(self.expr(a), a) for a in node.args]
        kwargs = {str(k.arg): self.plain(self.expr(k.value), k.value) for k in node.keywords}
        if not any(isinstance(v, Code) for v in _leaves([*args, *kwargs.values()])) and not callable(getattr(function, "__torch_function__", None)):
            if not isinstance(function, type) and key in ("device", "finfo", "iinfo") or isinstance(function, type):
                return _Known(function(*args, **kwargs))
        if getattr(function, "__module__", "") != "rustgrad.nn.functional" and key not in _BOUND and key not in _SPECIAL and key in _C.ops:
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
        if isinstance(value, _Known):
            return value.value
        return value if isinstance(value, Code) else Code(self.shown(value, node))


def _mark(function: Any) -> str:
    return str(getattr(function, "_torchscript_modifier", ""))


def _is_taken(hint: Any) -> bool:
    """Whether an annotation of the library is a type of TorchScript."""
    try:
        annotation_text(hint)
    except CannotTranslate:
        return False
    return True


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [leaf for v in value for leaf in _leaves(v)]
    return [value]


def _stores(tree: ast.AST) -> dict[str, int]:
    found: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found[node.id] = found.get(node.id, 0) + 1
    return found


def _with_operands(node: ast.expr, names: list[ast.Name]) -> ast.expr:
    if isinstance(node, ast.BinOp):
        return ast.BinOp(names[0], node.op, names[1])
    if isinstance(node, ast.UnaryOp):
        return ast.UnaryOp(node.op, names[0])
    assert isinstance(node, ast.Compare)
    return ast.Compare(names[0], node.ops, list(names[1:]))


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
    exported = [n for n in dir(type(module)) if _mark(getattr(type(module), n, None)).startswith("export") and n != "forward"]
    for name in ["forward", *exported]:
        program.method(module, name)
    unit = Unit(program.files(), tuple(program.constants))
    made: dict[int, Any] = {}

    def build(part: Module) -> Any:
        if id(part) in made:
            return made[id(part)]
        new = made[id(part)] = RecursiveScriptModule(unit.script_class(program.names[id(part)]), unit)
        state: dict[str, Any] = {n: v for t in (part._parameters, part._buffers) for n, v in t.items() if v is not None}
        new._take(state | {n: getattr(part, n) for n in program.fields[id(part)]} | {"training": part.training})
        for name, child in part._modules.items():
            if child is not None:
                new._modules[name] = build(child)
        return new

    result = build(module)
    unit.check()
    return result


