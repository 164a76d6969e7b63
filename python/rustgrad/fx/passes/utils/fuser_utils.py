"""Groups of a graph's nodes as submodules of it."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

from ...graph import Graph
from ...graph_module import GraphModule
from ...node import Node
from ..tools_common import NodeList, legalize_graph

__all__ = [
    "erase_nodes",
    "fuse_as_graphmodule",
    "fuse_by_partitions",
    "insert_subgm",
    "topo_sort",
    "validate_partition",
]


def topo_sort(nodes: NodeList) -> NodeList:
    """Nodes in an order in which each comes after those of them whose values it takes.

    Raises:
        AssertionError: nodes take each other's values.
    """
    inside = set(nodes)
    waiting = {n: sum(i in inside for i in n.all_input_nodes) for n in nodes}
    ready = [n for n in nodes if not waiting[n]]
    order: NodeList = []
    while ready:
        node = ready.pop(0)
        order.append(node)
        for user in node.users:
            if user in inside:
                waiting[user] -= 1
                if not waiting[user]:
                    ready.append(user)
    if len(order) != len(nodes):
        raise AssertionError("topological sorted nodes doesn't have same length as input nodes")
    return order


def validate_partition(partition: NodeList) -> bool:
    """Whether no value leaves a group and comes back to it through a node outside."""
    inside = set(partition)
    left = [u for n in partition for u in n.users if u not in inside]
    seen: set[Node] = set()
    while left:
        node = left.pop()
        if node in inside:
            return False
        if node not in seen:
            seen.add(node)
            left += node.users
    return True


def fuse_as_graphmodule(
    gm: GraphModule,
    nodes: NodeList,
    module_name: str,
    partition_lookup_table: Any = None,
    *,
    always_return_tuple: bool = False,
) -> tuple[GraphModule, tuple[Node, ...], tuple[Node, ...]]:
    """A group of nodes as a module of its own.

    Args:
        gm (GraphModule): the graph.
        nodes (list): the group, in order.
        module_name (str): the name of the module's class.
        always_return_tuple (bool): one result is a tuple too.

    Returns:
        The module, the nodes whose values are its arguments, and those whose values are its results.

    Raises:
        AssertionError: a node is of another graph, or the group is none (`validate_partition`).
    """
    for node in nodes:
        if node.graph is not gm.graph:
            raise AssertionError(f"{node} doesn't belong to passed in graph module {gm._get_name()}")
    if not validate_partition(nodes):
        raise AssertionError("Invalid partition, found dependency cycles")
    graph, made = Graph(), {}
    inside, inputs = set(nodes), {}

    def here(used: Node) -> Node:
        if used in inside:
            return made[used]
        if used.op == "get_attr":
            if used not in made:
                made[used] = graph.node_copy(used)
            return made[used]
        if used not in inputs:
            inputs[used] = graph.placeholder(used.name, type_expr=used.type)
            inputs[used].meta = used.meta.copy()
        return inputs[used]

    for node in nodes:
        made[node] = graph.node_copy(node, here)
    outputs = tuple(n for n in nodes if any(u not in inside for u in n.users))
    results = tuple(made[n] for n in outputs)
    graph.output(results[0] if len(results) == 1 and not always_return_tuple else results)
    _inputs_first(graph)
    graph.lint()
    return GraphModule(gm, graph, class_name=module_name), tuple(inputs), outputs


def _inputs_first(graph: Graph) -> None:
    """Puts placeholders before other nodes."""
    nodes = list(graph.nodes)
    first = next((n for n in nodes if n.op != "placeholder"), None)
    for node in nodes[nodes.index(first) :] if first is not None else []:
        if node.op == "placeholder":
            first.prepend(node)  # type: ignore[union-attr]


def insert_subgm(
    gm: GraphModule, sub_gm: GraphModule, orig_inputs: tuple[Node, ...], orig_outputs: tuple[Node, ...]
) -> GraphModule:
    """Puts a call of a module in the place of the nodes whose results it computes; the nodes stay, without users."""
    name = sub_gm.__class__.__name__
    gm.add_submodule(name, sub_gm)
    # Where the last of the replaced nodes is; `legalize_graph` puts it right where that is too late for a user.
    place = {n: at for at, n in enumerate(gm.graph.nodes)}
    with (
        gm.graph.inserting_after(max(orig_outputs, key=place.__getitem__))
        if orig_outputs
        else gm.graph.inserting_before(None)
    ):
        called = gm.graph.call_module(name, args=orig_inputs, kwargs=None)
    returned = sub_gm.graph.output_node().args[0]
    if len(orig_outputs) == 1 and not isinstance(returned, tuple):
        orig_outputs[0].replace_all_uses_with(called, propagate_meta=True)
        return gm
    point = called
    for index, node in enumerate(orig_outputs):
        with gm.graph.inserting_after(point):
            point = gm.graph.call_function(operator.getitem, (called, index))
        node.replace_all_uses_with(point, propagate_meta=True)
    called.meta["val"] = tuple(n.meta.get("val") for n in orig_outputs)
    return gm


def erase_nodes(gm: GraphModule, nodes: NodeList) -> None:
    """Erases nodes, the last first."""
    for node in reversed(nodes):
        gm.graph.erase_node(node)


def fuse_by_partitions(
    gm: GraphModule, partitions: Iterable[Any], prefix: str = "fused_", always_return_tuple: bool = False
) -> GraphModule:
    """Puts a submodule `fused_0`, `fused_1`, ... in the place of each group of nodes; in place.

    Args:
        gm (GraphModule): the graph.
        partitions: groups, each a list of nodes or a dict of them.
        prefix (str): how names of submodules start.
    """
    for number, nodes in enumerate(partitions):
        order = topo_sort(list(nodes))
        made, inputs, outputs = fuse_as_graphmodule(
            gm, order, f"{prefix}{number}", always_return_tuple=always_return_tuple
        )
        insert_subgm(gm, made, inputs, outputs)
        erase_nodes(gm, order)
    legalize_graph(gm)
    gm.graph.lint()
    return gm
