"""Which modules of a package need which."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class DiGraph:
    """Named nodes with attributes (`nodes`), and edges from what needs to what is needed."""

    def __init__(self) -> None:
        self.nodes: dict[str, dict[str, Any]] = {}
        self._succ: dict[str, dict[str, bool]] = {}
        self._pred: dict[str, dict[str, bool]] = {}

    def add_node(self, n: str, **kwargs: Any) -> None:
        """Adds a node, or attributes to the one of that name."""
        self.nodes.setdefault(n, {}).update(kwargs)
        self._succ.setdefault(n, {})
        self._pred.setdefault(n, {})

    def add_edge(self, u: str, v: str) -> None:
        """`u` needs `v`."""
        self.add_node(u)
        self.add_node(v)
        self._succ[u][v] = self._pred[v][u] = True

    @property
    def edges(self) -> Iterator[tuple[str, str]]:
        return ((u, v) for u, needed in self._succ.items() for v in needed)

    def __contains__(self, n: object) -> bool:
        return n in self.nodes

    def __iter__(self) -> Iterator[str]:
        return iter(self.nodes)

    def successors(self, n: str) -> Iterator[str]:
        return iter(self._succ[n])

    def predecessors(self, n: str) -> Iterator[str]:
        return iter(self._pred[n])

    def _closure(self, n: str, step: dict[str, dict[str, bool]]) -> set[str]:
        found, left = {n}, [n]
        while left:
            new = step.get(left.pop(), {}).keys() - found
            found |= new
            left += new
        return found

    def all_paths(self, src: str, dst: str) -> str:
        """The paths from one node to another, as a graph of Graphviz."""
        part = DiGraph()
        between = self._closure(src, self._succ) & self._closure(dst, self._pred)
        for u, v in self.edges:
            if u in between and v in between:
                part.add_edge(u, v)
        return part.to_dot()

    def first_path(self, dst: str) -> list[str]:
        """The nodes by which `dst` came into the graph first."""
        order, path = {n: k for k, n in enumerate(self.nodes)}, [dst]
        while needing := [n for n in self._pred[path[-1]] if n not in path]:
            path.append(min(needing, key=order.__getitem__))
        return path[::-1]

    def to_dot(self) -> str:
        """The graph in the language of Graphviz."""
        edges = "\n".join(f'"{u}" -> "{v}";' for u, v in self.edges)
        return f"digraph G {{\nrankdir = LR;\nnode [shape=box];\n{edges}\n}}\n"
