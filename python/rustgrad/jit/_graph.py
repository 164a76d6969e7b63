"""The code of a function as a graph: nodes with the kinds that PyTorch gives them, in the order of the code.

It is for reading: programs count ops and look for constants, shapes and scopes. What runs is the code itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from ._language import Function, dotted

__all__ = ["Form", "Graph", "Node", "Value", "connected", "graph_of", "opnames"]

_CONTAINERS = {ast.List: "prim::ListConstruct", ast.Tuple: "prim::TupleConstruct", ast.Dict: "prim::DictConstruct"}

# Operators as ops.
_SIGNS: dict[type, str] = {
    **{ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv", ast.Mod: "remainder"},
    **{ast.Pow: "pow", ast.MatMult: "matmul", ast.BitAnd: "__and__", ast.BitOr: "__or__", ast.BitXor: "__xor__"},
    **{
        ast.LShift: "__lshift__",
        ast.RShift: "__rshift__",
        ast.USub: "neg",
        ast.Invert: "bitwise_not",
        ast.Not: "__not__",
    },
    **{ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.UAdd: "positive"},
    **{ast.Is: "__is__", ast.IsNot: "__isnot__", ast.In: "__contains__", ast.NotIn: "__contains__"},
}


class Form:
    """What a tensor of a graph looks like: the type of its value."""

    def __init__(self, tensor: Any) -> None:
        self._sizes, self._strides, self._dtype = list(tensor.shape), list(tensor.stride()), tensor.dtype
        self._device, self._grad = tensor.device, tensor.requires_grad

    def sizes(self) -> list[int]:
        """The shape."""
        return list(self._sizes)

    def strides(self) -> list[int]:
        """The strides."""
        return list(self._strides)

    def dim(self) -> int:
        """The number of dimensions."""
        return len(self._sizes)

    def dtype(self) -> Any:
        """The dtype."""
        return self._dtype

    def device(self) -> Any:
        """The device."""
        return self._device

    def requires_grad(self) -> bool:
        """Whether it requires a gradient."""
        return self._grad  # type: ignore[no-any-return]

    def kind(self) -> str:
        """`TensorType`."""
        return "TensorType"

    def scalarType(self) -> str:
        """`Float`, `Long` .."""
        name = str(self._dtype).rpartition(".")[2]
        return {"float32": "Float", "float64": "Double", "int64": "Long", "int32": "Int", "float16": "Half"}.get(
            name, name.capitalize()
        )

    def __str__(self) -> str:
        sizes = "".join(f"{n}, " for n in self._sizes)
        strides = f"strides={self._strides}, " if self._sizes else ""
        return f"{self.scalarType()}({sizes}{strides}requires_grad={int(self._grad)}, device={self._device})"


class Value(str):
    """A value of a graph: its name, the node that makes it, and its form where that is known."""

    _node: Any = None
    _form: Form | None = None

    def debugName(self) -> str:
        """The name."""
        return str(self)

    def node(self) -> Node:
        """The node that makes it."""
        return self._node  # type: ignore[no-any-return]

    def isCompleteTensor(self) -> bool:
        """Whether it is a tensor whose form is known."""
        return self._form is not None

    def type(self) -> Any:
        """The form of the tensor; None where it is not known."""
        return self._form

    def toIValue(self) -> Any:
        """The value of a constant; None of others."""
        node = self._node
        return node._attributes.get("value") if node is not None and node.kind() == "prim::Constant" else None


class Node:
    """An op: its kind, the names of the values that it takes and makes, and the blocks in it."""

    def __init__(self, kind: str, takes: Any, makes: Any, attributes: dict[str, Any] | None = None) -> None:
        self._kind, self._takes, self._makes = kind, list(takes), list(makes)
        self._attributes = attributes or {}
        self._scope = ""
        self._blocks: list[list[Node]] = []

    def kind(self) -> str:
        """`aten::add`."""
        return self._kind

    def inputs(self) -> list[Value]:
        """The values that it takes, which are strings: their names."""
        return [v if isinstance(v, Value) else Value(v) for v in self._takes]

    def outputs(self) -> list[Value]:
        """The values that it makes."""
        return [v if isinstance(v, Value) else Value(v) for v in self._makes]

    def inputsSize(self) -> int:
        """How many values it takes."""
        return len(self._takes)

    def outputsSize(self) -> int:
        """How many values it makes."""
        return len(self._makes)

    def scopeName(self) -> str:
        """The names of the scopes that it is in, with slashes between them."""
        return self._scope

    def attributeNames(self) -> list[str]:
        """The names of its attributes: `value` of a constant, `name` of an attribute that is read."""
        return list(self._attributes)

    def hasAttribute(self, name: str) -> bool:
        """Whether it has an attribute."""
        return name in self._attributes

    def __getitem__(self, name: str) -> Any:
        return self._attributes[name]

    def blocks(self) -> list[list[Node]]:
        """The nodes of each block: of both branches, or of the body of a loop."""
        return self._blocks

    def _lines(self, indent: str) -> Iterator[str]:
        attributes = ", ".join(f"{k}={v!r}" for k, v in self._attributes.items())
        shown = f"[{attributes}]" if attributes else ""
        makes = ", ".join(f"%{n}" + (f" : {n._form}" if isinstance(n, Value) and n._form else "") for n in self._makes)
        yield f"{indent}{makes} = {self._kind}{shown}({', '.join(f'%{n}' for n in self._takes)})"
        for number, block in enumerate(self._blocks):
            yield f"{indent}  block{number}():"
            for node in block:
                yield from node._lines(indent + "    ")

    def __repr__(self) -> str:
        return "\n".join(self._lines(""))


class Graph:
    """The nodes of a function."""

    def __init__(self, inputs: Any, nodes: list[Node], outputs: Any) -> None:
        self._inputs, self._nodes, self._outputs = inputs, nodes, outputs

    def nodes(self) -> Iterator[Node]:
        """The nodes, without those in blocks."""
        return iter(self._nodes)

    def inputs(self) -> Iterator[Any]:
        """The parameters."""
        return iter(self._inputs)

    def outputs(self) -> Iterator[Any]:
        """The results."""
        return iter(self._outputs)

    def findAllNodes(self, kind: str, recurse: bool = True) -> list[Node]:
        """The nodes of a kind, those in blocks too."""
        return [n for n in _all(self._nodes) if n.kind() == kind]

    def findNode(self, kind: str, recurse: bool = True) -> Node | None:
        """The first node of a kind."""
        return next(iter(self.findAllNodes(kind)), None)

    def __str__(self) -> str:
        lines = [line for node in self._nodes for line in node._lines("  ")]
        shown = [f"%{n}" + (f" : {n._form}" if isinstance(n, Value) and n._form else "") for n in self._inputs]
        head = f"graph({', '.join(shown)}):"
        return "\n".join([head, *lines, f"  return ({', '.join(f'%{n}' for n in self._outputs)})"]) + "\n"

    __repr__ = __str__


def _all(nodes: list[Node]) -> Iterator[Node]:
    for node in nodes:
        yield node
        for block in node.blocks():
            yield from _all(block)


class _Builder:
    def __init__(self) -> None:
        self.count = 0

    def fresh(self) -> str:
        self.count += 1
        return str(self.count)

    def body(self, statements: list[ast.stmt]) -> list[Node]:
        nodes: list[Node] = []
        for s in statements:
            self.statement(s, nodes)
        return nodes

    def statement(self, s: ast.stmt, nodes: list[Node]) -> None:
        if isinstance(s, ast.Assign):
            target = s.targets[0]
            if isinstance(target, ast.Attribute):
                taken = [self.value(target.value, nodes), self.value(s.value, nodes)]
                nodes.append(Node("prim::SetAttr", taken, [], {"name": target.attr}))
                return
            names = (
                [t.id for t in target.elts if isinstance(t, ast.Name)]
                if isinstance(target, ast.Tuple)
                else [ast.unparse(target)]
            )
            self.named(s.value, names, nodes)
        elif isinstance(s, ast.Expr):
            self.value(s.value, nodes)
        elif isinstance(s, ast.If):
            self.block("prim::If", [s.test], [s.body, s.orelse], nodes)
        elif isinstance(s, ast.While):
            self.block("prim::Loop", [s.test], [s.body], nodes)
        elif isinstance(s, ast.For):
            self.block("prim::Loop", [s.iter], [s.body], nodes)
        elif isinstance(s, ast.With):
            self.block("prim::With", [i.context_expr for i in s.items], [s.body], nodes)

    def block(self, kind: str, tests: list[ast.expr], bodies: list[list[ast.stmt]], nodes: list[Node]) -> None:
        node = Node(kind, [self.value(t, nodes) for t in tests], [])
        node._blocks = [self.body(b) for b in bodies]
        nodes.append(node)

    def named(self, value: ast.expr, names: list[str], nodes: list[Node]) -> None:
        before = len(nodes)
        found = self.value(value, nodes)
        if len(nodes) > before and nodes[-1]._makes == [found]:
            nodes[-1]._makes = names
        else:
            nodes.append(Node("prim::TupleUnpack" if len(names) > 1 else "prim::Assign", [found], names))

    def value(self, e: ast.expr, nodes: list[Node]) -> str:
        if isinstance(e, ast.Name):
            return e.id
        made = self.fresh()
        kind, parts, attributes = self.kind(e)
        nodes.append(Node(kind, [self.value(p, nodes) for p in parts], [made], attributes))
        return made

    def kind(self, e: ast.expr) -> tuple[str, list[ast.expr], dict[str, Any]]:
        """The kind of an expression, its parts, and what it says of itself."""
        if isinstance(e, ast.Constant):
            return "prim::Constant", [], {} if e.value is None else {"value": e.value}
        if type(e) in _CONTAINERS:
            parts = [*e.keys, *e.values] if isinstance(e, ast.Dict) else e.elts  # type: ignore[attr-defined]
            return _CONTAINERS[type(e)], [p for p in parts if p is not None], {}
        if isinstance(e, ast.Subscript):
            return "aten::__getitem__", [e.value, e.slice], {}
        if isinstance(e, ast.UnaryOp) and isinstance(e.operand, ast.Constant):
            return "prim::Constant", [], {"value": ast.literal_eval(e)}
        if isinstance(e, ast.Attribute):
            path = dotted(e)
            if path is not None and path[0] in ("CONSTANTS", "__torch__"):
                return "prim::Constant", [], {"value": ".".join(path)}
            return "prim::GetAttr", [e.value], {"name": e.attr}
        if isinstance(e, ast.Call):
            return self.call(e)
        if type(e) in (ast.BinOp, ast.UnaryOp) or isinstance(e, ast.Compare) and len(e.ops) == 1:
            sign = e.ops[0] if isinstance(e, ast.Compare) else e.op  # type: ignore[attr-defined]
            parts = [c for c in ast.iter_child_nodes(e) if isinstance(c, ast.expr)]
            return f"aten::{_SIGNS[type(sign)]}", parts[::-1] if isinstance(sign, ast.In) else parts, {}
        return f"prim::{type(e).__name__}", [c for c in ast.iter_child_nodes(e) if isinstance(c, ast.expr)], {}

    def call(self, e: ast.Call) -> tuple[str, list[ast.expr], dict[str, Any]]:
        path = dotted(e.func)
        given = [*e.args, *(k.value for k in e.keywords)]
        if path == ["torch", "device"]:
            return "prim::Constant", [], {"value": ast.literal_eval(e.args[0])}
        if path is not None and path[0] == "torch" and len(path) == 2:
            return f"aten::{path[1]}", given, {}
        if path is not None and path[0] == "ops" and len(path) == 3:
            return f"{path[1]}::{path[2]}", given, {}
        if path is not None and path[0] == "__torch__":
            return "prim::CallFunction", given, {"name": ".".join(path)}
        if path is not None and path[0] == "getattr" and isinstance(e.args[1], ast.Constant):
            return "prim::GetAttr", [e.args[0]], {"name": e.args[1].value}
        if isinstance(e.func, ast.Attribute):
            return "prim::CallMethod", [e.func.value, *given], {"name": e.func.attr}
        name = path[0] if path else "call"
        casts = {"int": "aten::Int", "float": "aten::Float", "bool": "aten::Bool", "str": "aten::str"}
        return casts.get(name, f"prim::{name}"), given[1:] if name in ("annotate", "unchecked_cast") else given, {}


def connected(inputs: list[str], nodes: list[Node], outputs: list[str], forms: dict[str, Form]) -> Graph:
    """A graph whose values know the nodes that make them, and their forms."""
    known: dict[str, Value] = {}

    def value(name: str, node: Any = None) -> Value:
        made = Value(name)
        made._node, made._form = node, forms.get(name)
        return made

    def walk(nodes: list[Node]) -> None:
        for node in nodes:
            node._takes = [known.get(n) or value(n) for n in node._takes]
            for block in node._blocks:
                walk(block)
            node._makes = [value(n, node) for n in node._makes]
            known.update((str(v), v) for v in node._makes)

    parameters = [value(n) for n in inputs]
    known.update((str(v), v) for v in parameters)
    walk(nodes)
    return Graph(parameters, nodes, [known.get(n) or value(n) for n in outputs])


def graph_of(function: Function) -> Graph:
    """The graph of a function."""
    builder = _Builder()
    nodes: list[Node] = []
    outputs: list[str] = []
    for s in function.node.body:
        if isinstance(s, ast.Return) and s.value is not None:
            outputs = [builder.value(s.value, nodes)]
        else:
            builder.statement(s, nodes)
    return connected([n for n, _, _ in function.parameters], nodes, outputs, {})


def opnames(module: Any) -> list[str]:
    """The names of the ops in the code of a module and its parts, sorted."""
    found = set()
    for part in module.modules():
        for function in part._class.functions.values():
            found |= {n.kind() for n in _all(graph_of(function)._nodes) if n.kind().startswith("aten::")}
    return sorted(found)
