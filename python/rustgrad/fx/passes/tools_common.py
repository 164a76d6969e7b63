"""What passes over graphs have in common: names of what nodes call, and the order of nodes."""

from __future__ import annotations

import collections
import heapq
from collections.abc import Mapping
from typing import Any

from ..._base import Tensor
from ...nn.modules.module import Module
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, _get_qualified_name

__all__ = [
    "FxNetAccFusionsFinder",
    "get_acc_ops_name",
    "get_node_target",
    "is_node_output_tensor",
    "legalize_graph",
    "stable_topological_sort",
]

Tensors = tuple[Tensor, ...] | list[Tensor]
TensorOrTensors = Tensor | Tensors
NodeList = list[Node]
NodeSet = set[Node]
Names = list[str]
CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}


def get_acc_ops_name(k: Any) -> str:
    """The name of a function, `torch.relu`; of one that is a string, that."""
    if isinstance(k, str):
        return k
    if k.__module__ and "acc_ops" in k.__module__:
        return f"acc_ops.{k.__name__}"
    return _get_qualified_name(k)


def get_node_target(submodules: Mapping[str, Module], node: Node) -> str:
    """What a node calls, as text: the class of a module, the name of a function or of a method.

    Raises:
        AssertionError: the node calls nothing.
    """
    if node.op not in CALLABLE_NODE_OPS:
        raise AssertionError(f"Expect op types of {', '.join(CALLABLE_NODE_OPS)}, but found {node.op}")
    if node.op == "call_module":
        module = submodules[node.target]
        called = getattr(module, "_base_class_origin", type(module))
        return get_acc_ops_name(called)
    if node.op == "call_function":
        return get_acc_ops_name(node.target)
    return str(node.target)


def is_node_output_tensor(node: Node) -> bool:
    """Whether a node's value is a tensor, as `ShapeProp` noted it in `meta["type"]`."""
    kind = node.meta.get("type", None)
    return kind is not None and issubclass(kind, Tensor)


class FxNetAccFusionsFinder:
    """Finds groups of nodes that have to stay together, since values between them are no tensors.

    Args:
        module (GraphModule): what `ShapeProp` ran over.
        acc_nodes (set): the nodes that groups are made of; those of a group with another node are taken out of it.
    """

    def __init__(self, module: GraphModule, acc_nodes: NodeSet) -> None:
        self.module, self.nodes, self.acc_nodes = module, list(module.graph.nodes), acc_nodes

    def __call__(self) -> dict[Node, NodeSet]:
        """node -> its group, for nodes of groups."""
        parent: dict[Node, Node] = {}

        def root(node: Node) -> Node:
            while parent.setdefault(node, node) is not node:
                node = parent[node]
            return node

        for node in self.nodes:
            if node not in self.acc_nodes or is_node_output_tensor(node):
                continue
            for user in node.users:
                if user.op != "output":
                    parent[root(user)] = root(node)
        groups: dict[Node, NodeSet] = collections.defaultdict(set)
        for node in parent:
            groups[root(node)].add(node)
        found: dict[Node, NodeSet] = {}
        for group in groups.values():
            if len(group) < 2:
                continue
            if group <= self.acc_nodes:
                found |= dict.fromkeys(group, group)
            else:
                self.acc_nodes -= group
        return found


def _reordered(gm: GraphModule, stable: bool) -> GraphModule:
    nodes = list(gm.graph.nodes)
    index = {node: place for place, node in enumerate(nodes)}
    waiting = {node: len(node.all_input_nodes) for node in nodes}
    ready = [index[node] for node in nodes if not waiting[node]]
    graph, values = Graph(), {}
    graph._codegen = gm.graph._codegen
    count = 0
    while ready:
        place = heapq.heappop(ready) if stable else ready.pop(0)
        node, count = nodes[place], count + 1
        values[node] = graph.node_copy(node, lambda n: values[n])
        for user in node.users:
            waiting[user] -= 1
            if not waiting[user]:
                heapq.heappush(ready, index[user]) if stable else ready.append(index[user])
    if count != len(nodes):
        raise RuntimeError(f"Input graph has cycles, unable to add {[n for n in nodes if waiting[n]]}")
    gm.graph = graph
    return gm


def legalize_graph(gm: GraphModule) -> GraphModule:
    """Puts the nodes of a graph in an order in which each comes after those whose values it takes; in place.

    Raises:
        RuntimeError: nodes take each other's values.
    """
    return _reordered(gm, False)


def stable_topological_sort(gm: GraphModule) -> GraphModule:
    """`legalize_graph` that keeps the order of nodes where it may stay."""
    return _reordered(gm, True)
