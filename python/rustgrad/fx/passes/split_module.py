"""`split_module`: a graph as a module that calls one submodule for each part of it."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable
from typing import Any

from ...nn.modules.module import Module
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, map_arg

__all__ = ["Partition", "split_module"]

_OUTER = ("placeholder", "get_attr", "output")


class Partition:
    """A part of a graph.

    Attributes:
        name (str): what the callback gave for its nodes; its submodule is `submod_{name}`.
        node_names (list): the names of its nodes.
        inputs, outputs (dict): the names of the values that it takes from outside and gives to others, in order.
        dependencies, dependents (dict): the names of the parts that it takes values from, and that take some of it.
        graph (Graph): its nodes.
        environment (dict): each node of the original graph that is in it -> its node here.
        targets (dict): the modules that it calls, by their names in it.
    """

    def __init__(self, name: str) -> None:
        self.name, self.submod_name = name, f"submod_{name}"
        self.node_names: list[str] = []
        self.inputs: dict[str, None] = {}
        self.outputs: dict[str, None] = {}
        self.dependencies: dict[str, None] = {}
        self.dependents: dict[str, None] = {}
        self.graph = Graph()
        self.environment: dict[Node, Node] = {}
        self.targets: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"name: {self.name},\n nodes: {self.node_names},\n inputs: {self.inputs},\n outputs: {self.outputs}"

    def add_node(self, node: Node) -> None:
        """Notes that a node is in it."""
        self.node_names.append(node.name)


def _attribute(module: Any, path: str) -> Any:
    for name in path.split("."):
        if not hasattr(module, name):
            raise AttributeError(f"Node target {path} not found!")
        module = getattr(module, name)
    return module


def split_module(
    m: GraphModule,
    root_m: Module,
    split_callback: Callable[[Node], int | str],
    qualname_map: dict[str, str] | None = None,
    keep_original_order: bool | None = False,
    keep_original_node_name: bool | None = False,
    keep_original_input_name: bool = True,
    *,
    partition_affix: str | None = None,
    tuple_return: bool = False,
) -> GraphModule:
    """A graph as a module that calls a submodule `submod_0`, `submod_1`, ... for each of its parts.

    Args:
        m (GraphModule): what is divided. Inputs, results and reads of attributes stay in the outer module.
        root_m (Module): has the attributes that the graph names; not used beyond that of `m` itself.
        split_callback (callable): the part of a node, a number or a name.
        qualname_map (dict): filled with the original path of each module, by its path in the result.
        keep_original_order (bool): parts are called in the order of their first nodes, where their dependencies allow.
        keep_original_node_name (bool): nodes in parts keep their names.
        keep_original_input_name (bool): inputs of parts have the names of the values.
        partition_affix (str): parts are named `submod_{affix}_{part}`.
        tuple_return (bool): parts with one result return a tuple.

    Raises:
        RuntimeError: parts depend on each other in a circle.
    """
    parts: dict[str, Partition] = {}
    place: dict[Node, Partition] = {}
    for node in m.graph.nodes:
        if node.op in _OUTER:
            continue
        name = str(split_callback(node))
        if name not in parts:
            parts[name] = Partition(name)
            if partition_affix is not None:
                parts[name].submod_name = f"submod_{partition_affix}_{name}"
        parts[name].add_node(node)
        place[node] = parts[name]
    by_name = {node.name: node for node in m.graph.nodes}
    for node in m.graph.nodes:
        for used in node.all_input_nodes:
            _connect(place.get(used), place.get(node), used)
    order = _sorted_by_first(parts) if keep_original_order else _sorted(parts)
    for part in order:
        for name in part.inputs:
            used = by_name[name]
            label = name if keep_original_input_name else f"arg_{len(part.environment)}"
            made = part.graph.placeholder(label, type_expr=used.type)
            made.meta = used.meta.copy()
            part.environment[used] = made
    for node, part in place.items():
        _copy(m, node, part, qualname_map, bool(keep_original_node_name))
    return _outer(m, order, by_name, tuple_return)


def _connect(source: Partition | None, user: Partition | None, value: Node) -> None:
    """Notes that a part, or the result, uses a value of another part or of the outer module."""
    if source is user:
        return
    if source is not None:
        source.outputs.setdefault(value.name)
    if user is not None:
        user.inputs.setdefault(value.name)
    if source is not None and user is not None:
        user.dependencies.setdefault(source.name)
        source.dependents.setdefault(user.name)


def _sorted(parts: dict[str, Partition]) -> list[Partition]:
    """The parts so that each comes after those that it depends on."""
    waiting = {name: len(part.dependencies) for name, part in parts.items()}
    ready = [name for name, count in waiting.items() if not count]
    order = []
    while ready:
        part = parts[ready.pop(0)]
        order.append(part)
        for name in part.dependents:
            waiting[name] -= 1
            if not waiting[name]:
                ready.append(name)
    if len(order) != len(parts):
        raise RuntimeError("cycle exists between partitions!")
    return order


def _sorted_by_first(parts: dict[str, Partition]) -> list[Partition]:
    """The parts in order of their first nodes, as far as dependencies allow."""
    order: list[Partition] = []
    left = dict(parts)
    while left:
        done = {p.name for p in order}
        name = next((n for n, p in left.items() if set(p.dependencies) <= done), None)
        if name is None:
            raise RuntimeError("cycle exists between partitions!")
        order.append(left.pop(name))
    return order


def _copy(m: GraphModule, node: Node, part: Partition, paths: dict[str, str] | None, keep_name: bool) -> None:
    """Adds a node to the graph of its part."""

    def here(n: Node) -> Node:
        return part.environment[n]

    target = node.target
    if node.op == "call_module":
        target = node.target.replace(".", "_")
        part.targets[target] = _attribute(m, node.target)
        if paths is not None:
            paths[f"{part.submod_name}.{target}"] = node.target
    made = part.graph.create_node(
        node.op,
        target,
        map_arg(node.args, here),
        map_arg(node.kwargs, here),
        node.name if keep_name else None,
        node.type,
    )
    made.meta = node.meta.copy()
    part.environment[node] = made


def _outer(m: GraphModule, order: list[Partition], by_name: dict[str, Node], in_tuples: bool) -> GraphModule:
    """The module that calls the parts."""
    graph, values, attributes = Graph(), {}, {}
    graph._codegen = copy.copy(m.graph._codegen)
    for node in m.graph.nodes:
        if node.op == "placeholder":
            default = node.args[0] if node.args else ...
            values[node] = graph.placeholder(node.target, type_expr=node.type, default_value=default)
            values[node].meta = node.meta.copy()
        elif node.op == "get_attr":
            values[node] = graph.get_attr(node.target)
            values[node].meta = node.meta.copy()
            attributes[node.target] = _attribute(m, node.target)
    for part in order:
        results = [by_name[name] for name in part.outputs]
        inner = [part.environment[n] for n in results]
        if inner:
            part.graph.output(inner[0] if len(inner) == 1 and not in_tuples else tuple(inner))
        else:
            part.graph.output(None)
        attributes[part.submod_name] = GraphModule(part.targets, part.graph)
        called = graph.call_module(part.submod_name, tuple(values[by_name[name]] for name in part.inputs))
        if len(results) == 1 and not in_tuples:
            values[results[0]] = called
            called.meta = results[0].meta.copy()
            continue
        for index, node in enumerate(results):
            values[node] = graph.call_function(operator.getitem, (called, index))
            values[node].meta = node.meta.copy()
    result = m.graph.output_node()
    made = graph.output(map_arg(result.args[0], lambda n: values[n]), type_expr=result.type)
    made.meta = result.meta.copy()
    outer = GraphModule(attributes, graph)
    for name in ("_in_spec", "_out_spec"):
        if hasattr(m, name):
            setattr(outer, name, getattr(m, name))
    return outer
