"""`Graph`: a list of nodes in the order in which they run."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from html import escape
from typing import Any

from ._codegen import CodeGen, PythonCode, format_target, names_of
from ._names import Namespace, snake_case
from .node import Node, map_arg
from .node import _get_qualified_name as _get_qualified_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .graph_module import GraphModule

__all__ = ["CodeGen", "Graph", "PythonCode"]

_format_target = format_target


class _NodeList:
    """The nodes of a graph; they may be moved and erased during a loop over them."""

    def __init__(self, graph, direction="_next"):
        self._graph, self._direction = graph, direction

    def __len__(self):
        return self._graph._len

    def __iter__(self):
        root, direction = self._graph._root, self._direction
        node = getattr(root, direction)
        while node is not root:
            if not node._erased:
                yield node
            node = getattr(node, direction)

    def __reversed__(self):
        return _NodeList(self._graph, "_prev" if self._direction == "_next" else "_next")


class _InsertPoint:
    def __init__(self, graph, insert):
        self._graph, self._before = graph, graph._insert
        graph._insert = insert

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._graph._insert = self._before


class Graph:
    """The calls of a function: inputs, calls and one output, each a `Node`."""

    def __init__(
        self, owning_module: GraphModule | None = None, tracer_cls: Any = None, tracer_extras: Any = None
    ) -> None:
        self._root = Node(self, "", "output", "", (), {})
        self._insert: Callable[[Node], None] = self._root.prepend
        self._len = 0
        self._namespace = Namespace()
        self._owners = 0
        self._owning_module = owning_module
        self._tracer_cls, self._tracer_extras = tracer_cls, tracer_extras
        self._codegen = CodeGen()
        # What it was traced from: file, line and function.
        self._source = ""

    @property
    def owning_module(self) -> GraphModule | None:
        """The `GraphModule` that runs it."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, module: GraphModule | None) -> None:
        self._owning_module = module

    @property
    def nodes(self) -> Any:
        """The nodes in order: iterable, reversible, with a length."""
        return _NodeList(self)

    def output_node(self) -> Node:
        """The node of the result."""
        node = self._root._prev
        if node.op != "output":
            raise AssertionError("fx.Graph: no output node at the end")
        return node

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """The nodes of a kind; calls of functions also by target."""
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    def create_node(
        self,
        op: str,
        target: Any,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Adds a node where nodes are inserted at present, the end unless `inserting_before` says otherwise."""
        candidate = self._target_to_str(target) if name is None else name
        name = self._namespace.create_name(candidate)
        node = Node(self, name, op, target, args or (), kwargs or {}, type_expr)
        self._namespace.rename(node, name)
        if self.owning_module is not None:
            for hook in getattr(self.owning_module, "_create_node_hooks", ()):
                hook(node)
        self._insert(node)
        self._len += 1
        return node

    def _expect(self, path, op, kind):
        value = self.owning_module
        for part in path.split(".") if value is not None else ():
            value = getattr(value, part, self)
            if value is self:
                warnings.warn(
                    f"Attempted to insert a {op} Node with no underlying reference in the owning GraphModule! Add a {kind} "
                    f"{path!r} to it first.",
                    stacklevel=3,
                )
                return

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """Adds an input; without `default_value` it must be given in a call."""
        return self.create_node(
            "placeholder", name, () if default_value is ... else (default_value,), type_expr=type_expr
        )

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Adds the value of an attribute of the root, by its path. Warns if the module of the graph has none there."""
        self._expect(qualified_name, "get_attr", "parameter, buffer or other attribute")
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Adds a call of a submodule of the root, by its path. Warns if the module of the graph has none there."""
        self._expect(module_name, "call_module", "module")
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Adds a call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """Adds a call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """Adds the result: a node, or a container of nodes."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda x: x) -> Node:
        """Adds a copy of a node of another graph; `arg_transform` gives the node here for one in its arguments."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        result = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        result.meta = copy.copy(node.meta)
        return result

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Adds copies of all nodes of another graph; `val_map` has nodes here for inputs there, and gets the others.

        Returns:
            What `g` returns, in nodes of this graph; with `return_output_node` also the output node of `g`.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Graph:
        memo = {} if memo is None else memo
        copied = Graph(tracer_cls=self._tracer_cls, tracer_extras=self._tracer_extras)
        copied._codegen, copied._source = copy.copy(self._codegen), self._source
        memo[id(self)] = copied
        values: dict[Node, Node] = {}
        output = copied.graph_copy(self, values, return_output_node=True)
        if output is not None:
            result, old = output
            node = copied.output(result, type_expr=old.type)
            node.meta = copy.copy(old.meta)
        return copied

    def erase_node(self, to_erase: Node) -> None:
        """Removes a node that nobody uses.

        Raises:
            RuntimeError: it has users, or is of another graph.
        """
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            return
        to_erase._set((), {})
        to_erase._unlink()
        to_erase._erased = True
        self._len -= 1

    def inserting_before(self, n: Node | None = None) -> Any:
        """A block in which nodes are added before `n`; before all, without one."""
        return _InsertPoint(self, self._root.append if n is None else self._own(n).prepend)

    def inserting_after(self, n: Node | None = None) -> Any:
        """A block in which nodes are added after `n`; at the end, without one."""
        return _InsertPoint(self, self._root.prepend if n is None else self._own(n).append)

    def _own(self, node):
        if node.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        return node

    def _target_to_str(self, target):
        name = target if isinstance(target, str) else getattr(target, "__name__", None) or type(target).__name__
        if name.startswith("__") and name.endswith("__"):
            name = name[2:-2]
        return snake_case(name)

    def process_inputs(self, *args: Any) -> Any:
        """The values of the placeholders for the arguments of a call."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """What a call returns for the value of the output node."""
        return self._codegen.process_outputs(out)

    def set_codegen(self, codegen: CodeGen) -> None:
        """Sets what writes the code."""
        self._codegen = codegen

    def python_code(self, root_module: str, *, verbose: bool = False, **options: Any) -> PythonCode:
        """The graph as code, where `root_module` is the expression for the root ("self")."""
        namespace = Namespace()
        with names_of(self.nodes, lambda n: namespace.create_name(n.name, n)):
            return self._codegen.write(self.nodes, root_module, namespace)

    def __str__(self) -> str:
        return "\n    ".join(["graph():", *(node.format_node() for node in self.nodes)])

    def _rows(self):
        head = ["opcode", "name", "target", "args", "kwargs"]
        return [head, *([str(x) for x in (n.op, n.name, n.target, n.args, n.kwargs)] for n in self.nodes)]

    def _repr_html_(self) -> str:
        """What a notebook shows: the nodes as a table."""
        head, *rows = [[escape(cell) for cell in row] for row in self._rows()]
        lines = ["".join(f"<td>{cell}</td>" for cell in row) for row in rows]
        lines.insert(0, "".join(f"<th>{cell}</th>" for cell in head))
        return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"

    def print_tabular(self) -> None:
        """Prints the nodes as a table."""
        rows = self._rows()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        rows.insert(1, ["-" * width for width in widths])
        for row in rows:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())

    def lint(self) -> None:
        """Checks that values are defined before they are used, names are unique, and attributes exist.

        Raises:
            RuntimeError: one of these is not so.
        """
        seen: set[Node] = set()
        names: set[str] = set()
        for node in self.nodes:
            for arg in node.all_input_nodes:
                if arg.graph is not self:
                    raise RuntimeError(
                        f"Argument '{arg}' of Node '{node}' does not belong to this Graph, but was used as an argument! If "
                        "you are copying nodes from another graph, make sure to use ``arg_transform`` on node_copy() to "
                        f"remap values\n{self}"
                    )
                if arg not in seen:
                    raise RuntimeError(
                        f"Argument '{arg}' of Node '{node}' was used before it has been defined! Please check that Nodes "
                        f"in the graph are topologically ordered\n{self}"
                    )
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            seen.add(node)
            names.add(node.name)
            if self.owning_module is not None and node.op in ("get_attr", "call_module"):
                self._check_target(node)

    def _check_target(self, node):
        value = self.owning_module
        path = node.target.split(".")
        for i, part in enumerate(path):
            value = getattr(value, part, None)
            if value is None:
                raise RuntimeError(
                    f"Node {node} target {node.target} references nonexistent attribute {part} of {'.'.join(path[:i])}"
                )
        from ..nn.modules.module import Module

        if node.op == "call_module" and not isinstance(value, Module):
            raise RuntimeError(f"Node {node} target {node.target} does not reference an nn.Module")

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Removes nodes that nobody uses and that change nothing; returns whether there were any.

        Args:
            is_impure_node (callable): decides which nodes stay, instead of `Node.is_impure`.
        """
        self.lint()
        keep = is_impure_node or Node.is_impure
        before = len(self.nodes)
        for node in reversed(self.nodes):
            if not node.users and not keep(node):
                self.erase_node(node)
        return len(self.nodes) != before
