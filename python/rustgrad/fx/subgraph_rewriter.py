"""`replace_pattern`: puts one piece of a graph in place of each occurrence of another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..nn.modules.module import Module
from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule, _copy_attr
from .node import Node, map_arg
from .passes.utils.matcher_utils import InternalMatch, SubgraphMatcher

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


class Match(NamedTuple):
    """An occurrence: the pattern's node that it was found from, and the graph's node for each of the pattern."""

    anchor: Node
    nodes_map: dict[Node, Node]


class ReplacedPatterns(NamedTuple):
    """What was replaced: as `Match`, with the nodes that came in."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


def _graph_of(pattern):
    if isinstance(pattern, Graph):
        return pattern
    return (pattern if isinstance(pattern, GraphModule) else symbolic_trace(pattern)).graph


def replace_pattern(gm: GraphModule, pattern: Any, replacement: Any) -> list[Match]:
    """Replaces in place every piece of `gm.graph` that does what `pattern` does by `replacement`.

    Args:
        gm (GraphModule): the module to change.
        pattern, replacement (callable, Module or Graph): two functions of the same arguments with as many results. Values
            inside the pattern may have no users outside it, its results may.

    Raises:
        RuntimeError: they take or return different numbers of values.

    Returns:
        The occurrences, which do not overlap.
    """
    return [Match(r.anchor, r.nodes_map) for r in replace_pattern_with_filters(gm, pattern, replacement)]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Any,
    replacement: Any = None,
    match_filters: list[Callable[[InternalMatch, Graph, Graph], bool]] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    """`replace_pattern` for the occurrences that all filters `f(match, graph, pattern_graph)` accept.

    Args:
        ignore_literals (bool): numbers in the pattern match any.
        replacement_callback (callable): makes the replacement graph for a match, instead of `replacement`.
        node_name_match (str): a node with this in its name matches the pattern's result.
    """
    wanted = _graph_of(pattern)
    matcher = SubgraphMatcher(wanted, ignore_literals=ignore_literals)
    matches = matcher.match(gm.graph, node_name_match)
    matches = [m for m in matches if all(accept(m, gm.graph, wanted) for accept in match_filters or ())]
    if replacement is None and replacement_callback is None:
        raise AssertionError("Must provide either a replacement GraphModule or a replacement callback")
    common = None if replacement_callback else _graph_of(replacement)
    # What has taken the place of the results of earlier matches.
    now: dict[Node, Node] = {}
    found = []
    for match in matches:
        made = common or replacement_callback(match, gm.graph, wanted)  # type: ignore[misc]
        source = made.owning_module or replacement
        found.append(_replace(gm, wanted, match, made, source, now))
    gm.recompile()
    if isinstance(replacement, Module):
        gm.delete_all_unused_submodules()
    return found


def _replace(gm, pattern, match, replacement, source, now):
    inputs = [n for n in pattern.nodes if n.op == "placeholder"]
    others = [n for n in replacement.nodes if n.op == "placeholder"]
    if len(inputs) != len(others):
        raise RuntimeError("replace_pattern: pattern and replacement take different numbers of arguments")
    values: dict[Node, Any] = {}
    for i, (theirs, other) in enumerate(zip(inputs, others, strict=True)):
        if theirs in match.nodes_map:
            given = map_arg(match.placeholder_nodes[i], lambda n: now.get(n, n))
            values[other] = match.placeholder_nodes[i] = match.nodes_map[theirs] = given
        elif other.users:
            raise RuntimeError(
                f"replace_pattern: the replacement uses argument {i}, {other}, which the pattern does not use"
            )
        else:
            values[other] = None
    for node in replacement.nodes:
        if node.op in ("get_attr", "call_module") and not _has(gm, node.target):
            _copy_attr(source, gm, node.target)
    before = set(gm.graph.nodes)
    with gm.graph.inserting_before(_first_user(gm.graph, match.returning_nodes)):
        results = gm.graph.graph_copy(replacement, values)
    results = tuple(results) if isinstance(results, (list, tuple)) else (results,)
    if len(results) != len(match.returning_nodes):
        raise RuntimeError(
            f"replace_pattern: expected {len(match.returning_nodes)} results, as the pattern has, got {len(results)}"
        )
    new = [n for n in gm.graph.nodes if n not in before]
    for ours, result in zip(match.returning_nodes, results, strict=True):
        ours.replace_all_uses_with(result)
        now[ours] = result
    for theirs in reversed(pattern.nodes):
        if theirs.op not in ("placeholder", "output"):
            gm.graph.erase_node(match.nodes_map[theirs])
    return ReplacedPatterns(match.anchors[0], match.nodes_map, new)


def _first_user(graph, results):
    """The node before which a replacement may stand: everything that it reads has run, no result has been read."""
    users = {user for n in results for user in n.users}
    last = None
    for node in graph.nodes:
        if node in users:
            return node
        last = node if node in results else last
    return last.next


def _has(module, path):
    for part in path.split("."):
        if not hasattr(module, part):
            return False
        module = getattr(module, part)
    return True
