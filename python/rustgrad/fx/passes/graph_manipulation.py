"""Sizes of what nodes hold and compute, and nodes with other targets."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, map_arg
from .shape_prop import ShapeProp

__all__ = ["get_size_of_all_nodes", "get_size_of_node", "get_tensor_meta", "replace_target_nodes_with", "size_bytes"]


def replace_target_nodes_with(
    fx_module: GraphModule, old_op: str, old_target: Any, new_op: str, new_target: Any
) -> None:
    """Gives nodes of one kind and target another kind and target; in place."""
    graph, made = Graph(), {}
    for node in fx_module.graph.nodes:
        if node.op == old_op and node.target == old_target:
            args, kwargs = (map_arg(a, lambda n: made[n]) for a in (node.args, node.kwargs))
            made[node] = graph.create_node(new_op, new_target, args, kwargs, node.name)
        else:
            made[node] = graph.node_copy(node, lambda n: made[n])
    fx_module.graph = graph


class size_bytes(NamedTuple):
    """Bytes of a node's value, and of that with the parameters and buffers of the module that it calls."""

    output_size: int
    total_size: int


def get_size_of_all_nodes(fx_module: GraphModule, args: list[Any] | None = None) -> None:
    """Sets `size_bytes` of each node, with the shapes of a run on `args`."""
    if args is not None:
        ShapeProp(fx_module).propagate(*args)
    for node in fx_module.graph.nodes:
        if node.op == "output":
            break
        node.size_bytes = get_size_of_node(fx_module, node)


def get_tensor_meta(node: Node) -> Any:
    """What `ShapeProp` noted of a node. RuntimeError: it did not run."""
    found = node.meta.get("tensor_meta")
    if not found:
        raise RuntimeError(
            f"Node {node} has no tensor metadata associated with it! Check that shape propagation has run."
        )
    return found


def get_size_of_node(fx_module: GraphModule, node: Node) -> size_bytes:
    """The sizes of a node, of which `ShapeProp` has noted the shape."""
    total = 0
    if node.op == "call_module":
        module = fx_module.get_submodule(node.target)
        total += sum(t.nbytes for t in (*module.parameters(), *module.buffers()))
    meta = get_tensor_meta(node)
    size = meta.shape.numel() * meta.dtype.itemsize
    return size_bytes(size, total + size)
