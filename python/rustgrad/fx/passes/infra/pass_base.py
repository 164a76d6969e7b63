"""`PassBase`: a change of a graph, with what has to hold before and after it."""

from __future__ import annotations

import abc
from typing import NamedTuple

from ...graph_module import GraphModule

__all__ = ["PassBase", "PassResult"]


class PassResult(NamedTuple):
    """What a pass returns: the module, and whether the pass changed it."""

    graph_module: GraphModule
    modified: bool


class PassBase(abc.ABC):
    """A pass: `call` does the work, `requires` and `ensures` raise where a graph is not as it should be."""

    def __call__(self, graph_module: GraphModule) -> PassResult | None:
        """Checks the graph, runs the pass, and checks it again."""
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module: GraphModule) -> PassResult | None:
        """Changes the graph."""

    def requires(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Called before the pass."""

    def ensures(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Called after the pass."""
