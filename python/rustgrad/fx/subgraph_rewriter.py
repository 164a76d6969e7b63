"""`replace_pattern`: puts one piece of a graph in place of each occurrence of another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule, _copy_attr
from .node import Node

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


class Match(NamedTuple):
    """An occurrence: the node of its result, and the node of the graph for each of the pattern."""

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


class _Matcher:
    """Compares a piece of a graph with a pattern, from the result upwards."""

    def __init__(self, pattern):
        output = pattern.output_node()
        self.results = output.all_input_nodes
        self.inner = {n for n in pattern.nodes if n.op not in ("placeholder", "output")}

    def match(self, anchor):
        """The nodes for those of the pattern, or None."""
        found: dict[Node, Node] = {}
        if len(self.results) != 1 or not self._same(self.results[0], anchor, found):
            return None
        for theirs, ours in found.items():
            if theirs in self.inner and theirs not in self.results:
                # A value that others use must stay.
                if any(user not in found.values() for user in ours.users):
                    return None
        return found

    def _same(self, theirs, ours, found):
        if theirs in found:
            return found[theirs] is ours
        if theirs.op == "placeholder":
            found[theirs] = ours
            return True
        if not isinstance(ours, Node) or theirs.op != ours.op or theirs.target != ours.target:
            return False
        found[theirs] = ours
        return self._same_values(theirs.args, ours.args, found) and self._same_values(theirs.kwargs, ours.kwargs, found)

    def _same_values(self, theirs, ours, found):
        if isinstance(theirs, Node):
            return self._same(theirs, ours, found)
        if isinstance(theirs, (tuple, list)):
            if not isinstance(ours, (tuple, list)) or len(theirs) != len(ours):
                return False
            return all(self._same_values(a, b, found) for a, b in zip(theirs, ours, strict=True))
        if isinstance(theirs, dict):
            if not isinstance(ours, dict) or theirs.keys() != ours.keys():
                return False
            return all(self._same_values(value, ours[key], found) for key, value in theirs.items())
        return type(theirs) is type(ours) and theirs == ours


def replace_pattern(gm: GraphModule, pattern: Any, replacement: Any) -> list[Match]:
    """Replaces in place every piece of `gm.graph` that does what `pattern` does by `replacement`.

    Args:
        gm (GraphModule): the module to change.
        pattern, replacement (callable, Module or Graph): two functions of the same arguments with one result.

    Returns:
        The occurrences, which do not overlap.
    """
    return [Match(r.anchor, r.nodes_map) for r in replace_pattern_with_filters(gm, pattern, replacement)]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Any,
    replacement: Any = None,
    match_filters: list[Callable[[Match, Graph, Graph], bool]] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[Match, Graph, Graph], Any] | None = None,
) -> list[ReplacedPatterns]:
    """`replace_pattern` for the occurrences that all filters `f(match, graph, pattern_graph)` accept.

    Args:
        replacement_callback (callable): makes the replacement for a match, instead of `replacement`.

    Raises:
        NotImplementedError: `ignore_literals`.
    """
    if ignore_literals:
        raise NotImplementedError("replace_pattern_with_filters: ignore_literals is not implemented")
    wanted = _graph_of(pattern)
    matcher = _Matcher(wanted)
    used: set[Node] = set()
    found: list[ReplacedPatterns] = []
    for anchor in list(gm.graph.nodes):
        nodes = matcher.match(anchor) if anchor.op not in ("placeholder", "output") else None
        if nodes is None or any(n in used for t, n in nodes.items() if t in matcher.inner):
            continue
        match = Match(anchor, nodes)
        if not all(accept(match, gm.graph, wanted) for accept in match_filters or ()):
            continue
        used.update(n for t, n in nodes.items() if t in matcher.inner)
        made = replacement_callback(match, gm.graph, wanted) if replacement_callback else replacement
        found.append(_replace(gm, matcher, match, wanted, _graph_of(made), made))
    gm.recompile()
    return found


def _replace(gm, matcher, match, pattern, replacement, source):
    inputs = [n for n in pattern.nodes if n.op == "placeholder"]
    others = [n for n in replacement.nodes if n.op == "placeholder"]
    if len(inputs) != len(others):
        raise RuntimeError("replace_pattern: pattern and replacement take different numbers of arguments")
    # An earlier replacement may have taken the place of an input's node; then its users have the new one.
    values = {o: match.nodes_map[i] for i, o in zip(inputs, others, strict=True) if i in match.nodes_map}
    before = set(gm.graph.nodes)
    owner = replacement.owning_module or source
    for node in replacement.nodes:
        if node.op in ("get_attr", "call_module") and not _has(gm, node.target):
            _copy_attr(owner, gm, node.target)
    with gm.graph.inserting_before(match.anchor):
        result = gm.graph.graph_copy(replacement, values)
    new = [n for n in gm.graph.nodes if n not in before]
    target = result[0] if isinstance(result, (tuple, list)) and len(result) == 1 else result
    match.anchor.replace_all_uses_with(target)
    for theirs in reversed([n for n in pattern.nodes if n in matcher.inner]):
        ours = match.nodes_map.get(theirs)
        if ours is not None and not ours.users:
            gm.graph.erase_node(ours)
    return ReplacedPatterns(match.anchor, match.nodes_map, new)


def _has(module, path):
    for part in path.split("."):
        if not hasattr(module, part):
            return False
        module = getattr(module, part)
    return True
