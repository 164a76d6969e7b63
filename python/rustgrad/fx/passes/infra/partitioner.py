"""`CapabilityBasedPartitioner`: groups of supported nodes, as large as the graph's dependencies allow."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

from ...graph_module import GraphModule
from ...node import Node, _get_qualified_name
from ..operator_support import OperatorSupportBase
from ..utils.fuser_utils import fuse_by_partitions

__all__ = ["CapabilityBasedPartitioner", "Partition"]


class Partition:
    """A group of nodes.

    Attributes:
        id (int): its number.
        nodes (dict): its nodes.
    """

    def __init__(self, id: int | None = None, nodes: Iterable[Node] | None = None, node_orders: Any = None) -> None:
        self.id, self.nodes = id, dict.fromkeys(nodes or ())

    def __repr__(self) -> str:
        return str(self.nodes)

    def add_node(self, node: Node, node_order: int | None = None) -> None:
        """Adds a node."""
        self.nodes[node] = None

    def remove_node(self, node: Node) -> None:
        """Removes a node."""
        del self.nodes[node]

    def size(self) -> int:
        """The number of nodes."""
        return len(self.nodes)


class CapabilityBasedPartitioner:
    """Groups the nodes of a graph that something supports.

    Args:
        graph_module (GraphModule): the graph.
        operator_support (OperatorSupportBase): says which nodes are supported.
        allows_single_node_partition (bool): whether a group may have one node that computes something.
        non_compute_ops (sequence): names of functions that compute nothing, such as views.
        allowed_single_node_partition_ops (sequence): names of functions that may be a group of their own.
    """

    def __init__(
        self,
        graph_module: GraphModule,
        operator_support: OperatorSupportBase,
        allows_single_node_partition: bool = False,
        non_compute_ops: Sequence[str] | None = None,
        allowed_single_node_partition_ops: Sequence[str] | None = None,
    ) -> None:
        self.graph_module, self.operator_support = graph_module, operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = non_compute_ops or []
        self.allowed_single_node_partition_ops = allowed_single_node_partition_ops or []
        self._modules = dict(graph_module.named_modules())

    def _is_node_supported(self, node: Node) -> bool:
        return self.operator_support.is_node_supported(self._modules, node)

    def propose_partitions(self) -> list[Partition]:
        """The groups: no value leaves a group and comes back to it through a node outside."""
        nodes = list(self.graph_module.graph.nodes)
        group: dict[Node, int] = {}
        members: dict[int, list[Node]] = {}
        for node in reversed(nodes):
            if node.op not in ("placeholder", "output") and self._is_node_supported(node):
                number = len(members)
                group[node], members[number] = number, [node]
        after = self._later(nodes)
        # From the last node upwards, each group takes in all others that it can.
        for number in list(members):
            for other in list(members):
                if number in members and other < number and self._may_join(members, number, other, after, group):
                    for node in members[other]:
                        group[node] = number
                    members[number] += members.pop(other)
        self._keep_items(nodes, group, members)
        place = {node: at for at, node in enumerate(nodes)}
        kept = [sorted(m, key=place.__getitem__) for m in members.values() if m and self._is_worth(m)]
        kept.sort(key=lambda m: place[m[0]], reverse=True)
        return [Partition(number, m) for number, m in enumerate(kept)]

    @staticmethod
    def _later(nodes: list[Node]) -> dict[Node, set[Node]]:
        """For each node those that depend on it."""
        after: dict[Node, set[Node]] = {}
        for node in reversed(nodes):
            after[node] = set().union(*({u} | after[u] for u in node.users))
        return after

    def _may_join(
        self, members: dict[int, list[Node]], a: int, b: int, after: dict[Node, set[Node]], group: dict[Node, int]
    ) -> bool:
        """Whether no path leads from one of two groups over something else to the other, other groups being one step each."""
        inside = set(members[a]) | set(members[b])
        start = {u for n in inside for u in n.users if u not in inside}
        seen: set[Node] = set()
        while start:
            node = start.pop()
            if node in inside:
                return False
            if node in seen:
                continue
            number = group.get(node)
            step = members[number] if number is not None else [node]
            seen.update(step)
            start |= {u for n in step for u in n.users if u not in seen}
        return True

    @staticmethod
    def _keep_items(nodes: list[Node], group: dict[Node, int], members: dict[int, list[Node]]) -> None:
        """Items of a result are taken where it is computed."""
        for node in nodes:
            for user in list(node.users):
                if user.op != "call_function" or user.target is not operator.getitem or user.args[0] is not node:
                    continue
                there = group.get(node)
                if group.get(user) == there:
                    continue
                if user in group:
                    members[group.pop(user)].remove(user)
                if there is not None:
                    group[user] = there
                    members[there].append(user)

    def _is_worth(self, members: list[Node]) -> bool:
        """Whether a group has more than one node that computes something, or one that may be alone."""
        if self.allows_single_node_partition:
            return True
        count = 0
        for node in members:
            if node.op == "call_function":
                name = _get_qualified_name(node.target)
                if name in self.allowed_single_node_partition_ops:
                    return True
                count += name not in self.non_compute_ops and node.target is not operator.getitem
            else:
                count += node.op in ("call_module", "call_method")
        return count > 1

    def fuse_partitions(self, partitions: list[Partition], prefix: str = "fused_") -> GraphModule:
        """The module with each group as a submodule `fused_0`, `fused_1`, ..."""
        return fuse_by_partitions(self.graph_module, [list(p.nodes) for p in partitions], prefix)

    def remove_bookend_non_compute_ops(self, partitions: list[Partition]) -> None:
        """Takes out of the groups what computes nothing at their ends."""

        def computes_nothing(node: Node) -> bool:
            return node.op == "call_function" and _get_qualified_name(node.target) in self.non_compute_ops

        for partition in partitions:
            changed = True
            while changed:
                inside = partition.nodes
                ends = [
                    n
                    for n in inside
                    if computes_nothing(n)
                    and (not any(i in inside for i in n.all_input_nodes) or not any(u in inside for u in n.users))
                ]
                changed = bool(ends)
                for node in ends:
                    partition.remove_node(node)

    def partition_and_fuse(self, prefix: str = "fused_") -> GraphModule:
        """`fuse_partitions` of `propose_partitions`."""
        return self.fuse_partitions(self.propose_partitions(), prefix)
