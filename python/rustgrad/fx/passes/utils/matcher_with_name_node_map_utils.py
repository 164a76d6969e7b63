"""`SubgraphMatcherWithNameNodeMap`: occurrences of a pattern whose nodes have names."""

from __future__ import annotations

from typing import Any

from ....utils import _pytree
from ..._pytree import _PyTreeCodeGen
from ...graph_module import GraphModule
from ...node import Node
from .matcher_utils import InternalMatch, SubgraphMatcher

__all__ = ["SubgraphMatcherWithNameNodeMap"]


def _split_to_graph_and_name_node_map(gm: GraphModule) -> tuple[GraphModule, dict[str, Node]]:
    """The pattern without the dict of named nodes that is the last of its results, and that dict.

    Raises:
        RuntimeError: the last result is no dict.
    """
    result = gm.graph.output_node()
    given, spec = result.args[0], getattr(gm, "_out_spec", None)
    if spec is not None:
        # The graph's output has the leaves of what the function returns.
        given = _pytree.tree_unflatten(list(given), spec)
    if not isinstance(given, (tuple, list)) or not given or not isinstance(given[-1], dict):
        raise RuntimeError("expected a pattern whose last result is a dict of the nodes that have names")
    *plain, names = given
    if spec is not None:
        leaves, gm._out_spec = _pytree.tree_flatten(tuple(plain))
        if isinstance(codegen := gm.graph._codegen, _PyTreeCodeGen):
            codegen.pytree_info = codegen.pytree_info._replace(out_spec=gm._out_spec)
        result.args = (tuple(leaves),)
    else:
        result.args = (tuple(plain),)
    gm.recompile()
    return gm, dict(names)


class SubgraphMatcherWithNameNodeMap(SubgraphMatcher):
    """A matcher whose occurrences say which nodes they are by name.

    Args:
        pattern_gm (GraphModule): what to find; its last result is a dict, name -> node.
        match_output, match_placeholder, remove_overlapping_matches, ignore_literals: see `SubgraphMatcher`.
    """

    def __init__(
        self,
        pattern_gm: GraphModule,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        gm, self.name_node_map = _split_to_graph_and_name_node_map(pattern_gm)
        super().__init__(gm.graph, match_output, match_placeholder, remove_overlapping_matches, ignore_literals)

    def match(self, graph: Any, node_name_match: str = "") -> list[InternalMatch]:
        """The occurrences; each has `name_node_map`, name -> node of the graph."""
        found = super().match(graph, node_name_match)
        for match in found:
            match.name_node_map = {name: match.nodes_map[node] for name, node in self.name_node_map.items()}
        return found
