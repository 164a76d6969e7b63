"""Helpers of passes: modules that only hold submodules, graphs put into others, and comparisons of graphs."""

from __future__ import annotations

from typing import Any

from ....nn.modules.module import Module
from ...graph import Graph
from ...graph_module import GraphModule
from .matcher_utils import SubgraphMatcher

__all__ = ["HolderModule", "compare_graphs", "lift_subgraph_as_module"]


class HolderModule(Module):
    """A module that has the submodules of a dict."""

    def __init__(self, d: dict[str, Module]) -> None:
        super().__init__()
        for name, module in d.items():
            self.add_module(name, module)


def lift_subgraph_as_module(
    gm: GraphModule, subgraph: Graph, comp_name: str = "", class_name: str = "GraphModule"
) -> Any:
    """A graph as a module with the attributes of `gm` that it names.

    Returns:
        The module, and its attributes' paths in `gm` by their paths in the result of which it is the part `comp_name`.
    """
    made = GraphModule(gm, subgraph, class_name)
    prefix = f"{comp_name}." if comp_name else ""
    paths = [n.target for n in subgraph.nodes if n.op in ("call_module", "get_attr")]
    return made, {f"{prefix}{path}": path for path in paths}


def compare_graphs(left: Graph, right: Graph) -> bool:
    """Whether two graphs compute the same in the same way."""
    matcher = SubgraphMatcher(left, match_output=True, match_placeholder=True)
    return len(matcher.match(right)) > 0
