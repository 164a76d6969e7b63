"""Python code from a graph."""

from __future__ import annotations

import contextlib
import enum
import inspect
import json
import math
import types
import typing
from collections.abc import Callable, Iterable
from typing import Any

from ._names import Namespace, is_operator, is_ours, public_name, qualified_name
from .node import INPLACE, Node, map_arg

__all__ = ["CodeGen", "PythonCode"]

REFLECTABLE = {
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "floordiv": "{} // {}",
    "truediv": "{} / {}",
    "mod": "{} % {}",
    "pow": "{} ** {}",
    "lshift": "{} << {}",
    "rshift": "{} >> {}",
    "and_": "{} & {}",
    "or_": "{} | {}",
    "xor": "{} ^ {}",
    "getitem": "{}[{}]",
    "matmul": "{} @ {}",
}
MAGIC = {
    "eq": "{} == {}",
    "ne": "{} != {}",
    "lt": "{} < {}",
    "gt": "{} > {}",
    "le": "{} <= {}",
    "ge": "{} >= {}",
    "pos": "+{}",
    "neg": "-{}",
    "invert": "~{}",
    **REFLECTABLE,
}


class PythonCode:
    """The code of a graph.

    Attributes:
        src (str): the definition of `forward`.
        globals (dict): the names it uses.
    """

    def __init__(self, src: str, globals: dict[str, Any]) -> None:
        self.src, self.globals = src, globals


def format_target(base: str, target: str) -> str:
    """The expression for an attribute of `base` by its path; names that are no identifiers go through `getattr`."""
    for part in target.split("."):
        base = f"{base}.{part}" if part.isidentifier() else f"getattr({base}, {json.dumps(part)})"
    return base


def _globals():
    import rustgrad

    return {"inf": math.inf, "nan": math.nan, "NoneType": type(None), "torch": rustgrad, "device": rustgrad.device}


def last_uses(nodes: Iterable[Node]) -> dict[Node, list[Node]]:
    """For each node the nodes whose last user it is."""
    seen: set[Node] = set()
    found: dict[Node, list[Node]] = {}
    for user in reversed(list(nodes)):

        def note(node, user=user):
            if node not in seen:
                seen.add(node)
                found.setdefault(user, []).append(node)
            return node

        map_arg(user.args, note)
        map_arg(user.kwargs, note)
    return found


class CodeGen:
    """What writes a graph as code; subclasses change the signature or the result."""

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """The line `def forward(...)`."""
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        return f"def forward({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Any) -> str:
        """The line `return ...`."""
        return f"return {output_args!r}"

    def process_inputs(self, *args: Any) -> Any:
        """The values of the placeholders for the arguments of a call."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """What a call returns for the value of the output node."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Further names that the code uses."""
        return []

    def write(self, nodes: Iterable[Node], root_module: str, namespace: Namespace) -> PythonCode:
        """The code of the nodes in order, where modules and attributes are those of `root_module`."""
        return _Writer(self, list(nodes), root_module, namespace).write()


class _Writer:
    def __init__(self, codegen, nodes, root, namespace):
        self.codegen, self.nodes, self.root, self.namespace = codegen, nodes, root, namespace
        self.globals: dict[str, Any] = {}
        self.parameters: list[str] = []
        self.body: list[str] = []
        self.wrapped: dict[str, None] = {}
        self.returns = ""
        self.last = last_uses(nodes)

    def write(self):
        for name, value in [*_globals().items(), *self.codegen.additional_globals()]:
            self.namespace.rename(value, name) if name not in ("inf", "nan") else None
            self.globals[name] = value
        for node in self.nodes:
            getattr(self, f"_{node.op}")(node)
            self._forget(node)
        lines = "".join(self.body) if self.body else "pass\n"
        head = self.codegen.gen_fn_def(self.parameters, self.returns)
        wrapped = "\n".join(f'torch.fx._symbolic_trace.wrap("{name}")' for name in self.wrapped)
        code = "\n".join("    " + line for line in lines.lstrip("\n").split("\n"))
        return PythonCode(f"\n{wrapped}\n\n{head}\n{code}", self.globals)

    def _global(self, hint, value):
        if is_ours(value):
            return public_name(value) or hint
        name = self.namespace.create_name(hint, value if value.__hash__ else None)
        self.globals.setdefault(name, value)
        return name

    def _type(self, kind):
        if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union:
            return f"{self._global('typing_Union', typing.Union)}[{','.join(map(self._type, typing.get_args(kind)))}]"
        if kind == ():
            return "()"
        if kind is None or kind is ...:
            return repr(kind)
        if isinstance(kind, str):
            return repr(kind)
        if isinstance(kind, list):
            return f"[{','.join(map(self._type, kind))}]"
        origin = typing.get_origin(kind)
        if origin is not None:
            name = getattr(kind, "_name", None)
            # `Tuple` alone, whose origin is `tuple`.
            if name and getattr(typing, name, None) is kind:
                return self._global(f"typing_{name}", kind)
            alias = getattr(typing, name) if isinstance(kind, typing._GenericAlias) and name else origin  # type: ignore[attr-defined]
            hint = f"typing_{name}" if alias is not origin else getattr(origin, "__qualname__", "typing_Union")
            return f"{self._global(hint, alias)}[{','.join(map(self._type, typing.get_args(kind))) or '()'}]"
        if isinstance(kind, type):
            if kind.__module__ == "builtins":
                return self._global(kind.__qualname__, kind)
            return self._global(qualified_name(kind), kind)
        return self._global(repr(kind), kind)

    def _note(self, node):
        return "" if node.type is None else f" : {self._type(node.type)}"

    def _shown(self, arg):
        if isinstance(arg, Node):
            return repr(arg)
        if isinstance(arg, tuple) and hasattr(arg, "_fields"):
            return f"{self._global(qualified_name(type(arg)), type(arg))}({', '.join(map(self._shown, arg))})"
        if isinstance(arg, enum.Enum):
            return f"{self._global(type(arg).__name__, type(arg))}.{arg.name}"
        if type(arg) is tuple:
            return "(" + ", ".join(map(self._shown, arg)) + ("," if len(arg) == 1 else "") + ")"
        if isinstance(arg, list):
            return "[" + ", ".join(map(self._shown, arg)) + "]"
        if isinstance(arg, dict):
            return "{" + ", ".join(f"{k!r}: {self._shown(v)}" for k, v in arg.items()) + "}"
        if isinstance(arg, slice):
            return f"slice({self._shown(arg.start)}, {self._shown(arg.stop)}, {self._shown(arg.step)})"
        if isinstance(arg, type) or inspect.isroutine(arg):
            return self._global(qualified_name(arg), arg)
        return repr(arg)

    def _arguments(self, args, kwargs):
        return ", ".join([*map(self._shown, args), *(f"{k} = {self._shown(v)}" for k, v in kwargs.items())])

    def _placeholder(self, node):
        default = f" = {self._shown(node.args[0])}" if node.args else ""
        self.parameters.append(f"{node.target}{self._note(node)}{default}")
        plain = node.target.replace("*", "")
        if plain != repr(node):
            self.body.append(f"{node!r} = {plain}\n")

    def _call_method(self, node):
        receiver, *rest = node.args
        self.body.append(
            f"{node!r}{self._note(node)} = {format_target(self._shown(receiver), node.target)}"
            f"({self._arguments(rest, node.kwargs)})"
        )

    def _call_function(self, node):
        target = node.target
        if is_operator(target):
            name, shown = target.__name__, list(map(self._shown, node.args))
            if name in MAGIC and not node.kwargs:
                self.body.append(f"{node!r}{self._note(node)} = {MAGIC[name].format(*shown)}")
                return
            if name in INPLACE:
                self.body.append(f"{INPLACE[name].format(*shown)};  {node!r}{self._note(node)} = {shown[0]}")
                return
        name = self._global(qualified_name(target), target)
        if target is getattr and len(node.args) == 2 and isinstance(node.args[1], str) and node.args[1].isidentifier():
            self.body.append(f"{node!r}{self._note(node)} = {format_target(repr(node.args[0]), node.args[1])}")
            return
        self.body.append(f"{node!r}{self._note(node)} = {name}({self._arguments(node.args, node.kwargs)})")
        if node.meta.get("is_wrapped"):
            self.wrapped[name] = None

    def _call_module(self, node):
        self.body.append(
            f"{node!r}{self._note(node)} = {format_target(self.root, node.target)}"
            f"({self._arguments(node.args, node.kwargs)})"
        )

    def _get_attr(self, node):
        self.body.append(f"{node!r}{self._note(node)} = {format_target(self.root, node.target)}")

    def _output(self, node):
        if node.type is not None:
            self.returns = f" -> {self._type(node.type)}"
        shown = self.codegen.generate_output(_Code(self._shown(node.args[0])))
        self.body.append(shown)

    def _forget(self, node):
        """Ends a line: deletes values that nobody reads any more, so that their memory is free."""
        if node.op == "placeholder":
            return
        if node.op == "output":
            self.body.append("\n")
            return
        unused = self.last.get(node, []) + ([] if node.users else [node])
        names = " = ".join([*map(repr, unused), "None"])
        self.body.append(f";  {names}\n" if unused else "\n")


class _Code(str):
    """An expression, which prints as itself."""

    def __repr__(self):
        return str(self)


@contextlib.contextmanager
def names_of(nodes: Iterable[Node], rename: Callable[[Node], str]) -> Any:
    """A block in which nodes have other names."""
    before = [(node, node.name) for node in nodes]
    try:
        for node, _ in before:
            node.name = rename(node)
        yield
    finally:
        for node, name in before:
            node.name = name
