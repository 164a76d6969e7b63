"""`SubgraphMatcher`: the places in a graph that compute what a pattern computes.

A pattern is matched from its results upwards, since a value has many users and one producer. Where a pattern has several
results, each is tried at every node that may be it, with what the earlier ones have fixed.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from ..._compatibility import compatibility
from ...graph import Graph
from ...node import Node
from .fuser_utils import validate_partition

__all__ = ["InternalMatch", "SubgraphMatcher"]

_OUTER = ("placeholder", "output")


@compatibility(is_backward_compatible=False)
@dataclasses.dataclass
class InternalMatch:
    """An occurrence of a pattern.

    Attributes:
        anchors (list): the pattern's nodes that matching starts from.
        nodes_map (dict): for each node of the pattern the node, or value, of the graph.
        placeholder_nodes (list): what the pattern's inputs are; None for one that the pattern does not use.
        returning_nodes (list): what its results are.
        name_node_map (dict): nodes by the names that the pattern gives them.
    """

    anchors: list[Node]
    nodes_map: dict[Node, Any] = dataclasses.field(default_factory=dict)
    placeholder_nodes: list[Any] = dataclasses.field(default_factory=list)
    returning_nodes: list[Node] = dataclasses.field(default_factory=list)
    name_node_map: dict[str, Any] = dataclasses.field(default_factory=dict)


@compatibility(is_backward_compatible=False)
class SubgraphMatcher:
    """Finds a pattern in graphs.

    Args:
        pattern (Graph): what to find. Values inside it may have no users elsewhere; its results may.
        match_output (bool): the results have to be those of the graph.
        match_placeholder (bool): inputs match inputs only; otherwise anything.
        remove_overlapping_matches (bool): of occurrences with common nodes only the first.
        ignore_literals (bool): numbers and other constants need not be equal.

    Raises:
        ValueError: the pattern has no nodes.
        AssertionError: it has a node that nothing uses.
    """

    def __init__(
        self,
        pattern: Graph,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        if len(pattern.nodes) == 0:
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        if any(n.op != "output" and not n.is_impure() and not n.users for n in pattern.nodes):
            raise AssertionError("SubgraphMatcher cannot be initialized with a pattern with dead code")
        self.pattern, self.match_output, self.match_placeholder = pattern, match_output, match_placeholder
        self.remove_overlapping_matches, self.ignore_literals = remove_overlapping_matches, ignore_literals
        output = pattern.output_node()
        self.pattern_placeholder_nodes = [n for n in pattern.nodes if n.op == "placeholder"]
        self.pattern_returning_nodes = output.all_input_nodes
        sinks = [n for n in output.all_input_nodes if len(n.users) == 1]
        self.pattern_anchors = [output] if match_output else sinks

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """The occurrences of the pattern in a graph, in its order.

        Args:
            node_name_match (str): a node with this in its name is taken for any node of the pattern.
        """
        starts = [
            (anchor, [n for n in graph.nodes if self._alike(anchor, n, node_name_match)])
            for anchor in self.pattern_anchors
        ]
        found = []
        for nodes in self._from(starts, {}, node_name_match) if starts else ():
            if all(n in nodes for n in self.pattern_returning_nodes) and self._stands_alone(nodes):
                inputs = [nodes.get(n) for n in self.pattern_placeholder_nodes]
                results = [nodes[n] for n in self.pattern_returning_nodes]
                found.append(InternalMatch(list(self.pattern_anchors), nodes, inputs, results))
        return _apart(found) if self.remove_overlapping_matches else found

    def _from(self, starts, nodes, name):
        """The ways to place the anchors that are left."""
        if not starts:
            yield nodes
            return
        (anchor, candidates), *rest = starts
        for candidate in candidates:
            placed = dict(nodes)
            if self._place(anchor, candidate, placed, name):
                yield from self._from(rest, placed, name)

    def _alike(self, theirs, ours, name=""):
        if theirs.op == "placeholder" and not self.match_placeholder or name and name in ours.name:
            return True
        if theirs.op != ours.op:
            return False
        if theirs.op == "get_attr":
            return type(_attribute(theirs)) is type(_attribute(ours))
        return theirs.op in _OUTER or theirs.target == ours.target

    def _place(self, theirs, ours, nodes, name=""):
        """Whether a node of the pattern is this one, with all that it reads; `nodes` takes them up."""
        if theirs in nodes:
            return nodes[theirs] is ours
        if any(ours is n for n in nodes.values()) or not self._alike(theirs, ours, name):
            return False
        nodes[theirs] = ours
        if theirs.op == "placeholder":
            return True
        pair = _arguments(theirs, ours)
        return pair is not None and self._place_all(*pair, nodes)

    def _place_all(self, theirs, ours, nodes):
        return len(theirs) == len(ours) and all(
            self._place_value(a, b, nodes) for a, b in zip(theirs, ours, strict=True)
        )

    def _place_value(self, theirs, ours, nodes):
        if isinstance(theirs, Node) and isinstance(ours, Node):
            return self._place(theirs, ours, nodes)
        if isinstance(theirs, (list, tuple)) and isinstance(ours, (list, tuple)):
            return self._place_all(theirs, ours, nodes)
        if isinstance(theirs, dict) and isinstance(ours, dict):
            return list(theirs) == list(ours) and self._place_all([*theirs.values()], [*ours.values()], nodes)
        if isinstance(theirs, slice) and isinstance(ours, slice):
            return self._place_all(_bounds(theirs), _bounds(ours), nodes)
        if isinstance(theirs, Node):
            if theirs.op != "placeholder":
                return False
            # An input of the pattern may be a constant of the graph.
            same = theirs not in nodes or nodes[theirs] == ours
            nodes.setdefault(theirs, ours)
            return same or self.ignore_literals
        if isinstance(ours, Node):
            return False
        return self.ignore_literals or type(theirs) is type(ours) and theirs == ours

    def _stands_alone(self, nodes):
        """Whether nothing else uses what is inside, and no value leaves the piece and comes back to it."""
        ours = {n for theirs, n in nodes.items() if theirs.op != "placeholder"}
        shared = (*self.pattern_placeholder_nodes, *self.pattern_returning_nodes)
        if any(user not in ours for theirs, n in nodes.items() if theirs not in shared for user in n.users):
            return False
        ours = {n for n in ours if n.op != "output"}
        return validate_partition(list(ours))


def _bounds(part):
    return part.start, part.stop, part.step


def _attribute(node):
    value = node.graph.owning_module
    for part in node.target.split("."):
        value = getattr(value, part)
    return value


def _arguments(theirs, ours):
    """The arguments of both nodes in one order, or None. Calls of one overload are compared by its schema."""
    if len(theirs.args) == len(ours.args) and list(theirs.kwargs) == list(ours.kwargs):
        return (*theirs.args, *theirs.kwargs.values()), (*ours.args, *ours.kwargs.values())
    schema = getattr(theirs.target, "_schema", None) if theirs.op == "call_function" else None
    if schema is None:
        return None
    return tuple(_by_schema(node, schema.arguments) for node in (theirs, ours))


def _by_schema(node, parameters):
    values = []
    for i, p in enumerate(parameters):
        positional = i < len(node.args) and not p.kwarg_only
        values.append(node.kwargs[p.name] if p.name in node.kwargs else node.args[i] if positional else p.default_value)
    return values


def _apart(matches):
    """Those that share no node with an earlier one."""
    used: set[Node] = set()
    kept = []
    for match in matches:
        own = {n for theirs, n in match.nodes_map.items() if theirs.op not in _OUTER}
        if not own & used:
            kept.append(match)
            used |= own
    return kept
