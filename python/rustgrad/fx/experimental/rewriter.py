"""Tracing of functions that assert: `assert` on a value of the graph becomes a node of `torch._assert`.

The syntax tree of a function is changed and compiled; the new function shares the globals, the defaults and the closure of the
old one, so it sees later changes of them.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import textwrap
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

from ..._sources import normalize_source_lines
from ...nn.modules.module import Module
from .._symbolic_trace import Tracer
from ..graph import Graph

__all__ = ["AST_Rewriter", "RewritingTracer"]

_PACKAGE = __name__.partition(".")[0]


def _call(module: str, name: str, arguments: list[ast.expr]) -> ast.Call:
    """A call of a function of this package, whatever names the function's own module knows."""
    function = ast.parse(f"__import__('{_PACKAGE}{module}', fromlist=['{name}']).{name}", mode="eval").body
    return ast.Call(func=function, args=arguments, keywords=[])


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


class AST_Rewriter(ast.NodeTransformer):
    """Replaces statements of a function that tracing cannot record. Subclasses add a `visit_` method for each kind."""

    def rewrite(self, fn: FunctionType) -> FunctionType:
        """The function with its statements replaced. One that a decorator has wrapped stays as it is."""
        if hasattr(fn, "__wrapped__"):
            return fn
        lines, _ = inspect.getsourcelines(fn)
        tree = self.visit(ast.parse(textwrap.dedent("".join(normalize_source_lines(lines)))))
        # Inside of a function whose parameters they are, names of the closure are compiled as such.
        closure = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
        outer = ast.parse(f"def outer({', '.join(closure)}): pass")
        outer.body[0].body = tree.body  # type: ignore[attr-defined]
        compiled = compile(ast.fix_missing_locations(outer), inspect.getsourcefile(fn) or "", "exec")
        code = next(c for c in _codes(compiled) if c.co_name == fn.__name__)
        cells = tuple(closure[name] for name in code.co_freevars)
        made = FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, cells)
        functools.update_wrapper(made, fn)
        del made.__wrapped__  # type: ignore[attr-defined]
        made.__kwdefaults__ = copy.copy(fn.__kwdefaults__)
        return made

    def visit_Assert(self, node: ast.Assert) -> ast.Expr:
        """`torch._assert(test, message)`."""
        message = node.msg if node.msg else ast.Constant(value="")
        return ast.copy_location(ast.Expr(value=_call("", "_assert", [node.test, message])), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """`y: T = value` becomes `y = annotate(value, T)`."""
        if node.value is None:
            return node
        value = _call(".fx.annotate", "annotate", [node.value, node.annotation])
        return ast.copy_location(ast.Assign(targets=[node.target], value=value), node)


class RewritingTracer(Tracer):
    """A `Tracer` that records the assertions of the modules or of the function that it traces."""

    def trace(self, root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> Graph:
        """The graph of a function or module; `root` of the tracer is a copy with other `forward` methods."""
        return super().trace(_rewrite(root), concrete_args)


def _rewrite(fn: Module | Callable[..., Any]) -> Module | Callable[..., Any]:
    """A function with its statements replaced, or a module that shares the parameters of `fn`, as do the modules in it."""
    if not isinstance(fn, Module):
        return AST_Rewriter().rewrite(fn)  # type: ignore[arg-type]
    kind = type(fn)
    if kind.__module__.startswith(f"{_PACKAGE}."):
        if not fn._modules:
            return fn
    else:
        # Of the same class, so that `super()` and other methods work, and with its name, which decides what is traced into.
        attributes = {"forward": AST_Rewriter().rewrite(kind.forward), "__module__": kind.__module__}  # type: ignore[arg-type]
        kind = type(kind.__name__, (kind,), attributes)
    made = kind.__new__(kind)
    made.__dict__.update({k: copy.copy(v) if isinstance(v, dict) else v for k, v in fn.__dict__.items()})
    made.__dict__["_modules"] = {k: m if m is None else _rewrite(m) for k, m in fn._modules.items()}
    return made
