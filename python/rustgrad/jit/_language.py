"""The language of the code in archives, translated to functions of Python: what is not part of it is refused.

The code looks like Python and is parsed with `ast`. Of each function a new tree is made, node by node, from the kinds below:
names are parameters and local variables, which get a prefix, or stand for what `Names` gives; attributes and methods
are asked of objects of the archive's own classes only; every function that can be called is looked up here, before
anything runs. The functions have no builtins.
"""

from __future__ import annotations

import ast
import itertools
import linecache
import weakref
from collections.abc import Callable
from typing import Any

from ._resolve import op, prim
from ._runtime import (
    BUILTINS,
    Callee,
    call_function,
    call_method,
    check_true,
    get_item,
    old_division,
    raise_exception,
    read_attribute,
    set_item,
    wait,
    write_attribute,
)
from ._types import Type, type_of

__all__ = ["Function", "dotted", "fresh", "literal", "show_source"]

_UNARY = {ast.USub: "neg", ast.Not: "__not__", ast.Invert: "bitwise_not"}
_BINARY = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv", ast.Mod: "remainder",
    ast.Pow: "pow", ast.MatMult: "matmul", ast.BitAnd: "__and__", ast.BitOr: "__or__", ast.BitXor: "__xor__",
    ast.LShift: "__lshift__", ast.RShift: "__rshift__",
}  # fmt: skip
_CHANGED = (ast.Add, ast.Sub, ast.Mult, ast.Div)
_COMPARED = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Is: "__is__",
    ast.IsNot: "__isnot__",
}  # fmt: skip
_files = itertools.count()


def dotted(node: ast.AST) -> list[str] | None:
    """The parts of `a.b.c`; None for other expressions."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return [node.id, *reversed(parts)] if isinstance(node, ast.Name) else None


def literal(node: ast.expr) -> Any:
    """The value of a constant, or of a list, tuple or dict of constants."""
    if isinstance(node, ast.Name) and node.id in _NUMBERS:
        return _NUMBERS[node.id]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "annotate":
        return literal(node.args[1])
    if isinstance(node, ast.Call) and dotted(node.func) == ["torch", "device"]:
        return _device(*map(literal, node.args))
    if isinstance(node, (ast.List, ast.Tuple)):
        values = [literal(e) for e in node.elts]
        return values if isinstance(node, ast.List) else tuple(values)
    if isinstance(node, ast.BinOp):
        return _joined(node)
    return ast.literal_eval(node)


def _joined(node):
    """`1.+2.j`, whose parts may be `inf`."""
    left, right = literal(node.left), literal(node.right)
    return left + right if isinstance(node.op, ast.Add) else left - right


_NUMBERS = {
    "inf": float("inf"),
    "nan": float("nan"),
    "infj": complex(0, float("inf")),
    "nanj": complex(0, float("nan")),
}


def _device(text: str) -> Any:
    from .._C import device

    return device(text)


def _default(names: Any, node: ast.expr) -> Any:
    path = dotted(node) if isinstance(node, ast.Attribute) else None
    if path is not None and path[0] in ("CONSTANTS", "__torch__"):
        return names.value(path)
    try:
        return literal(node)
    except (ValueError, TypeError) as error:
        raise SyntaxError(f"'{ast.unparse(node)[:100]}' is no default: {error}") from None


class Function(Callee):
    """A function of an archive: its text, parameters, types, and the function of Python once it is needed."""

    def __init__(self, names: Any, node: ast.FunctionDef, where: str, text: str) -> None:
        self.name, self.node, self.where, self.text, self.names = node.name, node, where, text, names
        given = node.args
        if given.vararg or given.kwarg or given.kwonlyargs or given.posonlyargs or node.decorator_list:
            raise SyntaxError(f"{where}: the function {node.name} has parameters or decorators that no archive has")
        values = [None] * (len(given.args) - len(given.defaults)) + list(given.defaults)
        self.parameters = [
            (a.arg, type_of(a.annotation, names.type), d) for a, d in zip(given.args, values, strict=True)
        ]
        self.returns = Type("Any") if node.returns is None else type_of(node.returns, names.type)
        self.defaults = {a.arg: _default(names, d) for a, d in zip(given.args, values, strict=True) if d is not None}
        self.translated: ast.Module | None = None
        self.values: dict[str, Any] = {}
        self._compiled: Callable[..., Any] | None = None

    def check(self) -> None:
        """Translates it; SyntaxError, with the line, for what is not part of the language."""
        if self.translated is None:
            translator = _Translator(self)
            self.translated, self.values = translator.module(), translator.values

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function = self._compiled or self.compiled()
        if len(args) + len(kwargs) < len(self.parameters):
            args = self._filled(args, kwargs)
            kwargs = {}
        elif kwargs:
            args, kwargs = self._filled(args, kwargs), {}
        return function(*args)

    def _filled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        made = list(args)
        for name, _, _ in self.parameters[len(args) :]:
            if name in kwargs:
                made.append(kwargs[name])
            elif name in self.defaults:
                value = self.defaults[name]
                made.append(list(value) if isinstance(value, list) else value)
            else:
                raise RuntimeError(f"{self.name}() is missing value for argument '{name}'.")
        return tuple(made)

    def compiled(self) -> Callable[..., Any]:
        """The function of Python."""
        if self._compiled is None:
            self.check()
            assert self.translated is not None
            scope = {"__builtins__": {}, **self.values}
            exec(compile(self.translated, self.where, "exec", dont_inherit=True), scope)
            self._compiled = scope["the_function"]
        return self._compiled


class _Translator:
    def __init__(self, function: Function) -> None:
        self.function, self.names = function, function.names
        self.values: dict[str, Any] = {}
        self.places: dict[int, str] = {}
        self.locals = {name for name, _, _ in function.parameters}
        for node in ast.walk(function.node):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self.locals.add(node.id)
            elif isinstance(node, ast.FunctionDef) and node is not function.node:
                self.locals.add(node.name)

    def module(self) -> ast.Module:
        node = self.function.node
        arguments = ast.arguments(
            [], [ast.arg("v_" + n) for n, _, _ in self.function.parameters], None, [], [], None, []
        )
        made = ast.FunctionDef("the_function", arguments, self.body(node.body), [], None, None, type_params=[])  # type: ignore[call-arg]
        ast.copy_location(made, node)
        return ast.fix_missing_locations(ast.Module([made], []))

    def wrong(self, node: ast.AST) -> SyntaxError:
        text = ast.unparse(node)
        line = f"line {getattr(node, 'lineno', '?')}"
        return SyntaxError(f"{self.function.where}, {line}: '{text[:100]}' is not part of TorchScript")

    def value(self, value: Any) -> ast.expr:
        """A name in the function's globals for a value."""
        name = self.places.get(id(value))
        if name is None:
            name = self.places[id(value)] = f"g{len(self.values)}"
            self.values[name] = value
        return ast.Name(name, ast.Load())

    # --- statements
    def body(self, nodes: list[ast.stmt]) -> list[ast.stmt]:
        made = []
        for node in nodes:
            done = self.statement(node)
            made.append(ast.copy_location(done, node))
        return made

    def statement(self, node: ast.stmt) -> ast.stmt:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            return self.assign(node.targets[0], self.expr(node.value))
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            return self.assign(node.target, self.expr(node.value))
        if isinstance(node, ast.Expr):
            return ast.Expr(self.expr(node.value))
        if isinstance(node, ast.Return):
            return ast.Return(None if node.value is None else self.expr(node.value))
        if isinstance(node, ast.If):
            return ast.If(self.expr(node.test), self.body(node.body), self.body(node.orelse))
        if isinstance(node, ast.While) and not node.orelse:
            return ast.While(self.expr(node.test), self.body(node.body), [])
        if isinstance(node, ast.For) and not node.orelse:
            return ast.For(self.target(node.target), self.expr(node.iter), self.body(node.body), [])
        if isinstance(node, ast.With) and all(
            i.optional_vars is None or isinstance(i.optional_vars, ast.Name) for i in node.items
        ):
            items = [
                ast.withitem(self.expr(i.context_expr), i.optional_vars and self.target(i.optional_vars))
                for i in node.items
            ]
            return ast.With(items, self.body(node.body))
        if isinstance(node, ast.FunctionDef) and not ast.unparse(node.args) and not node.decorator_list:
            none = ast.arguments([], [], None, [], [], None, [])
            return ast.FunctionDef("v_" + node.name, none, self.body(node.body), [], None, None, type_params=[])  # type: ignore[call-arg]
        if isinstance(node, ast.AugAssign):
            changed = (
                op("aten", _BINARY[type(node.op)] + "_")
                if type(node.op) in _CHANGED
                else op("aten", _BINARY[type(node.op)])
            )
            load = ast.parse(ast.unparse(node.target), mode="eval").body
            value = ast.Call(self.value(changed), [self.expr(load), self.expr(node.value)], [])
            return self.assign(node.target, ast.copy_location(value, node))
        if isinstance(node, ast.Assert):
            message = ast.Constant("") if node.msg is None else self.expr(node.msg)
            return ast.Expr(ast.Call(self.value(check_true), [self.expr(node.test), message], []))
        if isinstance(node, (ast.Pass, ast.Break, ast.Continue)):
            return type(node)()
        raise self.wrong(node)

    def assign(self, target: ast.expr, value: ast.expr) -> ast.stmt:
        if isinstance(target, ast.Attribute):
            call = [self.expr(target.value), ast.Constant(target.attr), value]
            return ast.Expr(ast.Call(self.value(write_attribute), call, []))
        if isinstance(target, ast.Subscript):
            place = [self.expr(target.value), self.index(target.slice), value]
            return ast.Expr(ast.Call(self.value(set_item), place, []))
        return ast.Assign([self.target(target)], value)

    def target(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Name):
            return ast.copy_location(ast.Name("v_" + node.id, ast.Store()), node)
        if isinstance(node, ast.Tuple):
            return ast.copy_location(ast.Tuple([self.target(e) for e in node.elts], ast.Store()), node)
        raise self.wrong(node)

    # --- expressions
    def expr(self, node: ast.expr) -> ast.expr:
        made = getattr(self, "of_" + type(node).__name__.lower(), self.refuse)(node)
        return ast.copy_location(made, node)

    def refuse(self, node: ast.expr) -> ast.expr:
        raise self.wrong(node)

    def of_constant(self, node: ast.Constant) -> ast.expr:
        if node.value is not None and not isinstance(node.value, (str, int, float, complex, bool)):
            raise self.wrong(node)
        return ast.Constant(node.value)

    def of_name(self, node: ast.Name) -> ast.expr:
        if node.id in self.locals:
            return ast.Name("v_" + node.id, ast.Load())
        if node.id in _NUMBERS:
            return self.value(_NUMBERS[node.id])
        raise self.wrong(node)

    def of_tuple(self, node: ast.Tuple) -> ast.expr:
        return ast.Tuple([self.expr(e) for e in node.elts], ast.Load())

    def of_list(self, node: ast.List) -> ast.expr:
        return ast.List([self.expr(e) for e in node.elts], ast.Load())

    def of_dict(self, node: ast.Dict) -> ast.expr:
        if None in node.keys:
            raise self.wrong(node)
        return ast.Dict([self.expr(k) for k in node.keys if k is not None], [self.expr(v) for v in node.values])

    def of_unaryop(self, node: ast.UnaryOp) -> ast.expr:
        operand = self.expr(node.operand)
        if isinstance(node.op, (ast.USub, ast.UAdd)) and isinstance(operand, ast.Constant):
            return ast.UnaryOp(node.op, operand)
        if type(node.op) not in _UNARY:
            raise self.wrong(node)
        return ast.Call(self.value(op("aten", _UNARY[type(node.op)])), [operand], [])

    def of_binop(self, node: ast.BinOp) -> ast.expr:
        return ast.Call(
            self.value(op("aten", _BINARY[type(node.op)])), [self.expr(node.left), self.expr(node.right)], []
        )

    def of_compare(self, node: ast.Compare) -> ast.expr:
        if len(node.ops) == 1 and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            held = ast.Call(
                self.value(op("aten", "__contains__")), [self.expr(node.comparators[0]), self.expr(node.left)], []
            )
            return held if isinstance(node.ops[0], ast.In) else ast.UnaryOp(ast.Not(), held)
        if len(node.ops) != 1 or type(node.ops[0]) not in _COMPARED:
            raise self.wrong(node)
        function = self.value(op("aten", _COMPARED[type(node.ops[0])]))
        return ast.Call(function, [self.expr(node.left), self.expr(node.comparators[0])], [])

    def of_boolop(self, node: ast.BoolOp) -> ast.expr:
        return ast.BoolOp(node.op, [self.expr(v) for v in node.values])

    def of_ifexp(self, node: ast.IfExp) -> ast.expr:
        return ast.IfExp(self.expr(node.test), self.expr(node.body), self.expr(node.orelse))

    def of_subscript(self, node: ast.Subscript) -> ast.expr:
        return ast.Call(self.value(get_item), [self.expr(node.value), self.index(node.slice)], [])

    def index(self, node: ast.expr) -> ast.expr:
        """An index: slices, `...` and tuples of these are taken as they are."""
        if isinstance(node, ast.Tuple):
            return ast.copy_location(ast.Tuple([self.index(e) for e in node.elts], ast.Load()), node)
        if isinstance(node, ast.Constant) and node.value is Ellipsis:
            return ast.copy_location(ast.Constant(Ellipsis), node)
        if isinstance(node, ast.Slice):
            bounds = [ast.Constant(None) if b is None else self.expr(b) for b in (node.lower, node.upper, node.step)]
            return ast.copy_location(ast.Call(self.value(slice), bounds, []), node)
        return self.expr(node)

    def of_listcomp(self, node: ast.ListComp) -> ast.expr:
        loop = node.generators[0]
        if len(node.generators) != 1 or loop.ifs or loop.is_async:
            raise self.wrong(node)
        made = ast.comprehension(self.target(loop.target), self.expr(loop.iter), [], 0)
        return ast.ListComp(self.expr(node.elt), [made])

    def of_dictcomp(self, node: ast.DictComp) -> ast.expr:
        loop = node.generators[0]
        if len(node.generators) != 1 or loop.ifs or loop.is_async:
            raise self.wrong(node)
        made = ast.comprehension(self.target(loop.target), self.expr(loop.iter), [], 0)
        return ast.DictComp(self.expr(node.key), self.expr(node.value), [made])

    def of_attribute(self, node: ast.Attribute) -> ast.expr:
        path = dotted(node)
        if path is not None and path[0] not in self.locals:
            if path[0] in ("CONSTANTS", "__torch__"):
                return self.value(self.names.value(path))
            raise self.wrong(node)
        return ast.Call(self.value(read_attribute), [self.expr(node.value), ast.Constant(node.attr)], [])

    # --- calls
    def of_call(self, node: ast.Call) -> ast.expr:
        if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
            raise self.wrong(node)
        path = dotted(node.func)
        if path is None or path[0] in self.locals:
            if isinstance(node.func, ast.Name):
                return ast.Call(self.value(call_function), [self.expr(node.func), *map(self.expr, node.args)], [])
            return self.method(node)
        if len(path) == 1:
            return self.builtin(path[0], node)
        if path[0] == "__torch__":
            if path[-1] == "__new__":
                return ast.Call(self.value(self.names.maker(path[:-1])), [], [])
            return self.applied(self.names.callee(path), node)
        return self.applied(self.function_of(path, node), node)

    def applied(self, function: Any, node: ast.Call) -> ast.expr:
        keywords = [ast.keyword(k.arg, self.expr(k.value)) for k in node.keywords]
        return ast.Call(self.value(function), [self.expr(a) for a in node.args], keywords)

    def function_of(self, path: list[str], node: ast.Call) -> Any:
        if path == ["torch", "device"]:
            return self.names.device
        if path == ["torch", "wait"]:
            return wait
        if path[0] == "torch" and len(path) == 2:
            if self.names.version < 4 and path[1] in ("div", "div_"):
                return old_division(path[1])
            return op("aten", path[1])
        if path[0] == "ops" and len(path) == 3:
            if path[1:] == ["prim", "RaiseException"]:
                return raise_exception
            return prim(path[2]) if path[1] == "prim" else op(path[1], path[2])
        raise self.wrong(node)

    def method(self, node: ast.Call) -> ast.expr:
        if not isinstance(node.func, ast.Attribute):
            raise self.wrong(node)
        made = [self.expr(node.func.value), ast.Constant(node.func.attr), *(self.expr(a) for a in node.args)]
        return ast.Call(self.value(call_method), made, [ast.keyword(k.arg, self.expr(k.value)) for k in node.keywords])

    def builtin(self, name: str, node: ast.Call) -> ast.expr:
        args = node.args
        if name in ("annotate", "unchecked_cast") and len(args) == 2:
            return self.annotated(type_of(args[0], self.names.type), self.expr(args[1]), name)
        if name == "uninitialized":
            return ast.Constant(None)
        if (
            name == "getattr"
            and len(args) == 2
            and isinstance(args[1], ast.Constant)
            and isinstance(args[1].value, str)
        ):
            return ast.Call(self.value(read_attribute), [self.expr(args[0]), ast.Constant(args[1].value)], [])
        if name == "isinstance" and len(args) == 2:
            kinds = args[1].elts if isinstance(args[1], (ast.Tuple, ast.List)) else [args[1]]
            types = Type("Union", tuple(type_of(k, self.names.type) for k in kinds))
            return ast.Call(self.value(types.has), [self.expr(args[0])], [])
        if BUILTINS.get(name) is not None:
            return self.applied(BUILTINS[name], node)
        raise self.wrong(node)

    def annotated(self, kind: Type, value: ast.expr, name: str) -> ast.expr:
        """A number of a tensor where the type asks for one; other annotations say what is known."""
        if name == "annotate" and kind.name in ("int", "float", "bool", "complex", "number"):
            return ast.Call(self.value(kind.taken), [value], [])
        return value


def show_source(unit: Any, where: str, text: str) -> None:
    """Lets tracebacks show the lines of an archive's code, while there is some of it."""
    linecache.cache[where] = (len(text), None, text.splitlines(True), where)
    weakref.finalize(unit, linecache.cache.pop, where, None)


def fresh(path: str) -> str:
    """A name for a file of code that no other archive has."""
    return f"<archive {next(_files)}>/{path}"
