"""Nodes of a graph by the function or module of the program that they come from, as `meta["source_fn_stack"]` says."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from ...graph import Graph
from ...node import Node

__all__ = ["SourcePartition", "check_subgraphs_connected", "get_source_partitions"]


@dataclasses.dataclass
class SourcePartition:
    """The nodes of one call.

    Attributes:
        nodes (list): all of them.
        source: the function or the class of the module.
        input_nodes, output_nodes, params (list): the nodes outside whose values are taken, those whose values are used outside, and
            the reads of attributes.
    """

    nodes: list[Node]
    source: Any
    input_nodes: list[Node] = dataclasses.field(default_factory=list)
    output_nodes: list[Node] = dataclasses.field(default_factory=list)
    params: list[Node] = dataclasses.field(default_factory=list)


def get_source_partitions(
    graph: Graph, wanted_sources: list[Any], filter_fn: Callable[[Node], bool] | None = None
) -> dict[Any, list[SourcePartition]]:
    """source -> the groups of nodes that come from it, one for each call.

    Args:
        graph (Graph): nodes have `meta["source_fn_stack"]`, a list of (name, source), or `meta["torch_fn"]`.
        wanted_sources (list): functions, classes of modules, or their names.
        filter_fn (callable): groups are left out of whose results it holds for none.
    """
    found: dict[Any, dict[str, list[Node]]] = {}
    for node in graph.nodes:
        stack = node.meta.get("source_fn_stack")
        last = stack[-1] if stack else node.meta.get("torch_fn")
        if last is None:
            continue
        name, source = last if stack else (last[0], last[1].split(".")[-1])
        if source in wanted_sources:
            found.setdefault(source, {}).setdefault(name, []).append(node)
    made = {}
    for source, groups in found.items():
        parts = [_partition(nodes, source) for nodes in groups.values()]
        if filter_fn is not None:
            parts = [p for p in parts if any(map(filter_fn, p.output_nodes))]
        if parts:
            made[source] = parts
    return made


def _partition(nodes: list[Node], source: Any) -> SourcePartition:
    inside, inputs, params = set(nodes), {}, {}
    for node in nodes:
        for used in node.all_input_nodes:
            if used not in inside:
                (params if used.op == "get_attr" else inputs)[used] = None
        if node.op == "get_attr":
            params[node] = None
    outputs = [n for n in nodes if any(u not in inside for u in n.users)]
    return SourcePartition(nodes, source, list(inputs), outputs, list(params))


def check_subgraphs_connected(subgraph1: SourcePartition, subgraph2: SourcePartition) -> bool:
    """Whether the second group takes a value of the first."""
    return any(used in subgraph1.nodes for node in subgraph2.nodes for used in node.all_input_nodes)
