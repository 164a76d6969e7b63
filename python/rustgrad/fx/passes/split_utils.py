"""`split_by_tags`: a graph whose nodes have a `tag` as a module that calls one submodule for each tag."""

from __future__ import annotations

import copy
import dataclasses
import operator
from typing import Any

from ...nn.modules.module import Module
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, map_arg

__all__ = ["Component", "HolderModule", "getattr_recursive", "setattr_recursive", "split_by_tags"]


def getattr_recursive(obj: Any, name: str) -> Any:
    """An attribute by a path of names; None where a module has no such one."""
    for layer in name.split("."):
        if not hasattr(obj, layer):
            return None
        obj = getattr(obj, layer)
    return obj


def setattr_recursive(obj: Any, attr: str, value: Any) -> None:
    """Sets an attribute by a path of names."""
    owner, _, name = attr.rpartition(".")
    setattr(getattr_recursive(obj, owner) if owner else obj, name, value)


@dataclasses.dataclass
class Component:
    """The part of a graph that has one tag.

    Attributes:
        graph (Graph): its nodes.
        order (int): which of the tags it has.
        name (str): the tag.
        input_placeholders (list): its inputs.
        orig_inputs, orig_outputs (list): the nodes of the original graph that it takes and gives.
        getattr_maps (dict): reads of attributes, by those of the original graph.
        constructor_args (list): names of attributes that its module is made of.
        gm (GraphModule): its module.
    """

    graph: Graph
    order: int
    name: str
    input_placeholders: list[Node] = dataclasses.field(default_factory=list)
    orig_inputs: list[Node] = dataclasses.field(default_factory=list)
    orig_outputs: list[Node] = dataclasses.field(default_factory=list)
    getattr_maps: dict[Node, Node] = dataclasses.field(default_factory=dict)
    constructor_args: list[str] = dataclasses.field(default_factory=list)
    gm: GraphModule | None = None


class HolderModule(Module):
    """A module that has the submodules of a dict."""

    def __init__(self, d: dict[str, Module]) -> None:
        super().__init__()
        for name, module in d.items():
            self.add_module(name, module)


def split_by_tags(
    gm: GraphModule,
    tags: list[str],
    return_fqn_mapping: bool = False,
    return_tuple: bool = False,
    GraphModuleCls: type[GraphModule] = GraphModule,
) -> Any:
    """A graph as a module that calls a submodule for each tag, in the order of the tags.

    Args:
        gm (GraphModule): each node that computes something has an attribute `tag`. Reads of attributes go where they are used.
        tags (list): all tags, so that a part comes after those whose values it takes.
        return_fqn_mapping (bool): return the new paths of modules and attributes by their original ones too.
        return_tuple (bool): parts with one result return a tuple.
        GraphModuleCls (type): the class of the modules.

    Raises:
        AssertionError: a node has no tag, or takes a value of a part that comes later.
    """
    parts = {tag: Component(Graph(), order, tag) for order, tag in enumerate(tags)}
    place: dict[Node, Component] = {}
    values: dict[Node, Node] = {}
    outer = Graph()
    outer._codegen = copy.copy(gm.graph._codegen)
    for node in gm.graph.nodes:
        if node.op == "placeholder":
            default = node.args[0] if node.args else ...
            values[node] = outer.placeholder(node.name, type_expr=node.type, default_value=default)
            values[node].meta = copy.copy(node.meta)
        elif node.op not in ("get_attr", "output"):
            if not hasattr(node, "tag"):
                raise AssertionError(f"Node {node} does not have tag. Add a tag to it first.")
            place[node] = parts[node.tag]
    made: dict[Node, Node] = {}
    for node, part in place.items():
        _add(node, part, place, made)
    result = gm.graph.output_node()
    for node in result.all_input_nodes:
        if node in place and node not in place[node].orig_outputs:
            place[node].orig_outputs.append(node)
    root, names = HolderModule({}), {}
    for part in parts.values():
        outputs = tuple(made[n] for n in part.orig_outputs)
        part.graph.output(outputs[0] if len(outputs) == 1 and not return_tuple else outputs)
        part.gm = GraphModuleCls(gm, part.graph)
        root.add_module(part.name, part.gm)
        paths = [n.target for n in part.graph.nodes if n.op in ("call_module", "get_attr")]
        names |= {path: f"{part.name}.{path}" for path in paths}
        _call(outer, part, values, return_tuple)
    for node in result.all_input_nodes:
        if node.op == "get_attr":
            values[node] = outer.get_attr(node.target)
            setattr_recursive(root, node.target, getattr_recursive(gm, node.target))
    outer.output(map_arg(result.args[0], lambda n: values[n])).meta = copy.copy(result.meta)
    split = GraphModuleCls(root, outer)
    for name in ("_in_spec", "_out_spec"):
        if hasattr(gm, name):
            setattr(split, name, getattr(gm, name))
    return (split, names) if return_fqn_mapping else split


def _add(node: Node, part: Component, place: dict[Node, Component], made: dict[Node, Node]) -> None:
    """Copies a node to its part, with inputs for what it takes from others."""

    def here(used: Node) -> Node:
        if used.op == "get_attr":
            if used not in part.getattr_maps:
                part.getattr_maps[used] = part.graph.get_attr(used.target, type_expr=used.type)
                part.getattr_maps[used].meta = copy.copy(used.meta)
            return part.getattr_maps[used]
        source = place.get(used)
        if source is part:
            return made[used]
        if source is not None:
            if source.order > part.order:
                raise AssertionError(f"{node} of {part.name} takes {used} of {source.name}, which comes later")
            if used not in source.orig_outputs:
                source.orig_outputs.append(used)
        if used not in part.orig_inputs:
            part.orig_inputs.append(used)
            part.input_placeholders.append(part.graph.placeholder(used.name, type_expr=used.type))
            part.input_placeholders[-1].meta = copy.copy(used.meta)
        return part.input_placeholders[part.orig_inputs.index(used)]

    made[node] = part.graph.node_copy(node, here)
    made[node].tag = part.name  # type: ignore[attr-defined]


def _call(outer: Graph, part: Component, values: dict[Node, Node], in_tuple: bool) -> None:
    called = outer.call_module(part.name, tuple(values[n] for n in part.orig_inputs))
    if len(part.orig_outputs) == 1 and not in_tuple:
        values[part.orig_outputs[0]] = called
        called.meta = copy.copy(part.orig_outputs[0].meta)
        return
    for index, node in enumerate(part.orig_outputs):
        values[node] = outer.call_function(operator.getitem, (called, index))
        values[node].meta = copy.copy(node.meta)
